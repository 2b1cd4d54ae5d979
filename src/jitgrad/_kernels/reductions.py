"""Reductions, other than sums, of C-contiguous arrays seen as (outer, n, inner): the axis of length n goes away.

Where inner is not 1, neighbouring columns are reduced side by side, so that memory is read as it lies.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .language import data, offset, real, release, restore
from .registry import REASSOCIATE, kernel
from .scalar_fallback import exp, isinf, isnan, log, maximum, sqrt


@kernel("bnnnb")
def spread_middle(grad: Any, outer: int, n: int, inner: int, out: Any) -> None:
    """out[o, k, j] = grad[o, j]: the transpose of a sum."""
    g = data(grad)
    q = data(out)
    token = release(outer * n * inner)
    if inner == 1:
        for o in range(outer):
            value = g[o]
            row = offset(q, o * n)
            for k in range(n):
                row[k] = value
    else:
        for o in range(outer):
            source = offset(g, o * inner)
            for k in range(n):
                row = offset(q, (o * n + k) * inner)
                for j in range(inner):
                    row[j] = source[j]
    restore(token)


@kernel("bnnnsb")
def extreme_middle(x: Any, outer: int, n: int, inner: int, sign: float, out: Any) -> None:
    """out[o, j] = the largest of sign * x[o, :, j], times sign; sign is 1 or -1, n > 0. NaN wins."""
    p = data(x)
    q = data(out)
    s = real(sign)
    token = release(outer * n * inner)
    if inner == 1:
        for o in range(outer):
            row = offset(p, o * n)
            best = s * row[0]
            for k in range(n):
                best = maximum(best, s * row[k])
            q[o] = s * best
    else:
        for o in range(outer):
            end = offset(q, o * inner)
            for j in range(inner):
                end[j] = p[o * n * inner + j]
            for k in range(n):
                row = offset(p, (o * n + k) * inner)
                for j in range(inner):
                    end[j] = s * maximum(s * end[j], s * row[j])
    restore(token)


@kernel("bnnnsi")
def extreme_index(x: Any, outer: int, n: int, inner: int, sign: float, out: Any) -> None:
    """out[o, j] = the first k at which sign * x[o, :, j] is largest, or NaN; n > 0."""
    p = data(x)
    q = data(out)
    s = real(sign)
    token = release(outer * n * inner)
    if inner == 1:
        for o in range(outer):
            row = offset(p, o * n)
            best = s * row[0]
            for k in range(n):
                best = maximum(best, s * row[k])
            k = 0
            if isnan(best):
                while not isnan(row[k]):
                    k += 1
            else:
                while s * row[k] != best:
                    k += 1
            q[o] = k
    else:
        for o in range(outer):
            block = offset(p, o * n * inner)
            place = offset(q, o * inner)
            for j in range(inner):
                place[j] = 0
            for k in range(n):
                for j in range(inner):
                    best = s * block[place[j] * inner + j]
                    value = s * block[k * inner + j]
                    if value > best or (isnan(value) and not isnan(best)):
                        place[j] = k
    restore(token)


@kernel("binnnb")
def pick_middle(x: Any, index: Any, outer: int, n: int, inner: int, out: Any) -> None:
    """out[o, j] = x[o, index[o, j], j], with indices known to be in range."""
    p = data(x)
    i = data(index)
    q = data(out)
    token = release(outer * inner)
    for o in range(outer):
        for j in range(inner):
            q[o * inner + j] = p[(o * n + i[o * inner + j]) * inner + j]
    restore(token)


@kernel("binnnb")
def place_middle(grad: Any, index: Any, outer: int, n: int, inner: int, out: Any) -> None:
    """Zeros, and out[o, index[o, j], j] = grad[o, j]: the transpose of `pick_middle`."""
    g = data(grad)
    i = data(index)
    q = data(out)
    token = release(outer * n * inner)
    for k in range(outer * n * inner):
        q[k] = real(0)
    for o in range(outer):
        for j in range(inner):
            q[(o * n + i[o * inner + j]) * inner + j] = g[o * inner + j]
    restore(token)


@kernel("bnnnsnddb", fast=REASSOCIATE)
def var_middle(x: Any, outer: int, n: int, inner: int, divisor: float, root: int, means: Any, work: Any, out: Any) -> None:
    """out[o, j] = sum over k of (x[o, k, j] - mean)^2 / divisor, or its root. `means`, `work`: `inner` float64 each."""
    p = data(x)
    q = data(out)
    m = data(means)
    w = data(work)
    count = np.float64(n)
    token = release(outer * n * inner)
    for o in range(outer):
        for j in range(inner):
            m[j] = np.float64(0.0)
            w[j] = np.float64(0.0)
        if inner == 1:
            row = offset(p, o * n)
            total = np.float64(0.0)
            for k in range(n):
                total += np.float64(row[k])
            mean = total / count
            total = np.float64(0.0)
            for k in range(n):
                away = np.float64(row[k]) - mean
                total += away * away
            w[0] = total
        else:
            for k in range(n):
                row = offset(p, (o * n + k) * inner)
                for j in range(inner):
                    m[j] += np.float64(row[j])
            for j in range(inner):
                m[j] /= count
            for k in range(n):
                row = offset(p, (o * n + k) * inner)
                for j in range(inner):
                    away = np.float64(row[j]) - m[j]
                    w[j] += away * away
        for j in range(inner):
            value = w[j] / divisor
            q[o * inner + j] = real(sqrt(value) if root != 0 else value)
    restore(token)


@kernel("bnnnb", fast=REASSOCIATE)
def prod_middle(x: Any, outer: int, n: int, inner: int, out: Any) -> None:
    """out[o, j] = product over k of x[o, k, j], in float64 where inner is 1."""
    p = data(x)
    q = data(out)
    token = release(outer * n * inner)
    if inner == 1:
        for o in range(outer):
            row = offset(p, o * n)
            total = np.float64(1.0)
            for k in range(n):
                total *= np.float64(row[k])
            q[o] = real(total)
    else:
        for o in range(outer):
            end = offset(q, o * inner)
            for j in range(inner):
                end[j] = real(1)
            for k in range(n):
                row = offset(p, (o * n + k) * inner)
                for j in range(inner):
                    end[j] *= row[j]
    restore(token)


@kernel("bnnnb", fast=REASSOCIATE)
def logsumexp_rows(x: Any, outer: int, n: int, inner: int, out: Any) -> None:
    """out[o] = log of the sum of exp(x[o, :]) without overflow; inner is 1. Rows of -inf give -inf."""
    p = data(x)
    q = data(out)
    token = release(outer * n)
    for o in range(outer):
        row = offset(p, o * n)
        top = real(-np.inf)
        for k in range(n):
            top = maximum(top, row[k])
        if isinf(top):
            top = real(0)
        total = real(0)
        for k in range(n):
            total += exp(row[k] - top)
        q[o] = log(total) + top
    restore(token)


@kernel("bnnnnb")
def cumsum_middle(x: Any, outer: int, n: int, inner: int, backwards: int, out: Any) -> None:
    """out[o, k, j] = x[o, 0, j] + ... + x[o, k, j]; from the other end if `backwards`."""
    p = data(x)
    q = data(out)
    token = release(outer * n * inner)
    for o in range(outer):
        for j in range(inner):
            total = np.float64(0.0)
            for k in range(n):
                at = (o * n + (n - 1 - k if backwards != 0 else k)) * inner + j
                total += np.float64(p[at])
                q[at] = real(total)
    restore(token)


@kernel("bbnnnnb")
def recurrence_middle(factor: Any, x: Any, outer: int, n: int, inner: int, backwards: int, out: Any) -> None:
    """out[k] = x[k] + factor[k] * out[k - 1] along the middle axis, the first factor unused; from the other end if `backwards`."""
    f = data(factor)
    p = data(x)
    q = data(out)
    token = release(outer * n * inner)
    for o in range(outer):
        for j in range(inner):
            before = np.float64(0.0)
            for k in range(n):
                at = (o * n + (n - 1 - k if backwards != 0 else k)) * inner + j
                before = np.float64(p[at]) + (np.float64(f[at]) * before if k > 0 else np.float64(0.0))
                q[at] = real(before)
    restore(token)
