"""Running extremes and running log-sum-exp along an axis."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._core.shapes import wrap_dim
from .axes import LONG
from .kinds import Array, Tensor, composite, general
from .results import CummaxResult, CumminResult
from .sorting import at_index

cummax_op, cummin_op = at_index("CummaxBackward0", "_cummax"), at_index("CumminBackward0", "_cummin")


@general(name="_running_index", differentiable=())
def running_index_op(input: Array, dim: int, largest: bool) -> Array:
    """Where the largest (smallest) of the elements up to each one stands: the last of equal ones, or of NaN."""
    if not input.ndim or not input.size:
        return np.zeros(input.shape, LONG)
    best = (np.maximum if largest else np.minimum).accumulate(input, axis=dim)
    new = (input == best) | (np.isnan(input) if input.dtype.kind == "f" else False)
    place = np.arange(input.shape[dim], dtype=LONG).reshape((-1,) + (1,) * (input.ndim - dim - 1))
    return np.asarray(np.maximum.accumulate(np.where(new, place, 0), axis=dim), order="C")


@composite
def cummax(input: Tensor, dim: int) -> Any:
    """The largest of the elements up to each one along `dim`, and where it stands: a named tuple. NaN stays once it is met."""
    at = wrap_dim(dim, input.ndim)
    index = running_index_op(input, at, True)
    return CummaxResult(cummax_op(input, index, at), index)


@composite
def cummin(input: Tensor, dim: int) -> Any:
    """The smallest of the elements up to each one along `dim`, and where it stands: a named tuple. NaN stays once it is met."""
    at = wrap_dim(dim, input.ndim)
    index = running_index_op(input, at, False)
    return CumminResult(cummin_op(input, index, at), index)


# ---------------------------------------------------------------- log-sum-exp
def running_logsumexp(array: Array, dim: int) -> Array:
    """log(sum of exp) of the elements up to each one, in float64."""
    with np.errstate(all="ignore"):
        wide = array.astype(np.float64)
        return np.asarray(np.logaddexp.accumulate(wide, axis=dim) if array.ndim else wide)


@general(node="LogcumsumexpBackward0", saves=("input", "result"), name="_logcumsumexp")
def logcumsumexp_op(input: Array, dim: int) -> Array:
    return running_logsumexp(input, dim).astype(input.dtype, order="C")


@logcumsumexp_op.rule
def _(grad: Tensor, input: Tensor, result: Tensor, dim: int) -> Tensor:
    """sum over k >= j of grad[k] * exp(input[j] - result[k]), positive and negative gradients apart, in logarithms."""
    if not input.ndim:
        return grad

    def part(size: Tensor) -> Tensor:
        logs = (size.log() - result.masked_fill(result == -math.inf, 0.0)).flip(dim)
        return (logs.logcumsumexp(dim).flip(dim) + input).exp()

    return part(grad.clamp(min=0)) - part((-grad).clamp(min=0))


@logcumsumexp_op.fused
def _(grad: Array, input: Array, result: Array, dim: int) -> Array:
    if not input.ndim:
        return grad
    total = np.zeros(input.shape)
    with np.errstate(all="ignore"):
        shift = np.where(result == -math.inf, 0.0, result)
        for sign in (1.0, -1.0):
            logs = np.flip(np.log(np.maximum(grad * sign, 0.0, dtype=np.float64)) - shift, dim)
            total += sign * np.exp(np.flip(running_logsumexp(logs, dim), dim) + input)
    return total.astype(grad.dtype)


@composite
def logcumsumexp(input: Tensor, dim: int) -> Tensor:
    """Logarithm of the sum of exponentials of the elements up to each one along `dim`, without overflow. Floating dtypes only."""
    if not input.meta.kind.is_floating_point:
        raise NotImplementedError(f"\"logcumsumexp_out_cpu\" not implemented for '{input.meta.kind.scalar_name}'")
    return logcumsumexp_op(input, wrap_dim(dim, input.ndim))
