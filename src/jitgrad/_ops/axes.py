"""Which axes go away: arguments called `dim`, and arrays seen as (outer, n, inner) by the kernels that reduce the middle."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from .._core.dtypes import bool_, dtype as Dtype, float64, int64
from .._core.shapes import wrap_dims
from .kinds import Array, Tensor

Shape = tuple[int, ...]
SINGLE, DOUBLE, HALF, LONG = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.float16), np.dtype(np.int64)
PYTHON_TYPES: Final[dict[Any, Dtype]] = {float: float64, int: int64, bool: bool_}
COMPILED: Final = "fd"  # the dtypes that kernels are compiled for; others are NumPy's


def axes_of(dim: Any, ndim: int) -> Shape:
    """The axes named by an int, a sequence or None, ascending; None and an empty sequence stand for all of them."""
    return _axes(tuple(dim) if isinstance(dim, list) else dim, ndim)


@functools.lru_cache(maxsize=1024)
def _axes(dim: Any, ndim: int) -> Shape:
    dims = wrap_dims(dim, ndim)
    return tuple(sorted(dims)) if dims and ndim else tuple(range(ndim))


@functools.lru_cache(maxsize=4096)
def kept_shape(shape: Shape, dims: Shape, keepdim: bool) -> Shape:
    """The shape after the axes `dims` are gone, or have length 1."""
    if keepdim:
        return tuple(1 if k in dims else n for k, n in enumerate(shape))
    return tuple(n for k, n in enumerate(shape) if k not in dims)


@functools.lru_cache(maxsize=4096)
def split(shape: Shape, dims: Shape) -> tuple[Shape | None, int, int, int]:
    """The order the axes must be in so that `dims` stand side by side (None: they do), and outer, n, inner."""
    if len(dims) == len(shape):
        return None, 1, math.prod(shape), 1
    first, last = (dims[0], dims[-1]) if dims else (0, -1)
    if last - first + 1 == len(dims):
        return None, math.prod(shape[:first]), math.prod(shape[first : last + 1]), math.prod(shape[last + 1 :])
    order = (*(k for k in range(len(shape)) if k not in dims), *dims)
    outer, n = (math.prod(length for k, length in enumerate(shape) if (k in dims) is inside) for inside in (False, True))
    return order, outer, n, 1


def arranged(array: Array, dims: Shape) -> tuple[Array, int, int, int]:
    """The array C-contiguous with the axes `dims` (ascending) side by side, and outer, n, inner."""
    order, outer, n, inner = split(array.shape, dims)
    if order is not None:
        array = array.transpose(order)
    return (array if array.flags.c_contiguous else np.ascontiguousarray(array)), outer, n, inner


def restored(tensor: Tensor, shape: Shape, dims: Shape, keepdim: bool) -> Tensor:
    """A reduced tensor with the axes `dims` back as length 1, so that it broadcasts against `shape`."""
    return tensor if keepdim or not shape else tensor.reshape(kept_shape(shape, dims, True))


def in_half(function: Callable[..., Array]) -> Callable[..., Array]:
    """A function of arrays, the first of them float16, computed in float32."""

    @functools.wraps(function)
    def call(array: Array, *rest: Any) -> Array:
        if array.dtype != HALF:
            return function(array, *rest)
        rest = tuple(x.astype(SINGLE) if isinstance(x, np.ndarray) and x.dtype == HALF else x for x in rest)
        return function(array.astype(SINGLE), *rest).astype(HALF)

    return call


def kind_of(function: str, dtype: Any) -> Dtype | None:
    """The dtype of a `dtype=` argument, which may also be one of Python's number types, or None. TypeError for anything else."""
    if dtype is None or isinstance(dtype, Dtype):
        return dtype
    found = PYTHON_TYPES.get(dtype) if isinstance(dtype, type) else None
    if found is None:
        raise TypeError(f"{function}(): argument 'dtype' must be torch.dtype, not {type(dtype).__name__}")
    return found


def native(function: str, dtype: Any) -> Any:
    """The same as NumPy's dtype, or None."""
    kind = kind_of(function, dtype)
    return None if kind is None else kind.numpy
