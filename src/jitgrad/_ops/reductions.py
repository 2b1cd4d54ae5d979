"""Sums, means, products over axes, and what has no derivative: `all`, `any`, `argmax`."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.dtypes import uint8
from .._core.errors import bracketed
from .._core.meta import Meta
from .._core.shapes import wrap_dims
from .._expr import var
from .._kernels import reductions as kernels
from .._kernels.reduced import BLOCK, middle_kernel, sum_kernel
from .axes import COMPILED, HALF, LONG, SINGLE, Shape, arranged, axes_of, kept_shape, kind_of, native
from .kinds import Array, Tensor, composite, general, linear

SUM, SUM_MIDDLE = sum_kernel("elements", var("x"), ("x",)), middle_kernel("elements", var("x"))


# ---------------------------------------------------------------- sum and mean
def total(array: Array, divisor: float, kind: Any) -> Array:
    """The sum of all elements / divisor as a 0-d array. `kind`: the dtype to sum in, None for the usual one."""
    if kind is not None or array.dtype.char not in COMPILED:
        array = summand(array, kind)
        if array.dtype == HALF:
            return total(array.astype(SINGLE), divisor, None).astype(HALF)
        if array.dtype.char not in COMPILED:
            return np.asarray(array.sum(dtype=array.dtype))
    kind, out = array.dtype, np.empty((), array.dtype)
    SUM[kind](array if array.flags.c_contiguous else array.ravel(order="K"), divisor, out)
    return out


def totals(array: Array, dims: Shape, keepdim: bool, divisor: float, kind: Any) -> Array:
    """The sums over some axes / divisor."""
    if kind is not None or array.dtype.char not in COMPILED:
        array = summand(array, kind)
        if array.dtype == HALF:
            return totals(array.astype(SINGLE), dims, keepdim, divisor, None).astype(HALF)
        if array.dtype.char not in COMPILED:
            return np.asarray(array.sum(dims, array.dtype, keepdims=keepdim))
    out = np.empty(kept_shape(array.shape, dims, keepdim), array.dtype)
    array, outer, n, inner = arranged(array, dims)
    SUM_MIDDLE[array.dtype](array, outer, n, inner, divisor, np.empty(min(inner, BLOCK)), out)
    return out


def summand(array: Array, kind: Any) -> Array:
    """The array in the dtype it is summed in: its own, int64 for integers and bools, or the one asked for."""
    kind = kind or (array.dtype if array.dtype.kind == "f" else LONG)
    return array if array.dtype == kind else array.astype(kind)


def spread(grad: Array, shape: Shape, dims: Shape) -> Array:
    """A reduced gradient repeated along the axes that are gone."""
    out = np.empty(shape, grad.dtype)
    if grad.dtype.char in COMPILED and len(dims) and dims[-1] - dims[0] + 1 == len(dims):
        grad, outer, n, inner = (np.ascontiguousarray(grad), *arranged(out, dims)[1:])
        kernels.spread_middle[grad.dtype](grad, outer, n, inner, out)
    else:
        out[...] = grad.reshape(kept_shape(shape, dims, True))
    return out


def filled(grad: Array, shape: Shape) -> Array:
    """A 0-d gradient repeated."""
    out = np.empty(shape, grad.dtype)
    out.fill(grad)
    return out


@linear(node="SumBackward0", name="_sum")
def sum_all_op(input: Array, kind: Any = None) -> Array:
    return total(input, 1.0, kind)


@sum_all_op.adjoint
def _(grad: Array, like: Meta) -> Array:
    return filled(grad, like.shape)


@linear(node="SumBackward1", name="_sum_dims")
def sum_dims_op(input: Array, dims: Shape, keepdim: bool, kind: Any = None) -> Array:
    return totals(input, dims, keepdim, 1.0, kind)


@sum_dims_op.adjoint
def _(grad: Array, like: Meta, dims: Shape) -> Array:
    return spread(grad, like.shape, dims)


@linear(node="MeanBackward0", name="_mean")
def mean_all_op(input: Array, kind: Any = None) -> Array:
    return total(input, float(input.size), kind)


@mean_all_op.adjoint
def _(grad: Array, like: Meta) -> Array:
    return filled(grad / grad.dtype.type(like.numel or 1), like.shape)


@linear(node="MeanBackward1", name="_mean_dims")
def mean_dims_op(input: Array, dims: Shape, keepdim: bool, kind: Any = None) -> Array:
    return totals(input, dims, keepdim, float(counted(input.shape, dims)), kind)


@mean_dims_op.adjoint
def _(grad: Array, like: Meta, dims: Shape) -> Array:
    return spread(np.asarray(grad / grad.dtype.type(counted(like.shape, dims) or 1)), like.shape, dims)


def counted(shape: Shape, dims: Shape) -> int:
    """How many elements each result is made of."""
    count = 1
    for k in dims:
        count *= shape[k]
    return count


@composite(name="sum", numpy=True, planned="planned_sums")
def sum_(input: Tensor, dim: Any = ..., keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Sum of all elements, or along `dim` (an int or several, None for all).

    Integers and bools are summed in int64; with `dtype` the input is cast first. Node: SumBackward0, SumBackward1 where `dim` is given.
    """
    kind = native("sum", dtype)
    if dim is ... and not keepdim:
        return sum_all_op(input, kind)
    return sum_dims_op(input, axes_of(None if dim is ... else dim, input.ndim), check_flag("sum", keepdim), kind)


@composite(numpy=True, planned="planned_sums")
def mean(input: Tensor, dim: Any = ..., keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Mean of all elements, or along `dim` (an int or several, None for all); NaN of nothing.

    With `dtype` the input is cast first. RuntimeError for integers and bools.
    """
    kind = kind_of("mean", dtype) or input.meta.kind
    if not kind.is_floating_point:
        what = "Input dtype" if dtype is None else "Optional dtype"
        raise RuntimeError(f"mean(): could not infer output dtype. {what} must be either a floating point or complex dtype. Got: {kind.scalar_name}")
    if dim is ... and not keepdim:
        return mean_all_op(input, None if dtype is None else kind.numpy)
    return mean_dims_op(input, axes_of(None if dim is ... else dim, input.ndim), check_flag("mean", keepdim), None if dtype is None else kind.numpy)


def check_flag(function: str, keepdim: Any, position: int = 2) -> bool:
    """TypeError unless `keepdim` is a bool: `x.sum(0, 1)` is a mistake."""
    if not isinstance(keepdim, (bool, np.bool_)):
        raise TypeError(f"{function}(): argument 'keepdim' (position {position}) must be bool, not {type(keepdim).__name__}")
    return bool(keepdim)


@composite(public=False)
def sum_to_size(input: Tensor, *size: Any) -> Tensor:
    """The sum along the axes in which `size` is shorter, so that it has that shape. RuntimeError unless `size` broadcasts to it."""
    shape = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size
    have = input.meta.shape
    lead = len(have) - len(shape)
    if lead < 0 or any(n not in (1, have[lead + k]) for k, n in enumerate(shape)):
        raise RuntimeError(f"size {{{bracketed(shape)}}} is not expandable to size {{{bracketed(have)}}}.")
    if not shape:
        return sum_all_op(input)
    dims = tuple(range(lead)) + tuple(lead + k for k, n in enumerate(shape) if n == 1 != have[lead + k])
    if not dims:
        return input
    result = sum_dims_op(input, dims, True)
    return result.view(tuple(shape)) if lead else result


# ---------------------------------------------------------------- truth
def truth(name: str, function: Any) -> Any:
    """The op of `all` or `any`: bool, but uint8 for uint8."""

    def run(input: Array, dims: Shape, keepdim: bool) -> Array:
        out = np.asarray(function(input, axis=dims, keepdims=keepdim))
        return out.astype(input.dtype) if input.dtype == uint8.numpy else out

    run.__annotations__["input"] = "Array"
    return general(differentiable=(), name=name)(run)


def truth_axes(dim: Any, ndim: int) -> Shape:
    """The axes of `all` and `any`, for which an empty sequence means none, unlike for sums."""
    return wrap_dims(dim, ndim) if dim is not None and ndim else tuple(range(ndim))


all_op, any_op = truth("_all", np.all), truth("_any", np.any)


@composite(name="all", numpy=True)
def all_(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Whether all elements are true, of the tensor or along `dim`; of none: True."""
    return all_op(input, truth_axes(dim, input.ndim), check_flag("all", keepdim))


@composite(name="any", numpy=True)
def any_(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Whether one element is true, of the tensor or along `dim`; of none: False."""
    return any_op(input, truth_axes(dim, input.ndim), check_flag("any", keepdim))
