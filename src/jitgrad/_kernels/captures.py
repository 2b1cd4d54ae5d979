"""What a user's function reads from outside of itself: module globals and closure cells.

Numba, like the tracing of expressions, freezes what it reads. So every such value is remembered and compared (`changed`): a compiled form is
right as long as none of them is another. `digests.py` puts the same values into names, `copies.py` replaces them.
"""

from __future__ import annotations

import dis
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

Function = types.FunctionType
PLAIN: Final = (type(None), bool, int, float, complex, str, bytes)
_MISSING: Final = object()
LIBRARIES: Final = ("builtins", "math", "numpy", "numba", "scipy", "jitgrad", "operator", "_operator")
NAMED: Final = (type, types.BuiltinFunctionType, np.ufunc)


@dataclass(slots=True)
class Read:
    """One value from outside: `name` as the source spells it, `get()` looks it up again; `library`: an attribute of a library."""

    name: str
    value: Any
    get: Callable[[], Any]
    library: bool = False
    snapshot: Any = None

    def stale(self) -> bool:
        """Whether another look finds something else."""
        try:
            found = self.get()
        except (AttributeError, KeyError, ValueError):
            return True
        if found is not self.value:
            return True
        return self.snapshot is not None and frozen(found) != self.snapshot


def plain_function(value: Any) -> Function | None:
    """The Python function behind a value: itself, or what a jitted function was made from."""
    if isinstance(value, Function):
        return value
    inner = getattr(value, "py_func", None)
    return inner if isinstance(inner, Function) else None


def frozen(value: Any) -> Any:
    """A list, an array or a module of the user's as a value that can be compared; None for what can't change in place."""
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype, value.tobytes()
    if isinstance(value, list):
        return tuple(value)
    if isinstance(value, types.ModuleType) and not in_library(value):
        return tuple((name, one) for name, one in value.__dict__.items() if type(one) in PLAIN)
    return None


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def chains(function: Function) -> list[tuple[bool, tuple[str, ...]]]:
    """The outer names a function reads, each with the attributes that follow; True for a closure cell."""
    found: dict[tuple[bool, tuple[str, ...]], None] = {}
    for code in _codes(function.__code__):
        chain: list[str] = []
        cell = False
        for step in dis.get_instructions(code):
            if step.opname in ("LOAD_ATTR", "LOAD_METHOD") and chain:
                chain.append(str(step.argval))
                continue
            if chain:
                found[cell, tuple(chain)] = None
                chain = []
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                chain, cell = [str(step.argval)], False
            elif step.opname in ("LOAD_DEREF", "LOAD_CLASSDEREF") and step.argval in function.__code__.co_freevars:
                chain, cell = [str(step.argval)], True
    return list(found)


def first(function: Function, name: str, cell: bool) -> tuple[Any, Callable[[], Any]]:
    if cell:
        place = (function.__closure__ or ())[function.__code__.co_freevars.index(name)]
        return place.cell_contents, lambda: place.cell_contents
    scope = function.__globals__
    builtins = scope.get("__builtins__", {})
    names = builtins if isinstance(builtins, dict) else builtins.__dict__

    def get() -> Any:
        found = scope.get(name, _MISSING)
        return names[name] if found is _MISSING else found

    return get(), get


def reads(function: Function) -> list[Read]:
    """The values a function reads directly; attributes are followed through modules only.

    A name that does not exist (yet) is left out: whoever compiles the function will complain.
    """
    found: dict[str, Read] = {}
    for cell, (name, *attributes) in chains(function):
        try:
            value, get = first(function, name, cell)
        except (KeyError, ValueError):
            continue
        spelled, library = name, False
        for attribute in attributes:
            if not isinstance(value, types.ModuleType) or not hasattr(value, attribute):
                break
            library = library or in_library(value)
            value, get, spelled = getattr(value, attribute), _attribute(value, attribute), f"{spelled}.{attribute}"
        found.setdefault(spelled, Read(spelled, value, get, library, None if library else frozen(value)))
    return list(found.values())


def in_library(module: types.ModuleType) -> bool:
    return module.__name__.partition(".")[0] in LIBRARIES


def _attribute(owner: Any, name: str) -> Callable[[], Any]:
    return lambda: getattr(owner, name)


def all_reads(*functions: Function) -> list[Read]:
    """The values that functions, and the functions they call, read; libraries and built-in names apart.

    `partial_functions` are derivatives that the author of a called function gave for it: what they read counts too.
    """
    found: list[Read] = []
    seen: set[Function] = set(functions)
    todo = list(functions)
    while todo:
        function = todo.pop()
        for read in reads(function):
            inner = plain_function(read.value)
            if (
                read.library
                or isinstance(read.value, NAMED)
                or (isinstance(read.value, types.ModuleType) and in_library(read.value))
                or (inner is not None and foreign(inner))
            ):
                continue
            found.append(read)
            called = [] if inner is None else [inner]
            parts = getattr(read.value, "partial_functions", None)
            if parts is not None:
                found.append(Read(f"{read.name}.partial", parts, _attribute(read.value, "partial_functions")))
                called += parts
            todo += [one for one in called if one not in seen]
            seen.update(called)
    return found


def foreign(function: Function) -> bool:
    """Whether a function belongs to a library whose version says all that must be known."""
    return (function.__module__ or "").partition(".")[0] in LIBRARIES


def changed(reads: Iterable[Read]) -> bool:
    """Whether one of the values is not what it was."""
    return any(read.stale() for read in reads)


def parameters_read(function: Function) -> frozenset[str]:
    """Which of its parameters a function looks at."""
    code = function.__code__
    names = set(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    found: set[str] = set()
    for step in dis.get_instructions(code):
        if step.opname.startswith(("LOAD_FAST", "LOAD_CLOSURE", "LOAD_DEREF")):
            found |= names & set(step.argval if isinstance(step.argval, tuple) else (step.argval,))
    return frozenset(found)
