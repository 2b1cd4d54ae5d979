"""Variance, norms, log-sum-exp."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from .._core.dtypes import default_dtype
from .._kernels import reductions as kernels
from .axes import HALF, SINGLE, Shape, arranged, axes_of, in_half, kept_shape, restored
from .kinds import Array, Tensor, composite, general
from .reductions import check_flag, counted, totals


# ---------------------------------------------------------------- variance
def variance(array: Array, dims: Shape, keepdim: bool, correction: float, root: bool) -> Array:
    """Sum of squared distances from the mean / (n - correction), or its root."""
    if array.dtype == HALF:
        return variance(array.astype(SINGLE), dims, keepdim, correction, root).astype(HALF)
    out = np.empty(kept_shape(array.shape, dims, keepdim), array.dtype)
    array, outer, n, inner = arranged(array, dims)
    work = np.empty((2, inner))
    kernels.var_middle[array.dtype](array, outer, n, inner, max(n - correction, 0.0), int(root), work[0], work[1], out)
    return out


@general(node="VarBackward0", saves=("input",), name="_var")
def var_op(input: Array, dims: Shape, keepdim: bool, correction: float, whole: bool) -> Array:
    return variance(input, dims, keepdim, correction, False)


@var_op.rule
def _(grad: Tensor, input: Tensor, dims: Shape, keepdim: bool, correction: float, whole: bool) -> Tensor:
    return var_rule(grad, input, dims, keepdim, correction, whole)


def var_rule(grad: Tensor, input: Tensor, dims: Shape, keepdim: bool, correction: float, whole: bool) -> Tensor:
    """The gradient of a variance. Without a degree of freedom that of all elements (`whole`) is infinite, NaN at the mean, as in torch."""
    grad = restored(grad, input.meta.shape, dims, keepdim)
    away = input - input.mean(dims, keepdim=True)
    free = counted(input.meta.shape, dims) - correction
    if free <= 0 and whole:
        return grad * (away.abs() * math.inf)  # 0 * inf is the NaN wanted
    return grad * away * (2.0 / free if free else math.inf)


@var_op.fused
def _(grad: Array, input: Array, dims: Shape, correction: float, whole: bool) -> Array:
    return var_back(grad, input, dims, correction, whole)


@in_half
def var_back(grad: Array, input: Array, dims: Shape, correction: float, whole: bool) -> Array:
    """`var_rule` on arrays."""
    count = counted(input.shape, dims)
    away = input - totals(input, dims, True, float(count), None)
    free = count - correction
    with np.errstate(all="ignore"):
        if free <= 0 and whole:
            away, factor = np.abs(away), math.inf
        else:
            factor = 2.0 / free if free else math.inf
        grad = grad.reshape(kept_shape(input.shape, dims, True))
        return np.asarray(grad * (away * grad.dtype.type(factor)) if free <= 0 else away * (grad * grad.dtype.type(factor)))


@general(node="StdBackward0", saves=("input", "result"), name="_std")
def std_op(input: Array, dims: Shape, keepdim: bool, correction: float, whole: bool) -> Array:
    return variance(input, dims, keepdim, correction, True)


@std_op.rule
def _(grad: Tensor, input: Tensor, result: Tensor, dims: Shape, keepdim: bool, correction: float, whole: bool) -> Tensor:
    return var_rule((grad / (result * 2)).masked_fill(result == 0, 0), input, dims, keepdim, correction, whole)


@std_op.fused
def _(grad: Array, input: Array, result: Array, dims: Shape, correction: float, whole: bool) -> Array:
    inner = np.zeros(grad.shape, grad.dtype)
    with np.errstate(all="ignore"):
        np.divide(grad, result * 2, out=inner, where=result != 0)
    return var_back(inner, input, dims, correction, whole)


def spread_arguments(function: str, input: Tensor, dim: Any, unbiased: Any, keepdim: Any,
                     correction: Any) -> tuple[Shape, bool, float, bool]:  # fmt: skip
    """Axes, keepdim, correction and whether no axis was named, from the two ways to call `var` and `std`."""
    if not input.meta.kind.is_floating_point:
        which = "std and var" if function in ("std", "var") else function
        raise RuntimeError(f"{which} only support floating point and complex dtypes")
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if unbiased is not None:
        check_flag(function, unbiased)
        if correction is not None:
            raise TypeError(f"{function}() received an invalid combination of arguments: unbiased and correction")
        correction = 1 if unbiased else 0
    dims = axes_of(dim, input.ndim)
    correction = 1.0 if correction is None else float(correction)
    if counted(input.meta.shape, dims) <= correction and 0 not in kept_shape(input.meta.shape, dims, False):
        warnings.warn(f"{function}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor (input numel "
                      "divided by output numel).", stacklevel=4)  # fmt: skip
    return dims, check_flag(function, keepdim, 3), correction, dim is None or not input.ndim


@composite(numpy=True)
def var(input: Tensor, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None) -> Tensor:
    """Variance of all elements or along `dim`: the sum of squared distances from the mean over n - correction (1 by default)."""
    return var_op(input, *spread_arguments("var", input, dim, unbiased, keepdim, correction))


@composite(numpy=True)
def std(input: Tensor, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None) -> Tensor:
    """Root of the variance of all elements or along `dim`; where it is 0 its gradient is 0."""
    return std_op(input, *spread_arguments("std", input, dim, unbiased, keepdim, correction))


# ---------------------------------------------------------------- log-sum-exp
@general(node="LogsumexpBackward0", saves=("input", "result"), name="_logsumexp")
def logsumexp_op(input: Array, dims: Shape, keepdim: bool) -> Array:
    if input.dtype == HALF:
        return np.asarray(logsumexp_op.function(input.astype(SINGLE), dims, keepdim), HALF)
    out = np.empty(kept_shape(input.shape, dims, keepdim), input.dtype)
    array, outer, n, inner = arranged(input, dims)
    if inner != 1:
        array = np.ascontiguousarray(array.reshape(outer, n, inner).swapaxes(1, 2))
    kernels.logsumexp_rows[input.dtype](array, outer * inner, n, 1, out)
    return out


@logsumexp_op.rule
def _(grad: Tensor, input: Tensor, result: Tensor, dims: Shape, keepdim: bool) -> Tensor:
    shape = input.meta.shape
    return restored(grad, shape, dims, keepdim) * (input - restored(result, shape, dims, keepdim)).exp()


@logsumexp_op.fused
def _(grad: Array, input: Array, result: Array, dims: Shape) -> Array:
    return logsumexp_back(grad, input, result, kept_shape(input.shape, dims, True))


@in_half
def logsumexp_back(grad: Array, input: Array, result: Array, shape: Shape) -> Array:
    """The rule on arrays."""
    with np.errstate(all="ignore"):
        return np.asarray(np.exp(input - result.reshape(shape)) * grad.reshape(shape))


@composite(numpy=True)
def logsumexp(input: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    """Logarithm of the sum of exponentials along `dim` (an int or several), without overflow; of nothing -inf."""
    if not input.meta.kind.is_floating_point:
        input = input.to(default_dtype())
    return logsumexp_op(input, axes_of(dim, input.ndim), check_flag("logsumexp", keepdim))


# ---------------------------------------------------------------- both moments at once
@general(node="VarMeanBackward0", saves=("input",), outputs=2, name="_var_mean")
def var_mean_op(input: Array, dims: Shape, keepdim: bool, correction: float, whole: bool) -> tuple[Array, Array]:
    return variance(input, dims, keepdim, correction, False), totals(input, dims, keepdim, float(counted(input.shape, dims)), None)


@var_mean_op.rule
def _(grads: Any, input: Tensor, dims: Shape, keepdim: bool, correction: float, whole: bool) -> Tensor:
    spread_part = None if grads[0] is None else var_rule(grads[0], input, dims, keepdim, correction, whole)
    return with_mean(spread_part, grads[1], input, dims, keepdim)


@general(node="StdMeanBackward0", saves=("input", "result0"), outputs=2, name="_std_mean")
def std_mean_op(input: Array, dims: Shape, keepdim: bool, correction: float, whole: bool) -> tuple[Array, Array]:
    return variance(input, dims, keepdim, correction, True), totals(input, dims, keepdim, float(counted(input.shape, dims)), None)


@std_mean_op.rule
def _(grads: Any, input: Tensor, result0: Tensor, dims: Shape, keepdim: bool, correction: float, whole: bool) -> Tensor:
    grad, spread_part = grads[0], None
    if grad is not None:
        spread_part = var_rule((grad / (result0 * 2)).masked_fill(result0 == 0, 0), input, dims, keepdim, correction, whole)
    return with_mean(spread_part, grads[1], input, dims, keepdim)


def with_mean(spread_part: Tensor | None, grad: Tensor | None, input: Tensor, dims: Shape, keepdim: bool) -> Tensor:
    """The gradient by way of the mean, added to that by way of the variance; one of the two may be None."""
    if grad is None:
        return spread_part
    shape = input.meta.shape
    even = restored(grad, shape, dims, keepdim) * (1.0 / (counted(shape, dims) or 1))
    return even.expand(shape) if spread_part is None else spread_part + even


@composite(method=False, numpy=True)
def var_mean(input: Tensor, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None) -> tuple[Tensor, Tensor]:
    """Variance and mean of all elements or along `dim`. Node: VarMeanBackward0."""
    return var_mean_op(input, *spread_arguments("var_mean", input, dim, unbiased, keepdim, correction))  # type: ignore[no-any-return]


@composite(method=False, numpy=True)
def std_mean(input: Tensor, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None) -> tuple[Tensor, Tensor]:
    """Standard deviation and mean of all elements or along `dim`. Node: StdMeanBackward0."""
    return std_mean_op(input, *spread_arguments("std_mean", input, dim, unbiased, keepdim, correction))  # type: ignore[no-any-return]
