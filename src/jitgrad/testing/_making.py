"""`make_tensor`: tensors to test with."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.dtypes import dtype as Dtype, iinfo
from .._core.shapes import parse_shape
from .._tensor.base import wrap
from .._tensor.random import rand, randint

__all__ = ["make_tensor"]


def make_tensor(*shape: Any, dtype: Dtype, device: Any = "cpu", low: float | None = None, high: float | None = None, requires_grad: bool = False,
                noncontiguous: bool = False, exclude_zero: bool = False, memory_format: Any = None) -> Any:  # fmt: skip
    """A leaf with random elements from [low, high): by default from -9 to 9, for bool both values, for uint8 from 0 to 9.

    `noncontiguous` spreads the elements in memory, `exclude_zero` puts the smallest positive number where a zero came out. ValueError if
    low is not less than high.
    """
    sizes = tuple(parse_shape(shape))
    first, last = bounds(dtype, low, high)
    if dtype.is_floating_point:
        array = (first + (last - first) * rand(*sizes).array.astype(np.float64)).astype(dtype.numpy)
    else:
        array = randint(int(np.ceil(first)), int(np.ceil(last)), sizes).array.astype(dtype.numpy)
    if exclude_zero:
        array[array == 0] = np.finfo(array.dtype).tiny if dtype.is_floating_point else 1
    if noncontiguous and array.size > 1:
        array = np.repeat(array[..., None], 2, -1)[..., 0]
    return wrap(array).requires_grad_(requires_grad)


def bounds(dtype: Dtype, low: float | None, high: float | None) -> tuple[float, float]:
    """The range of the elements."""
    if dtype.kind == "b":
        default: tuple[float, float] = (0, 2)
    elif dtype.is_floating_point:
        default = (-9.0, 9.0)
    else:
        default = (max(-9, iinfo(dtype).min), 10)
    first, last = default[0] if low is None else low, default[1] if high is None else high
    if not first < last:
        raise ValueError(f"`low` must be less than `high`, but got {first} >= {last}")
    return first, last
