"""What a compiled step does to rows that is no elementwise loop and no sum: order, places of extremes, running sums and products.

Plain functions over pointers, compiled into the step that calls them. Rows are contiguous.
"""

from __future__ import annotations

from typing import Any, Final

import numba

_OPTIONS: Final = {"error_model": "numpy", "fastmath": {"contract"}}


@numba.njit(**_OPTIONS)
def _ahead(a: Any, b: Any, descending: int) -> bool:
    """Whether a comes strictly before b; NaN is the largest."""
    if descending != 0:
        return bool((a > b) or (a != a and b == b))  # noqa: PLR0124
    return bool((a < b) or (b != b and a == a))  # noqa: PLR0124


@numba.njit(**_OPTIONS)
def order_rows(p: Any, rows: int, n: int, k: int, descending: int, out: Any, work: Any) -> None:
    """out[r, :k] = the first k of the places that sort row r, stable; `work` has room for 2 n places."""
    for r in range(rows):
        start = r * n
        for j in range(n):
            work[j] = j
        width = 1
        here = 0
        while width < n:
            there = n - here
            for low in range(0, n, 2 * width):
                middle, high = min(low + width, n), min(low + 2 * width, n)
                left, right = low, middle
                for j in range(low, high):
                    if left < middle and (right >= high or not _ahead(p[start + work[here + right]], p[start + work[here + left]], descending)):
                        work[there + j] = work[here + left]
                        left += 1
                    else:
                        work[there + j] = work[here + right]
                        right += 1
            here = there
            width *= 2
        for j in range(k):
            out[r * k + j] = work[here + j]


@numba.njit(**_OPTIONS)
def extreme_rows(p: Any, rows: int, n: int, largest: int, out: Any) -> None:
    """out[r] = the first place of the largest (or smallest) element of row r, of the first NaN where there is one."""
    for r in range(rows):
        start, best = r * n, 0
        for j in range(1, n):
            a, b = p[start + j], p[start + best]
            if b == b and (a != a or (a > b if largest != 0 else a < b)):  # noqa: PLR0124
                best = j
        out[r] = best


@numba.njit(**_OPTIONS)
def sum_rows(p: Any, rows: int, n: int, backwards: int, out: Any) -> None:
    """out[r, j] = the sum of row r up to j, or from j on; made in float64."""
    for r in range(rows):
        total = 0.0
        for j in range(n):
            at = r * n + (n - 1 - j if backwards != 0 else j)
            total += p[at]
            out[at] = total


@numba.njit(**_OPTIONS)
def product_rows(p: Any, rows: int, n: int, exclusive: int, backwards: int, out: Any) -> None:
    """out[r, j] = the product of row r up to j (`exclusive`: before j), or from the other end."""
    for r in range(rows):
        total = 1.0
        for j in range(n):
            at = r * n + (n - 1 - j if backwards != 0 else j)
            if exclusive != 0:
                out[at] = total
            total *= p[at]
            if exclusive == 0:
                out[at] = total


@numba.njit(**_OPTIONS)
def recurrence_rows(factor: Any, p: Any, rows: int, n: int, backwards: int, out: Any) -> None:
    """out[r, j] = p[r, j] + factor[r, j] * out[r, j - 1], or of out[r, j + 1]."""
    for r in range(rows):
        before = 0.0
        for j in range(n):
            at = r * n + (n - 1 - j if backwards != 0 else j)
            before = p[at] + (factor[at] * before if j > 0 else 0.0)
            out[at] = before
