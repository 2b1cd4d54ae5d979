"""Windows that slide over the last axes: convolutions are products with them, pools their means and maxima.

Windows are views (`Tensor.unfold`), so the derivative of everything here follows from that of views, products and reductions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .._core.dtypes import int64
from .._tensor import Tensor, _functions as T
from ._padding import pad

Sizes = tuple[int, ...]


def each(value: int | Sequence[int], axes: int, name: str = "value") -> Sizes:
    """A number per axis. RuntimeError for another count of numbers."""
    if isinstance(value, int):
        return (value,) * axes
    found = tuple(int(v) for v in value)
    if len(found) == 1:
        return found * axes
    if len(found) != axes:
        raise RuntimeError(f"expected {name} to be a single integer value or a list of {axes} values, but got {name}={list(found)}")
    return found


def windows(x: Tensor, sizes: Sizes, strides: Sizes, dilations: Sizes) -> Tensor:
    """(*, a, b) to (*, a', b', sizes): the windows over the last axes, as a view."""
    first = x.dim() - len(sizes)
    for k, (size, stride, dilation) in enumerate(zip(sizes, strides, dilations, strict=True)):
        x = x.unfold(first + k, dilation * (size - 1) + 1, stride)
        if dilation > 1:
            x = x[..., ::dilation]
    return x


# ---- convolutions
def conv(input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, groups: int, axes: int) -> Tensor:
    """Cross-correlation over the last `axes` axes; see `functional.conv1d` and its kin."""
    strides, dilations = each(stride, axes, "stride"), each(dilation, axes, "dilation")
    alone = input.dim() == axes + 1
    if input.dim() not in (axes + 1, axes + 2):
        raise RuntimeError(
            f"Expected {axes + 1}D (unbatched) or {axes + 2}D (batched) input to conv{axes}d, but got input of size: {list(input.shape)}"
        )
    x = input.unsqueeze(0) if alone else input
    _check_channels(x, weight, groups)
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


def _check_channels(x: Tensor, weight: Tensor, groups: int) -> None:
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
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


# ---- pools
class Pool:
    """The geometry of a pool: sizes, strides, and the frame that is needed, on the right possibly wider by what `ceil_mode` adds."""

    def __init__(self, input: Tensor, axes: int, size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, name: str) -> None:
        self.axes = axes
        self.sizes = each(size, axes, "kernel_size")
        self.strides = self.sizes if stride is None or stride == () else each(stride, axes, "stride")
        self.paddings, self.dilations = each(padding, axes, "padding"), each(dilation, axes, "dilation")
        if input.dim() not in (axes + 1, axes + 2):
            raise RuntimeError(f"{name}: Expected {axes + 1}D or {axes + 2}D (batch mode) tensor for input, but got {list(input.shape)}")
        if any(stride <= 0 for stride in self.strides):
            raise RuntimeError(f"{name}: stride should not be zero")
        if any(2 * width > size for width, size in zip(self.paddings, self.sizes, strict=True)):
            raise RuntimeError(
                f"{name}: pad should be at most half of effective kernel size, but got pad={self.paddings} and kernel_size={self.sizes}"
            )
        self.shape: list[int] = []  # of the result, last axes
        self.frame: list[int] = []  # for `pad`, last axis first
        for k, have in enumerate(input.shape[-axes:]):
            self._place(have, k, ceil_mode)
        if any(n <= 0 for n in self.shape):
            raise RuntimeError(f"Given input size: {tuple(input.shape)}. Calculated output size: {tuple(self.shape)}. Output size is too small")

    def _place(self, have: int, k: int, ceil_mode: bool) -> None:
        span, stride, width = self.dilations[k] * (self.sizes[k] - 1) + 1, self.strides[k], self.paddings[k]
        free = have + 2 * width - span
        count = (-(-free // stride) if ceil_mode else free // stride) + 1
        if ceil_mode and (count - 1) * stride >= have + width:
            count -= 1  # the last window would begin in the frame
        self.shape.append(count)
        self.frame = [width, max(0, (count - 1) * stride + span - have - width), *self.frame]

    def windows(self, x: Tensor, value: float) -> Tensor:
        """(*, places, sizes), with `value` in the frame."""
        x = pad(x, self.frame, value=value) if any(self.frame) else x
        spread = windows(x, self.sizes, self.strides, self.dilations)
        for k, count in enumerate(self.shape):
            spread = spread.narrow(spread.dim() - 2 * self.axes + k, 0, count)
        return spread


def max_pool(input: Tensor, axes: int, size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> tuple[Tensor, Tensor]:
    """The largest of each window, and where it is in the input's last axes taken as one."""
    pool = Pool(input, axes, size, stride, padding, dilation, ceil_mode, f"max_pool{axes}d")
    spread = pool.windows(input, -math.inf if input.is_floating_point() else _least(input))
    found = spread.flatten(-axes).max(-1)
    place = found.indices
    flat = place * 0
    scale = 1
    for k in reversed(range(axes)):
        inside = place % pool.sizes[k]
        place = place.div(pool.sizes[k], rounding_mode="floor")
        starts = _starts(flat, pool.shape[k], pool.strides[k], pool.paddings[k], axes - k)
        flat = flat + (starts + inside * pool.dilations[k]) * scale
        scale *= input.size(input.dim() - axes + k)
    return found.values, flat


def _starts(like: Tensor, count: int, stride: int, width: int, from_end: int) -> Tensor:
    """Where the windows begin along an axis, in the shape that broadcasts to the result's."""
    starts: Tensor = like.new_tensor([stride * n - width for n in range(count)])
    return starts.view(-1, *(1,) * (from_end - 1))


def _least(x: Tensor) -> int:
    return -(1 << (8 * x.element_size() - 1))


def avg_pool(input: Tensor, axes: int, size: Any, stride: Any, padding: Any, ceil_mode: bool, count_include_pad: bool,
             divisor: int | None) -> Tensor:  # fmt: skip
    """The mean of each window. The frame counts as zeros if it is included, but for what `ceil_mode` adds to it."""
    if divisor == 0:
        raise RuntimeError("divisor must be not zero")
    pool = Pool(input, axes, size, stride, padding, 1, ceil_mode, f"avg_pool{axes}d")
    total = pool.windows(input, 0.0).sum(tuple(range(-axes, 0)))
    if divisor is not None:
        return total / divisor  # type: ignore[no-any-return]
    for k in range(axes):
        counts = _counts(input.size(input.dim() - axes + k), pool, k, count_include_pad)
        total = total / total.new_tensor(counts).view(-1, *(1,) * (axes - k - 1))
    return total


def _counts(have: int, pool: Pool, k: int, include: bool) -> list[int]:
    """How many elements of an axis each window counts."""
    width, counts = pool.paddings[k], []
    for n in range(pool.shape[k]):
        start = n * pool.strides[k] - width
        end = min(start + pool.sizes[k], have + width)
        counts.append(end - start if include else min(end, have) - max(start, 0))
    return counts


def adaptive(input: Tensor, shape: Any, axes: int, largest: bool, name: str) -> Any:
    """Means, or maxima with their places, of windows that divide the last axes into `shape` (None: as many as there are)."""
    if input.dim() not in (axes + 1, axes + 2):
        raise RuntimeError(f"{name}: Expected {axes + 1}D or {axes + 2}D tensor, but got {list(input.shape)}")
    wanted = (shape,) * axes if shape is None or isinstance(shape, int) else tuple(shape)
    sizes = [have if size is None else size for have, size in zip(input.shape[-axes:], wanted, strict=True)]
    if largest:
        return _adaptive_max(input, sizes, axes)
    for k, count in enumerate(sizes):
        dim = input.dim() - axes + k
        parts = [input.narrow(dim, a, b - a).mean(dim, keepdim=True) for a, b in _divided(input.size(dim), count)]
        input = _joined(parts, input, dim)
    return input


def _divided(have: int, count: int) -> list[tuple[int, int]]:
    return [(n * have // count, -(-(n + 1) * have // count)) for n in range(count)]


def _joined(parts: list[Tensor], like: Tensor, dim: int) -> Tensor:
    return like.narrow(dim, 0, 0) if not parts else parts[0] if len(parts) == 1 else T.cat(parts, dim)


def _adaptive_max(input: Tensor, sizes: list[int], axes: int) -> tuple[Tensor, Tensor]:
    flat = input.new_tensor(range(math.prod(input.shape[-axes:])), dtype=int64).view(tuple(input.shape[-axes:])).expand(input.shape)
    for k in reversed(range(axes)):  # the last axis first, so that of several maxima the first stays the first
        count, dim = sizes[k], input.dim() - axes + k
        found = [input.narrow(dim, a, b - a).max(dim, keepdim=True) for a, b in _divided(input.size(dim), count)]
        places = [flat.narrow(dim, a, b - a).gather(dim, one.indices) for (a, b), one in zip(_divided(input.size(dim), count), found, strict=True)]
        input, flat = _joined([one.values for one in found], input, dim), _joined(places, flat, dim)
    return input, flat
