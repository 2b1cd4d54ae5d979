"""Where elements are and how they are stored, as programs ask: on the CPU, dense, not shared, not pinned."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.devices import strided
from .._core.errors import argument_error
from .._core.late import LateModule
from .base import TensorBase, settle, wrap
from .gradients import choose_grad_dtype, grad_dtype_of

if TYPE_CHECKING:
    import mmap
else:
    mmap = LateModule("mmap")

Tensor = Any


class PlacementMethods(TensorBase):
    """See the module's docstring."""

    __slots__ = ()
    layout = strided
    is_cuda = is_xpu = is_mps = is_meta = is_sparse = is_sparse_csr = is_quantized = is_mkldnn = is_nested = False
    is_cpu = True
    volatile = False
    name = None

    @property
    def grad_dtype(self) -> Any:
        """The dtype of a leaf's gradient: its own unless another was chosen; None lets gradients keep whichever they come with.

        RuntimeError for a tensor that is not a leaf, and where there is a gradient of another dtype already.
        """
        return grad_dtype_of(self)

    @grad_dtype.setter
    def grad_dtype(self, value: Any) -> None:
        choose_grad_dtype(self, value)

    def cuda(self, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Tensor:
        """AssertionError: there is no such device."""
        raise AssertionError("Torch not compiled with CUDA enabled")

    def xpu(self, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Tensor:
        """AssertionError: there is no such device."""
        raise AssertionError("Torch not compiled with XPU enabled")

    def pin_memory(self, device: Any = None) -> Tensor:
        """RuntimeError: there is no device to pin memory for."""
        raise RuntimeError("Cannot access accelerator device when none is available.")

    def is_pinned(self, device: Any = None) -> bool:
        """Whether the memory is pinned: never."""
        return False

    def is_shared(self) -> bool:
        """Whether the memory is shared with child processes; see `share_memory_`."""
        owner: Any = self.array
        while isinstance(owner, (np.ndarray, memoryview)):
            owner = owner.base if isinstance(owner, np.ndarray) else owner.obj
        return isinstance(owner, mmap.mmap)

    def share_memory_(self) -> Tensor:
        """Move the elements to memory that a forked child process shares, in place; views made before stay where they are."""
        if not self.is_shared():
            array = np.frombuffer(mmap.mmap(-1, max(self.array.nbytes, 1)), self.array.dtype, self.array.size).reshape(self.array.shape)
            array[...] = self.array
            self.array = array
            settle(self)
        return self

    def dim_order(self, ambiguity_check: Any = False) -> tuple[int, ...]:
        """The axes from the one with the largest stride to the one with the smallest."""
        steps = self.array.strides
        return tuple(sorted(range(len(steps)), key=lambda axis: -steps[axis]))

    def to_dense(self, dtype: Any = None, *, masked_grad: Any = None) -> Tensor:
        """The tensor itself: all tensors are dense."""
        return self if dtype is None else self.to(dtype)  # type: ignore[attr-defined]

    def to_sparse(self, *args: Any, **named: Any) -> Tensor:
        """NotImplementedError: there are no sparse tensors."""
        raise NotImplementedError("to_sparse: sparse tensors are not supported; all tensors are dense")

    # ---- other libraries' arrays
    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Tensor:
        """What NumPy's functions of a tensor give: a tensor; truth values as uint8."""
        return wrap(np.array(array, np.uint8 if array.dtype == np.bool_ else None))

    def __dlpack__(self, **how: Any) -> Any:
        """The memory for another library. BufferError where gradients are taken."""
        if self.requires_grad:
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        how.pop("stream", None)
        return self.array.__dlpack__(**how)

    def __dlpack_device__(self) -> Any:
        """The CPU, as DLPack numbers it."""
        return self.array.__dlpack_device__()

    # ---- Python functions element by element
    def apply_(self, callable: Callable[[Any], Any]) -> Tensor:
        """Replace each element by what a Python function makes of it, in place. RuntimeError where gradients are taken."""
        if self.requires_grad:
            raise RuntimeError("Can't call apply_() on Variable that requires grad. Use var.detach().apply_() instead.")
        return self._put([callable(x) for x in self.array.ravel().tolist()])

    def map_(self, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
        """The same of each element and that of another tensor, which broadcasts."""
        return self._mapped("map_", (tensor,), callable)

    def map2_(self, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
        """The same of each element and those of two other tensors, which broadcast."""
        return self._mapped("map2_", (x, y), callable)

    def _mapped(self, function: str, others: tuple[Tensor, ...], callable: Callable[..., Any]) -> Tensor:
        for position, other in enumerate(others, 1):
            if not isinstance(other, TensorBase):
                raise argument_error(function, "tensor", position, "Tensor", other)
        if self.requires_grad or any(other.requires_grad for other in others):
            raise RuntimeError(f"Can't call {function}() on Variable that requires grad. Use var.detach().{function}() instead.")
        columns = [np.broadcast_to(x.array, self.array.shape).ravel().tolist() for x in (self, *others)]
        return self._put([callable(*row) for row in zip(*columns, strict=True)])

    def _put(self, values: list[Any]) -> Tensor:
        self.array[...] = np.array(values).reshape(self.array.shape)
        self._bump()
        return self

    def __reversed__(self) -> Tensor:
        """Flipped along the first axis."""
        return self.flip(0) if self.meta.shape else self  # type: ignore[attr-defined]
