"""Layer and batch normalisation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._core.errors import bracketed
from .._kernels import normalization as kernels
from .axes import DOUBLE, HALF, SINGLE, Shape
from .kinds import Array, Index, Optional, Tensor, composite, general


def parameter(array: Array | None, kind: Any) -> Array:
    """A weight or bias C-contiguous, or an empty array for none."""
    return np.empty(0, kind) if array is None else np.ascontiguousarray(array, kind)


def widened(*arrays: Any) -> tuple[Any, ...]:
    """float16 arrays in float32."""
    return tuple(x.astype(SINGLE) if isinstance(x, np.ndarray) and x.dtype == HALF else x for x in arrays)


# ---------------------------------------------------------------- over the last axes
@general(node="NativeLayerNormBackward0", saves=("input", "weight", "mean", "rstd"), extras=("mean", "rstd"), name="_layer_norm")
def layer_norm_op(input: Array, weight: Optional, bias: Optional, axes: int, eps: float) -> tuple[Array, Array, Array]:
    """The result, and mean and 1 / standard deviation of each row; the last `axes` axes make a row."""
    if input.dtype == HALF:
        out, mean, rstd = layer_norm_op.function(*widened(input, weight, bias), axes, eps)
        return out.astype(HALF), mean, rstd
    kind, lead = input.dtype, input.shape[: input.ndim - axes]
    width = math.prod(input.shape[input.ndim - axes :])
    out, mean, rstd = np.empty(input.shape, kind), np.empty(lead, kind), np.empty(lead, kind)
    array = input if input.flags.c_contiguous else np.ascontiguousarray(input)
    kernels.layer_norm[kind](array, parameter(weight, kind), parameter(bias, kind), mean.size, width, eps, out, mean, rstd)
    return out, mean, rstd


@layer_norm_op.rule
def _(grad: Tensor, input: Tensor, weight: Any, axes: int, eps: float, needs: tuple[bool, ...]) -> tuple[Any, ...]:
    lead, dims = tuple(range(input.ndim - axes)), tuple(range(input.ndim - axes, input.ndim))
    away = input - input.mean(dims, keepdim=True)
    rstd = ((away * away).mean(dims, keepdim=True) + eps).rsqrt()
    return normal_rule(grad, away * rstd, rstd, weight, dims, lead, needs)


def normal_rule(grad: Tensor, hat: Tensor, rstd: Tensor, weight: Any, dims: Shape, lead: Shape, needs: tuple[bool, ...]) -> tuple[Any, ...]:
    """Gradients of input, weight and bias. `hat` is the input normalised over `dims`; parameters are repeated along `lead`."""
    found: list[Any] = [None, None, None]
    if needs[0]:
        inner = grad if weight is None else grad * weight
        found[0] = (inner - inner.mean(dims, keepdim=True) - hat * (inner * hat).mean(dims, keepdim=True)) * rstd
    if needs[1]:
        found[1] = (grad * hat).sum(lead) if lead else grad * hat
    if needs[2]:
        found[2] = grad.sum(lead) if lead else grad
    return tuple(found)


@layer_norm_op.fused
def _(grad: Array, input: Array, weight: Any, mean: Array, rstd: Array, axes: int, needs: tuple[bool, ...]) -> tuple[Any, ...]:
    if grad.dtype == HALF:
        grad, input, weight = widened(grad, input, weight)
    kind, shape = input.dtype, input.shape[input.ndim - axes :]
    dx = np.empty(input.shape if needs[0] else 0, kind)
    wanted = needs[0] + 2 * (needs[1] or needs[2])
    dw, db = (np.empty(shape, kind) for _ in range(2))
    array = input if input.flags.c_contiguous else np.ascontiguousarray(input)
    work = np.empty(2 * dw.size)
    kernels.layer_norm_backward[kind](grad, array, parameter(weight, kind), mean, rstd, mean.size, dw.size, wanted, dx, dw, db, work)
    return tuple(part if need else None for part, need in zip((dx, dw, db), needs, strict=True))


@composite(method=False)
def layer_norm(input: Tensor, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-05, cudnn_enable: bool = True) -> Tensor:
    """(input - mean) / sqrt(variance + eps) * weight + bias, with mean and variance over the last axes, `normalized_shape`.

    RuntimeError unless the input ends in that shape and weight and bias have it.
    """
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if not shape:
        raise RuntimeError("Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
                           "normalized_shape = []")  # fmt: skip
    for name, part in (("weight", weight), ("bias", bias)):
        if part is not None and part.meta.shape != shape:
            raise RuntimeError(f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape {bracketed(part.meta.shape)} and "
                               f"normalized_shape = {bracketed(shape)}")  # fmt: skip
    have = input.meta.shape
    if have[len(have) - len(shape) :] != shape or len(have) < len(shape):
        wanted = ", ".join(map(str, ("*", *shape)))
        raise RuntimeError(f"Given normalized_shape={bracketed(shape)}, expected input with shape [{wanted}], but got input of size{bracketed(have)}")
    check_kind("LayerNormKernelImpl", input, weight, bias)
    return layer_norm_op(input, weight, bias, len(shape), float(eps))


def check_kind(kernel: str, input: Tensor, *parameters: Any) -> None:
    """Floating dtypes, the same for input and parameters."""
    kind = input.meta.kind
    if not kind.is_floating_point:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{kind.scalar_name}'")
    for part in parameters:
        if part is not None and part.meta.kind is not kind and kind.name != "float16":
            raise RuntimeError(f"expected scalar type {kind.scalar_name} but found {part.meta.kind.scalar_name}")


# ---------------------------------------------------------------- over all axes but the second
def sizes(array: Array) -> tuple[int, int, int]:
    """batch, channels, inner."""
    return array.shape[0], array.shape[1], math.prod(array.shape[2:])


@general(differentiable=(), outputs=2, name="_channel_moments")
def moments_op(input: Array) -> tuple[Array, Array]:
    """Mean and biased variance of each channel."""
    if input.dtype == HALF:
        return tuple(x.astype(HALF) for x in moments_op.function(input.astype(SINGLE)))
    batch, channels, inner = sizes(input)
    mean, variance = np.empty(channels, input.dtype), np.empty(channels, input.dtype)
    work = np.empty((2, channels), DOUBLE)
    kernels.channel_moments[input.dtype](np.ascontiguousarray(input), batch, channels, inner, work[0], work[1], mean, variance)
    return mean, variance


@general(node="NativeBatchNormBackward0", saves=("input", "weight", "mean", "variance"), differentiable=("input", "weight", "bias"),
         name="_batch_norm")  # fmt: skip
def batch_norm_op(input: Array, weight: Optional, bias: Optional, mean: Index, variance: Index, training: bool, eps: float) -> Array:
    """Normalised by the given moments; in training they are the input's own."""
    if input.dtype == HALF:
        return np.asarray(batch_norm_op.function(*widened(input, weight, bias, mean, variance), training, eps), HALF)
    kind, out = input.dtype, np.empty(input.shape, input.dtype)
    batch, channels, inner = sizes(input)
    arrays = [parameter(x, kind) for x in (weight, bias, mean, variance)]
    kernels.batch_norm[kind](np.ascontiguousarray(input), *arrays, batch, channels, inner, eps, np.empty(channels, kind), out)
    return out


@batch_norm_op.rule
def _(grad: Tensor, input: Tensor, weight: Any, mean: Tensor, variance: Tensor, training: bool, eps: float,
      needs: tuple[bool, ...]) -> tuple[Any, ...]:  # fmt: skip
    dims, along = tuple(k for k in range(input.ndim) if k != 1), (1, -1, *(1,) * (input.ndim - 2))
    weight = None if weight is None else weight.view(along)
    if training:
        away = input - input.mean(dims, keepdim=True)
        rstd = ((away * away).mean(dims, keepdim=True) + eps).rsqrt()
        return normal_rule(grad, away * rstd, rstd, weight, dims, dims, needs)
    rstd = (variance.view(along) + eps).rsqrt()
    hat = (input - mean.view(along)) * rstd
    inner = grad * rstd if weight is None else grad * (weight * rstd)
    return inner if needs[0] else None, (grad * hat).sum(dims) if needs[1] else None, grad.sum(dims) if needs[2] else None


@batch_norm_op.fused
def _(grad: Array, input: Array, weight: Any, mean: Array, variance: Array, training: bool, eps: float, needs: tuple[bool, ...]) -> tuple[Any, ...]:
    if grad.dtype == HALF:
        grad, input, weight, mean, variance = widened(grad, input, weight, mean, variance)
    kind = input.dtype
    batch, channels, inner = sizes(input)
    dx, dw, db = np.empty(input.shape, kind), np.empty(channels, kind), np.empty(channels, kind)
    work = np.empty((2, channels), DOUBLE)
    arrays = [parameter(x, kind) for x in (weight, mean, variance)]
    kernels.batch_norm_backward[kind](grad, np.ascontiguousarray(input), *arrays, batch, channels, inner, eps, int(training), work[0], work[1],
                                      np.empty(channels, kind), dx, dw, db)  # fmt: skip
    return tuple(part if need else None for part, need in zip((dx, dw, db), needs, strict=True))


@composite(method=False)
def batch_norm(input: Tensor, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: float, eps: float,
               cudnn_enabled: bool = True) -> Tensor:  # fmt: skip
    """(input - mean) / sqrt(variance + eps) * weight + bias per channel (axis 1), over all other axes.

    In training the moments are the input's own, and the running ones, if there are any, move towards them by `momentum` (the variance
    towards the unbiased one); otherwise the running ones are used. RuntimeError for a parameter of the wrong length.
    """
    if input.meta.numel == 0:  # torch moves no running moment then
        result = input.clone() if weight is None else input * weight[0]
        return result if bias is None else result + bias[0]
    channels = input.meta.shape[1]
    for name, part in (("running_mean", running_mean), ("running_var", running_var), ("weight", weight), ("bias", bias)):
        if part is not None and part.meta.numel != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {part.meta.numel}")
    check_kind("batch_norm", input)
    if not training:
        for name, part in (("running_mean", running_mean), ("running_var", running_var)):
            if part is None:
                raise RuntimeError(f"{name} must be defined in evaluation mode")
        return batch_norm_op(input, weight, bias, running_mean, running_var, False, float(eps))
    mean, variance = moments_op(input)
    count = input.meta.numel // channels
    if running_mean is not None:
        running_mean.lerp_(mean.to(running_mean.meta.kind), momentum)
    if running_var is not None:
        running_var.lerp_((variance * (count / max(count - 1, 1))).to(running_var.meta.kind), momentum)
    return batch_norm_op(input, weight, bias, mean, variance, True, float(eps))
