"""Running sums and products, and products as a whole. No rule divides by the input, which may be 0."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.shapes import wrap_dim
from .._kernels import reductions as kernels
from .axes import COMPILED, HALF, LONG, SINGLE, Shape, arranged, in_half, kept_shape, native
from .kinds import Array, Tensor, composite, general, linear
from .reductions import check_flag


def layout(array: Array, dim: int) -> tuple[Array, int, int, int]:
    """The array C-contiguous, and outer, n, inner around an axis; a 0-d array has one of length 1."""
    return arranged(array, (dim,) if array.ndim else ())


# ---------------------------------------------------------------- sums
@in_half
def running_sum(array: Array, dim: int, backwards: bool) -> Array:
    """Sums of the elements up to each one, or from each one on."""
    source, outer, n, inner = layout(array, dim)
    out = np.empty(array.shape, array.dtype)
    if array.dtype.char in COMPILED:
        kernels.cumsum_middle[array.dtype](source, outer, n, inner, int(backwards), out)
    else:
        np.cumsum(source.reshape(outer, n, inner), axis=1, out=out.reshape(outer, n, inner))
    return out


@linear(node="CumsumBackward0", name="_cumsum")
def cumsum_op(input: Array, dim: int, kind: Any = None) -> Array:
    kind = kind or (input.dtype if input.dtype.kind == "f" else LONG)
    return running_sum(input if input.dtype == kind else input.astype(kind), dim, False)


@cumsum_op.adjoint
def _(grad: Array, dim: int) -> Array:
    return running_sum(grad, dim, True)


@composite(inplace="write", numpy=True)
def cumsum(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Sums of the elements up to each one along `dim`; integers and bools in int64, or in `dtype`."""
    return cumsum_op(input, wrap_dim(dim, input.ndim), native("cumsum", dtype))


# ---------------------------------------------------------------- products
@linear(name="_shift")
def shift_op(input: Array, dim: int, step: int) -> Array:
    """out[k] = input[k - step], zero where there is none."""
    out = np.zeros(input.shape, input.dtype)
    if input.ndim:
        front = (slice(None),) * dim
        source, target = (slice(None, -1), slice(1, None)) if step > 0 else (slice(1, None), slice(None, -1))
        out[(*front, target)] = input[(*front, source)]
    return out


@shift_op.adjoint
def _(grad: Array, dim: int, step: int) -> Array:
    return shift_op.function(grad, dim, -step)  # type: ignore[no-any-return]


@general(saves=("factor", "result"), name="_recurrence")
def recurrence_op(factor: Array, input: Array, dim: int, backwards: bool) -> Array:
    """out[k] = input[k] + factor[k] * out[k - 1], or of out[k + 1] if `backwards`."""
    out = np.empty(input.shape, input.dtype)
    source, outer, n, inner = layout(input, dim)
    kernels.recurrence_middle[input.dtype](layout(factor, dim)[0], source, outer, n, inner, int(backwards), out)
    return out


@recurrence_op.rule
def _(grad: Tensor, factor: Tensor, result: Tensor, dim: int, backwards: bool) -> tuple[Tensor, Tensor]:
    step = -1 if backwards else 1
    grad_input = recurrence_op(shift_op(factor, dim, -step), grad, dim, not backwards)
    return grad_input * shift_op(result, dim, step), grad_input


@in_half
def running_product(array: Array, dim: int, exclusive: bool, backwards: bool) -> Array:
    """Products of the elements up to each one (`exclusive`: before it), or from the other end."""
    source, outer, n, inner = layout(array, dim)
    view = source.reshape(outer, n, inner)
    view = view[:, ::-1] if backwards else view
    wide = np.float64 if array.dtype.kind == "f" else array.dtype
    result = np.cumprod(view, axis=1, dtype=wide)
    if exclusive and n:
        result[:, 1:] = result[:, :-1].copy()
        result[:, 0] = 1
    result = result[:, ::-1] if backwards else result
    return np.ascontiguousarray(result, array.dtype).reshape(array.shape)


@general(saves=("input",), name="_exclusive_product")
def exclusive_op(input: Array, dim: int, backwards: bool) -> Array:
    return running_product(input, dim, True, backwards)


@exclusive_op.rule
def _(grad: Tensor, input: Tensor, dim: int, backwards: bool) -> Tensor:
    return before_and_after(grad, input, dim, backwards)


def before_and_after(grad: Tensor, input: Tensor, dim: int, backwards: bool) -> Tensor:
    """d/dx of sum(grad * exclusive(x)): the product before each element times a recurrence from the other end."""
    tail = recurrence_op(input, grad, dim, not backwards)
    return exclusive_op(input, dim, backwards) * shift_op(tail, dim, 1 if backwards else -1)


@general(node="CumprodBackward0", saves=("input", "result"), name="_cumprod")
def cumprod_op(input: Array, dim: int, kind: Any = None) -> Array:
    kind = kind or (input.dtype if input.dtype.kind == "f" else LONG)
    return running_product(input if input.dtype == kind else input.astype(kind), dim, False, False)


@cumprod_op.rule
def _(grad: Tensor, input: Tensor, dim: int) -> Tensor:
    input = input.to(grad.meta.kind)
    return grad * exclusive_op(input, dim, False) + before_and_after(grad * input, input, dim, False)


@composite(inplace="write", numpy=True)
def cumprod(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Products of the elements up to each one along `dim`; integers and bools in int64, or in `dtype`."""
    return cumprod_op(input, wrap_dim(dim, input.ndim), native("cumprod", dtype))


def product(array: Array, dims: Shape, keepdim: bool, kind: Any) -> Array:
    """The product over some axes."""
    kind = kind or (array.dtype if array.dtype.kind == "f" else LONG)
    array = array if array.dtype == kind else array.astype(kind)
    if kind == HALF:
        return product(array.astype(SINGLE), dims, keepdim, None).astype(HALF)
    if kind.char not in COMPILED:
        return np.asarray(array.prod(dims, kind, keepdims=keepdim))
    out = np.empty(kept_shape(array.shape, dims, keepdim), kind)
    kernels.prod_middle[kind](*arranged(array, dims), out)
    return out


@general(node="ProdBackward0", saves=("input", "result"), name="_prod")
def prod_all_op(input: Array, kind: Any = None) -> Array:
    return product(input, tuple(range(input.ndim)), False, kind)


@prod_all_op.rule
def _(grad: Tensor, input: Tensor) -> Tensor:
    flat = input.to(grad.meta.kind).reshape(-1)
    return (grad * others(flat, 0)).reshape(input.meta.shape)


@general(node="ProdBackward1", saves=("input", "result"), name="_prod_dim")
def prod_dim_op(input: Array, dim: int, keepdim: bool, kind: Any = None) -> Array:
    return product(input, (dim,) if input.ndim else (), keepdim, kind)


@prod_dim_op.rule
def _(grad: Tensor, input: Tensor, dim: int, keepdim: bool) -> Tensor:
    grad = grad if keepdim or not input.ndim else grad.unsqueeze(dim)
    return grad * others(input.to(grad.meta.kind), dim)


def others(input: Tensor, dim: int) -> Tensor:
    """For each element the product of all others along the axis."""
    return exclusive_op(input, dim, False) * exclusive_op(input, dim, True)


@composite(numpy=True)
def prod(input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Product of all elements or along `dim`; integers and bools in int64, or in `dtype`."""
    kind = native("prod", dtype)
    if dim is None:
        return prod_all_op(input, kind)
    return prod_dim_op(input, wrap_dim(dim, input.ndim), check_flag("prod", keepdim), kind)


