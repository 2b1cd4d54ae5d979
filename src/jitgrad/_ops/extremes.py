"""Largest and smallest elements. NaN wins. Tied elements share a gradient; along one axis the element named by the index takes it."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.meta import Meta
from .._core.shapes import wrap_dim
from .._kernels import reductions as kernels
from .axes import COMPILED, LONG, Shape, arranged, axes_of, kept_shape, restored
from .kinds import Array, Index, Tensor, composite, general, linear
from .reductions import check_flag
from .results import MaxResult, MinResult

LARGEST, SMALLEST = 1.0, -1.0


def extreme(array: Array, dims: Shape, keepdim: bool, sign: float) -> Array:
    """The largest elements along some axes (sign 1), or the smallest (-1)."""
    if array.dtype.char not in COMPILED:
        return np.asarray((np.max if sign > 0 else np.min)(array, axis=dims, keepdims=keepdim))
    out = np.empty(kept_shape(array.shape, dims, keepdim), array.dtype)
    array, outer, n, inner = arranged(array, dims)
    kernels.extreme_middle[array.dtype](array, outer, n, inner, sign, out)
    return out


def check_elements(function: str, shape: Shape, dims: Shape, hint: str) -> None:
    """Nothing has no largest element: RuntimeError, or IndexError for an axis of length 0 that was asked for."""
    if 0 not in shape:
        return
    if len(dims) == len(shape) and hint:
        kind = IndexError if function.startswith("arg") else RuntimeError
        raise kind(f"{function}(): Expected reduction dim to be specified for input.numel() == 0.{hint}")
    for k in dims:
        if shape[k] == 0:
            raise IndexError(f"{function}(): Expected reduction dim {k} to have non-zero size.")


HINT = " Specify the reduction dim with the 'dim' argument."


# ---------------------------------------------------------------- over all elements
@general(node="MaxBackward1", saves=("input", "result"), name="_max")
def max_all_op(input: Array) -> Array:
    return extreme(input, tuple(range(input.ndim)), False, LARGEST)


@general(node="MinBackward1", saves=("input", "result"), name="_min")
def min_all_op(input: Array) -> Array:
    return extreme(input, tuple(range(input.ndim)), False, SMALLEST)


for _op in (max_all_op, min_all_op):

    @_op.rule
    def _(grad: Tensor, input: Tensor, result: Tensor) -> Tensor:
        mask = (input == result).logical_or(input.isnan())  # a NaN in the input makes the result one
        return mask * (grad / mask.sum())


# ---------------------------------------------------------------- over some axes at once
@general(node="AmaxBackward0", saves=("input", "result"), name="_amax")
def amax_op(input: Array, dims: Shape, keepdim: bool) -> Array:
    return extreme(input, dims, keepdim, LARGEST)


@general(node="AminBackward0", saves=("input", "result"), name="_amin")
def amin_op(input: Array, dims: Shape, keepdim: bool) -> Array:
    return extreme(input, dims, keepdim, SMALLEST)


for _op in (amax_op, amin_op):

    @_op.rule
    def _(grad: Tensor, input: Tensor, result: Tensor, dims: Shape, keepdim: bool) -> Tensor:
        shape = input.meta.shape
        mask = input == restored(result, shape, dims, keepdim)
        return restored(grad, shape, dims, keepdim) * mask / mask.sum(dims, keepdim=True)


    @_op.fused
    def _(grad: Array, input: Array, result: Array, dims: Shape) -> Array:
        shape = kept_shape(input.shape, dims, True)
        mask = input == result.reshape(shape)
        with np.errstate(all="ignore"):
            return np.asarray(grad.reshape(shape) * mask / mask.sum(dims, keepdims=True).astype(grad.dtype))


# ---------------------------------------------------------------- along one axis, with indices
@general(differentiable=(), name="_extreme_index")
def index_op(input: Array, dim: int | None, keepdim: bool, sign: float) -> Array:
    dims = tuple(range(input.ndim)) if dim is None or not input.ndim else (dim,)
    out = np.empty(kept_shape(input.shape, dims, keepdim), LONG)
    array, outer, n, inner = arranged(input, dims)
    if input.dtype.char in COMPILED:
        kernels.extreme_index[input.dtype](array, outer, n, inner, sign, out)
    elif out.size:
        out[...] = (np.argmax if sign > 0 else np.argmin)(array.reshape(outer, n, inner), axis=1).reshape(out.shape)
    return out


def picked(array: Array, index: Array, dim: int) -> Array:
    """The elements at the given places along an axis; `index` has the shape of the result."""
    out = np.empty(index.shape, array.dtype)
    array, outer, n, inner = arranged(array, (dim,) if array.ndim else ())
    if array.dtype.char in COMPILED:
        kernels.pick_middle[array.dtype](array, np.ascontiguousarray(index), outer, n, inner, out)
    else:
        found = np.take_along_axis(array.reshape(outer, n, inner), index.reshape(outer, 1, inner), 1)
        out[...] = found.reshape(index.shape)
    return out


def picking(node: str, name: str) -> Any:
    """A linear op that takes elements along an axis by an index of the result's shape, under torch's name for its node."""

    @linear(node=node, name=name)
    def op(input: Array, index: Index, dim: int) -> Array:
        return picked(input, index, dim)

    @op.adjoint
    def _(grad: Array, like: tuple[Meta, Meta], index: Array, dim: int) -> Array:
        out = np.empty(like[0].shape, grad.dtype)
        _, outer, n, inner = arranged(out, (dim,) if out.ndim else ())
        if grad.dtype.char in COMPILED:
            kernels.place_middle[grad.dtype](np.ascontiguousarray(grad), np.ascontiguousarray(index), outer, n, inner, out)
        else:
            out.fill(0)
            np.put_along_axis(out.reshape(outer, n, inner), index.reshape(outer, 1, inner), grad.reshape(outer, 1, inner), 1)
        return out

    return op


max_dim_op, min_dim_op = picking("MaxBackward0", "_max_dim"), picking("MinBackward0", "_min_dim")


def along(function: str, input: Tensor, dim: Any, keepdim: Any, sign: float) -> tuple[Tensor, Tensor]:
    """Extreme values and their indices along an axis."""
    if not isinstance(dim, int) or isinstance(dim, bool) or not hasattr(input, "meta"):
        given = f"{type(input).__name__}, {type(dim).__name__}"
        raise TypeError(f"{function}() received an invalid combination of arguments - got ({given}), but expected one of:\n"
                        " * (Tensor input)\n * (Tensor input, Tensor other)\n * (Tensor input, int dim, bool keepdim = False)")  # fmt: skip
    keepdim = check_flag(function, keepdim)
    dim = wrap_dim(dim, input.ndim)
    check_elements(function, input.meta.shape, (dim,) if input.ndim else (), "")
    index = index_op(input, dim, keepdim, sign)
    values = (max_dim_op if sign > 0 else min_dim_op)(input, index, dim)
    return values, index


def pair(function: str, input: Any, other: Any) -> Tensor:
    """The first of two tensors; TypeError unless both are tensors."""
    for position, operand in enumerate((input, other), 1):
        if not hasattr(operand, "meta"):
            name = ("input", "other")[position - 1]
            raise TypeError(f"{function}(): argument '{name}' (position {position}) must be Tensor, not {type(operand).__name__}")
    return input


def written(result: Tensor, out: Any) -> Tensor:
    """The result, put into `out` if there is one: it must have the result's dtype."""
    if out is None:
        return result
    if out.meta.kind is not result.meta.kind:
        raise RuntimeError(f"Expected the dtype for input and out to match, but got {result.meta.kind.scalar_name} for input's dtype and "
                           f"{out.meta.kind.scalar_name} for out's dtype.")  # fmt: skip
    return out.copy_(result)


@composite(name="max", numpy=True)
def max_(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """The largest element; with `dim` a named tuple of values and indices along it; with another tensor `maximum`."""
    other = dim if hasattr(dim, "meta") else other
    if other is not None:
        return pair("max", input, other).maximum(other)
    if dim is not None:
        return MaxResult(*along("max", input, dim, keepdim, LARGEST))
    check_elements("max", input.meta.shape, tuple(range(input.ndim)), HINT)
    return max_all_op(input)


@composite(name="min", numpy=True)
def min_(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """The smallest element; with `dim` a named tuple of values and indices along it; with another tensor `minimum`."""
    other = dim if hasattr(dim, "meta") else other
    if other is not None:
        return pair("min", input, other).minimum(other)
    if dim is not None:
        return MinResult(*along("min", input, dim, keepdim, SMALLEST))
    check_elements("min", input.meta.shape, tuple(range(input.ndim)), HINT)
    return min_all_op(input)


@composite(numpy=True)
def amax(input: Tensor, dim: Any = (), keepdim: bool = False, *, out: Any = None) -> Tensor:
    """The largest elements along `dim` (an int or several; all when empty), written to `out` if given. Ties share the gradient evenly."""
    dims = axes_of(dim, input.ndim)
    check_elements("amax", input.meta.shape, dims, HINT if dim == () or dim is None else "")
    return written(amax_op(input, dims, check_flag("amax", keepdim)), out)


@composite(numpy=True)
def amin(input: Tensor, dim: Any = (), keepdim: bool = False, *, out: Any = None) -> Tensor:
    """The smallest elements along `dim` (an int or several; all when empty), written to `out` if given. Ties share the gradient evenly."""
    dims = axes_of(dim, input.ndim)
    check_elements("amin", input.meta.shape, dims, HINT if dim == () or dim is None else "")
    return written(amin_op(input, dims, check_flag("amin", keepdim)), out)


def argextreme(function: str, input: Tensor, dim: Any, keepdim: Any, sign: float) -> Tensor:
    """The index of an extreme element."""
    if input.meta.kind.kind == "b":
        raise RuntimeError(f"{function}(): does not support bool input")
    if dim is not None and (not isinstance(dim, int) or isinstance(dim, bool)):
        raise TypeError(f"{function}(): argument 'dim' (position 2) must be int, not {type(dim).__name__}")
    dim = None if dim is None else wrap_dim(dim, input.ndim)
    dims = tuple(range(input.ndim)) if dim is None or not input.ndim else (dim,)
    check_elements(function, input.meta.shape, dims, "" if dim is not None else " ")
    return index_op(input, dim, check_flag(function, keepdim), sign)


@composite(numpy=True)
def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The index of the largest element (the first of equal ones, or of NaN) in the flattened tensor, or along `dim`."""
    return argextreme("argmax", input, dim, keepdim, LARGEST)


@composite(numpy=True)
def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The index of the smallest element (the first of equal ones, or of NaN) in the flattened tensor, or along `dim`."""
    return argextreme("argmin", input, dim, keepdim, SMALLEST)
