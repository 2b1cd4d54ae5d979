"""Arrays with the same elements laid out in other ways, and ways for a gradient to arrive."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def layouts(array: Array) -> Iterator[tuple[str, Array, Array]]:
    """Name, arranged array, and a contiguous one of equal elements."""
    if array.ndim == 0 or array.size == 0:
        return
    if array.ndim > 1:
        yield "Fortran order", np.asfortranarray(array), array
    backwards = array[(slice(None, None, -1),) * array.ndim].copy()
    yield "negative strides", backwards[(slice(None, None, -1),) * array.ndim], array
    wide = np.zeros(tuple(2 * n for n in array.shape), array.dtype)
    wide[(slice(1, None, 2),) * array.ndim] = array
    yield "every other element", wide[(slice(1, None, 2),) * array.ndim], array
    offset = np.zeros(array.size + 1, array.dtype)
    offset[1:] = array.ravel()
    yield "an offset", offset[1:].reshape(array.shape), array
    first = array[:1].copy()
    still = np.lib.stride_tricks.as_strided(first, array.shape, (0, *first.strides[1:]))
    yield "stride 0", still, np.ascontiguousarray(still)


Loss = Callable[[Any, Any], Any]


def incoming() -> Iterator[tuple[str, Loss, Loss]]:
    """How the layout is called, a loss whose gradient arrives in it, and one that sends the same numbers in C order."""
    yield "expanded (stride 0)", lambda out, weights: out.sum(), lambda out, weights: (out * (weights * 0 + 1)).sum()
    yield "transposed", turned, lambda out, weights: (out * weights).sum()
    yield "of a slice", sliced, lambda out, weights: (out * every_other(weights)).sum()


def turned(out: Any, weights: Any) -> Any:
    """A weighted sum over the transpose."""
    axes = tuple(reversed(range(out.ndim)))
    return (out.permute(*axes) * weights.permute(*axes).contiguous()).sum() if axes else out * weights


def sliced(out: Any, weights: Any) -> Any:
    """A weighted sum of every other row."""
    return (out[::2] * weights[::2]).sum() if out.ndim else out * weights


def every_other(weights: Any) -> Any:
    """The weights that `sliced` uses, zero elsewhere."""
    if not weights.ndim:
        return weights
    kept = weights.clone()
    kept[1::2] = 0.0
    return kept
