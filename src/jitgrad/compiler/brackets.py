"""What stands in brackets, `x[index]`, in a trace: index tensors stay data, everything that would be baked in is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._tensor.base import TensorBase
from .lower_places import from_zero
from .lower_rows import places_of
from .memory import Memory
from .operations import Shape, Unsupported, View

Array = np.ndarray[Any, Any]


def outside(number: int, size: int) -> Any:
    """The error for an index out of an axis."""
    return lambda value, position: IndexError(f"index {value} is out of bounds for dimension {number} with size {size}")


def refuse(entry: Any) -> None:
    """Unsupported for an entry whose value would be part of the program."""
    if isinstance(entry, TensorBase):
        if entry.meta.dtype == np.bool_:
            raise Unsupported("a mask in brackets, which needs its values (torch.where and masked_fill do not)")
        if not entry.meta.shape:
            raise Unsupported("a tensor that is one index, which needs its value (index_select does not)")
    elif isinstance(entry, np.ndarray):
        raise Unsupported("a NumPy array in brackets")
    elif isinstance(entry, slice):
        if any(isinstance(part, (TensorBase, np.ndarray, np.generic)) for part in (entry.start, entry.stop, entry.step)):
            raise Unsupported("a slice by a tensor, which needs its value")
    elif isinstance(entry, (list, tuple)):
        for item in entry:
            if isinstance(item, (TensorBase, np.ndarray, np.generic)):
                raise Unsupported("a list of tensors in brackets")
            refuse(item)
    elif isinstance(entry, np.generic):
        raise Unsupported("a NumPy number in brackets")


class Brackets(Memory):
    """See the module's docstring; a part of `trace.Tracer`. `indices` has the view of each index array of a key."""

    def __init__(self) -> None:
        super().__init__()
        self.indices: dict[int, View] = {}

    def active(self) -> bool:
        """Whether calls are recorded."""
        raise NotImplementedError

    def give_up(self, why: str) -> None:
        """Nothing will be compiled."""
        raise NotImplementedError

    def indexed(self, index: Any, shape: Shape, key: Sequence[Array | None]) -> None:
        """`x[index]` is about to be read or written: a view of the given shape, and in it the places that `key` says."""
        if not self.active():
            return
        entries = index if isinstance(index, tuple) else (index,)
        try:
            for entry in entries:
                refuse(entry)
            given = [x for x in entries if isinstance(x, (TensorBase, list, tuple, range, bool))]
            used = [(axis, array) for axis, array in enumerate(key) if array is not None]
            if len(given) != len(used):
                raise Unsupported("an index of several forms")
            for number, (entry, (axis, array)) in enumerate(zip(given, used, strict=True)):
                self.keep.append(array)
                self.indices[id(array)] = self.index(entry, array, shape[axis], number)
        except Unsupported as why:
            self.give_up(str(why))

    def index(self, entry: Any, array: Array, size: int, number: int) -> View:
        """One index, counted from 0."""
        g = self.graph
        if not isinstance(entry, TensorBase):
            return places_of(g, array + 1)
        return from_zero(g, self.view(entry), size, outside(number, size))

    def by_tensor(self, key: Sequence[Array | None]) -> tuple[View | None, ...]:
        """A key with views in the place of its arrays."""
        found = tuple(None if array is None else self.indices.get(id(array)) for array in key)
        if any(view is None and array is not None for view, array in zip(found, key, strict=True)):
            raise Unsupported("an index that was made elsewhere")
        return found
