"""Making tensors: from data, filled with one value, ranges. Everything here is a leaf."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from .._core.devices import check_device, check_place
from .._core.dtypes import bool_, default_dtype, dtype as Dtype, from_numpy as from_native, int64, scalar_dtype
from .._core.errors import argument_error, bracketed
from .._core.meta import plain_meta
from .._core.shapes import parse_shape
from .._engine import modes
from .base import TensorBase, around, own_rare, settle, wrap
from .convert import (
    check_fits,
    check_shareable,
    data_array,
    dtype_argument,
    number_argument,
)

Array = np.ndarray[Any, Any]
Tensor = Any
COPY_WARNING = ("To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
         "sourceTensor.detach().clone().requires_grad_(True), rather than {}(sourceTensor).")  # fmt: skip


def leaf(array: Array, requires_grad: bool = False) -> Tensor:
    """A tensor around an array it may keep; an inference tensor in inference mode. RuntimeError if that dtype takes no gradient."""
    result = wrap(array)
    if modes.SPECIAL and modes.LOCAL.inference:
        own_rare(result).inference = True
    if requires_grad:
        if requires_grad is not True:
            raise TypeError(f"argument 'requires_grad' must be bool, not {type(requires_grad).__name__}")
        if not result.meta.kind.is_floating_point:
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        result.requires_grad_()
    return result


# ---------------------------------------------------------------- from data
def tensor(
    data: Any, *, dtype: Dtype | None = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    """A leaf with a copy of `data`: a number, nested lists, an ndarray of any layout, or (with a warning) a tensor.

    Python floats become the default dtype, ints int64; NumPy arrays and scalars keep theirs. TypeError, ValueError or RuntimeError for
    what is no array, or for a number that doesn't fit the dtype.
    """
    check_device(device)
    if isinstance(data, TensorBase):
        warnings.warn(COPY_WARNING.format("torch.tensor"), UserWarning, stacklevel=2)
    return leaf(data_array(data, dtype_argument("tensor", dtype)), requires_grad)


def from_numpy(ndarray: Array) -> Tensor:
    """A tensor over the same memory. TypeError or ValueError for arrays a tensor can't use as they are."""
    if type(ndarray) is np.ndarray and not modes.SPECIAL and (meta := plain_meta(ndarray)) is not None:
        return around(ndarray, meta)
    return leaf(check_shareable(ndarray))


def as_tensor(data: Any, dtype: Dtype | None = None, device: Any = None) -> Tensor:
    """`data` as a tensor, without a copy where it already is a tensor or an ndarray of that dtype."""
    check_device(device)
    kind = dtype_argument("as_tensor", dtype)
    if isinstance(data, TensorBase):
        tensor: Any = data
        return tensor if kind is None or kind is tensor.meta.kind else tensor.to(kind)
    if isinstance(data, np.ndarray):
        shared = check_shareable(data)
        return leaf(shared if kind is None or shared.dtype is kind.numpy else data_array(shared, kind))
    return leaf(data_array(data, kind))


def asarray(
    obj: Any, *, dtype: Dtype | None = None, device: Any = None, copy: bool | None = None, requires_grad: bool = False
) -> Tensor:
    """`as_tensor`, with a say in whether to copy (`copy=False`: ValueError where that is needed) and in `requires_grad`."""
    check_device(device)
    kind = dtype_argument("asarray", dtype)
    source = obj.array if isinstance(obj, TensorBase) else obj
    shares = isinstance(source, np.ndarray) and (kind is None or source.dtype == kind.numpy)
    if copy is False and not shares:
        if isinstance(source, np.ndarray):
            raise ValueError(f"can't alias tensor with dtype '{source.dtype}' into dtype '{kind}'.")
        raise ValueError("can't alias arbitrary sequence into a tensor.")
    if copy or not shares:
        return leaf(data_array(source, kind), requires_grad)
    result: Any = obj if isinstance(obj, TensorBase) else leaf(check_shareable(source))
    if result.requires_grad and not requires_grad:
        result = result.detach()
    return result.requires_grad_() if requires_grad else result


# ---------------------------------------------------------------- filled with one value
def sizes(function: str, size: tuple[Any, ...], named: dict[str, Any]) -> tuple[int, ...]:
    """The shape out of `f(2, 3)`, `f((2, 3))` or `f(size=(2, 3))`. TypeError or RuntimeError in torch's words."""
    if not size and "size" in named:
        size = (named.pop("size"),)
    if named:
        raise TypeError(f"{function}() got an unexpected keyword argument '{next(iter(named))}'")
    shape = parse_shape(size, function)
    if any(n < 0 for n in shape):
        if function == "zeros":
            raise RuntimeError("zeros: Dimension size must be non-negative.")
        bad = next(n for n in shape if n < 0)
        raise RuntimeError(f"Trying to create tensor with negative dimension {bad}: {bracketed(shape)}")
    return shape


def native(function: str, dtype: Any) -> np.dtype[Any]:
    """The NumPy dtype of a `dtype=` argument, the default one for None."""
    return (dtype_argument(function, dtype) or default_dtype()).numpy


def zeros(
    *size: Any,
    dtype: Dtype | None = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
    **named: Any,
) -> Tensor:
    """A tensor of zeros; `zeros(2, 3)` or `zeros((2, 3))`."""
    check_place("zeros", device, layout, pin_memory)
    return leaf(np.zeros(sizes("zeros", size, named), native("zeros", dtype)), requires_grad)


def ones(
    *size: Any,
    dtype: Dtype | None = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
    **named: Any,
) -> Tensor:
    """A tensor of ones; `ones(2, 3)` or `ones((2, 3))`."""
    check_place("ones", device, layout, pin_memory)
    return leaf(np.ones(sizes("ones", size, named), native("ones", dtype)), requires_grad)


def empty(*size: Any, dtype: Dtype | None = None, device: Any = None, requires_grad: bool = False, layout: Any = None, pin_memory: bool = False,
          memory_format: Any = None, **named: Any) -> Tensor:  # fmt: skip
    """A tensor whose elements are whatever the memory held."""
    check_place("empty", device, layout, pin_memory, memory_format)
    return leaf(np.empty(sizes("empty", size, named), native("empty", dtype)), requires_grad)


def full(
    size: Any,
    fill_value: Any,
    *,
    dtype: Dtype | None = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor of one value, by default of the dtype the value has. RuntimeError if it doesn't fit an integer `dtype`."""
    check_place("full", device, layout, pin_memory)
    if not isinstance(size, (tuple, list)):
        raise argument_error("full", "size", 1, "tuple of ints", size)
    return leaf(filled("full", sizes("full", (size,), {}), fill_value, dtype_argument("full", dtype)), requires_grad)


def filled(function: str, shape: tuple[int, ...], value: Any, kind: Dtype | None) -> Array:
    """An array of one number."""
    number = number_argument(function, "fill_value", 2, value)
    if kind is None:
        kind = value.meta.kind if isinstance(value, TensorBase) else scalar_dtype(number)
    if kind.kind == "i":
        check_fits(np.asarray(number), kind, f"{kind.name}_t")
    with np.errstate(over="ignore", invalid="ignore"):
        return np.full(shape, np.asarray(number).astype(kind.numpy))


def _like(function: str, input: Any, dtype: Any, device: Any) -> tuple[tuple[int, ...], Dtype]:
    check_device(device)
    if not isinstance(input, TensorBase):
        raise argument_error(function, "input", 1, "Tensor", input)
    return input.meta.shape, dtype_argument(function, dtype) or input.meta.kind


def zeros_like(
    input: Tensor,
    *,
    dtype: Dtype | None = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    memory_format: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Zeros of the shape and dtype of `input`."""
    check_place("zeros_like", device, layout, pin_memory, memory_format)
    shape, kind = _like("zeros_like", input, dtype, device)
    return leaf(np.zeros(shape, kind.numpy), requires_grad)


def ones_like(
    input: Tensor,
    *,
    dtype: Dtype | None = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    memory_format: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Ones of the shape and dtype of `input`."""
    check_place("ones_like", device, layout, pin_memory, memory_format)
    shape, kind = _like("ones_like", input, dtype, device)
    return leaf(np.ones(shape, kind.numpy), requires_grad)


def empty_like(
    input: Tensor,
    *,
    dtype: Dtype | None = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    memory_format: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Uninitialised memory of the shape and dtype of `input`."""
    check_place("empty_like", device, layout, pin_memory, memory_format)
    shape, kind = _like("empty_like", input, dtype, device)
    return leaf(np.empty(shape, kind.numpy), requires_grad)


def full_like(
    input: Tensor,
    fill_value: Any,
    *,
    dtype: Dtype | None = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    memory_format: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """One value in the shape and dtype of `input`."""
    check_place("full_like", device, layout, pin_memory, memory_format)
    shape, kind = _like("full_like", input, dtype, device)
    return leaf(filled("full_like", shape, fill_value, kind), requires_grad)


def scalar_tensor(
    s: Any,
    *,
    dtype: Dtype | None = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """A 0-dim tensor, by default of the default dtype."""
    check_place("scalar_tensor", device, layout, pin_memory)
    number = number_argument("scalar_tensor", "s", 1, s)
    return leaf(
        filled("scalar_tensor", (), number, dtype_argument("scalar_tensor", dtype) or default_dtype()), requires_grad
    )


def empty_strided(
    size: Any,
    stride: Any,
    *,
    dtype: Dtype | None = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Uninitialised memory of a given shape and strides (in elements)."""
    check_place("empty_strided", device, layout, pin_memory)
    shape, steps, kind = sizes("empty_strided", (size,), {}), tuple(stride), native("empty_strided", dtype)
    if len(shape) != len(steps):
        raise RuntimeError(
            f"empty_strided: the dimensionality of sizes ({len(shape)}) must match the dimensionality of strides ({len(steps)})"
        )
    extent = 1 + sum((n - 1) * step for n, step in zip(shape, steps, strict=True)) if all(shape) else 0
    memory = np.empty(extent, kind)
    return leaf(np.ndarray(shape, kind, memory, 0, tuple(step * kind.itemsize for step in steps)), requires_grad)


def empty_permuted(
    size: Any,
    physical_layout: Any,
    *,
    dtype: Dtype | None = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Uninitialised memory whose axes lie in memory in the order `physical_layout`, outermost first."""
    check_place("empty_permuted", device, layout, pin_memory)
    shape, order = sizes("empty_permuted", (size,), {}), tuple(physical_layout)
    if len(shape) != len(order):
        raise RuntimeError(f"Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = {len(shape)} is not "
                           f"equal to len(physical_layout) = {len(order)}")  # fmt: skip
    for axis in order:
        if not 0 <= axis < len(shape):
            place = order.index(axis)
            raise RuntimeError(f"Dimension out of range (expected to be between 0 and {len(shape) - 1}, but got {axis} at index {place}).  "
                               "NB: negative dims not currently supported; file an issue if you want it.")  # fmt: skip
    if len(set(order)) != len(order):
        raise RuntimeError("Duplicate dim not allowed")
    memory = np.empty(tuple(shape[axis] for axis in order), native("empty_permuted", dtype))
    return leaf(memory.transpose(np.argsort(order)), requires_grad)


# ---------------------------------------------------------------- ranges
def arange(*bounds: Any, start: Any = 0, end: Any = None, step: Any = 1, out: Tensor | None = None, dtype: Dtype | None = None,
           device: Any = None, requires_grad: bool = False, layout: Any = None, pin_memory: bool = False) -> Tensor:  # fmt: skip
    """`arange(end)`, `arange(start, end)`, `arange(start, end, step)`: start, start + step ... without `end`.

    int64 unless a bound is a float. RuntimeError for a step of zero or of the wrong sign.
    """
    check_place("arange", device, layout, pin_memory)
    kind = dtype_argument("arange", dtype) or (None if out is None else out.meta.kind)
    if len(bounds) == 1:
        start, end = (bounds[0], end) if end is not None else (start, bounds[0])
    elif bounds:
        start, end, step = (*bounds, step)[:3] if len(bounds) < 4 else (None, None, None)
    if end is None:
        raise TypeError("arange() received an invalid combination of arguments")
    first, last, by = (
        number_argument("arange", name, place, x)
        for place, (name, x) in enumerate((("start", start), ("end", end), ("step", step)), 1)
    )
    if kind is None:
        kind = int64 if all(isinstance(x, (int, np.integer)) for x in (first, last, by)) else default_dtype()
    if kind is bool_:
        raise NotImplementedError("\"arange_cpu\" not implemented for 'Bool'")
    values = _steps(first, last, by, kind)
    return leaf(values, requires_grad) if out is None else _into(out, values)


def _into(out: Tensor, values: Array) -> Tensor:
    """Put values into `out=`, which takes on their shape. RuntimeError for another dtype."""
    if out.array.dtype != values.dtype:
        raise RuntimeError(
            f"dtype {from_native(values.dtype).scalar_name} does not match dtype of out parameter ({out.meta.kind.scalar_name})"
        )
    if out.array.shape == values.shape:
        return out.copy_(leaf(values))
    out.array = values
    settle(out)
    out._bump()
    return out


def _steps(first: Any, last: Any, by: Any, kind: Dtype) -> Array:
    if not (math.isfinite(first) and math.isfinite(last)):
        raise RuntimeError(f"unsupported range: {first} -> {last}")
    if by == 0:
        raise RuntimeError("step must be nonzero")
    if (last > first and by < 0) or (last < first and by > 0):
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if kind.kind == "i":
        first, last, by = int(first), int(last), int(by)
        if by == 0:
            raise ValueError("step must be nonzero")
        return np.asarray(np.arange(first, last, by, dtype=np.int64), kind.numpy)
    count = math.ceil((last - first) / by)
    return np.asarray(first + np.arange(count, dtype=np.float64) * by, kind.numpy)


def eye(
    n: int,
    m: int | None = None,
    *,
    dtype: Dtype | None = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Ones on the diagonal of an (n, m) matrix, m = n by default."""
    check_place("eye", device, layout, pin_memory)
    for place, (name, count) in enumerate((("n", n), ("m", n if m is None else m)), 1):
        if isinstance(count, bool) or not hasattr(count, "__index__"):
            raise argument_error("eye", name, place, "int", count)
        if count < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {count}")
    return leaf(np.eye(n, m, dtype=native("eye", dtype)), requires_grad)
