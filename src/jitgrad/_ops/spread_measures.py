"""How far apart: distances between tensors, covariances and correlations between rows."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from .._core.dtypes import bool_, default_dtype
from .._core.shapes import wrap_dim
from .axes import HALF, SINGLE
from .kinds import Array, Tensor, composite, general
from .norms import linalg_vector_norm


# ---------------------------------------------------------------- distances
@general(node="DistBackward0", saves=("input", "other", "result"), name="_dist")
def dist_op(input: Array, other: Array, p: float) -> Array:
    if input.dtype == HALF:
        return np.asarray(dist_op.function(input.astype(SINGLE), other.astype(SINGLE), p), HALF)
    away = np.abs(input - other)
    with np.errstate(all="ignore"):
        if p == 0:
            return np.asarray(np.count_nonzero(away), input.dtype)
        if math.isinf(p):
            return np.asarray((away.max if p > 0 else away.min)() if away.size else 0, input.dtype)
        return np.asarray((away.astype(np.float64) ** p).sum() ** (1 / p), input.dtype)


@dist_op.rule
def _(grad: Tensor, input: Tensor, other: Tensor, p: float) -> tuple[Tensor, Tensor]:
    away = input - other
    with_history = linalg_vector_norm(away, p)
    back = norm_pull(grad, away, with_history, p, tuple(range(away.ndim)))
    return back, -back


def norm_pull(grad: Tensor, x: Tensor, norm: Tensor, p: float, dims: tuple[int, ...]) -> Tensor:
    """The gradient of the p-norm along axes; `grad` and `norm` broadcast against `x`."""
    if p == 0:
        return x * 0 * grad
    if p == 1:
        return x.sign() * grad
    if math.isinf(p):
        mask = (x.abs() == norm) | x.isnan()
        return x.sign() * ((grad / mask.sum(dims, keepdim=True)) * mask)
    if p == 2:
        return grad * (x / norm).masked_fill(norm == 0, 0)
    steep = x.sign() * x.abs().pow(p - 1)
    return (steep.masked_fill(x == 0, 0) if p < 1 else steep) * (grad / norm.pow(p - 1)).masked_fill(norm == 0, 0)


@composite
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The p-norm of the difference of two tensors, which broadcast."""
    away = input - other
    if not away.meta.kind.is_floating_point:
        raise RuntimeError(f"norm(): input dtype should be either floating point or complex. Got {away.meta.kind.scalar_name} instead.")
    return dist_op(input.to(away.meta.kind), other.to(away.meta.kind), float(p))


@general(node="CdistBackward0", saves=("x1", "x2", "result"), name="_cdist")
def cdist_op(x1: Array, x2: Array, p: float) -> Array:
    """(..., P, M) and (..., R, M) give (..., P, R)."""
    away = np.abs(x1[..., :, None, :] - x2[..., None, :, :])
    with np.errstate(all="ignore"):
        if p == 0:
            return np.asarray(np.count_nonzero(away, axis=-1), x1.dtype)
        if math.isinf(p):
            return np.asarray(away.max(-1, initial=0.0), x1.dtype)
        return np.asarray((away**x1.dtype.type(p)).sum(-1) ** x1.dtype.type(1 / p), x1.dtype)


@cdist_op.rule
def _(grad: Tensor, x1: Tensor, x2: Tensor, p: float) -> tuple[Tensor, Tensor]:
    away = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    back = norm_pull(grad.unsqueeze(-1), away, linalg_vector_norm(away, p, -1, True), p, (away.ndim - 1,))
    return back.sum(-2), -back.sum(-3)


@composite(method=False)
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: Any = None) -> Tensor:
    """The p-norms of the differences of all rows: (..., P, M) and (..., R, M) give (..., P, R); leading axes broadcast."""
    for name, x in (("X1", x1), ("X2", x2)):
        if x.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x.ndim}D")
        if not x.meta.kind.is_floating_point:
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {x.meta.kind.scalar_name}")
    if x1.meta.shape[-1] != x2.meta.shape[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x1.meta.shape[-1]} X2: {x2.meta.shape[-1]}")
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    return cdist_op(x1, x2, float(p))


@general(node="RenormBackward0", saves=("input",), name="_renorm")
def renorm_op(input: Array, p: float, dim: int, maxnorm: float) -> Array:
    axes = tuple(axis for axis in range(input.ndim) if axis != dim)
    norms = np.linalg.norm(np.moveaxis(input, dim, 0).reshape(input.shape[dim], -1).astype(np.float64), p, 1)
    factor = np.where(norms > maxnorm, maxnorm / (norms + 1e-7), 1.0)
    return np.asarray(input * np.expand_dims(factor, axes), input.dtype, order="C")


@renorm_op.rule
def _(grad: Tensor, input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    axes = tuple(axis for axis in range(input.ndim) if axis != dim)
    norms = linalg_vector_norm(input, p, axes, True)
    large = norms > maxnorm
    factor = (maxnorm / (norms + 1e-7)).masked_fill(large.logical_not(), 1.0)
    slope = ((grad * input).sum(axes, keepdim=True) * (-maxnorm / (norms + 1e-7).square())).masked_fill(large.logical_not(), 0.0)
    return grad * factor + norm_pull(slope, input, norms, p, axes)


@composite(inplace="write")
def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """The slices along `dim`, those with a p-norm above `maxnorm` scaled down to it."""
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}")
    if input.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {input.ndim} dimensions")
    return renorm_op(input, float(p), wrap_dim(dim, input.ndim), float(maxnorm))


# ---------------------------------------------------------------- covariances
def observation_weights(function: str, name: str, weights: Tensor, count: int) -> None:
    """RuntimeError in torch's words for weights that don't go with the observations."""
    if weights.ndim > 1:
        raise RuntimeError(f"cov(): expected {name} to have one or fewer dimensions but got {name} with {weights.ndim} dimensions")
    kind = weights.meta.kind
    if kind.is_floating_point == (name == "fweights"):
        wanted = "integral" if name == "fweights" else "floating point"
        raise RuntimeError(f"cov(): expected {name} to have {wanted} dtype but got {name} with {kind.scalar_name} dtype")
    if weights.meta.numel != count:
        raise RuntimeError(f"cov(): expected {name} to have the same numel as there are observations in the input but got {weights.meta.numel} != "
                           f"{count}")  # fmt: skip
    if count and bool((weights < 0).any()):
        raise RuntimeError(f"cov(): {name} cannot be negative")


@composite
def cov(input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Tensor:
    """The matrix of covariances of variables in rows, observed in columns; of a vector its variance.

    `fweights` say how often each observation counts, `aweights` how much; RuntimeError in torch's words where they don't fit.
    """
    if input.ndim > 2:
        raise RuntimeError(f"cov(): expected input to have two or fewer dimensions but got an input with {input.ndim} dimensions")
    if input.meta.kind is bool_:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    rows = input.reshape(1, -1) if input.ndim < 2 else input
    count = rows.meta.shape[1]
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is not None:
            observation_weights("cov", name, given, count)
    weight = fweights if aweights is None else aweights if fweights is None else fweights * aweights
    rows = rows if rows.meta.kind.is_floating_point else rows.to(default_dtype())
    if weight is None:
        total: Any = count
        mean = rows.sum(1, keepdim=True) / count
    else:
        total = weight.sum()
        mean = (rows * weight).sum(1, keepdim=True) / total
    free: Any = total
    if correction != 0:
        extra = (weight * aweights).sum() / total if aweights is not None and weight is not None else 1
        free = total - correction * extra
    if float(free) <= 0:
        warnings.warn("cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.", stacklevel=3)
        free = free * 0
    away = rows - mean
    second = away if weight is None else away * weight
    product = away.mm(second.to(away.meta.kind).t())
    return ((product / free) if hasattr(free, "meta") or free else product * math.inf).squeeze()


@composite
def corrcoef(input: Tensor) -> Tensor:
    """The matrix of correlation coefficients of variables in rows, observed in columns; of a vector 1."""
    if input.ndim > 2:
        raise RuntimeError(f"corrcoef(): expected input to have two or fewer dimensions but got an input with {input.ndim} dimensions")
    found = cov(input)
    if not found.ndim:
        return found / found
    spread = found.diag().sqrt()
    return (found / spread.unsqueeze(1) / spread.unsqueeze(0)).clamp(-1, 1)
