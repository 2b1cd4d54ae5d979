"""Dictionaries with tensors, or other things, for keys: by identity, and without keeping them.

>>> import jitgrad
>>> from jitgrad.utils.weak import WeakTensorKeyDictionary
>>> notes = WeakTensorKeyDictionary()
>>> x = jitgrad.ones(2)
>>> notes[x] = "seen"
>>> notes[x], x in notes, jitgrad.ones(2) in notes
('seen', True, False)
>>> del x
>>> len(notes)
0
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any

from .._tensor.base import TensorBase

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]


Table = dict["WeakIdRef", Any]


class WeakIdRef(weakref.ref[Any]):
    """A weak reference that is equal to others to the very same object, whatever that thinks of equality."""

    __slots__ = ("_id",)

    def __init__(self, key: Any, callback: Callable[[Any], None] | None = None) -> None:
        super().__init__(key, callback)  # type: ignore[call-arg]  # weakref.ref takes both
        self._id = id(key)

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        mine, theirs = self(), other() if isinstance(other, weakref.ref) else None
        return mine is theirs if mine is not None and theirs is not None else self is other

    def __ne__(self, other: object) -> bool:
        return not self == other


class TensorWeakRef:
    """A weak reference to a tensor. AssertionError for anything else."""

    def __init__(self, tensor: Any) -> None:
        if not isinstance(tensor, TensorBase):
            raise AssertionError(f"expected torch.Tensor, got {type(tensor)}.")
        self.ref = weakref.ref(tensor)

    def __call__(self) -> Any:
        """The tensor, or None where it is gone."""
        return self.ref()


class WeakIdKeyDictionary(MutableMapping[Any, Any]):
    """A mapping whose keys are told apart by identity, and whose items go with their keys.

    TypeError for a key that can't be referred to weakly.
    """

    def __init__(self, dict: Mapping[Any, Any] | None = None, ref_type: type[WeakIdRef] = WeakIdRef) -> None:
        self.data: Table = {}
        self.ref_type = ref_type
        mine = weakref.ref(self)

        def gone(reference: Any) -> None:
            owner = mine()
            if owner is not None:
                owner.data.pop(reference, None)

        self._gone = gone
        if dict is not None:
            self.update(dict)

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self.ref_type(key, self._gone)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __len__(self) -> int:
        return len(self.data)

    def __contains__(self, key: object) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:  # can't be referred to weakly
            return False

    def __iter__(self) -> Iterator[Any]:
        for reference in list(self.data):
            key = reference()
            if key is not None:
                yield key

    def keyrefs(self) -> list[Any]:
        """The weak references to the keys."""
        return list(self.data)

    def copy(self) -> WeakIdKeyDictionary:
        """Another one with the same items."""
        return WeakIdKeyDictionary(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        return {id(key): value for key, value in self.items()} == {id(key): value for key, value in other.items()}

    __hash__ = None  # type: ignore[assignment]


WeakTensorKeyDictionary = WeakIdKeyDictionary
