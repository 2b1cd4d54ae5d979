"""Functions made of others: gated features, the less common normalisations, a divergence."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import numpy as np

from .._tensor import Tensor, _functions as T
from .._tensor.creation import empty, zeros_like
from ._reduction import checked_reduction, legacy_reduction

__all__ = ["bilinear", "glu", "group_norm", "gumbel_softmax", "kl_div", "rms_norm"]


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """`a * sigmoid(b)`, where a and b are the halves of the input along `dim`. RuntimeError unless there are two halves."""
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    size = input.size(dim)
    if size % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim % input.dim()} is size {size}")
    kept, gate = input.narrow(dim, 0, size // 2), input.narrow(dim, size // 2, size // 2)
    result: Tensor = kept * gate.sigmoid()
    return result


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """Softmax of the logits and Gumbel noise, over `tau`; with `hard` a one-hot vector that has the softmax's gradient."""
    noise = -empty(logits.shape, dtype=logits.dtype).exponential_().log()
    soft: Tensor = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    one_hot = zeros_like(soft).scatter_(dim, soft.argmax(dim, keepdim=True), 1.0)
    result: Tensor = one_hot - soft.detach() + soft
    return result


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`x1 @ weight[k] @ x2 + bias[k]` for each feature k of the output.

    Shapes: (*, a), (*, b), weight (c, a, b), bias (c); output (*, c). RuntimeError where the shapes don't go together.
    """
    for number, given, place in ((1, input1, 1), (2, input2, 2)):
        if given.size(-1) != weight.size(place):
            raise RuntimeError(f"bilinear(): input{number} size does not match weight size: got {given.size(-1)} but expected {weight.size(place)}")
    outputs, first, second = weight.shape
    half = input1.matmul(weight.permute(1, 0, 2).reshape(first, outputs * second)).reshape(*input1.shape[:-1], outputs, second)
    result: Tensor = (half * input2.unsqueeze(-2)).sum(-1, dtype=input1.dtype)
    return result if bias is None else result + bias


def rms_norm(input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """`x / sqrt(mean(x ** 2) + eps) * weight`, with the mean over the last dimensions, `normalized_shape`.

    `eps` is the dtype's own unless given. RuntimeError unless the input ends in that shape and the weight has it.
    """
    shape = tuple(normalized_shape)
    if not shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got normalized_shape = []"
        )
    if weight is not None and tuple(weight.shape) != shape:
        raise RuntimeError(
            f"Expected weight to be of same shape as normalized_shape, but got weight of shape {list(weight.shape)} and "
            f"normalized_shape = {list(shape)}"
        )
    if tuple(input.shape[input.dim() - len(shape) :]) != shape or input.dim() < len(shape):
        wanted = ", ".join(map(str, shape))
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [*{wanted}], but got input of size{list(input.shape)}"
        )
    dims = tuple(range(-len(shape), 0))
    eps = float(np.finfo(input.dtype.numpy).eps) if eps is None else eps
    result: Tensor = input * (input.square().mean(dims, keepdim=True) + eps).rsqrt()
    return result if weight is None else result * weight


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Mean 0 and variance 1 over each of `num_groups` groups of channels (axis 1) of each example, then scale and shift.

    Shapes: input (N, C, *), weight and bias (C). RuntimeError where the groups don't divide the channels.
    """
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    shape = tuple(input.shape)
    batch, channels = shape[:2]
    if num_groups <= 0 or channels % num_groups:
        raise RuntimeError(
            f"Expected number of channels in input to be divisible by num_groups, but got input of shape {list(shape)} and "
            f"num_groups={num_groups}"
        )
    for name, part in (("weight", weight), ("bias", bias)):
        if part is not None and tuple(part.shape) != (channels,):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of shape "
                f"{list(part.shape)} and input of shape {list(shape)}"
            )
    size = channels // num_groups * math.prod(shape[2:])
    result = input.reshape(batch, num_groups, size)
    if size and batch:
        result = T.layer_norm(result, (size,), None, None, eps)
    result = result.reshape(shape)
    along = (1, channels, *(1,) * (len(shape) - 2))
    result = result if weight is None else result * weight.view(along)
    return result if bias is None else result + bias.view(along)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """Mean of `target * (log(target) - input)`: the input holds logarithms, as the target does with `log_target`.

    `reduction` may also be "batchmean", the sum divided by the size of the batch, which is the divergence itself.
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    elif reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math definition."
            "'mean' will be changed to behave the same as 'batchmean' in the next major release.",
            stacklevel=2,
        )
    each: Tensor = target.exp() * (target - input) if log_target else T.xlogy(target, target) - target * input
    if reduction == "batchmean":
        total: Tensor = each.sum()
        return total / input.size(0) if input.dim() else total
    reduction = checked_reduction(reduction)
    return each if reduction == "none" else each.mean() if reduction == "mean" else each.sum()
