"""What a user's function reads from outside of itself: module globals and closure cells.

Two questions hang on it. Is a compiled form still right? Numba, like the tracing of expressions, freezes what it reads, so every such
value is remembered and compared (`changed`). And may a compiled form be taken from disk? Only under a name that holds all of it:
`digest` goes through the bytecode, the constants, every value read and every function called, to any depth, and refuses
(`Unknown`) what it can't put into words.
"""

from __future__ import annotations

import dis
import hashlib
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

Function = types.FunctionType
PLAIN: Final = (type(None), bool, int, float, complex, str, bytes)
_MISSING: Final = object()
_LIBRARIES: Final = ("builtins", "math", "numpy", "numba", "scipy", "jitgrad", "operator", "_operator")
_NAMED: Final = (type, types.BuiltinFunctionType, np.ufunc)
_LARGEST: Final = 1 << 16  # bytes of a captured array: it is compared at every call


class Unknown(Exception):
    """A captured value that has no digest; its argument says which."""


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
    if isinstance(value, types.ModuleType) and not _in_library(value):
        return tuple((name, one) for name, one in value.__dict__.items() if type(one) in PLAIN)
    return None


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _chains(function: Function) -> list[tuple[bool, tuple[str, ...]]]:
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


def _first(function: Function, name: str, cell: bool) -> tuple[Any, Callable[[], Any]]:
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
    for cell, (name, *attributes) in _chains(function):
        try:
            value, get = _first(function, name, cell)
        except (KeyError, ValueError):
            continue
        spelled, library = name, False
        for attribute in attributes:
            if not isinstance(value, types.ModuleType) or not hasattr(value, attribute):
                break
            library = library or _in_library(value)
            value, get, spelled = getattr(value, attribute), _attribute(value, attribute), f"{spelled}.{attribute}"
        found.setdefault(spelled, Read(spelled, value, get, library, None if library else frozen(value)))
    return list(found.values())


def _in_library(module: types.ModuleType) -> bool:
    return module.__name__.partition(".")[0] in _LIBRARIES


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
                or isinstance(read.value, _NAMED)
                or (isinstance(read.value, types.ModuleType) and _in_library(read.value))
                or (inner is not None and _foreign(inner))
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


def _foreign(function: Function) -> bool:
    """Whether a function belongs to a library whose version says all that must be known."""
    return (function.__module__ or "").partition(".")[0] in _LIBRARIES


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


# ---- digest
class _Digest:
    """Feeds values into a hash; a function met again is named by its number, so recursion ends."""

    def __init__(self) -> None:
        self.hash = hashlib.sha256()
        self.seen: dict[Any, int] = {}

    def words(self, *parts: Any) -> None:
        for part in parts:
            text = part if isinstance(part, bytes) else str(part).encode()
            self.hash.update(b"%d:" % len(text))
            self.hash.update(text)

    def value(self, value: Any, name: str) -> None:
        if type(value) in PLAIN:
            self.words(type(value).__name__, repr(value))
        elif isinstance(value, (tuple, list)):
            self.words(type(value).__name__, len(value))
            for item in value:
                self.value(item, name)
        elif isinstance(value, frozenset):
            self.words("frozenset", *sorted(map(repr, value)))
        elif isinstance(value, types.CodeType):
            self.code(value, name)
        elif isinstance(value, (np.ndarray, np.generic)):
            self.array(np.asarray(value), name)
        elif isinstance(value, np.dtype):
            self.words("dtype", value.str)
        elif isinstance(value, types.ModuleType):
            if not _in_library(value):
                raise Unknown(name)  # handed on as a whole: who knows what is read of it
            self.words("module", value.__name__, getattr(value, "__version__", ""))
        elif (function := plain_function(value)) is not None:
            self.function(value, function)
        else:
            self.named(value, name)

    def named(self, value: Any, name: str) -> None:
        """What a name of Python, NumPy or Numba stands for; an object with a state of its own has no digest."""
        kind = type(value)
        if kind.__module__.startswith("numba.core.types"):
            self.words("numba type", repr(value))
        elif isinstance(value, _NAMED) or kind.__name__ == "_ArrayFunctionDispatcher":
            module = getattr(value, "__module__", None) or kind.__module__
            if module.partition(".")[0] not in _LIBRARIES:
                raise Unknown(name)
            self.words("named", module, value.__name__)
        else:
            raise Unknown(name)

    def array(self, value: np.ndarray[Any, Any], name: str) -> None:
        if value.dtype.hasobject or value.nbytes > _LARGEST:
            raise Unknown(name)
        self.words("array", value.dtype.str, value.shape, value.tobytes())

    def function(self, value: Any, function: Function) -> None:
        if function in self.seen:
            self.words("again", self.seen[function])
            return
        self.seen[function] = len(self.seen)
        options = getattr(value, "targetoptions", None) or {}
        self.words(
            "function",
            function.__name__,
            type(value).__name__,
            sorted((k, _spell(v)) for k, v in options.items() if k != "cache"),
        )
        if _foreign(function):
            self.words(function.__module__, function.__qualname__)
            return
        self.code(function.__code__, function.__name__)
        self.value(function.__defaults__, function.__name__)
        for read in reads(function):
            self.words(read.name)
            self.value(read.value, read.name)

    def code(self, code: types.CodeType, name: str) -> None:
        self.words(
            "code",
            code.co_code,
            code.co_names,
            code.co_varnames,
            code.co_freevars,
            code.co_argcount,
            code.co_kwonlyargcount,
            code.co_flags,
            code.co_exceptiontable,
        )
        self.value(code.co_consts, name)


def _spell(value: Any) -> str:
    return repr(sorted(map(str, value))) if isinstance(value, (set, frozenset)) else repr(value)


def digest(function: Function, words: Sequence[Any]) -> str:
    """A name for a function, all that it reads and calls, and `words`. Raises `Unknown` where something has no digest."""
    state = _Digest()
    state.words(*words)
    state.function(function, function)
    return state.hash.hexdigest()[:24]


def recursive(function: Function, above: tuple[Function, ...] = ()) -> bool:
    """Whether a function, or one that it calls, ends up calling itself: Numba's cache may give back code for it that crashes (0.68.1)."""
    if function in above:
        return True
    called = [plain_function(read.value) for read in reads(function) if not read.library]
    return any(recursive(one, (*above, function)) for one in called if one is not None and not _foreign(one))


# ---- copies
def rebound(function: Function, replace: Callable[[Any, str], Any]) -> Function:
    """The same function reading `replace(value, name)` for every outer name; attributes of modules are not touched."""
    names = {chain[0] for cell, chain in _chains(function) if not cell}
    found = {}
    for name in names:
        try:
            found[name] = replace(_first(function, name, False)[0], name)
        except KeyError:
            continue
    return _copied(function, found, replace)


def relinked(function: Function, replace: Callable[[Any, str], Any]) -> Function:
    """The same function calling `replace(callee, name)` for every function it calls, also where that is an attribute of a module."""
    found: dict[str, Any] = {}
    for read in reads(function):
        if read.library or plain_function(read.value) is None:
            continue
        value = replace(read.value, read.name)
        root, *attributes = read.name.split(".")
        if not attributes:
            found[root] = value
        elif value is not read.value and root in function.__globals__:
            place = found[root] = _module_like(found.get(root, function.__globals__[root]))
            for attribute in attributes[:-1]:
                inner = place.__dict__[attribute] = _module_like(place.__dict__[attribute])
                place = inner
            place.__dict__[attributes[-1]] = value
    return _copied(function, found, replace)


def tie(function: Function, copy: Function, done: dict[Function, Any]) -> None:
    """Let a copy made by `relinked` call what `done` has for functions that it still calls as they are."""
    cells = dict(zip(copy.__code__.co_freevars, copy.__closure__ or (), strict=True))
    for read in reads(function):
        inner = plain_function(read.value)
        found = None if inner is None else done.get(inner)
        if found is None:
            continue
        if read.name in cells:
            cells[read.name].cell_contents = found
        elif read.name in copy.__globals__:
            copy.__globals__[read.name] = found


def _module_like(module: types.ModuleType) -> types.ModuleType:
    """A module with the same contents, to be changed."""
    copy = types.ModuleType(module.__name__)
    copy.__dict__.update(module.__dict__)
    return copy


def _copied(function: Function, names: dict[str, Any], replace: Callable[[Any, str], Any]) -> Function:
    """The function over other globals, its cells replaced."""
    cells = []
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            cells.append(types.CellType(replace(cell.cell_contents, name)))
        except ValueError:  # not filled yet
            cells.append(cell)
    scope = {**function.__globals__, **names}
    copy = types.FunctionType(function.__code__, scope, function.__name__, function.__defaults__, tuple(cells) or None)
    copy.__kwdefaults__, copy.__qualname__, copy.__module__ = (
        function.__kwdefaults__,
        function.__qualname__,
        function.__module__,
    )
    return copy
