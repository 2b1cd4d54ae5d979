"""The largest elements of rows."""

from __future__ import annotations

from typing import Any

from .language import data, release, restore, size
from .registry import kernel


@kernel("bnnnsi")
def leading(x: Any, rows: int, n: int, k: int, sign: float, out: Any) -> None:
    """out[r] = the places of the k largest elements of row r (sign 1), or the smallest (-1), in order; NaN counts as the largest.

    By insertion: n * k steps at worst, about n where the rows are in no particular order. Of equal elements the first comes first.
    """
    p = data(x)
    q = data(out)
    token = release(size(x))
    for r in range(rows):
        start = r * n
        first = r * k
        held = 0
        for j in range(n):
            value = p[start + j] * sign
            is_nan = value != value  # noqa: PLR0124
            at = held
            while at > 0:
                other = p[start + q[first + at - 1]] * sign
                other_nan = other != other  # noqa: PLR0124
                if sign > 0:
                    ahead = (value > other) or (is_nan and not other_nan)
                else:
                    ahead = (value > other) or (other_nan and not is_nan)
                if not ahead:
                    break
                at -= 1
            if at < k:
                if held < k:
                    held += 1
                last = held - 1
                while last > at:
                    q[first + last] = q[first + last - 1]
                    last -= 1
                q[first + at] = j
    restore(token)
