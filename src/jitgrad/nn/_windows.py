"""Windows that slide over the last axes: convolutions are products with them, pools their means and maxima.

Windows are views (`Tensor.unfold`), so the derivative of all that is made of them follows from that of views, products and reductions.
"""

from __future__ import annotations

from collections.abc import Sequence

from .._tensor import Tensor

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
