"""Making tensors: from data, filled with one value, ranges. Everything here is a leaf.

What these functions have in common - `out=`, dtype, layout, device, `pin_memory`, `requires_grad`, the order in memory - `factory` and
`factory_like` add to a function that makes an array.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .._core.devices import blank, blank_like, check_device, check_memory_format, check_place, in_order, preserve_format
from .._core.dtypes import bool_, default_dtype, dtype as Dtype, int64, scalar_dtype
from .._core.errors import argument_error, bracketed
from .._core.meta import plain_meta
from .._core.shapes import parse_shape
from .._engine import modes
from .base import TensorBase, around, own_rare, wrap
from .convert import check_fits, check_shareable, data_array, dtype_argument, number_argument

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


def factory(make: Callable[..., Array]) -> Callable[..., Tensor]:
    """A function that makes a leaf of what `make(kind, ...)` gives: an array, of the dtype `kind` if that isn't None.

    It takes the arguments of `make` and `out` (a tensor to write to, of which it takes the dtype), `dtype`, `layout`, `device`,
    `pin_memory` and `requires_grad`.
    """
    function = make.__name__

    def made(*args: Any, out: Any = None, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
             requires_grad: bool = False, **named: Any) -> Tensor:  # fmt: skip
        if device is not None or layout is not None or pin_memory:
            check_place(function, device, layout, pin_memory)
        if dtype is not None:
            dtype = dtype_argument(function, dtype)
        if out is None:
            return leaf(make(dtype, *args, **named), requires_grad)
        check_out(function, out, dtype)
        result = written(out, leaf(make(out.meta.kind, *args, **named)))
        return result.requires_grad_() if requires_grad else result

    return named_after(made, make)


def factory_like(make: Callable[..., Array]) -> Callable[..., Tensor]:
    """A function of a tensor that makes a leaf of what `make(array, kind, order, ...)` gives: an array of that shape, dtype and memory format.

    It takes the tensor, the further arguments of `make`, and `dtype`, `layout`, `device`, `pin_memory`, `requires_grad`, `memory_format`.
    """
    function = make.__name__

    def made(input: Tensor, *args: Any, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
             requires_grad: bool = False, memory_format: Any = None, **named: Any) -> Tensor:  # fmt: skip
        if not isinstance(input, TensorBase):
            raise argument_error(function, "input", 1, "Tensor", input)
        if device is not None or layout is not None or pin_memory or memory_format is not None:
            check_place(function, device, layout, pin_memory, memory_format, input.ndim)
        kind = input.meta.kind if dtype is None else dtype_argument(function, dtype)
        return leaf(make(input.array, kind, memory_format, *args, **named), requires_grad)

    return named_after(made, make)


def named_after(made: Callable[..., Tensor], make: Callable[..., Array]) -> Callable[..., Tensor]:
    """Name and documentation of a declaration for the function made of it, whose signature is its own."""
    functools.update_wrapper(made, make, ("__module__", "__name__", "__qualname__", "__doc__"))
    del made.__wrapped__  # type: ignore[attr-defined]
    return made


# ---------------------------------------------------------------- out=
def check_out(function: str, out: Any, dtype: Dtype | None) -> None:
    """TypeError or RuntimeError for an `out` that the function can't write to."""
    if not isinstance(out, TensorBase):
        raise TypeError(f"{function}(): argument 'out' must be Tensor, not {type(out).__name__}")
    if dtype is not None and dtype is not out.meta.kind:
        raise RuntimeError(f"dtype {dtype.scalar_name} does not match dtype of out parameter ({out.meta.kind.scalar_name})")
    if out.requires_grad and modes.grad_enabled():
        raise RuntimeError(f"aten::{function}(): functions with out=... arguments don't support automatic differentiation, but one of the "
                           "arguments requires grad.")  # fmt: skip


def written(out: Tensor, values: Tensor) -> Tensor:
    """`out` with the shape and elements of a tensor of its dtype."""
    if out.meta.shape != values.meta.shape:
        out.resize_(values.meta.shape)
    return out.copy_(values)


# ---------------------------------------------------------------- arguments
def sizes(function: str, size: tuple[Any, ...], named: dict[str, Any]) -> tuple[int, ...]:
    """The shape out of `f(2, 3)`, `f((2, 3))` or `f(size=(2, 3))`. TypeError or RuntimeError in torch's words."""
    if not size and "size" in named:
        size = (named.pop("size"),)
    if named:
        raise TypeError(f"{function}() got an unexpected keyword argument '{next(iter(named))}'")
    shape = parse_shape(size, function)
    for n in shape:
        if n < 0:
            if function == "zeros":
                raise RuntimeError("zeros: Dimension size must be non-negative.")
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {bracketed(shape)}")
    return shape


def native(kind: Dtype | None) -> np.dtype[Any]:
    """The NumPy dtype of a `dtype=` argument, the default one for None."""
    return (kind or default_dtype()).numpy


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
@factory
def zeros(kind: Dtype | None, *size: Any, **named: Any) -> Array:
    """A tensor of zeros; `zeros(2, 3)` or `zeros((2, 3))`."""
    return np.zeros(sizes("zeros", size, named), native(kind))


@factory
def ones(kind: Dtype | None, *size: Any, **named: Any) -> Array:
    """A tensor of ones; `ones(2, 3)` or `ones((2, 3))`."""
    return np.ones(sizes("ones", size, named), native(kind))


@factory
def empty(kind: Dtype | None, *size: Any, memory_format: Any = None, **named: Any) -> Array:
    """A tensor whose elements are whatever the memory held."""
    shape = sizes("empty", size, named)
    if memory_format is None:
        return np.empty(shape, native(kind))
    check_memory_format("empty", memory_format, len(shape))
    if memory_format is preserve_format:
        raise RuntimeError("unsupported memory format Preserve")
    return blank(shape, native(kind), memory_format)


@factory
def full(kind: Dtype | None, size: Any, fill_value: Any) -> Array:
    """A tensor of one value, by default of the dtype the value has. RuntimeError if it doesn't fit an integer `dtype`."""
    if not isinstance(size, (tuple, list)):
        raise argument_error("full", "size", 1, "tuple of ints", size)
    return filled("full", sizes("full", (size,), {}), fill_value, kind)


def filled(function: str, shape: tuple[int, ...], value: Any, kind: Dtype | None) -> Array:
    """An array of one number."""
    found = one_number(function, value, kind)
    return np.full(shape, found, found.dtype)


def one_number(function: str, value: Any, kind: Dtype | None) -> Array:
    """A fill value as an array without axes. RuntimeError if it doesn't fit an integer dtype."""
    number = number_argument(function, "fill_value", 2, value)
    if kind is None:
        kind = value.meta.kind if isinstance(value, TensorBase) else scalar_dtype(number)
    if kind.kind == "i":
        check_fits(np.asarray(number), kind, f"{kind.name}_t")
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(number).astype(kind.numpy)


@factory_like
def zeros_like(array: Array, kind: Dtype, order: Any) -> Array:
    """Zeros of the shape, dtype and order in memory of `input`."""
    return blank_like(array, kind.numpy, order, np.zeros)


@factory_like
def ones_like(array: Array, kind: Dtype, order: Any) -> Array:
    """Ones of the shape, dtype and order in memory of `input`."""
    return blank_like(array, kind.numpy, order, np.ones)


@factory_like
def empty_like(array: Array, kind: Dtype, order: Any) -> Array:
    """Uninitialised memory of the shape, dtype and order in memory of `input`."""
    return blank_like(array, kind.numpy, order)


@factory_like
def full_like(array: Array, kind: Dtype, order: Any, fill_value: Any) -> Array:
    """One value in the shape, dtype and order in memory of `input`."""
    made = blank_like(array, kind.numpy, order)
    made[...] = one_number("full_like", fill_value, kind)
    return made


@factory
def scalar_tensor(kind: Dtype | None, s: Any) -> Array:
    """A 0-dim tensor, by default of the default dtype."""
    return filled("scalar_tensor", (), number_argument("scalar_tensor", "s", 1, s), kind or default_dtype())


@factory
def empty_strided(kind: Dtype | None, size: Any, stride: Any) -> Array:
    """Uninitialised memory of a given shape and strides (in elements)."""
    shape, steps, dtype = sizes("empty_strided", (size,), {}), tuple(stride), native(kind)
    if len(shape) != len(steps):
        raise RuntimeError(
            f"empty_strided: the dimensionality of sizes ({len(shape)}) must match the dimensionality of strides ({len(steps)})"
        )
    extent = 1 + sum((n - 1) * step for n, step in zip(shape, steps, strict=True)) if all(shape) else 0
    return np.ndarray(shape, dtype, np.empty(extent, dtype), 0, tuple(step * dtype.itemsize for step in steps))


@factory
def empty_permuted(kind: Dtype | None, size: Any, physical_layout: Any) -> Array:
    """Uninitialised memory whose axes lie in memory in the order `physical_layout`, outermost first."""
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
    return in_order(shape, native(kind), order)


# ---------------------------------------------------------------- ranges
@factory
def arange(kind: Dtype | None, *bounds: Any, start: Any = 0, end: Any = None, step: Any = 1) -> Array:
    """`arange(end)`, `arange(start, end)`, `arange(start, end, step)`: start, start + step ... without `end`.

    int64 unless a bound is a float. RuntimeError for a step of zero or of the wrong sign.
    """
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
    return _steps(first, last, by, kind)


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


@factory
def eye(kind: Dtype | None, n: int, m: int | None = None) -> Array:
    """Ones on the diagonal of an (n, m) matrix, m = n by default."""
    for place, (name, count) in enumerate((("n", n), ("m", n if m is None else m)), 1):
        if isinstance(count, bool) or not hasattr(count, "__index__"):
            raise argument_error("eye", name, place, "int", count)
        if count < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {count}")
    return np.eye(n, m, dtype=native(kind))
