"""Losses, with torch's arguments: `reduction` is 'mean', 'sum' or 'none'."""

from __future__ import annotations

import warnings

from .._core.shapes import broadcast_shapes
from .._tensor import Tensor, _functions as T
from ._reduction import checked_reduction, legacy_reduction


# ---- distances: elementwise on two tensors of one shape ----
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Mean of `(input - target) ** 2`.

    Shapes that differ are broadcast, with a warning. `weight`, of the input's shape, makes it a weighted mean;
    ValueError if it has another shape.
    """
    if input.meta is not target.meta:
        input, target = _broadcast(input, target)
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    if weight is not None:
        return _weighted((input - target).square(), input, weight, reduction)
    return T.mse_loss(input, target, reduction if reduction == "mean" else checked_reduction(reduction))


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Mean of `abs(input - target)`; shapes and `weight` as for `mse_loss`."""
    if input.meta is not target.meta:
        input, target = _broadcast(input, target)
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    if weight is not None:
        return _weighted((input - target).abs(), input, weight, reduction)
    return T.l1_loss(input, target, reduction if reduction == "mean" else checked_reduction(reduction))


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Mean of `d ** 2 / (2 * beta)` where the distance d is below `beta`, of `d - beta / 2` elsewhere.

    With beta 0 it is `l1_loss`; RuntimeError for a negative one.
    """
    if input.meta is not target.meta:
        input, target = _broadcast(input, target)
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    reduction = checked_reduction(reduction)
    if beta == 0.0:
        return T.l1_loss(input, target, reduction)
    return T.smooth_l1_loss(input, target, reduction, beta)


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """Mean of `d ** 2 / 2` where the distance d is below `delta`, of `delta * (d - delta / 2)` elsewhere.

    `weight`, of the input's shape, multiplies the distances (their mean is not divided by it). RuntimeError for a
    delta that is not positive.
    """
    if input.meta is not target.meta:
        input, target = _broadcast(input, target)
    if weight is None:
        return T.huber_loss(input, target, reduction if reduction == "mean" else checked_reduction(reduction), delta)
    if weight.shape != input.shape:
        raise ValueError("Weights and input must have the same size.")
    weighted = T.huber_loss(input, target, "none", delta) * weight
    return weighted.mean() if reduction == "mean" else _reduced(weighted, reduction)


def _broadcast(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Both in their common shape; a difference is probably a mistake and warned of."""
    if input.shape == target.shape:
        return input, target
    warnings.warn(
        f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This will likely "
        "lead to incorrect results due to broadcasting. Please ensure they have the same size.",
        stacklevel=3,
    )
    shape = broadcast_shapes(input.shape, target.shape)
    return input.expand(shape), target.expand(shape)


def _weighted(errors: Tensor, input: Tensor, weight: Tensor, reduction: str) -> Tensor:
    if weight.shape != input.shape:
        raise ValueError("Weights and input must have the same size.")
    errors = errors * weight
    return errors.sum() / weight.sum() if reduction == "mean" else _reduced(errors, reduction)


def _reduced(errors: Tensor, reduction: str) -> Tensor:
    if reduction not in ("none", "sum"):
        raise ValueError(f"Invalid reduction mode: {reduction}. Expected one of 'none', 'mean', 'sum'.")
    return errors if reduction == "none" else errors.sum()


# ---- classification ----
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Mean of `-input[target]`, the input holding log-probabilities.

    Shapes: input (C,), (N, C) or (N, C, d1, ...), target (), (N,) or (N, d1, ...) of int64, weight (C,): the mean is
    weighted by the classes' weights. Targets equal to `ignore_index` don't count; another target that is no class
    raises IndexError.
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    if reduction != "mean":
        reduction = checked_reduction(reduction)
    return T.nll_loss(input, target, weight, ignore_index, reduction)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """`nll_loss` of the log-softmax of `input`, which holds logits.

    The target may also hold probabilities, in the input's shape. `label_smoothing`, in [0, 1], mixes the target with
    the uniform distribution; RuntimeError for another one.
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    if reduction != "mean":
        reduction = checked_reduction(reduction)
    return T.cross_entropy(input, target, weight, ignore_index, reduction, label_smoothing)


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Mean of `-(target * log(input) + (1 - target) * log(1 - input))`, the logarithms cut off at -100.

    `weight` broadcasts to the target. Raises ValueError unless input and target have one shape, RuntimeError for an
    input outside [0, 1].
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    reduction = checked_reduction(reduction)
    if input.shape != target.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is deprecated. "
            "Please ensure they have the same size."
        )
    if weight is not None:
        weight = weight.expand(broadcast_shapes(target.shape, weight.shape))
    return T.binary_cross_entropy(input, target, weight, reduction)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """`binary_cross_entropy` of `sigmoid(input)`, without overflow; `pos_weight` multiplies the positive part.

    `weight` and `pos_weight` broadcast to the input. Raises ValueError unless input and target have one shape.
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    reduction = checked_reduction(reduction)
    if input.shape != target.shape:
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")
    return T.binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction)
