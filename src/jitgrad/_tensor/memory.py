"""Where the elements of a tensor are and how they lie there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.devices import CPU, channels_last, channels_last_3d, device as Device
from .._core.errors import argument_error
from .._core.late import LateModule
from .._core.shapes import contiguous_strides, parse_shape, wrap_dim
from .._engine import modes
from .._ops.checks import C_NAMES
from .._ops.views import memory_of, window
from .base import TensorBase, renew_leaf, settle
from .inplace import check_writable
from .storage import Storage, UntypedStorage
from .views import edge_of
from .writes import WriteMethods

if TYPE_CHECKING:
    from . import refusals, replay
else:
    refusals, replay = LateModule("jitgrad._tensor.refusals"), LateModule("jitgrad._tensor.replay")

Tensor = Any
Array = np.ndarray[Any, Any]


def looked_at(tensor: Any, what: str) -> None:
    """Tell the compiler, if it is looking on, that Python gets hold of a tensor's memory."""
    if modes.SPECIAL and modes.LOCAL.tracer is not None:
        modes.LOCAL.tracer.observed(tensor, what)


class MemoryMethods(WriteMethods):
    """See the module's docstring."""

    __slots__ = ()

    def size(self, dim: int | None = None) -> Any:
        """All lengths, or that of one axis."""
        return self.shape if dim is None else self.meta.shape[wrap_dim(dim, len(self.meta.shape), False)]

    def dim(self) -> int:
        """Number of axes."""
        return len(self.meta.shape)

    ndimension = dim

    def numel(self) -> int:
        """Number of elements."""
        return self.meta.numel

    nelement = numel

    def element_size(self) -> int:
        """Bytes of an element."""
        return self.meta.dtype.itemsize

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.meta.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.meta.numel * self.meta.dtype.itemsize

    def stride(self, dim: int | None = None) -> Any:
        """Strides in elements; those of new memory without elements, where NumPy has zeros, are the ones without gaps."""
        unit, strides = self.meta.dtype.itemsize, self.array.strides
        known = self.meta.numel or all(strides)
        steps = tuple([step // unit for step in strides]) if known else contiguous_strides(self.meta.shape)
        return steps if dim is None else steps[wrap_dim(dim, len(steps), False)]

    def storage_offset(self) -> int:
        """Distance of the first element from the start of the memory, in elements."""
        start: int = memory_of(self.array).__array_interface__["data"][0]
        first: int = self.array.__array_interface__["data"][0]
        return (first - start) // self.meta.dtype.itemsize

    def data_ptr(self) -> int:
        """Address of the first element."""
        looked_at(self, "data_ptr()")
        return int(self.array.__array_interface__["data"][0])

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Whether the elements lie in row-major order without gaps, or with the second axis last for the `channels_last` formats."""
        if memory_format is channels_last or memory_format is channels_last_3d:
            rank = 4 if memory_format is channels_last else 5
            return len(self.meta.shape) == rank and np.moveaxis(self.array, 1, -1).flags.c_contiguous
        return self.array.flags.c_contiguous

    def is_floating_point(self) -> bool:
        """Whether the dtype is a floating-point one."""
        return self.meta.kind.is_floating_point

    def is_complex(self) -> bool:
        """Whether the dtype is complex: never."""
        return False

    def is_conj(self) -> bool:
        """Whether it is a conjugate that was not computed yet: never."""
        return False

    is_neg = is_conj

    @property
    def device(self) -> Device:
        """Where the elements are."""
        return CPU

    def get_device(self) -> int:
        """The number of the device: -1 for the CPU."""
        return -1

    def cpu(self, memory_format: Any = None) -> Any:
        """The tensor itself, as all tensors are on the CPU; or a copy in the order in memory that is asked for."""
        return self if memory_format is None else self.to(memory_format=memory_format)  # type: ignore[attr-defined]

    # ---- the memory itself
    def storage(self) -> Storage:
        """The whole memory that the tensor lies in, as elements of its dtype."""
        looked_at(self, "storage()")
        return Storage(self.array, self.meta.kind)

    _typed_storage = storage

    def untyped_storage(self) -> UntypedStorage:
        """The whole memory that the tensor lies in, as bytes."""
        looked_at(self, "untyped_storage()")
        return UntypedStorage(self.array)

    def set_(self, source: Any = None, storage_offset: int = 0, size: Any = None, stride: Any = None) -> Tensor:
        """Let the tensor lie in other memory: that of a tensor, or a window of a storage; nothing is copied.

        source: a tensor of the same dtype or a storage; None for no elements. size, stride: of the window, by default all of it.
        RuntimeError where writing is refused, for another dtype, or for places outside of the storage; at the backward where gradients are taken.
        """
        kind = self.meta.kind
        if isinstance(source, TensorBase) and source.meta.kind is not kind:
            raise RuntimeError(f"Could not set tensor of type {C_NAMES[source.meta.kind]} to a tensor of type {C_NAMES[kind]}")
        check_writable(self, "set_")
        observed = modes.tracer()
        if observed is not None:
            observed.observed(self, "set_()")
        edges = (edge_of(self), edge_of(source) if isinstance(source, TensorBase) else None)
        if isinstance(source, TensorBase):
            if size is None:
                self.array = source.array
            else:
                self.array = self._window(source.array, storage_offset, size, stride)
        elif source is None:
            self.array = np.empty(0, kind.numpy)
        else:
            count = source.nbytes() // kind.itemsize - storage_offset
            self.array = self._window(source.elements, storage_offset, (count,) if size is None else size, stride)
        settle(self)
        self._bump()
        renew_leaf(self)
        if edges != (None, None) and modes.grad_enabled() and kind.is_floating_point and not self._is_view():
            refusals.not_implemented(self, edges, "set_")
        return self

    def _window(self, memory: Array, start: int, size: Any, stride: Any) -> np.ndarray[Any, Any]:
        shape = parse_shape((size,))
        return window(memory, self.meta.kind, start, shape, contiguous_strides(shape) if not stride else tuple(stride))

    # ---- views of other bases
    def _view_func(self, new_base: Any, symint_visitor_fn: Any = None, tensor_visitor_fn: Any = None) -> Tensor | None:
        """What this view is of its base, of another one; None for what is no view, and where that is laid out in another way.

        symint_visitor_fn: called with each number that says where the view lies, as far as that was noted; returns the number to use.
        """
        return replay.view_of(self, new_base, symint_visitor_fn, True)

    def _view_func_unsafe(self, new_base: Any, symint_visitor_fn: Any = None, tensor_visitor_fn: Any = None) -> Tensor | None:
        """`_view_func` for a base of any layout."""
        return replay.view_of(self, new_base, symint_visitor_fn, False)

    def _rev_view_func_unsafe(self, new_view: Any) -> Tensor | None:
        """What the base of this view is of it, of another one that lies in such a memory; None for what is no view."""
        return replay.base_of(self, new_view)

    def is_set_to(self, tensor: Any) -> bool:
        """Whether another tensor is the same window of the same memory."""
        same = (
            self.meta.kind is tensor.meta.kind
            and self.meta.shape == tensor.meta.shape
            and self.stride() == tensor.stride()
        )
        return bool(same and self.data_ptr() == tensor.data_ptr())

    def is_same_size(self, other: Any) -> bool:
        """Whether another tensor has the same shape."""
        return bool(self.meta.shape == other.meta.shape)

    def is_signed(self) -> bool:
        """Whether the dtype has negative numbers."""
        return self.meta.kind.name not in ("uint8", "bool")

    def is_nonzero(self) -> bool:
        """The truth of the only element."""
        return bool(self)

    # ---- as complex numbers have them
    @property
    def real(self) -> Tensor:
        """The tensor itself: all numbers are real."""
        return self

    @property
    def imag(self) -> Tensor:
        """RuntimeError: real numbers have no imaginary part here, as in torch."""
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")

    def conj(self) -> Tensor:
        """The tensor itself."""
        return self

    conj_physical = resolve_conj = resolve_neg = conj

    def conj_physical_(self) -> Tensor:
        """The tensor itself; refused where writing is."""
        check_writable(self, "conj_physical_")
        self._bump()
        return self


def real(input: Tensor) -> Tensor:
    """The tensor itself: all numbers are real."""
    return input


def imag(input: Tensor) -> Tensor:
    """RuntimeError: real numbers have no imaginary part here, as in torch."""
    return input.imag


conj = conj_physical = resolve_conj = resolve_neg = real


def conj_physical_(input: Tensor) -> Tensor:
    """The tensor itself; refused where writing is."""
    return input.conj_physical_()


def is_conj(input: Tensor) -> bool:
    """Whether it is a conjugate that was not computed yet: never."""
    return False


is_neg = is_conj


def is_inference(input: Tensor) -> bool:
    """Whether it was made in inference mode."""
    if not isinstance(input, TensorBase):
        raise argument_error("is_inference", "input", 1, "Tensor", input)
    return input.is_inference()
