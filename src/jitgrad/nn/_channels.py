"""What acts on channels: their normalisation by neighbours or by example, rearrangement, and dropout of whole channels."""

from __future__ import annotations

import math
import warnings
from typing import Any

from .._tensor import Tensor, _functions as T
from .._tensor.creation import empty, ones
from ..autograd import no_grad
from ._padding import pad
from ._pools import avg_pool
from ._windows import each, windows

__all__ = [
    "alpha_dropout",
    "channel_shuffle",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "feature_alpha_dropout",
    "instance_norm",
    "local_response_norm",
    "pixel_shuffle",
    "pixel_unshuffle",
    "rrelu",
    "rrelu_",
    "unfold",
]


# ---- normalisation
def instance_norm(
    input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: Tensor | None = None, bias: Tensor | None = None,
    use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """Mean 0 and variance 1 of each channel of each example; then `* weight + bias`, which are per channel.

    Shapes: input (N, C, *). Running statistics move towards the means over the examples; they are used unless `use_input_stats`.
    Raises ValueError for channels of one value.
    """
    batch, channels = input.shape[:2]
    if not use_input_stats:
        return T.batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)
    if math.prod(input.shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.size()}")
    scale, shift, mean, var = [None if part is None else part.repeat(batch) for part in (weight, bias, running_mean, running_var)]
    result = T.batch_norm(input.reshape(1, batch * channels, *input.shape[2:]), scale, shift, mean, var, True, momentum, eps)
    with no_grad():
        for running, now in ((running_mean, mean), (running_var, var)):
            if running is not None and now is not None:
                running.copy_(now.view(batch, channels).mean(0))
    return result.view(input.shape)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """The input over `(k + alpha * mean of squares over size neighbouring channels) ** beta`. ValueError for less than three axes."""
    if input.dim() < 3:
        raise ValueError(f"Expected 3D or higher dimensionality                          input (got {input.dim()} dimensions)")
    if input.numel() == 0:
        return input
    squares = pad(input.square().transpose(1, -1), (size // 2, (size - 1) // 2))
    means = avg_pool(squares.flatten(1, -2), 1, size, 1, 0, False, True, None)
    means = means.reshape(*squares.shape[:-1], input.size(1)).transpose(1, -1)
    result: Tensor = input / (means * alpha + k) ** beta
    return result


# ---- rearrangement
def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """The windows of (N, C, H, W) or (C, H, W) as columns: (N, C * window, number of windows)."""
    if input.dim() not in (3, 4):
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: "
            f"{list(input.shape)}"
        )
    sizes, steps, widths = each(kernel_size, 2), each(stride, 2), each(padding, 2)
    x = input if input.dim() == 4 else input.unsqueeze(0)
    spread = windows(pad(x, (widths[1], widths[1], widths[0], widths[0])), sizes, steps, each(dilation, 2))
    batch, channels = spread.shape[:2]
    columns = spread.permute(0, 1, 4, 5, 2, 3).reshape(batch, channels * math.prod(sizes), spread.size(2) * spread.size(3))
    return columns if input.dim() == 4 else columns.squeeze(0)


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """(*, C * r ** 2, H, W) to (*, C, H * r, W * r). RuntimeError where the channels can't be divided so."""
    r = upscale_factor
    if input.dim() < 3:
        raise RuntimeError(f"pixel_shuffle expects input to have at least 3 dimensions, but got input with {input.dim()} dimension(s)")
    if r <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
    *lead, channels, height, width = input.shape
    if channels % r**2:
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but "
            f"input.size(-3)={channels} is not divisible by {r**2}"
        )
    x, at = input.reshape(*lead, channels // r**2, r, r, height, width), len(lead)
    order = (*range(at), at, at + 3, at + 1, at + 4, at + 2)
    return x.permute(order).reshape(*lead, channels // r**2, height * r, width * r)


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """(*, C, H * r, W * r) to (*, C * r ** 2, H, W): the inverse of `pixel_shuffle`. RuntimeError where it can't be divided so."""
    r = downscale_factor
    if input.dim() < 3:
        raise RuntimeError(f"pixel_unshuffle expects input to have at least 3 dimensions, but got input with {input.dim()} dimension(s)")
    if r <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    *lead, channels, height, width = input.shape
    for name, have in (("height", height), ("width", width)):
        if have % r:
            raise RuntimeError(f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but got {have} and {r}")
    x, at = input.reshape(*lead, channels, height // r, r, width // r, r), len(lead)
    order = (*range(at), at, at + 2, at + 4, at + 1, at + 3)
    return x.permute(order).reshape(*lead, channels * r**2, height // r, width // r)


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """(N, C, *) with the channels of each group dealt out in turn. RuntimeError unless the groups divide the channels."""
    if input.dim() < 3:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(input.shape)}")
    batch, channels = input.shape[:2]
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    if channels % groups:
        raise RuntimeError(f"Number of channels must be divisible by groups. Got {channels} channels and {groups} groups.")
    return input.reshape(batch, groups, channels // groups, *input.shape[2:]).transpose(1, 2).reshape(input.shape)


# ---- noise
def _channel_dropout(input: Tensor, p: float, training: bool, inplace: bool, lead: int) -> Tensor:
    """Dropout of what the first `lead` axes count."""
    if not training or p == 0.0:
        return input
    if input.dim() < lead:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    mask = T.dropout(ones(*input.shape[:lead], *(1,) * (input.dim() - lead), dtype=input.dtype), p, True)
    return input.mul_(mask) if inplace else input * mask


def _check_probability(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def _made_for(name: str, axes: int) -> str:
    """What a dropout of channels is there for."""
    return (
        f"Note that {name} exists to provide channel-wise dropout on inputs with {axes} spatial dimension{'s' * (axes > 1)}, a channel "
        f"dimension, and an optional batch dimension (i.e. {axes + 1}D or {axes + 2}D inputs)."
    )


def _warn_of_axes(name: str, axes: int, input: Tensor) -> None:
    """Warn the caller's caller of an input with other axes than channels of `axes` dimensions."""
    if input.dim() not in (axes + 1, axes + 2):
        warnings.warn(
            f"{name}: Received a {input.dim()}-D input to {name}, which is deprecated and will result in an error in a future release. To "
            f"retain the behavior and silence this warning, please use dropout instead. {_made_for(name, axes)}",
            stacklevel=3,
        )


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """In training, each channel of (N, C, L) or (C, L) is set to 0 with probability `p`, the others are divided by `1 - p`."""
    _check_probability(p)
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input. {_made_for('dropout1d', 1)}"
        )
    return _channel_dropout(input, p, training, inplace, input.dim() - 1)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """In training, each channel of (N, C, H, W) is set to 0 with probability `p`, the others are divided by `1 - p`.

    Three axes are (N, C, L), as in `dropout1d`, with a warning; as is any other count.
    """
    _check_probability(p)
    _warn_of_axes("dropout2d", 2, input)
    if input.dim() == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired - input is interpreted "
            "as shape (N, C, L), where C is the channel dim. This behavior will change in a future release to interpret the input as one "
            "without a batch dimension, i.e. shape (C, H, W). To maintain the 1D channel-wise dropout behavior, please switch to using "
            "dropout1d instead.",
            stacklevel=2,
        )
    return _channel_dropout(input, p, training, inplace, 2)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """In training, each channel of (N, C, D, H, W) or (C, D, H, W) is set to 0 with probability `p`, the others are divided by `1 - p`.

    Another count of axes gives a warning, and the first of them counts channels.
    """
    _check_probability(p)
    _warn_of_axes("dropout3d", 3, input)
    return _channel_dropout(input, p, training, inplace, 2 if input.dim() == 5 else 1)


_SELU_LIMIT = -1.7580993408473766  # what SELU tends to on the left


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout for `selu`: elements become its limit on the left, and mean and variance stay as they were."""
    return _alpha(input, p, training, inplace, tuple(input.shape))


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """`alpha_dropout` of whole channels of (N, C, *)."""
    return _alpha(input, p, training, inplace, (*input.shape[:2], *(1,) * (input.dim() - 2)))


def _alpha(input: Tensor, p: float, training: bool, inplace: bool, shape: tuple[int, ...]) -> Tensor:
    _check_probability(p)
    if not training or p == 0.0:
        return input
    if p == 1.0:
        return input.mul_(0) if inplace else input * 0
    scale = 1 / math.sqrt((1 - p) * (1 + p * _SELU_LIMIT**2))
    kept = empty(shape, dtype=input.dtype).bernoulli_(1 - p)
    shift = (1 - kept) * (_SELU_LIMIT * scale) - _SELU_LIMIT * scale * p
    return input.mul_(kept * scale).add_(shift) if inplace else input * (kept * scale) + shift


def rrelu(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False) -> Tensor:
    """`leaky_relu` with a slope drawn from [lower, upper] for each negative element in training, and their mean otherwise."""
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    if not training:
        slope = (lower + upper) / 2
        return T.leaky_relu_(input, slope) if inplace else T.leaky_relu(input, slope)
    slopes = T.where(input.detach() > 0, 1.0, empty(input.shape, dtype=input.dtype).uniform_(lower, upper))
    return input.mul_(slopes) if inplace else input * slopes


def rrelu_(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False) -> Tensor:
    """In-place `rrelu`."""
    return rrelu(input, lower, upper, training, True)
