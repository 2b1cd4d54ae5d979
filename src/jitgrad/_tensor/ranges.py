"""Evenly spaced numbers, and the places of triangles."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from .._core.devices import check_place
from .._core.dtypes import bool_, default_dtype, dtype as Dtype, int64
from .base import TensorBase
from .convert import check_fits, check_shareable, dtype_argument, number_argument
from .creation import factory, leaf, native

Array = np.ndarray[Any, Any]
Tensor = Any


@factory
def range(kind: Dtype | None, start: Any = 0, end: Any = None, step: Any = 1) -> Array:
    """start, start + step ... with `end`, as floats; deprecated for `arange`. RuntimeError for a step of zero or of the wrong sign."""
    warnings.warn("torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with Python's range "
                  "builtin. Instead, use torch.arange, which produces values in [start, end).", stacklevel=3)  # fmt: skip
    first, last = (0, start) if end is None else (start, end)
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (last > first and step < 0) or (last < first and step > 0):
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    count = int((last - first) / step) + 1
    return np.asarray(first + np.arange(count, dtype=np.float64) * step, native(kind))


def frombuffer(buffer: Any, *, dtype: Dtype, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """A vector over the memory of a bytearray, a memoryview or the like; `count` elements from `offset`, in bytes, on.

    ValueError for what has no such memory, or too little. A warning for memory that can't be written to.
    """
    kind = dtype_argument("frombuffer", dtype) or default_dtype()
    try:
        view = memoryview(buffer)
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    length, unit = view.nbytes, kind.itemsize
    if length == 0 or count == 0:
        raise ValueError(f"both buffer length ({length}) and count ({count}) must not be 0")
    if not 0 <= offset < length:
        raise ValueError(f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({length} bytes) minus 1")
    if count < 0 and (length - offset) % unit:
        raise ValueError(f"buffer length ({length - offset} bytes) after offset ({offset} bytes) must be a multiple of element size ({unit})")
    if count > 0 and count * unit > length - offset:
        raise ValueError(f"requested buffer length ({count} * {unit} bytes) after offset ({offset} bytes) must not be greater than actual buffer "
                         f"length ({length} bytes)")  # fmt: skip
    if view.readonly:
        warnings.warn("The given buffer is not writable, and tensors can't know that: writing to this tensor raises.", stacklevel=2)
    return leaf(np.frombuffer(view, kind.numpy, count, offset), requires_grad)


def from_dlpack(ext_tensor: Any) -> Tensor:
    """A tensor over the memory of another library's array on the CPU; TypeError or BufferError for what can't be shared."""
    return leaf(check_shareable(np.from_dlpack(ext_tensor)))


@factory
def linspace(kind: Dtype | None, start: Any, end: Any, steps: int) -> Array:
    """`steps` evenly spaced numbers, both ends included. RuntimeError for a negative count."""
    kind = kind or default_dtype()
    return _cast(_spaced("linspace", start, end, steps, kind), kind)


@factory
def logspace(kind: Dtype | None, start: Any, end: Any, steps: int, base: float = 10.0) -> Array:
    """`base` to the power of `linspace(start, end, steps)`."""
    kind = kind or default_dtype()
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return _cast(np.asarray(float(base) ** _spaced("logspace", start, end, steps, kind)), kind)


def _spaced(function: str, start: Any, end: Any, steps: Any, kind: Dtype) -> Array:
    """Evenly spaced float64 numbers, from both ends towards the middle as torch counts them."""
    if isinstance(steps, bool) or not hasattr(steps, "__index__"):
        raise TypeError(
            f"{function}() received an invalid combination of arguments - steps must be int, not {type(steps).__name__}"
        )
    ranks = [(name, x.ndim) for name, x in (("start", start), ("end", end)) if isinstance(x, TensorBase) and x.ndim]
    if ranks:
        got = " and ".join(f"{name} with {rank} dimension(s)" for name, rank in ranks)
        raise RuntimeError(f"{function} only supports 0-dimensional start and end tensors, but got {got}.")
    first, last = (
        number_argument(function, name, place, x) for place, (name, x) in enumerate((("start", start), ("end", end)), 1)
    )
    count = int(steps)
    if count < 0:
        raise RuntimeError("number of steps must be non-negative")
    if kind is bool_:
        raise NotImplementedError(f"\"{function}_cpu\" not implemented for 'Bool'")
    if count == 1:
        return np.full(1, first, np.float64)
    if kind.kind == "i":
        first, last = int(first), int(last)
    by = (last - first) / (count - 1) if count else 0.0
    place = np.arange(count, dtype=np.float64)
    return np.asarray(np.where(place < count // 2, first + by * place, last - by * (count - 1 - place)))


def _cast(values: Array, kind: Dtype) -> Array:
    check_fits(values, kind, f"{kind.name}_t")
    return values.astype(kind.numpy, copy=False)


def tril_indices(
    row: int, col: int, offset: int = 0, *, dtype: Dtype | None = None, device: Any = None, layout: Any = None
) -> Tensor:
    """(2, k): rows and columns of the lower triangle of a (row, col) matrix, row by row."""
    check_place("tril_indices", device, layout, False)
    return leaf(
        np.stack(np.tril_indices(row, offset, col)).astype((dtype_argument("tril_indices", dtype) or int64).numpy)
    )


def triu_indices(
    row: int, col: int, offset: int = 0, *, dtype: Dtype | None = None, device: Any = None, layout: Any = None
) -> Tensor:
    """(2, k): rows and columns of the upper triangle of a (row, col) matrix, row by row."""
    check_place("triu_indices", device, layout, False)
    return leaf(
        np.stack(np.triu_indices(row, offset, col)).astype((dtype_argument("triu_indices", dtype) or int64).numpy)
    )
