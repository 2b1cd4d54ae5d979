"""What the traced code reads besides its arguments: found before the run, compared at each call.

Reachable are: the function's closure and globals and those of the functions it calls, attributes of modules, optimizers and other objects that it
names, and what those hold. The entry compares each entry by identity (15 ns); one that is another object but an equal number, flag or string is
taken over when the entry has said no. Lists and dictionaries of plain values are compared by value.
"""

from __future__ import annotations

import random
import types
from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np

from .._kernels.captures import Read, all_reads, plain_function
from .._tensor.base import TensorBase

PLAIN: Final = (bool, int, float, str, bytes, type(None))
_PACKAGE: Final = __name__.partition(".")[0]
_FOREIGN: Final = frozenset(
    {
        _PACKAGE,
        "numpy",
        "numba",
        "builtins",
        "typing",
        "collections",
        "functools",
        "math",
        "itertools",
        "operator",
        "torch",
        "threading",
    }
)
_LIMIT: Final = 5000  # objects looked at; a larger world is not guarded beyond
_SILENT: Final = frozenset(
    {"__init__", "extra_repr", "__repr__", "reset_parameters", "__setstate__"}
)  # methods that no call reaches


def equal(old: Any, new: Any) -> bool:
    """Whether a value is as good as another: the same object, or an equal plain one of the same type."""
    return old is new or (type(old) is type(new) and type(old) in PLAIN and repr(old) == repr(new))


class Entry:
    """One entry of a dictionary, or the contents of a closure's cell, and what it was."""

    __slots__ = ("holder", "key", "name", "value")

    def __init__(self, name: str, holder: Any, key: Any, value: Any) -> None:
        self.name, self.holder, self.key, self.value = name, holder, key, value

    def now(self) -> Any:
        """The value as it is."""
        return self.holder.cell_contents if isinstance(self.holder, types.CellType) else self.holder[self.key]


class Held:
    """A container of plain values and other things: the former by value, the latter by identity."""

    __slots__ = ("copy", "flat", "name", "options", "value")

    def __init__(self, name: str, value: Any, options: Any = None) -> None:
        self.name, self.value, self.copy = name, value, snapshot(value)
        self.options = options  # a group of an optimizer, whose options these are
        self.flat = type(value) is list and not any(type(item) in (list, tuple, dict) for item in value)

    def holds(self) -> bool:
        """Whether it is what it was."""
        if self.options is not None:
            return same(self.copy, {key: value for key, value in self.options.items() if key != "params"})
        return same(self.copy, self.value)


def snapshot(value: Any) -> Any:
    """A copy of nested lists, tuples and dictionaries."""
    if type(value) in (list, tuple):
        return (type(value), [snapshot(item) for item in value])
    if type(value) is dict:
        return (dict, [(key, snapshot(item)) for key, item in value.items()])
    return value


def same(copy: Any, value: Any) -> bool:
    """Whether a value is what its snapshot says."""
    if type(value) in (list, tuple):
        return (
            type(copy) is tuple
            and copy[0] is type(value)
            and len(copy[1]) == len(value)
            and all(map(same, copy[1], value))
        )
    if type(value) is dict:
        return (type(copy) is tuple and copy[0] is dict and len(copy[1]) == len(value)
                and all(key == other and same(c, item) for (key, c), (other, item) in zip(copy[1], value.items(), strict=True)))  # fmt: skip
    return equal(copy, value)


class Guards:
    """All that a function reads."""

    def __init__(self, function: Any) -> None:
        self.entries: list[Entry] = []
        self.sizes: list[tuple[Any, int, str]] = []
        self.held: list[Held] = []
        self.reads: list[Read] = []  # what users' kernels read
        self.seen: set[int] = set()
        self.keep: list[Any] = []
        self.names: set[str] = set()
        self.places: list[tuple[Any, str, set[str]]] = []  # dictionaries of objects, classes and modules, and the keys that are guarded
        self.states: list[tuple[str, Callable[[], Any], Any]] = []  # what the run must leave as it was, whatever it is at later calls
        self.refused = ""
        self.groups: list[tuple[str, Any]] = []
        self.visit(function, getattr(function, "__name__", "function"))
        self.attributes()
        self.state("Python's random numbers", random.getstate)
        self.state("NumPy's random numbers", numpy_state)

    def state(self, name: str, get: Callable[[], Any]) -> None:
        """Note a state that a program would not change again."""
        self.states.append((name, get, get()))

    def attributes(self) -> None:
        """The attributes of all objects, classes and modules that some code names; what these hold may lead to more code and more objects."""
        grown = True
        while grown:
            grown = False
            for mapping, name, done in list(self.places):
                for key in [key for key in mapping if key in self.names and key not in done]:
                    done.add(key)
                    self.entry(name, mapping, key)
                    grown = True
            if "param_groups" in self.names:  # read by the function itself, and not by the optimizer alone
                for name, group in self.groups:
                    self.held.append(Held(name, {key: value for key, value in group.items() if key != "params"}, group))
                    grown = True
                self.groups = []

    def kernels(self, contracts: Iterable[Any]) -> None:
        """Guard what users' kernels read, and which functions they are."""
        for contract in contracts:
            functions = [plain_function(found) for found in (contract.forward, contract.backward, contract.rule)]
            self.reads += all_reads(*(found for found in functions if found is not None))
            for key in ("forward", "backward", "rule"):
                self.entries.append(Entry(f"the {key} of {contract.name}", contract.__dict__, key, contract.__dict__[key]))

    def drifted(self) -> bool:
        """Take over entries that are other, but equal, objects; whether there were any."""
        found = False
        for entry in self.entries:
            try:
                now = entry.now()
            except (KeyError, ValueError):
                continue
            if now is not entry.value and equal(entry.value, now):
                entry.value, found = now, True
        return found

    def changed(self) -> str:
        """The name of something that the run has changed."""
        moved = next((name for name, get, before in self.states if get() != before), "")
        return self.differs() or moved

    def differs(self) -> str:
        """The name of something that is not as it was."""
        for entry in self.entries:
            try:
                if not equal(entry.value, entry.now()):
                    return entry.name
            except (KeyError, ValueError):
                return entry.name
        for sized, count, name in self.sizes:
            if len(sized) != count:
                return name
        return next((held.name for held in self.held if not held.holds()), "")

    # ---- what is reachable
    def visit(self, value: Any, name: str) -> None:
        """Guard what an object holds."""
        if (
            type(value) in PLAIN
            or isinstance(value, TensorBase)
            or id(value) in self.seen
            or len(self.seen) > _LIMIT
        ):
            return
        self.seen.add(id(value))
        self.keep.append(value)
        if isinstance(value, types.ModuleType):
            if value.__name__.partition(".")[0] not in _FOREIGN:
                self.places.append((value.__dict__, name, set()))
        elif isinstance(value, type):
            self.classes(value, name)
        elif isinstance(value, types.MethodType):
            self.visit(value.__self__, f"{name}.__self__")
            self.visit(value.__func__, name)
        elif (function := plain_function(value)) is not None:
            self.function(function, name)
        elif isinstance(value, (np.random.Generator, random.Random)):
            self.state(name, lambda: state_of(value))
        elif hasattr(type(value), "__next__"):
            self.refused = f"the iterator {name}, which gives something else each time"
        elif hasattr(value, "last_epoch") and hasattr(value, "get_last_lr"):
            self.scheduler(value, name)
        elif type(value) in (list, tuple):
            if type(value) is list:
                self.held.append(Held(name, value))
            for k, item in enumerate(value):
                self.visit(item, f"{name}[{k}]")
        elif type(value) is dict:
            self.held.append(Held(name, value))
            for key, item in value.items():
                self.visit(item, f"{name}[{key!r}]")
        elif hasattr(value, "param_groups") and hasattr(value, "_update"):
            self.optimizer(value, name)
        elif hasattr(value, "__dict__"):
            self.instance(value, name)

    def entry(self, name: str, mapping: Any, key: Any) -> None:
        """Guard one entry of a dictionary, and what it holds."""
        value = mapping[key]
        self.entries.append(Entry(f"{name}.{key}", mapping, key, value))
        self.visit(value, f"{name}.{key}")

    def function(self, function: types.FunctionType, name: str) -> None:
        """Guard what a function reads."""
        if (function.__module__ or "").partition(".")[0] in _FOREIGN:
            return
        self.names |= names_of(function.__code__)
        scope = function.__globals__
        for key in sorted(names_of(function.__code__)):
            if key in scope:
                self.entry(f"{function.__module__}", scope, key)
        for key, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            try:
                value = cell.cell_contents
            except ValueError:
                continue
            self.entries.append(Entry(key, cell, key, value))
            self.visit(value, key)
        for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self.visit(default, f"a default of {name}")

    def classes(self, kind: type, name: str) -> None:
        """The attributes of a class and of what it derives from, as far as some code names them."""
        for base in kind.__mro__:
            if base.__module__.partition(".")[0] not in _FOREIGN and id(base.__dict__) not in self.seen:
                self.places.append((base.__dict__, name, {"__dict__", "__weakref__", "__doc__", "__module__"}))

    def instance(self, value: Any, name: str) -> None:
        """An object's attributes, as far as its methods name them; of a module also parameters, buffers and submodules."""
        kind = type(value)
        is_module = hasattr(value, "_modules")
        if kind.__module__.partition(".")[0] in _FOREIGN and not is_module:
            return
        methods = [m for base in kind.__mro__ if base.__name__ != "Module" for key, m in base.__dict__.items()
                   if isinstance(m, types.FunctionType) and key not in _SILENT]  # fmt: skip
        mapping = value.__dict__
        private = {key for key in mapping if key.startswith("_")} if is_module else set()
        tables = (
            {key for table in ("_parameters", "_buffers", "_modules") for key in mapping.get(table) or ()}
            if is_module
            else set()
        )
        self.places.append((mapping, name, private | tables))
        if not is_module:
            self.sizes.append((mapping, len(mapping), f"the attributes of {name}"))
        self.classes(kind, name)
        if is_module:
            self.module(value, name)
        for method in methods:
            self.names |= names_of(method.__code__)
            self.visit(method, f"{name}.{method.__name__}")

    def module(self, value: Any, name: str) -> None:
        """The tables of a module; hooks by the size of its dictionary, which grows with the first one, and by their tables once there are some."""
        self.sizes.append((value.__dict__, len(value.__dict__), f"the attributes of {name}"))
        for table in ("_parameters", "_buffers", "_modules"):
            held = value.__dict__.get(table) or {}
            if held:
                self.sizes.append((held, len(held), f"{name}.{table}"))
            for key in held:
                self.entry(name, held, key)
        for key, table in value.__dict__.items():
            if key.endswith("_hooks") and table:
                self.sizes.append((table, len(table), f"{name}.{key}"))
                for hook in table:
                    self.entry(f"{name}.{key}", table, hook)

    def scheduler(self, value: Any, name: str) -> None:
        """A function must not step it, since the program would not; the rates that it tells are those of the trace."""
        self.state(f"{name} (step the scheduler outside)", lambda: value.last_epoch)
        self.visit(value.optimizer, f"{name}.optimizer")
        if "get_last_lr" in self.names:
            self.entry(name, value.__dict__, "_last_lr")

    def optimizer(self, value: Any, name: str) -> None:
        """Groups and parameters by identity; options are read at each call."""
        self.sizes.append((value.param_groups, len(value.param_groups), f"{name}.param_groups"))
        for k, group in enumerate(value.param_groups):
            self.entries.append(Entry(f"{name}.param_groups", value.param_groups, k, group))
            self.held.append(Held(f"the parameters of {name}", group["params"]))
            self.groups.append((f"the options of {name}", group))
        self.sizes += [
            (table, len(table), f"{name}.{key}")
            for key, table in value.__dict__.items()
            if key.endswith("_hooks") and "step" in key
        ]


def numpy_state() -> Any:
    """The state of NumPy's global generator."""
    state: Any = np.random.get_state()
    return state[1].tobytes(), state[2]


def state_of(generator: Any) -> Any:
    """The state of a generator of Python or NumPy."""
    return generator.getstate() if isinstance(generator, random.Random) else generator.bit_generator.state


def names_of(code: types.CodeType) -> set[str]:
    """Outer names that code, and the code within it, reads; with those it spells as strings (`getattr(x, "name")`)."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= names_of(constant)
        elif type(constant) is str and constant.isidentifier():
            found.add(constant)
    return found
