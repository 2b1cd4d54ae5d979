"""Adding by index. The caller has checked every index: nothing here looks at bounds."""

from __future__ import annotations

from typing import Any

from .language import data, offset, release, restore, size
from .registry import kernel


@kernel("bibnnn")
def add_rows(x: Any, index: Any, out: Any, outer: int, length: int, inner: int) -> None:
    """out[o, index[k], j] += x[o, k, j], for out of shape (outer, length, inner); repeated indices add up in order."""
    count = size(index)
    p = data(x)
    q = data(index)
    r = data(out)
    token = release(size(x))
    for o in range(outer):
        for k in range(count):
            source = offset(p, (o * count + k) * inner)
            target = offset(r, (o * length + q[k]) * inner)
            for j in range(inner):
                target[j] += source[j]
    restore(token)


@kernel("bib")
def add_at(x: Any, index: Any, out: Any) -> None:
    """out[index[k]] += x[k] on flat arrays; repeated indices add up in order."""
    n = size(index)
    p = data(x)
    q = data(index)
    r = data(out)
    token = release(n)
    for k in range(n):
        r[q[k]] += p[k]
    restore(token)


@kernel("bibnnnn")
def take_along(x: Any, index: Any, out: Any, outer: int, length: int, count: int, inner: int) -> None:
    """out[o, k, j] = x[o, index[o, k, j], j], for x of shape (outer, length, inner) and an index of shape (outer, count, inner)."""
    p = data(x)
    q = data(index)
    r = data(out)
    token = release(size(index))
    for o in range(outer):
        source = offset(p, o * length * inner)
        for k in range(count):
            places = offset(q, (o * count + k) * inner)
            target = offset(r, (o * count + k) * inner)
            for j in range(inner):
                target[j] = source[places[j] * inner + j]
    restore(token)


@kernel("bibnnnn")
def add_along(x: Any, index: Any, out: Any, outer: int, length: int, count: int, inner: int) -> None:
    """out[o, index[o, k, j], j] += x[o, k, j]: the transpose of `take_along`; repeated indices add up in order."""
    p = data(x)
    q = data(index)
    r = data(out)
    token = release(size(index))
    for o in range(outer):
        target = offset(r, o * length * inner)
        for k in range(count):
            places = offset(q, (o * count + k) * inner)
            source = offset(p, (o * count + k) * inner)
            for j in range(inner):
                target[places[j] * inner + j] += source[j]
    restore(token)
