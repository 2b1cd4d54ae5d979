"""Convolutions: products of windows with a weight."""

from __future__ import annotations

import math
from typing import Any

from .._tensor import Tensor
from ._padding import pad
from ._windows import Sizes, each, windows


def conv(input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, groups: int, axes: int) -> Tensor:
    """Cross-correlation over the last `axes` axes; see `functional.conv1d` and its kin."""
    strides, dilations = each(stride, axes, "stride"), each(dilation, axes, "dilation")
    alone = input.dim() == axes + 1
    if input.dim() not in (axes + 1, axes + 2):
        raise RuntimeError(
            f"Expected {axes + 1}D (unbatched) or {axes + 2}D (batched) input to conv{axes}d, but got input of size: {list(input.shape)}"
        )
    x = input.unsqueeze(0) if alone else input
    _check_weight(x, weight, bias, axes)
    _check_channels(x, weight, groups)
    if any(step <= 0 for step in strides):
        raise RuntimeError("non-positive stride is not supported")
    if any(step <= 0 for step in dilations):
        raise RuntimeError(f"dilation should be greater than zero, but got {list(dilations)}")
    sizes = tuple(weight.shape[2:])
    x = pad(x, _frame(padding, sizes, strides, dilations, axes)) if padding not in (0, "valid") else x
    _check_sizes(x, sizes, dilations, axes)
    spread = windows(x, sizes, strides, dilations)
    batch, channels, *places = spread.shape[: 2 + axes]
    inner, count = channels // groups, weight.size(0)
    order = (0, 1, *range(3, 3 + axes), 2, *range(3 + axes, 3 + 2 * axes))
    rows = spread.reshape(batch, groups, inner, *spread.shape[2:]).permute(order).reshape(batch, groups, math.prod(places), inner * math.prod(sizes))
    columns = weight.reshape(groups, count // groups, inner * math.prod(sizes)).transpose(1, 2)
    out = rows.matmul(columns).transpose(2, 3).reshape(batch, count, *places)
    if bias is not None:
        out = out + bias.view(1, -1, *(1,) * axes)
    return out.squeeze(0) if alone else out


def _frame(padding: Any, sizes: Sizes, strides: Sizes, dilations: Sizes, axes: int) -> list[int]:
    """Widths for `pad`, last axis first."""
    if padding == "same":
        if any(stride != 1 for stride in strides):
            raise RuntimeError("padding='same' is not supported for strided convolutions")
        totals = [dilation * (size - 1) for size, dilation in zip(sizes, dilations, strict=True)]
        return [width for total in reversed(totals) for width in (total // 2, total - total // 2)]
    widths = each(padding, axes, "padding")
    if any(width < 0 for width in widths):
        raise RuntimeError("negative padding is not supported")
    return [width for width in reversed(widths) for _ in range(2)]


def _check_weight(x: Tensor, weight: Tensor, bias: Tensor | None, axes: int) -> None:
    if weight.dim() < 3:
        raise RuntimeError("weight should have at least three dimensions")
    if weight.dim() != axes + 2:
        raise RuntimeError(f"Expected {axes + 2}-dimensional weight for conv{axes}d, but got weight of size {list(weight.shape)}")
    if bias is not None and tuple(bias.shape) != (weight.size(0),):
        raise RuntimeError(
            f"Given weight of size {list(weight.shape)}, expected bias to be 1-dimensional with {weight.size(0)} elements, but got bias of size "
            f"{list(bias.shape)} instead"
        )
    for name, part in (("weight", weight), ("bias", bias)):
        if part is not None and part.dtype is not x.dtype:
            raise RuntimeError(f"Input type ({x.dtype.name}) and {name} type ({part.dtype.name}) should be the same")


def _check_channels(x: Tensor, weight: Tensor, groups: int) -> None:
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    if weight.size(0) < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of size {list(weight.shape)} instead"
        )
    if x.size(1) != weight.size(1) * groups:
        raise RuntimeError(
            f"Given groups={groups}, weight of size {list(weight.shape)}, expected input{list(x.shape)} to have {weight.size(1) * groups} channels, "
            f"but got {x.size(1)} channels instead"
        )
    if weight.size(0) % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of size {list(weight.shape)} instead"
        )


def _check_sizes(x: Tensor, sizes: Sizes, dilations: Sizes, axes: int) -> None:
    spans = [dilation * (size - 1) + 1 for size, dilation in zip(sizes, dilations, strict=True)]
    if any(span > have for span, have in zip(spans, x.shape[2:], strict=True)):
        padded = " x ".join(map(str, x.shape[2:]))
        raise RuntimeError(
            f"Calculated padded input size per channel: ({padded}). Kernel size: ({' x '.join(map(str, spans))}). "
            "Kernel size can't be greater than actual input size"
        )


def conv_transpose(input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, output_padding: Any, groups: int,
                   dilation: Any, axes: int) -> Tensor:  # fmt: skip
    """The transpose of a convolution: the input with zeros between its elements, convolved with the weight turned around."""
    strides, dilations = each(stride, axes, "stride"), each(dilation, axes, "dilation")
    paddings, extra = each(padding, axes, "padding"), each(output_padding, axes, "output_padding")
    if any(more >= max(a, b) for more, a, b in zip(extra, strides, dilations, strict=True)):
        raise RuntimeError(f"output padding must be smaller than either stride or dilation, but got output_padding: {list(extra)}")
    alone = input.dim() == axes + 1
    x = input.unsqueeze(0) if alone else input
    if x.dim() != axes + 2:
        raise RuntimeError(
            f"Expected {axes + 1}D (unbatched) or {axes + 2}D (batched) input to conv_transpose{axes}d, but got input of size: {list(input.shape)}"
        )
    if x.size(1) != weight.size(0):
        raise RuntimeError(
            f"Given transposed=1, weight of size {list(weight.shape)}, expected input{list(x.shape)} to have {weight.size(0)} channels, but got "
            f"{x.size(1)} channels instead"
        )
    sizes = tuple(weight.shape[2:])
    frame: list[int] = []
    for k in range(axes):
        x = _spread(x, 2 + k, strides[k])
        width = dilations[k] * (sizes[k] - 1) - paddings[k]
        frame = [width, width + extra[k], *frame]
    channels, outputs = weight.shape[:2]
    turned = weight.flip(tuple(range(2, 2 + axes))).reshape(groups, channels // groups, outputs, *sizes).transpose(1, 2)
    out = conv(pad(x, frame), turned.reshape(groups * outputs, channels // groups, *sizes), bias, 1, 0, dilations, groups, axes)
    return out.squeeze(0) if alone else out


def _spread(x: Tensor, dim: int, step: int) -> Tensor:
    """With `step - 1` zeros between the elements of an axis."""
    if step == 1:
        return x
    apart = pad(x.unsqueeze(dim + 1), [0, 0] * (x.dim() - 1 - dim) + [0, step - 1]).flatten(dim, dim + 1)
    return apart.narrow(dim, 0, max(apart.size(dim) - step + 1, 0))
