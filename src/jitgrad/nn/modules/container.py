# ruff: noqa: D102  (forward and extra_repr are described by their base)
"""Modules that hold other modules."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, groupby
from typing import Any, TypeVar, overload

from ..._tensor import Tensor
from .module import Module, indent, printed

__all__ = ["DataParallel", "ModuleDict", "ModuleList", "Sequential"]

Listed = TypeVar("Listed", bound="_Numbered")


class _Numbered(Module):
    """Children by position; the first half of `Sequential` and `ModuleList`."""

    def _key(self, index: int) -> str:
        """The name of the child at a position, which may count from the end."""
        index = operator.index(index)
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} is out of range")
        return list(self._modules)[index]

    def _renumber(self) -> None:
        children = list(self._modules.values())
        self._modules.clear()
        self._modules.update({str(k): child for k, child in enumerate(children)})

    def __setitem__(self, idx: int, module: Module) -> None:
        self.__setattr__(self._key(idx), module)

    def __delitem__(self, idx: int | slice) -> None:
        for key in list(self._modules)[idx] if isinstance(idx, slice) else [self._key(idx)]:
            self.__delattr__(key)
        self._renumber()

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def append(self: Listed, module: Module) -> Listed:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def _insert(self, index: int, module: Module) -> None:
        children = list(self._modules.values())
        children.insert(index, module)
        self._modules.update({str(k): child for k, child in enumerate(children)})

    def pop(self, key: int | slice) -> Any:
        """Take out the module at a position, or those of a slice, and give it back."""
        taken = self[key]  # type: ignore[index]
        del self[key]
        return taken


class Sequential(_Numbered):
    """Modules one after the other, given as arguments or as an OrderedDict with their names.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    >>> model(torch.ones(2, 3)).shape
    torch.Size([2, 1])
    """

    @overload
    def __init__(self, *args: Module) -> None: ...
    @overload
    def __init__(self, arg: OrderedDict[str, Module], /) -> None: ...
    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for key, module in args[0].items():
                self.add_module(key, module)
        else:
            for k, module in enumerate(args):
                self.add_module(str(k), module)

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)  # type: ignore[misc]  # a child that is None fails as in torch
        return input

    @overload
    def __getitem__(self, idx: int) -> Any: ...
    @overload
    def __getitem__(self, idx: slice) -> Sequential: ...
    def __getitem__(self, idx: int | slice) -> Any:
        if isinstance(idx, slice):
            return type(self)(OrderedDict(list(self._modules.items())[idx]))  # type: ignore[arg-type]
        return self._modules[self._key(idx)]

    def insert(self, index: int, module: Module) -> Sequential:
        """Put a module before the one at `index`."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        if not -len(self) <= index <= len(self):
            raise IndexError(f"Index out of range: {index}")
        self._insert(index, module)
        return self

    def extend(self, sequential: Iterable[Module]) -> Sequential:
        """Add modules at the end."""
        for module in sequential:
            self.append(module)
        return self

    def __add__(self, other: Sequential) -> Sequential:
        _expect_sequential(other)
        return Sequential(*self, *other)

    def __iadd__(self, other: Sequential) -> Sequential:
        _expect_sequential(other)
        return self.extend(list(other))

    def __mul__(self, other: int) -> Sequential:
        _expect_count(self, other)
        return Sequential(*(list(self) * other))

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Sequential:
        _expect_count(self, other)
        return self.extend(list(self) * (other - 1))


def _expect_sequential(other: object) -> None:
    if not isinstance(other, Sequential):
        raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")


def _expect_count(module: Sequential, other: object) -> None:
    if not isinstance(other, int):
        raise TypeError(f"unsupported operand type(s) for *: {type(module)} and {type(other)}")
    if other <= 0:
        raise ValueError(f"Non-positive multiplication factor {other} for {type(module)}")


class ModuleList(_Numbered):
    """A list of modules, to be called by whoever holds it.

    >>> from jitgrad import nn
    >>> layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
    >>> layers
    ModuleList(
      (0-2): 3 x Linear(in_features=2, out_features=2, bias=True)
    )
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    @overload
    def __getitem__(self, idx: int) -> Any: ...
    @overload
    def __getitem__(self, idx: slice) -> ModuleList: ...
    def __getitem__(self, idx: int | slice) -> Any:
        if isinstance(idx, slice):
            return type(self)(list(self)[idx])
        return self._modules[self._key(idx)]

    def insert(self, index: int, module: Module) -> None:
        """Put a module before the one at `index`."""
        self._insert(index, module)

    def extend(self, modules: Iterable[Module]) -> ModuleList:
        """Add modules at the end."""
        if not isinstance(modules, Iterable):
            raise TypeError("ModuleList.extend should be called with an iterable, but got " + type(modules).__name__)
        for module in list(modules):
            self.append(module)
        return self

    def __iadd__(self, modules: Iterable[Module]) -> ModuleList:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList(chain(self, other))

    def __repr__(self) -> str:
        lines = []
        for text, run in groupby(enumerate(self), key=lambda pair: repr(pair[1])):
            places = [k for k, _ in run]
            first, count = places[0], len(places)
            head = f"({first})" if count == 1 else f"({first}-{places[-1]})"
            lines.append(indent(f"{head}: {text}" if count == 1 else f"{head}: {count} x {text}"))
        return printed(self._get_name(), [], lines)


class ModuleDict(Module):
    """Modules by name, in the order they were put in.

    >>> from jitgrad import nn
    >>> choices = nn.ModuleDict({"linear": nn.Linear(2, 2), "none": nn.Identity()})
    >>> list(choices)
    ['linear', 'none']
    """

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Take all modules out."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Take a module out and give it back."""
        module = self[key]
        del self[key]
        return module

    def keys(self) -> Any:
        """The names."""
        return self._modules.keys()

    def items(self) -> Any:
        """The pairs of name and module."""
        return self._modules.items()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Add modules from a mapping or from pairs of name and module; a name that is there is overwritten."""
        for key, module in pairs_of(modules, "ModuleDict"):
            self[key] = module


def pairs_of(members: Any, name: str) -> list[tuple[str, Any]]:
    """Names and members out of a mapping or an iterable of pairs; TypeError and ValueError as torch's containers."""
    if not isinstance(members, Iterable) or isinstance(members, Tensor):
        raise TypeError(
            f"{name}.update should be called with an iterable of key/value pairs, but got {type(members).__name__}"
        )
    if isinstance(members, Mapping) or hasattr(members, "items"):
        return list(members.items())
    pairs = []
    for place, pair in enumerate(members):
        if not isinstance(pair, Iterable):
            raise TypeError(f"{name} update sequence element #{place} should be Iterable; is{type(pair).__name__}")
        found = tuple(pair)
        if len(found) != 2:
            raise ValueError(f"{name} update sequence element #{place} has length {len(found)}; 2 is required")
        pairs.append(found)
    return pairs


class DataParallel(Module):
    """The module it is given, under the name `module`: there is but one device, and `device_ids`, `output_device` and `dim` change nothing.

    >>> import jitgrad
    >>> model = jitgrad.nn.DataParallel(jitgrad.nn.Linear(2, 1))
    >>> list(model.state_dict())
    ['module.weight', 'module.bias']
    """

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        self.module = module
        self.device_ids: list[int] = []

    def forward(self, *inputs: Any, **named: Any) -> Any:
        return self.module(*inputs, **named)
