"""Norms of vectors, along any axes; at the origin their gradient is 0."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from .._core.dtypes import promote
from .._expr import Expr, param, scalar as s, var
from .._kernels.reduced import BLOCK, middle_kernel, sum_kernel
from .axes import HALF, SINGLE, Shape, arranged, axes_of, in_half, kept_shape, restored
from .decompositions import singular_norm
from .extremes import LARGEST, SMALLEST, extreme
from .kinds import Array, Tensor, composite, general
from .reductions import check_flag

X, P = var("x"), param("p")


class Power:
    """What is summed for an order: the kernels over all elements and along axes."""

    def __init__(self, name: str, output: Expr, params: tuple[str, ...] = ()) -> None:
        self.params = params
        self.over_all = sum_kernel(name, output, ("x",), params)
        self.along = middle_kernel(name, output, params)


SQUARE, ABSOLUTE = Power("squares", s.square(X)), Power("absolutes", s.abs(X))
COUNT, POWER = Power("nonzero", s.where(X != 0, 1.0, 0.0)), Power("powers", s.pow(s.abs(X), P), ("p",))
POWERS: Final = {2.0: SQUARE, 1.0: ABSOLUTE, 0.0: COUNT}


def norm_of(array: Array, order: float, dims: Shape, keepdim: bool) -> Array:
    """The norm of the elements along some axes."""
    if array.dtype == HALF:
        return norm_of(array.astype(SINGLE), order, dims, keepdim).astype(HALF)
    if math.isinf(order):
        return extreme(np.asarray(np.abs(array)), dims, keepdim, LARGEST if order > 0 else SMALLEST)
    power = POWERS.get(order, POWER)
    numbers = (order,) if power.params else ()
    out = np.empty(kept_shape(array.shape, dims, keepdim), array.dtype)
    if len(dims) == array.ndim:
        power.over_all[array.dtype](array if array.flags.c_contiguous else array.ravel(order="K"), *numbers, 1.0, out)
    else:
        array, outer, n, inner = arranged(array, dims)
        power.along[array.dtype](array, *numbers, outer, n, inner, 1.0, np.empty(min(inner, BLOCK)), out)
    if order == 2:
        return np.sqrt(out, out=out)
    return out if order in (0, 1) else np.power(out, array.dtype.type(1 / order), out=out)


@general(node="LinalgVectorNormBackward0", saves=("input", "result"), name="_vector_norm")
def vector_norm_op(input: Array, order: float, dims: Shape, keepdim: bool) -> Array:
    return norm_of(input, order, dims, keepdim)


@vector_norm_op.rule
def _(grad: Tensor, input: Tensor, result: Tensor, order: float, dims: Shape, keepdim: bool) -> Tensor:
    shape = input.meta.shape
    grad, norm = restored(grad, shape, dims, keepdim), restored(result, shape, dims, keepdim)
    if order == 0:
        return grad * input * 0
    if order == 1:
        return input.sign() * grad
    if order == 2:
        return grad * (input / norm).masked_fill(norm == 0, 0)
    if math.isinf(order):
        size = input.abs()
        mask = (size == norm) | size.isnan()
        return input.sign() * ((grad / mask.sum(dims, keepdim=True)) * mask)
    if order < 1:
        return (input.sign() * input.abs().pow(order - 1)).masked_fill(input == 0, 0) * grad * norm.pow(1 - order)
    scale = (grad / norm.pow(order - 1)).masked_fill(norm == 0, 0)
    return (input.sign() * input.abs().pow(order - 1) if order < 2 else input * input.abs().pow(order - 2)) * scale


@vector_norm_op.fused
def _(grad: Array, input: Array, result: Array, order: float, dims: Shape) -> Array:
    shape = kept_shape(input.shape, dims, True)
    return norm_back(grad.reshape(shape), input, result.reshape(shape), order, dims)


@in_half
def norm_back(grad: Array, input: Array, norm: Array, order: float, dims: Shape) -> Array:
    """The rule on arrays."""
    kind = input.dtype.type
    with np.errstate(all="ignore"):
        if order == 0:
            return np.asarray(grad * input * kind(0))
        if order == 1:
            return np.asarray(np.sign(input) * grad)
        if order == 2:
            return np.asarray(input * np.where(norm == 0, kind(0), grad / norm))
        size = np.abs(input)
        if math.isinf(order):
            mask = (size == norm) | np.isnan(size)
            return np.asarray(np.sign(input) * ((grad / mask.sum(dims, keepdims=True).astype(input.dtype)) * mask))
        scale = np.where(norm == 0, kind(0), grad / norm ** kind(order - 1))
        steep = np.sign(input) * size ** kind(order - 1)
        return np.asarray((np.where(input == 0, kind(0), steep) if order < 1 else steep) * scale)


@composite(method=False)
def linalg_vector_norm(x: Tensor, ord: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """(sum of abs(x)**ord)**(1/ord) along `dim`; the largest or smallest magnitude for inf and -inf, the count of nonzeros for 0."""
    kind = dtype or x.meta.kind
    if not x.meta.kind.is_floating_point:
        raise RuntimeError(f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {x.meta.kind.scalar_name}")
    if not kind.is_floating_point:
        raise RuntimeError(f"linalg.vector_norm: dtype should be floating point or complex. Got {kind.scalar_name}")
    if promote(kind, x.meta.kind) is not kind:
        raise RuntimeError(f"linalg.vector_norm: the dtype of the input ({x.meta.kind.scalar_name}) should be convertible without narrowing to the "
                           f"specified dtype ({kind.scalar_name})")  # fmt: skip
    dims = axes_of(dim, x.ndim)
    if (ord < 0 or ord == math.inf) and x.meta.numel == 0:
        check_identity(ord, x.meta.shape, dims, dim is None)
    x = x if kind is x.meta.kind else x.to(kind)
    return vector_norm_op(x, float(ord), dims, check_flag("linalg_vector_norm", keepdim))


def check_identity(order: float, shape: Shape, dims: Shape, everything: bool) -> None:
    """RuntimeError for a norm of nothing that has no value."""
    shown = {math.inf: "inf", -math.inf: "-inf"}.get(order, f"{order:g}")
    if everything:
        raise RuntimeError(f"linalg.vector_norm cannot compute the {shown} norm on an empty tensor because the operation does not have an identity")
    for k in dims:
        if shape[k] == 0:
            raise RuntimeError(f"linalg.vector_norm cannot compute the {shown} norm on the dimension {k}because this dimension is empty and the "
                               "operation does not have an identity")  # fmt: skip


@composite
def norm(input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    """The p-norm of all elements or along `dim`; "fro" is 2. Its gradient at the origin is 0."""
    if isinstance(p, str):
        if p != "fro" or not (dim is None or isinstance(dim, int) or len(dim) <= 2):
            return linalg_matrix_norm(input, p, tuple(range(input.ndim)) if dim is None else dim, keepdim, dtype=dtype)
        p = 2
    return linalg_vector_norm(input, 2.0 if p is None else p, dim, keepdim, dtype=dtype)


@composite(method=False)
def linalg_matrix_norm(A: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The norm of matrices: "fro"; the largest (smallest, for a negative one) sum of magnitudes along columns (1) or rows (inf); by
    singular values their sum ("nuc"), the largest (2) or the smallest (-2).
    """
    if not isinstance(dim, (tuple, list)) or len(dim) != 2:
        shown = " ".join(map(str, dim)) if isinstance(dim, (tuple, list)) else dim
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {shown}")
    if ord == "fro":
        return linalg_vector_norm(A, 2, dim, keepdim, dtype=dtype)
    if ord in ("nuc", 2, -2):
        return singular_norm(A if dtype is None else A.to(dtype), ord, dim, keepdim)
    if ord not in (1, -1, math.inf, -math.inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    A = A if dtype is None else A.to(dtype)
    rows, columns = dim if abs(ord) == 1 else dim[::-1]
    sums = linalg_vector_norm(A, 1, rows, True)
    result = sums.amax(columns, True) if ord > 0 else sums.amin(columns, True)
    return result if keepdim else result.squeeze(tuple(dim))


@composite(method=False)
def linalg_norm(A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The 2-norm of all elements; with `ord` the norm of a vector or of matrices, by the number of axes."""
    if ord is None or (dim is not None and (isinstance(dim, int) or len(dim) == 1)) or (dim is None and A.ndim == 1 and not isinstance(ord, str)):
        return linalg_vector_norm(A, 2 if ord is None else ord, dim, keepdim, dtype=dtype)
    if dim is None and A.ndim != 2:
        raise RuntimeError(f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A.ndim}D.")
    return linalg_matrix_norm(A, ord, (0, 1) if dim is None else dim, keepdim, dtype=dtype)
