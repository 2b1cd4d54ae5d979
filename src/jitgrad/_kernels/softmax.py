"""Softmax, its logarithm and their gradients over arrays seen as (outer, n, inner), normalised along n.

Rows (inner 1) are summed in as many lanes as the processor has, which bounds the error as blocks would; columns side by side, with
their maxima and sums in `work` (2 x min(inner, 1024) of the kernel's dtype).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .language import data, offset, real, release, restore
from .registry import REASSOCIATE, kernel
from .scalar_fallback import exp, log, maximum, minimum


@kernel("bnnnb", fast=REASSOCIATE)
def softmax_rows(x: Any, outer: int, n: int, logarithm: int, out: Any) -> None:
    """out[o, :] = softmax of x[o, :], or its logarithm."""
    p = data(x)
    q = data(out)
    token = release(outer * n)
    for o in range(outer):
        row = offset(p, o * n)
        end = offset(q, o * n)
        top = real(-np.inf)
        for k in range(n):
            top = maximum(top, row[k])
        total = real(0)
        if logarithm != 0:
            for k in range(n):
                total += exp(row[k] - top)
            shift = log(total)
            for k in range(n):  # `minimum` changes nothing but keeps the compiler from adding `shift` to a large `top` first
                end[k] = minimum(row[k] - top, real(0)) - shift
        else:
            for k in range(n):
                value = exp(row[k] - top)
                end[k] = value
                total += value
            scale = real(1) / total
            for k in range(n):
                end[k] *= scale
    restore(token)


@kernel("bnnnnbb")
def softmax_columns(x: Any, outer: int, n: int, inner: int, logarithm: int, work: Any, out: Any) -> None:
    """out[o, :, j] = softmax of x[o, :, j], or its logarithm."""
    p = data(x)
    q = data(out)
    top = data(work)
    total = offset(top, min(inner, 1024))
    token = release(outer * n * inner)
    blocks = (inner + 1023) // 1024
    for part in range(outer * blocks):
        o = part // blocks
        first = (part - o * blocks) * 1024
        width = min(inner - first, 1024)
        for j in range(width):
            top[j] = real(-np.inf)
            total[j] = real(0)
        for k in range(n):
            row = offset(p, (o * n + k) * inner + first)
            for j in range(width):
                top[j] = maximum(top[j], row[j])
        for k in range(n):
            row = offset(p, (o * n + k) * inner + first)
            end = offset(q, (o * n + k) * inner + first)
            for j in range(width):
                value = exp(row[j] - top[j])
                end[j] = value
                total[j] += value
        for j in range(width):
            total[j] = log(total[j]) if logarithm != 0 else real(1) / total[j]
        for k in range(n):
            row = offset(p, (o * n + k) * inner + first)
            end = offset(q, (o * n + k) * inner + first)
            if logarithm != 0:
                for j in range(width):
                    end[j] = (row[j] - top[j]) - total[j]
            else:
                for j in range(width):
                    end[j] *= total[j]
    restore(token)


@kernel("bbnnnb", fast=REASSOCIATE)
def softmax_backward_rows(grad: Any, result: Any, outer: int, n: int, logarithm: int, out: Any) -> None:
    """out = (grad - sum(grad * y)) * y for y = softmax; grad - exp(y) * sum(grad) for its logarithm."""
    g = data(grad)
    y = data(result)
    q = data(out)
    token = release(outer * n)
    for o in range(outer):
        gr = offset(g, o * n)
        yr = offset(y, o * n)
        end = offset(q, o * n)
        total = real(0)
        if logarithm != 0:
            for k in range(n):
                total += gr[k]
            for k in range(n):
                end[k] = gr[k] - exp(yr[k]) * total
        else:
            for k in range(n):
                total += gr[k] * yr[k]
            for k in range(n):
                end[k] = (gr[k] - total) * yr[k]
    restore(token)


@kernel("bbnnnnbb")
def softmax_backward_columns(grad: Any, result: Any, outer: int, n: int, inner: int, logarithm: int, work: Any, out: Any) -> None:
    """The same along columns."""
    g = data(grad)
    y = data(result)
    q = data(out)
    total = data(work)
    token = release(outer * n * inner)
    blocks = (inner + 1023) // 1024
    for part in range(outer * blocks):
        o = part // blocks
        first = (part - o * blocks) * 1024
        width = min(inner - first, 1024)
        for j in range(width):
            total[j] = real(0)
        for k in range(n):
            gr = offset(g, (o * n + k) * inner + first)
            yr = offset(y, (o * n + k) * inner + first)
            if logarithm != 0:
                for j in range(width):
                    total[j] += gr[j]
            else:
                for j in range(width):
                    total[j] += gr[j] * yr[j]
        for k in range(n):
            gr = offset(g, (o * n + k) * inner + first)
            yr = offset(y, (o * n + k) * inner + first)
            end = offset(q, (o * n + k) * inner + first)
            if logarithm != 0:
                for j in range(width):
                    end[j] = gr[j] - exp(yr[j]) * total[j]
            else:
                for j in range(width):
                    end[j] = (gr[j] - total[j]) * yr[j]
    restore(token)
