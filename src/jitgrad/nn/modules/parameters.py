# ruff: noqa: D102  (forward and extra_repr are described by their base)
"""Containers of parameters."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NoReturn

from ..._tensor import Tensor
from ..parameter import Parameter
from ._members import type_name
from .container import pairs_of
from .module import Module

__all__ = ["ParameterDict", "ParameterList"]


def _as_parameter(value: Any) -> Any:
    """A tensor as a parameter; anything else as it is."""
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _described(members: Iterable[tuple[object, Any]], say_type: Any) -> str:
    lines = []
    for key, value in members:
        if isinstance(value, Tensor):
            kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
            lines.append(f"  ({key}): {kind} containing: [{say_type(value)} of size {'x'.join(map(str, value.shape))}]")
        else:
            lines.append(f"  ({key}): Object of type: {type(value).__name__}")
    return "\n".join(lines)


class ParameterList(Module):
    """A list of parameters; tensors put into it become parameters, other objects stay what they are.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> weights = nn.ParameterList([torch.ones(2), torch.zeros(3)])
    >>> len(weights), [name for name, _ in weights.named_parameters()]
    (2, ['0', '1'])
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def _key(self, index: int) -> str:
        index = operator.index(index)
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} is out of range")
        return str(index % len(self))

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return type(self)([self[k] for k in range(*idx.indices(len(self)))])
        return self.__dict__[self._key(idx)]

    def __setitem__(self, idx: int, param: Any) -> None:
        self.__setattr__(self._key(idx), _as_parameter(param))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([self[k] for k in range(len(self))])

    def __iadd__(self, parameters: Iterable[Any]) -> ParameterList:
        return self.extend(parameters)

    def append(self, value: Any) -> ParameterList:
        """Add a value at the end."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Add values at the end."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError("ParameterList.extend should be called with an iterable, but got " + type(values).__name__)
        for value in values:
            self.append(value)
        return self

    def extra_repr(self) -> str:
        return _described(enumerate(self), lambda value: value.dtype)

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """Parameters by name, in the order they were put in; a plain dict given at once is sorted by name, as in torch.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> weights = nn.ParameterDict({"left": torch.ones(2), "right": torch.zeros(3)})
    >>> list(weights.keys())
    ['left', 'right']
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        return getattr(self, _checked_key(key))

    def __setitem__(self, key: str, value: Any) -> None:
        self.__setattr__(_checked_key(key), _as_parameter(value))
        self._keys[key] = None

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        self.__delattr__(key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def copy(self) -> ParameterDict:
        """Another dictionary of the same parameters."""
        return ParameterDict(OrderedDict(self.items()))

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value of a name, which becomes `default` if the name is new."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Take everything out."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Take a value out and give it back."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Take the last pair out and give it back."""
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a name, or `default`."""
        return self[key] if key in self._keys else default

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Another dictionary, with `default` for every name."""
        return ParameterDict([(key, default) for key in keys])

    def keys(self) -> Any:
        """The names."""
        return self._keys.keys()

    def items(self) -> Iterator[tuple[str, Any]]:
        """The pairs of name and value."""
        return iter([(key, self[key]) for key in self._keys])

    def values(self) -> Iterator[Any]:
        """The values."""
        return iter([self[key] for key in self._keys])

    def update(self, parameters: Any) -> None:
        """Add parameters from a mapping or from pairs; a name that is there is overwritten."""
        pairs = pairs_of(parameters, "ParameterDict")
        ordered = isinstance(parameters, OrderedDict | ParameterDict)
        for key, value in sorted(pairs) if isinstance(parameters, Mapping) and not ordered else pairs:
            self[key] = value

    def extra_repr(self) -> str:
        return _described(self.items(), type_name)

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other: ParameterDict) -> ParameterDict:
        joined = self.copy()
        joined.update(other)
        return joined

    def __ror__(self, other: ParameterDict) -> ParameterDict:
        joined = other.copy()
        joined.update(self)
        return joined

    def __ior__(self, other: ParameterDict) -> ParameterDict:
        self.update(other)
        return self


def _checked_key(key: object) -> str:
    if not isinstance(key, str):
        raise TypeError(
            "Index given to ParameterDict cannot be used as a key as it is not a string "
            f"(type is '{type(key).__name__}'). Open an issue on github if you need non-string keys."
        )
    return key
