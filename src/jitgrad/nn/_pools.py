"""Pools: the mean, or the largest element, of each window."""

from __future__ import annotations

import math
from typing import Any

from .._core.dtypes import int64, uint8
from .._tensor import Tensor, _functions as T
from ._padding import pad
from ._windows import each, windows


class Pool:
    """The geometry of a pool: sizes, strides, and the frame that is needed, on the right possibly wider by what `ceil_mode` adds."""

    def __init__(self, input: Tensor, axes: int, size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, name: str) -> None:
        self.axes = axes
        self.sizes = each(size, axes, "kernel_size")
        self.strides = self.sizes if stride is None or stride == () else each(stride, axes, "stride")
        self.paddings, self.dilations = each(padding, axes, "padding"), each(dilation, axes, "dilation")
        if input.dim() not in (axes + 1, axes + 2) or 0 in input.shape[1 if input.dim() == axes + 2 else 0 :]:
            raise RuntimeError(
                f"{name}: Expected {axes + 1}D or {axes + 2}D (batch mode) tensor with optional 0 dim batch size for input, but "
                f"got:{list(input.shape)}"
            )
        for what, numbers in (("kernel_size", self.sizes), ("stride", self.strides), ("dilation", self.dilations)):
            if any(number <= 0 for number in numbers):
                raise RuntimeError(f"{name}: {what} must be greater than zero, but got {list(numbers)}")
        if any(width < 0 for width in self.paddings):
            raise RuntimeError(f"{name}: pad must be non-negative, but got {list(self.paddings)}")
        spans = [(size - 1) * dilation + 1 for size, dilation in zip(self.sizes, self.dilations, strict=True)]
        if any(2 * width > span for width, span in zip(self.paddings, spans, strict=True)):
            raise RuntimeError(
                f"{name}: pad should be at most half of effective kernel size, but got pad={list(self.paddings)}, kernel_size={list(self.sizes)} and "
                f"dilation={list(self.dilations)}"
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


def max_pool(input: Tensor, axes: int, size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, places: bool) -> Any:
    """The largest of each window, and (with `places`) where it is in the input's last axes taken as one."""
    pool = Pool(input, axes, size, stride, padding, dilation, ceil_mode, f"max_pool{axes}d")
    spread = pool.windows(input, -math.inf if input.is_floating_point() else _least(input))
    found = spread.flatten(-axes).max(-1)
    if not places:
        return found.values
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
    return 0 if x.dtype is uint8 else -(1 << (8 * x.element_size() - 1))


def avg_pool(input: Tensor, axes: int, size: Any, stride: Any, padding: Any, ceil_mode: bool, count_include_pad: bool,
             divisor: int | None) -> Tensor:  # fmt: skip
    """The mean of each window. The frame counts as zeros if it is included, but for what `ceil_mode` adds to it."""
    if divisor == 0:
        raise RuntimeError("divisor must be not zero")
    pool = Pool(input, axes, size, stride, padding, 1, ceil_mode, f"avg_pool{axes}d")
    total = pool.windows(input, 0.0).sum(tuple(range(-axes, 0)))
    count: Any = divisor
    if divisor is None:
        count = total.new_tensor(1)
        for k in range(axes):
            counts = total.new_tensor(_counts(input.size(input.dim() - axes + k), pool, k, count_include_pad))
            count = count * counts.view(-1, *(1,) * (axes - k - 1))
    if input.is_floating_point():
        return total / count  # type: ignore[no-any-return]
    return total.div(count, rounding_mode="trunc").to(input.dtype)


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
    wanted = (shape,) * axes if shape is None or isinstance(shape, int) else tuple(shape)
    if input.dim() <= axes and len(wanted) == axes:
        raise ValueError(f"Input dimension should be at least {axes + 1}")
    if input.dim() not in (axes + 1, axes + 2):
        raise RuntimeError(f"{name}: Expected {axes + 1}D or {axes + 2}D tensor, but got {list(input.shape)}")
    if len(wanted) != axes:
        raise RuntimeError(f"{name}: output_size must be {axes}")
    if any(size is not None and size < 0 for size in wanted):
        raise RuntimeError(f"{name}: elements of output_size must be greater than or equal to 0 but received {list(wanted)}")
    if 0 in input.shape[1 if input.dim() == axes + 2 else 0 :]:
        raise RuntimeError(
            f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes {list(input.shape)}"
        )
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
