"""Losses of margins, likenesses and likelihoods, made of other ops; `reduction` is 'mean', 'sum' or 'none'."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .._core.dtypes import int64
from .._tensor import Tensor, _functions as T
from .._tensor.creation import full_like, tensor
from ..autograd import no_grad
from ._reduction import checked_reduction, legacy_reduction

Flag = bool | None

__all__ = [
    "cosine_embedding_loss",
    "cosine_similarity",
    "gaussian_nll_loss",
    "hinge_embedding_loss",
    "margin_ranking_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "pairwise_distance",
    "pdist",
    "poisson_nll_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]


def _reduced(each: Tensor, size_average: Flag, reduce: Flag, reduction: str) -> Tensor:
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    reduction = checked_reduction(reduction)
    return each if reduction == "none" else each.mean() if reduction == "mean" else each.sum()


# ---- likelihoods
def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool = True, full: bool = False, size_average: Flag = None, eps: float = 1e-8, reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Mean of `exp(input) - target * input`, or of `input - target * log(input + eps)` without `log_input`; Stirling's term with `full`."""
    each: Tensor = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        each = each + T.where(target > 1, stirling, 0.0)
    return _reduced(each, size_average, reduce, reduction)


def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Tensor | float, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """Mean of `(log(var) + (input - target) ** 2 / var) / 2`, with variances below `eps` taken for `eps`.

    Raises ValueError for negative variances, or ones that don't fit the input.
    """
    spread: Tensor = var if isinstance(var, Tensor) else full_like(input, var)
    if tuple(input.shape[:-1]) == tuple(spread.shape) != tuple(input.shape):
        spread = spread.unsqueeze(-1)
    others = [have for have, wanted in zip(spread.shape, input.shape, strict=False) if have != wanted]
    if spread.dim() != input.dim() or others not in ([], [1]):
        raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    if bool(T.lt(spread, 0).any()):
        raise ValueError("var has negative entry/entries")
    spread = spread.clone()
    with no_grad():
        spread.clamp_(min=eps)
    each: Tensor = 0.5 * (spread.log() + (input - target) ** 2 / spread)
    return _reduced(each + 0.5 * math.log(2 * math.pi) if full else each, None, None, reduction)


# ---- margins
def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, size_average: Flag = None, reduce: Flag = None, reduction: str = "mean"
) -> Tensor:
    """Mean of the input where the target is 1, and of `max(0, margin - input)` where it is -1."""
    apart, near = T.where(target != 1, (margin - input).clamp_min(0), 0.0), T.where(target != -1, input, 0.0)
    return _reduced(apart + near, size_average, reduce, reduction)


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, size_average: Flag = None, reduce: Flag = None, reduction: str = "mean"
) -> Tensor:
    """Mean of `max(0, -target * (input1 - input2) + margin)`. RuntimeError unless all have one number of dimensions."""
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            f"margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: {input1.size()}, input2: {input2.size()}, "
            f"target: {target.size()} "
        )
    return _reduced((-target * (input1 - input2) + margin).clamp_min(0), size_average, reduce, reduction)


def soft_margin_loss(input: Tensor, target: Tensor, size_average: Flag = None, reduce: Flag = None, reduction: str = "mean") -> Tensor:
    """Mean of `log(1 + exp(-target * input))`."""
    return _reduced(-T.logsigmoid(input * target), size_average, reduce, reduction)


def multi_margin_loss(
    input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Tensor | None = None, size_average: Flag = None, reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Mean over examples of `sum(max(0, margin - x[target] + x[i]) ** p) / C`, over all classes i but the target.

    Shapes: input (N, C) or (C), target (N) or (). ValueError for a `p` other than 1 and 2, RuntimeError for shapes that don't fit.
    """
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    x = _rows(input)
    labels = target.reshape(-1)
    if target.dim() > 1 or labels.size(0) != x.size(0):
        raise RuntimeError(
            f"target tensor should be 1-D with size equal to the number of examples. Expected target size [{x.size(0)}], but got {list(target.shape)}"
        )
    if target.dtype is not int64:
        raise RuntimeError(f"expected scalar type Long but found {target.dtype.scalar_name}")
    if weight is not None and weight.size(0) != x.size(1):
        raise RuntimeError(f"inconsistent weight size, expected {x.size(1)} but got {list(weight.shape)}")
    places = labels.unsqueeze(1)
    each = (margin - x.gather(1, places) + x).clamp_min(0) ** p
    if weight is not None:
        each = each * weight[labels].unsqueeze(1)
    others = tensor(np.arange(x.size(1)) != places.detach().numpy())
    total = T.where(others, each, 0.0).sum(1) / x.size(1)
    return _reduced(total if input.dim() == 2 else total.squeeze(0), size_average, reduce, reduction)


def multilabel_margin_loss(input: Tensor, target: Tensor, size_average: Flag = None, reduce: Flag = None, reduction: str = "mean") -> Tensor:
    """Mean over examples of `sum(max(0, 1 - x[j] + x[i])) / C`, over all labels j of the example and all classes i that are none.

    Shapes: input and target (N, C) or (C); a row of the target lists labels, up to the first -1. RuntimeError for other shapes.
    """
    x = _rows(input)
    if tuple(target.shape) != tuple(input.shape):
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}")
    labels = target.detach().numpy().reshape(x.shape)
    valid = np.cumprod(labels >= 0, axis=1).astype(bool)
    named = np.zeros(labels.shape, bool)
    rows, places = np.nonzero(valid)
    named[rows, labels[rows, places]] = True
    chosen = x.gather(1, tensor(np.where(valid, labels, 0)))
    each = (1 - chosen.unsqueeze(2) + x.unsqueeze(1)).clamp_min(0)
    pairs = tensor(valid[:, :, None] & ~named[:, None, :])
    total = T.where(pairs, each, 0.0).sum((1, 2)) / x.size(1)
    return _reduced(total if input.dim() == 2 else total.squeeze(0), size_average, reduce, reduction)


def _rows(input: Tensor) -> Tensor:
    if input.dim() not in (0, 1, 2) or 0 in input.shape[1 if input.dim() == 2 else 0 :]:
        raise RuntimeError(f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(input.shape)}")
    return input if input.dim() == 2 else input.reshape(1, -1)


def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Flag = None, reduce: Flag = None, reduction: str = "mean"
) -> Tensor:
    """Mean over the classes (last axis), and then over the rest, of the cross entropy of `sigmoid(input)` and the target."""
    each = -(target * T.logsigmoid(input) + (1 - target) * T.logsigmoid(-input))
    if weight is not None:
        each = each * weight
    return _reduced(each.mean(-1), size_average, reduce, reduction)


# ---- likeness and distance
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Cosine of the angle between vectors along `dim`; norms below `eps` count as `eps`. Shapes broadcast."""
    x1, x2 = T.broadcast_tensors(x1, x2)
    first, second = (x / x.norm(2, dim, keepdim=True).clamp_min(eps) for x in (x1, x2))
    result: Tensor = (first * second).sum(dim)
    return result


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The p-norm of `x1 - x2 + eps` along the last axis. Shapes broadcast."""
    return (x1 - x2 + eps).norm(p, -1, keepdim)  # type: ignore[no-any-return]


def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The distances of all pairs of rows: (N, M) gives N * (N - 1) / 2 of them, those of the first row first."""
    if input.dim() != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.dim()}D")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    first, second = (tensor(places) for places in np.triu_indices(input.size(0), 1))
    return (input[first] - input[second]).norm(p, -1)  # type: ignore[no-any-return]


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, size_average: Flag = None, reduce: Flag = None, reduction: str = "mean"
) -> Tensor:
    """Mean of `1 - cos` where the target is 1, and of `max(0, cos - margin)` where it is -1. Shapes: inputs (N, D) or (D), target (N) or ().

    RuntimeError for shapes that don't fit.
    """
    if target.dim() + 1 != input1.dim() or target.dim() + 1 != input2.dim():
        raise RuntimeError(
            f"{target.dim()}D target tensor expects {target.dim() + 1}D input tensors, but found inputs with sizes {list(input1.shape)} and "
            f"{list(input2.shape)}."
        )
    scale = ((input1.square().sum(-1) + 1e-12) * (input2.square().sum(-1) + 1e-12)).sqrt()
    cosine = (input1 * input2).sum(-1) / scale
    each = T.where(target == 1, 1 - cosine, 0.0) + T.where(target == -1, (cosine - margin).clamp_min(0), 0.0)
    return _reduced(each, size_average, reduce, reduction)


def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2, eps: float = 1e-6, swap: bool = False,
    size_average: Flag = None, reduce: Flag = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Mean of `max(0, d(anchor, positive) - d(anchor, negative) + margin)`; see `triplet_margin_with_distance_loss`."""
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    return triplet_margin_with_distance_loss(
        anchor, positive, negative, distance_function=lambda a, b: pairwise_distance(a, b, p, eps), margin=margin, swap=swap, reduction=reduction
    )


def triplet_margin_with_distance_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, *, distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0, swap: bool = False, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Mean of `max(0, d(anchor, positive) - d(anchor, negative) + margin)`; with `swap` the negative may be nearer to the positive.

    ValueError for a margin that isn't positive, RuntimeError unless all three have one number of dimensions.
    """
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.dim()}D, positive {positive.dim()}D, and negative {negative.dim()}D inputs"
        )
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = T.minimum(far, distance(positive, negative))
    return _reduced((near - far + margin).clamp_min(0), None, None, reduction)
