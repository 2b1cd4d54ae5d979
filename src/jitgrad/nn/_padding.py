"""Frames around the last axes of a tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from .._tensor import Tensor, _functions as T
from .._tensor.creation import full, tensor

__all__ = ["pad"]

Places = np.ndarray[Any, np.dtype[np.int64]]


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """The input with a frame, as wide as `pad` says: (left, right) of the last axis, of the one before ... Negative widths cut off.

    `mode` is "constant" (`value`, zero unless given) or, for inputs with one or two axes more than `pad` has pairs, "reflect" (the
    elements within, the outermost left out), "replicate" (the outermost) or "circular" (those of the other end).

    Raises RuntimeError for widths that don't fit the input, NotImplementedError for another mode or number of axes.
    """
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pad) > 2 * input.dim():
        raise RuntimeError(
            f"Padding length should be less than or equal to two times the input dimension but got padding length {len(pad)} and "
            f"input of dimension {input.dim()}"
        )
    pairs = list(zip(pad[::2], pad[1::2], strict=True))
    if mode == "constant":
        return _constant(input, pairs, 0 if value is None else value)
    if value is not None and value != 0:
        raise ValueError(f'Padding mode "{mode}" doesn\'t take in value argument')
    if mode not in _PLACES or len(pairs) > 3 or input.dim() not in (len(pairs) + 1, len(pairs) + 2):
        raise NotImplementedError(f"Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now, not mode {mode!r} of {input.dim()}D")
    for axis, (before, after) in enumerate(pairs):
        dim = input.dim() - 1 - axis
        places = _PLACES[mode](np.arange(-before, input.size(dim) + after), input.size(dim), before, after)
        input = input.index_select(dim, tensor(places))
    return input


def _constant(input: Tensor, pairs: list[tuple[int, int]], value: float) -> Tensor:
    for axis, (before, after) in enumerate(pairs):
        dim = input.dim() - 1 - axis
        start, kept = max(-before, 0), input.size(dim) + min(before, 0) + min(after, 0)
        parts = [input.narrow(dim, start, kept) if min(before, after) < 0 else input]
        for width, place in ((before, 0), (after, 2)):
            if width > 0:
                shape = (*input.shape[:dim], width, *input.shape[dim + 1 :])
                parts.insert(place, full(shape, value, dtype=input.dtype))
        input = T.cat(parts, dim) if len(parts) > 1 else parts[0]
    return input if any(max(pair) > 0 for pair in pairs) else input.clone()


def _reflected(places: Places, size: int, before: int, after: int) -> Places:
    if max(before, after) >= size:
        raise RuntimeError(
            f"Argument #4: Padding size should be less than the corresponding input dimension, but got: padding ({before}, {after}) at an "
            f"axis of {size}"
        )
    found: Places = size - 1 - np.abs(size - 1 - np.abs(places))
    return found


def _replicated(places: Places, size: int, before: int, after: int) -> Places:
    return np.clip(places, 0, size - 1)


def _circular(places: Places, size: int, before: int, after: int) -> Places:
    if max(before, after) > size:
        raise RuntimeError("Padding value causes wrapping around more than once.")
    if size + before + after < 0:
        raise RuntimeError("Negative padding value is resulting in an empty dimension")
    start, kept = max(-before, 0), size + min(before, 0) + min(after, 0)  # what is cut off does not come again
    return start + (places - start) % kept


_PLACES: Final[dict[str, Callable[[Places, int, int, int], Places]]] = {"reflect": _reflected, "replicate": _replicated, "circular": _circular}
