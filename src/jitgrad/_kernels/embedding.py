"""Rows of a table by index, and back. Indices are checked before one is used: a bad one gives its position, and nothing is written."""

from __future__ import annotations

from typing import Any

import numpy as np

from .language import data, dim, offset, real, release, restore, size
from .registry import kernel


@kernel("bib->n")
def gather_rows(table: Any, index: Any, out: Any) -> Any:
    """out[i] = table[index[i]] for a matrix; returns -1, or the position of the first index that is out of range."""
    n = size(index)
    rows = dim(table, 0)
    width = dim(table, 1)
    p = data(table)
    i = data(index)
    q = data(out)
    token = release(n * width)
    bad = np.int64(-1)
    for k in range(n):
        if i[k] < 0 or i[k] >= rows:
            bad = np.int64(k)
            break
    if bad < 0:
        for k in range(n):
            row = offset(p, i[k] * width)
            end = offset(q, k * width)
            for j in range(width):
                end[j] = row[j]
    restore(token)
    return bad


@kernel("bindnb")
def add_rows(grad: Any, index: Any, skipped: int, counts: Any, scaled: int, out: Any) -> None:
    """Zeros, then out[index[i]] += grad[i], divided by counts[index[i]] if `scaled`; rows of index `skipped` don't count."""
    n = size(index)
    width = dim(out, 1)
    g = data(grad)
    i = data(index)
    c = data(counts)
    q = data(out)
    total = size(out)
    token = release(n * width + total)
    for j in range(total):
        q[j] = real(0)
    for k in range(n):
        if i[k] != skipped:
            row = offset(g, k * width)
            end = offset(q, i[k] * width)
            if scaled != 0:
                part = real(1) / real(c[i[k]])
                for j in range(width):
                    end[j] += row[j] * part
            else:
                for j in range(width):
                    end[j] += row[j]
    restore(token)
