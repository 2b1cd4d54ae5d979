"""The memory under a tensor: `storage()`, `untyped_storage()` and `set_`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .._core.devices import CPU
from .._core.dtypes import dtype as Dtype, uint8
from .._ops.views import Window, memory_of

Array = np.ndarray[Any, Any]


class Storage:
    """Memory as one row of elements; shared with all tensors that lie in it.

    Indexing gives and sets single elements; `nbytes()`, `size()` and `data_ptr()` are as torch has them.
    """

    def __init__(self, array: Array, kind: Dtype) -> None:
        root = memory_of(array)
        whole = np.asarray(Window(root, 0, (root.nbytes // root.itemsize,), (root.itemsize,)))
        self.elements: Array = whole.view(kind.numpy)
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


def window(storage: Storage, kind: Dtype, start: int, shape: tuple[int, ...], steps: tuple[int, ...]) -> Array:
    """An array over a storage. RuntimeError for places outside of it."""
    unit = kind.numpy.itemsize
    extent = 0 if 0 in shape else start + 1 + sum((n - 1) * step for n, step in zip(shape, steps, strict=True))
    if extent * unit > storage.nbytes():
        raise RuntimeError(f"setStorage: sizes {list(shape)}, strides {list(steps)}, storage offset {start}, and itemsize {unit} requiring a storage "
                           f"size of {extent * unit} are out of bounds for storage of size {storage.nbytes()}")  # fmt: skip
    flat = storage.elements.view(np.uint8)[: storage.nbytes() // unit * unit].view(kind.numpy)
    return np.asarray(Window(flat, start * unit, shape, tuple(step * unit for step in steps)))
