"""The memory under a tensor: what `storage()` and `untyped_storage()` give."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .._core.devices import CPU
from .._core.dtypes import dtype as Dtype, uint8
from .._ops.views import flat_memory

Array = np.ndarray[Any, Any]


class Storage:
    """Memory as one row of elements; shared with all tensors that lie in it.

    Indexing gives and sets single elements; `nbytes()`, `size()` and `data_ptr()` are as torch has them.
    """

    def __init__(self, array: Array, kind: Dtype) -> None:
        self.elements: Array = flat_memory(array, kind)
        self.dtype = kind
        self.device = CPU

    def data_ptr(self) -> int:
        """Address of the first element."""
        return int(self.elements.__array_interface__["data"][0])

    _cdata = property(data_ptr)

    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.elements.nbytes

    def size(self) -> int:
        """Number of elements."""
        return len(self.elements)

    __len__ = size

    def element_size(self) -> int:
        """Bytes of an element."""
        return self.elements.itemsize

    def tolist(self) -> list[Any]:
        """All elements as Python numbers."""
        found: list[Any] = self.elements.tolist()
        return found

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __getitem__(self, index: Any) -> Any:
        found = self.elements[index]
        return found.item() if isinstance(found, np.generic) else type(self)(found, self.dtype)

    def __setitem__(self, index: Any, value: Any) -> None:
        self.elements[index] = value

    def fill_(self, value: Any) -> Storage:
        """Set all elements, behind the back of version counters, as in torch."""
        self.elements.fill(value)
        return self

    def untyped(self) -> UntypedStorage:
        """The same memory as bytes."""
        return UntypedStorage(self.elements)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Storage) and self.data_ptr() == other.data_ptr() and self.nbytes() == other.nbytes()

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        rows = "\n ".join(str(value) for value in self.tolist())
        return f" {rows}\n[jitgrad.storage.TypedStorage(dtype={self.dtype}, device=cpu) of size {len(self)}]"


class UntypedStorage(Storage):
    """Memory as bytes."""

    def __init__(self, array: Array, kind: Dtype = uint8) -> None:
        super().__init__(array, uint8)

    def __repr__(self) -> str:
        rows = "\n ".join(str(value) for value in self.tolist())
        return f" {rows}\n[jitgrad.storage.UntypedStorage(device=cpu) of size {len(self)}]"


TypedStorage = Storage  # the name that programs ask by
