"""How far apart: distances between tensors, covariances and correlations between rows."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from .._core.dtypes import bool_, default_dtype
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
    back = norm_pull(grad, away, with_history, p)
    return back, -back


def norm_pull(grad: Tensor, x: Tensor, norm: Tensor, p: float) -> Tensor:
    """The gradient of the p-norm of all elements."""
    if p == 0:
        return x * 0 * grad
    if p == 1:
        return x.sign() * grad
    if math.isinf(p):
        mask = (x.abs() == norm) | x.isnan()
        return x.sign() * ((grad / mask.sum()) * mask)
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
