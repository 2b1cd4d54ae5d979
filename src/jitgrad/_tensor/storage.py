"""The memory under a tensor: `storage()`, `untyped_storage()` and `set_`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .._core.devices import CPU
from .._core.dtypes import default_dtype, dtype as Dtype, uint8
from .._ops.views import flat_memory

Array = np.ndarray[Any, Any]


class Storage:
    """Memory as one row of elements; shared with all tensors that lie in it.

    source: the array whose whole memory it is, or what new memory holds: a number of elements, or the elements themselves.
    Indexing gives and sets single elements; `nbytes()`, `size()` and `data_ptr()` are as torch has them. Writes to it are not counted by
    version counters, as in torch.
    """

    is_cuda = is_sparse = False

    def __init__(self, source: Array | int | Sequence[Any] = 0, kind: Dtype | None = None, *, dtype: Dtype | None = None) -> None:
        kind = kind or dtype or default_dtype()
        if isinstance(source, np.ndarray):
            self.elements: Array = flat_memory(source, kind)
        elif isinstance(source, int):
            self.elements = np.empty(source, kind.numpy)
        else:
            self.elements = np.array(source, kind.numpy)
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
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        return self.elements[index].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self.elements[index] = value

    def fill_(self, value: Any) -> Storage:
        """Set all elements."""
        self.elements.fill(value)
        return self

    def copy_(self, source: Storage, non_blocking: bool = False) -> Storage:
        """Set all elements to those of another storage. RuntimeError for one of another size."""
        if source.size() != self.size():
            raise RuntimeError(f"size mismatch, got {source.size()} elements for {self.size()}")
        self.elements[...] = source.elements
        return self

    def resize_(self, size: int) -> Storage:
        """The storage itself for its own size. NotImplementedError for another: NumPy's memory does not change its length."""
        if size != self.size():
            raise NotImplementedError(f"{type(self).__name__}.resize_: memory keeps its length ({self.size()} elements); use resize_ of the tensor")
        return self

    def clone(self) -> Storage:
        """A copy in other memory."""
        return type(self)(self.elements.copy(), self.dtype)

    def cpu(self) -> Storage:
        """The storage itself."""
        return self

    def is_shared(self) -> bool:
        """Whether the memory is shared with child processes, as far as a storage can tell: no."""
        return False

    is_pinned = is_shared

    def type(self) -> str:
        """The name of the storage's type, as torch spells it."""
        return f"torch.{self.pickle_storage_type()}"

    def pickle_storage_type(self) -> str:
        """What saved files call it."""
        return f"{self.dtype.scalar_name}Storage"

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

    def __init__(self, source: Array | int | Sequence[Any] = 0, kind: Dtype | None = None) -> None:
        super().__init__(source, uint8)

    def __getitem__(self, index: Any) -> Any:
        found = self.elements[index]
        if isinstance(index, slice):
            part = UntypedStorage()
            part.elements = found
            return part
        return found.item()

    def resizable(self) -> bool:
        """Whether `resize_` takes another size: no."""
        return False

    def type(self) -> str:
        """The name of the storage's type, as torch spells it."""
        return "torch.storage.UntypedStorage"

    def __repr__(self) -> str:
        rows = "\n ".join(str(value) for value in self.tolist())
        return f" {rows}\n[jitgrad.storage.UntypedStorage(device=cpu) of size {len(self)}]"


TypedStorage = Storage  # the name that programs ask by
