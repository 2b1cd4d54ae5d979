"""Losses over classes: negative log-likelihood and cross entropy."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .._core.dtypes import float32, int64, uint8
from .._core.meta import Meta
from .._kernels import losses as kernels
from .axes import HALF, LONG, SINGLE, Shape
from .kinds import Array, Index, Optional, Tensor, composite, general, linear
from .softmax import log_softmax

CODES: Final = {"none": 0, "mean": 1, "sum": 2}


# ---------------------------------------------------------------- negative log-likelihood: linear in its input
def layout(shape: Shape) -> tuple[int, int, int]:
    """batch, classes, inner of an input (classes), (batch, classes) or (batch, classes, d1, ...)."""
    if len(shape) == 1:
        return 1, shape[0], 1
    return shape[0], shape[1], int(np.prod(shape[2:], dtype=np.int64))


def class_weights(weight: Array | None, kind: Any) -> Array:
    """The weights C-contiguous, or an empty array for none."""
    return np.empty(0, kind) if weight is None else np.ascontiguousarray(weight, kind)


def checked(bad: int, target: Array) -> None:
    """IndexError for a target that is no class."""
    if bad >= 0:
        raise IndexError(f"Target {target.reshape(-1)[bad]} is out of bounds.")


def likelihood(input: Array, target: Array, weight: Array | None, ignore_index: int, reduction: str) -> tuple[Array, Array]:
    """The loss, and the sum of the weights."""
    kind, total = input.dtype, np.empty(1)
    out = np.empty(target.shape if reduction == "none" else (), kind)
    target = np.asarray(target, LONG, order="C")
    weights = class_weights(weight, kind)
    bad = kernels.nll[kind](np.ascontiguousarray(input), target, weights, *layout(input.shape), ignore_index, CODES[reduction], out, total)
    checked(bad, target)
    return out, total


def likelihood_back(grad: Array, shape: Shape, target: Array, weight: Array | None, ignore_index: int, reduction: str, total: Array) -> Array:
    """The gradient of the input."""
    kind = grad.dtype
    out = np.empty(shape, kind)
    target = np.asarray(target, LONG, order="C")
    weights = class_weights(weight, kind)
    kernels.nll_backward[kind](np.asarray(grad, order="C"), target, weights, *layout(shape), ignore_index, CODES[reduction], out, total)
    return out


def nll_general(node: str) -> Any:
    """The op under one of torch's two names for it."""

    @general(node=node, saves=("target", "weight", "total"), extras=("total",), differentiable=("input",), name=f"_nll_{node}")
    def op(input: Array, target: Index, weight: Optional, ignore_index: int, reduction: str) -> tuple[Array, Array]:
        if input.dtype == HALF:
            out, total = likelihood(input.astype(SINGLE), target, weight, ignore_index, reduction)
            return out.astype(HALF), total
        return likelihood(input, target, weight, ignore_index, reduction)

    @op.rule
    def _(grad: Tensor, like: tuple[Meta, ...], target: Tensor, weight: Any, total: Tensor, ignore_index: int, reduction: str) -> Tensor:
        return nll_back_op(grad, target, weight, total, like[0].shape, ignore_index, reduction)

    @op.fused
    def _(grad: Array, like: tuple[Meta, ...], target: Array, weight: Any, total: Array, ignore_index: int, reduction: str) -> Array:
        if grad.dtype == HALF:
            return likelihood_back(grad.astype(SINGLE), like[0].shape, target, weight, ignore_index, reduction, total).astype(HALF)
        return likelihood_back(grad, like[0].shape, target, weight, ignore_index, reduction, total)

    return op


nll_op, nll_2d_op = nll_general("NllLossBackward0"), nll_general("NllLoss2DBackward0")


@linear(node="NllLossBackwardBackward0", differentiable=("grad",), name="_nll_back")
def nll_back_op(grad: Array, target: Index, weight: Optional, total: Index, shape: Shape, ignore_index: int, reduction: str) -> Array:
    return likelihood_back(grad, shape, target, weight, ignore_index, reduction, total)


@nll_back_op.adjoint
def _(grad: Array, target: Array, weight: Any, ignore_index: int, reduction: str) -> Array:
    return likelihood(grad, target, weight, ignore_index, reduction)[0]


def check_classes(shape: Shape, target: Tensor, weight: Any, kind: Any) -> None:
    """Shapes and dtypes of target and weight, in torch's words."""
    goal = target.meta.shape
    if not shape:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    if len(shape) != 1 and shape[:1] != (goal[:1] or (0,)):
        raise ValueError(f"Expected input batch_size ({shape[0]}) to match target batch_size ({goal[0] if goal else 0}).")
    check_target_shape(shape, goal)
    if target.meta.kind not in (int64, uint8):
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {target.meta.kind.scalar_name}")
    classes = shape[0] if len(shape) == 1 else shape[1]
    if weight is None:
        return
    if weight.meta.shape != (classes,):
        raise RuntimeError(f"weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of shape: "
                           f"{list(weight.meta.shape)}")  # fmt: skip
    if weight.meta.kind is not kind:
        raise RuntimeError(f"expected scalar type {kind.scalar_name} but found {weight.meta.kind.scalar_name}")
    if weight.requires_grad:
        raise RuntimeError("The function 'nll_loss_forward' is not differentiable with respect to argument 'weight'. This input cannot have "
                           "requires_grad True.")  # fmt: skip


def check_target_shape(shape: Shape, goal: Shape) -> None:
    """The target has the input's shape without the classes."""
    if len(shape) == 1:
        if goal not in ((), (1,)):
            raise ValueError(f"For 1D input, 1D target must have size 1, but got target size: {goal[0]}")
    elif len(shape) == 4:
        if len(goal) != 3:
            raise RuntimeError(f"only batches of spatial targets supported (3D tensors) but got targets of dimension: {len(goal)}")
        if goal != (shape[0], *shape[2:]):
            raise RuntimeError(f"size mismatch (got input: {list(shape)} , target: {list(goal)}")
    elif goal != (shape[0], *shape[2:]):
        raise RuntimeError(f"Expected target size {[shape[0], *shape[2:]]}, got {list(goal)}")


@composite(method=False)
def nll_loss(input: Tensor, target: Tensor, weight: Any = None, ignore_index: int = -100, reduction: str = "mean") -> Tensor:
    """-input[target] for log-probabilities; one by one, their mean (weighted by the classes' weights) or sum.

    Shapes: input (C,), (N, C) or (N, C, d1, ...), target without C, int64 or uint8; weight (C,). Targets equal to `ignore_index` don't
    count, another one that is no class raises IndexError.
    """
    kind, shape = input.meta.kind, input.meta.shape
    check_classes(shape, target, weight, kind)
    if not kind.is_floating_point:
        raise NotImplementedError(f"\"nll_loss_out_frame\" not implemented for '{kind.scalar_name}'")
    if len(shape) == 1:
        target = target.reshape(())
    return (nll_op if len(shape) < 3 else nll_2d_op)(input, target, weight, ignore_index, reduction)


# ---------------------------------------------------------------- cross entropy
@general(node="NllLossBackward0", saves=("input", "target", "weight", "sums"), extras=("sums",), differentiable=("input",), name="_cross_entropy")
def cross_entropy_op(input: Array, target: Index, weight: Optional, ignore_index: int, reduction: str) -> tuple[Array, Array]:
    """`nll_loss` of `log_softmax` for rows (batch, classes), in one pass that keeps only each row's maximum and sum."""
    kind = input.dtype
    batch, classes = input.shape
    sums = np.empty(2 * batch + 1)
    out = np.empty(target.shape if reduction == "none" else (), kind)
    target = np.asarray(target, LONG, order="C")
    weights = class_weights(weight, kind)
    bad = kernels.cross_entropy[kind](np.ascontiguousarray(input), target, weights, batch, classes, ignore_index, CODES[reduction], sums, out)
    checked(bad, target)
    return out, sums


@cross_entropy_op.rule
def _(grad: Tensor, input: Tensor, target: Tensor, weight: Any, sums: Tensor, ignore_index: int, reduction: str) -> Tensor:
    back = nll_back_op(grad, target, weight, sums[-1:], input.meta.shape, ignore_index, reduction)
    return back - input.softmax(1) * back.sum(1, keepdim=True)


@cross_entropy_op.fused
def _(grad: Array, input: Array, target: Array, weight: Any, sums: Array, ignore_index: int, reduction: str) -> Array:
    kind = input.dtype
    out = np.empty(input.shape, kind)
    weights, target = class_weights(weight, kind), np.asarray(target, LONG, order="C")
    array = np.ascontiguousarray(input)
    kernels.cross_entropy_backward[kind](grad, array, target, weights, *input.shape, ignore_index, CODES[reduction], sums, out)
    return out


@composite(method=False, planned="planned_losses")
def cross_entropy(input: Tensor, target: Tensor, weight: Any = None, ignore_index: int = -100, reduction: str = "mean",
                  label_smoothing: float = 0.0) -> Tensor:  # fmt: skip
    """`nll_loss` of the log-softmax of logits; or, for a target of the input's shape, of probabilities, -sum(target * log-softmax).

    Shapes as for `nll_loss`. `label_smoothing`, in [0, 1], mixes the target with the uniform distribution.
    """
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")
    shape = input.meta.shape
    if target.meta.shape == shape:
        return of_probabilities(input, target, weight, ignore_index, reduction, label_smoothing)
    kind = input.meta.kind
    if len(shape) == 2 and not label_smoothing and (kind is float32 or kind.name == "float64"):
        check_classes(shape, target, weight, kind)
        return cross_entropy_op(input, target, weight, ignore_index, reduction)
    logs = log_softmax(input, min(len(shape) - 1, 1) if shape else 0)
    loss = nll_loss(logs, target, weight, ignore_index, reduction)
    return smoothed(logs, loss, target, weight, ignore_index, reduction, label_smoothing) if label_smoothing else loss


def along_classes(weight: Tensor, input: Tensor) -> Tensor:
    """Class weights in a shape that broadcasts against the input."""
    return weight if input.ndim == 1 else weight.view(1, -1, *(1,) * (input.ndim - 2))


def smoothed(logs: Tensor, loss: Tensor, target: Tensor, weight: Any, ignore_index: int, reduction: str, smoothing: float) -> Tensor:
    """The loss mixed with that of the uniform distribution."""
    axis = min(logs.ndim - 1, 1)
    flat = -(logs if weight is None else logs * along_classes(weight, logs)).sum(axis)
    ignored = target == ignore_index
    flat = flat.masked_fill(ignored.reshape(flat.shape), 0.0)
    if reduction == "mean":
        kept = ~ignored
        flat = flat.sum() / (kept.sum() if weight is None else weight.index_select(0, target.masked_select(kept)).sum())
    elif reduction == "sum":
        flat = flat.sum()
    return flat * (smoothing / logs.shape[axis]) + loss * (1 - smoothing)


def of_probabilities(input: Tensor, target: Tensor, weight: Any, ignore_index: int, reduction: str, smoothing: float) -> Tensor:
    """-sum over the classes of target * log-softmax."""
    if not target.meta.kind.is_floating_point:
        raise RuntimeError(f"Expected floating point type for target with class probabilities, got {target.meta.kind.scalar_name}")
    if ignore_index >= 0:
        raise RuntimeError("ignore_index is not supported for floating point target")
    axis = min(input.ndim - 1, 1)
    classes = input.shape[axis]
    if weight is not None and weight.meta.shape != (classes,):
        raise RuntimeError(f"cross_entropy: weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of "
                           f"shape: {list(weight.meta.shape)}")  # fmt: skip
    logs = log_softmax(input, axis)
    if smoothing > 0:
        target = target * (1 - smoothing) + smoothing / classes
    if weight is not None:
        logs = logs * along_classes(weight, logs)
    if reduction == "none":
        return -(logs * target).sum(axis)
    total = -(logs * target).sum()
    if reduction == "sum":
        return total
    return total / (input.meta.numel / classes) if input.meta.numel else total * float("nan")
