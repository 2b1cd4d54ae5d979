"""Convolutions and pools, for one to three axes."""

from __future__ import annotations

from typing import Any

from .._tensor import Tensor
from ._convolution import conv, conv_transpose
from ._pools import adaptive, avg_pool, max_pool

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
]


# ---- one axis
def conv1d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """Cross-correlation of (N, C, L) or (C, L) with a weight (out, C / groups, kernel sizes); `bias` (out).

    `padding` may be "valid" or "same". RuntimeError where shapes don't go together or the kernel is larger than the input.
    """
    return conv(input, weight, bias, stride, padding, dilation, groups, 1)


def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """The transpose of `conv1d`, with a weight (C, out / groups, kernel sizes). RuntimeError where shapes don't go together."""
    return conv_transpose(input, weight, bias, stride, padding, output_padding, groups, dilation, 1)


def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = True,
) -> Any:
    """The largest element of each window of the last axis, and its place there. RuntimeError for sizes that don't fit."""
    return max_pool(input, 1, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of each window, and its place if `return_indices`. The gradient goes to the first of several."""
    return max_pool(input, 1, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def avg_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of each window of the last axis, with or without the frame."""
    return avg_pool(input, 1, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """Means of windows that divide the last axis into `output_size`."""
    result: Tensor = adaptive(input, output_size, 1, False, "adaptive_avg_pool1d")
    return result


def adaptive_max_pool1d_with_indices(input: Tensor, output_size: Any, return_indices: bool = True) -> tuple[Tensor, Tensor]:
    """Maxima of windows that divide the last axis into `output_size`, and their places."""
    found: tuple[Tensor, Tensor] = adaptive(input, output_size, 1, True, "adaptive_max_pool1d")
    return found


def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima of windows that divide the last axis into `output_size`, with their places if asked."""
    found = adaptive(input, output_size, 1, True, "adaptive_max_pool1d")
    return found if return_indices else found[0]


# ---- two axes
def conv2d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """Cross-correlation of (N, C, H, W) or (C, H, W) with a weight (out, C / groups, kernel sizes); `bias` (out).

    `padding` may be "valid" or "same". RuntimeError where shapes don't go together or the kernel is larger than the input.
    """
    return conv(input, weight, bias, stride, padding, dilation, groups, 2)


def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """The transpose of `conv2d`, with a weight (C, out / groups, kernel sizes). RuntimeError where shapes don't go together."""
    return conv_transpose(input, weight, bias, stride, padding, output_padding, groups, dilation, 2)


def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = True,
) -> Any:
    """The largest element of each window of the last two axes, and its place there. RuntimeError for sizes that don't fit."""
    return max_pool(input, 2, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of each window, and its place if `return_indices`. The gradient goes to the first of several."""
    return max_pool(input, 2, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def avg_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window of the last two axes, with or without the frame; divided by `divisor_override` if given."""
    return avg_pool(input, 2, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Means of windows that divide the last two axes into `output_size`."""
    result: Tensor = adaptive(input, output_size, 2, False, "adaptive_avg_pool2d")
    return result


def adaptive_max_pool2d_with_indices(input: Tensor, output_size: Any, return_indices: bool = True) -> tuple[Tensor, Tensor]:
    """Maxima of windows that divide the last two axes into `output_size`, and their places."""
    found: tuple[Tensor, Tensor] = adaptive(input, output_size, 2, True, "adaptive_max_pool2d")
    return found


def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima of windows that divide the last two axes into `output_size`, with their places if asked."""
    found = adaptive(input, output_size, 2, True, "adaptive_max_pool2d")
    return found if return_indices else found[0]


# ---- three axes
def conv3d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """Cross-correlation of (N, C, D, H, W) or (C, D, H, W) with a weight (out, C / groups, kernel sizes); `bias` (out).

    `padding` may be "valid" or "same". RuntimeError where shapes don't go together or the kernel is larger than the input.
    """
    return conv(input, weight, bias, stride, padding, dilation, groups, 3)


def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """The transpose of `conv3d`, with a weight (C, out / groups, kernel sizes). RuntimeError where shapes don't go together."""
    return conv_transpose(input, weight, bias, stride, padding, output_padding, groups, dilation, 3)


def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = True,
) -> Any:
    """The largest element of each window of the last three axes, and its place there. RuntimeError for sizes that don't fit."""
    return max_pool(input, 3, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of each window, and its place if `return_indices`. The gradient goes to the first of several."""
    return max_pool(input, 3, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def avg_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window of the last three axes, with or without the frame; divided by `divisor_override` if given."""
    return avg_pool(input, 3, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """Means of windows that divide the last three axes into `output_size`."""
    result: Tensor = adaptive(input, output_size, 3, False, "adaptive_avg_pool3d")
    return result


def adaptive_max_pool3d_with_indices(input: Tensor, output_size: Any, return_indices: bool = True) -> tuple[Tensor, Tensor]:
    """Maxima of windows that divide the last three axes into `output_size`, and their places."""
    found: tuple[Tensor, Tensor] = adaptive(input, output_size, 3, True, "adaptive_max_pool3d")
    return found


def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima of windows that divide the last three axes into `output_size`, with their places if asked."""
    found = adaptive(input, output_size, 3, True, "adaptive_max_pool3d")
    return found if return_indices else found[0]
