"""Layer and batch normalisation, forward and backward. A weight or bias may be an empty array: 1 and 0.

Rows are summed in as many lanes as the processor has, sums over rows in float64 blocks of 64 rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .language import data, offset, real, release, restore, size
from .registry import REASSOCIATE, kernel
from .scalar_fallback import sqrt


@kernel("bbbnnsbbb", fast=REASSOCIATE)
def layer_norm(x: Any, weight: Any, bias: Any, rows: int, width: int, eps: float, out: Any, mean: Any, rstd: Any) -> None:
    """out = (x - mean) * rstd * weight + bias for each row; mean and rstd have an element per row."""
    p = data(x)
    w = data(weight)
    b = data(bias)
    q = data(out)
    means = data(mean)
    scales = data(rstd)
    weighted = size(weight) > 0
    shifted = size(bias) > 0
    token = release(rows * width)
    for r in range(rows):
        row = offset(p, r * width)
        end = offset(q, r * width)
        total = real(0)
        for k in range(width):
            total += row[k]
        mu = real(np.float64(total) / np.float64(width))
        total = real(0)
        for k in range(width):
            away = row[k] - mu
            total += away * away
        scale = real(1.0 / sqrt(np.float64(total) / np.float64(width) + eps))
        means[r] = mu
        scales[r] = scale
        if weighted and shifted:
            for k in range(width):
                end[k] = (row[k] - mu) * scale * w[k] + b[k]
        else:
            for k in range(width):
                end[k] = (row[k] - mu) * scale
            if weighted:
                for k in range(width):
                    end[k] *= w[k]
            if shifted:
                for k in range(width):
                    end[k] += b[k]
    restore(token)


def row_gradient(gr: Any, row: Any, w: Any, weighted: Any, mu: Any, scale: Any, width: Any, end: Any) -> None:
    """The gradient of one row."""
    flat = real(0)
    tilt = real(0)
    if weighted:
        for k in range(width):
            part = gr[k] * w[k]
            flat += part
            tilt += part * (row[k] - mu)
    else:
        for k in range(width):
            flat += gr[k]
            tilt += gr[k] * (row[k] - mu)
    flat = flat / real(width)
    tilt = tilt * scale * scale / real(width)
    if weighted:
        for k in range(width):
            end[k] = scale * (gr[k] * w[k] - flat - (row[k] - mu) * tilt)
    else:
        for k in range(width):
            end[k] = scale * (gr[k] - flat - (row[k] - mu) * tilt)


@kernel("bbbbbnnnbbbd", fast=REASSOCIATE, uses=(row_gradient,))
def layer_norm_backward(grad: Any, x: Any, weight: Any, mean: Any, rstd: Any, rows: int, width: int, wanted: int, dx: Any, dw: Any,
                        db: Any, work: Any) -> None:  # fmt: skip
    """The gradients of x (1 in `wanted`), weight (2) and bias (4); dw and db have room for a row each, work for two of float64."""
    g = data(grad)
    p = data(x)
    means = data(mean)
    scales = data(rstd)
    qx = data(dx)
    qw = data(dw)
    qb = data(db)
    weighted = size(weight) > 0
    sums = data(work)
    token = release(rows * width)
    if wanted > 1:
        for k in range(2 * width):
            sums[k] = np.float64(0.0)
    for block in range((rows + 63) // 64):
        if wanted > 1:
            for k in range(width):
                qw[k] = real(0)
                qb[k] = real(0)
        for i in range(min(rows - block * 64, 64)):
            r = block * 64 + i
            gr = offset(g, r * width)
            row = offset(p, r * width)
            mu = means[r]
            scale = scales[r]
            if wanted % 2 == 1:
                row_gradient(gr, row, data(weight), weighted, mu, scale, width, offset(qx, r * width))
            if wanted > 1:
                for k in range(width):
                    qb[k] += gr[k]
                    qw[k] += gr[k] * ((row[k] - mu) * scale)
        if wanted > 1:
            for k in range(width):
                sums[k] += np.float64(qw[k])
                sums[width + k] += np.float64(qb[k])
    if wanted > 1:
        for k in range(width):
            qw[k] = real(sums[k])
            qb[k] = real(sums[width + k])
    restore(token)


@kernel("bnnnddbb", fast=REASSOCIATE)
def channel_moments(x: Any, batch: int, channels: int, inner: int, sums: Any, squares: Any, mean: Any, variance: Any) -> None:
    """Mean and (biased) variance of each channel; `sums`, `squares`: a float64 per channel."""
    p = data(x)
    m = data(sums)
    v = data(squares)
    count = np.float64(batch * inner)
    token = release(batch * channels * inner)
    for c in range(channels):
        m[c] = np.float64(0.0)
        v[c] = np.float64(0.0)
    if inner == 1:
        for n in range(batch):
            row = offset(p, n * channels)
            for c in range(channels):
                m[c] += np.float64(row[c])
        for c in range(channels):
            m[c] /= count
        for n in range(batch):
            row = offset(p, n * channels)
            for c in range(channels):
                away = np.float64(row[c]) - m[c]
                v[c] += away * away
    else:
        for n in range(batch):
            for c in range(channels):
                row = offset(p, (n * channels + c) * inner)
                total = np.float64(0.0)
                for k in range(inner):
                    total += np.float64(row[k])
                m[c] += total
        for c in range(channels):
            m[c] /= count
        for n in range(batch):
            for c in range(channels):
                row = offset(p, (n * channels + c) * inner)
                mu = m[c]
                total = np.float64(0.0)
                for k in range(inner):
                    away = np.float64(row[k]) - mu
                    total += away * away
                v[c] += total
    qm = data(mean)
    qv = data(variance)
    for c in range(channels):
        qm[c] = real(m[c])
        qv[c] = real(v[c] / count)
    restore(token)


@kernel("bbbbbnnnsbb")
def batch_norm(x: Any, weight: Any, bias: Any, mean: Any, variance: Any, batch: int, channels: int, inner: int, eps: float, scales: Any,
               out: Any) -> None:  # fmt: skip
    """out = (x - mean) / sqrt(variance + eps) * weight + bias, each of them per channel; `scales` is room for a number per channel."""
    p = data(x)
    w = data(weight)
    b = data(bias)
    m = data(mean)
    v = data(variance)
    a = data(scales)
    q = data(out)
    weighted = size(weight) > 0
    shifted = size(bias) > 0
    token = release(batch * channels * inner)
    for c in range(channels):
        scale = real(1.0 / sqrt(np.float64(v[c]) + eps))
        a[c] = scale * w[c] if weighted else scale
    for n in range(batch):
        if inner == 1:
            row = offset(p, n * channels)
            end = offset(q, n * channels)
            if shifted:
                for c in range(channels):
                    end[c] = (row[c] - m[c]) * a[c] + b[c]
            else:
                for c in range(channels):
                    end[c] = (row[c] - m[c]) * a[c]
        else:
            for c in range(channels):
                row = offset(p, (n * channels + c) * inner)
                end = offset(q, (n * channels + c) * inner)
                mu = m[c]
                scale = a[c]
                shift = b[c] if shifted else real(0)
                for k in range(inner):
                    end[k] = (row[k] - mu) * scale + shift
    restore(token)


def channel_sums(g: Any, p: Any, m: Any, batch: Any, channels: Any, inner: Any, f: Any, t: Any) -> None:
    """f = the sum of g, t = that of g * (x - mean), for each channel."""
    for c in range(channels):
        f[c] = np.float64(0.0)
        t[c] = np.float64(0.0)
    for n in range(batch):
        if inner == 1:
            gr = offset(g, n * channels)
            row = offset(p, n * channels)
            for c in range(channels):
                f[c] += np.float64(gr[c])
                t[c] += np.float64(gr[c]) * np.float64(row[c] - m[c])
        else:
            for c in range(channels):
                gr = offset(g, (n * channels + c) * inner)
                row = offset(p, (n * channels + c) * inner)
                mu = m[c]
                one = real(0)
                two = real(0)
                for k in range(inner):
                    one += gr[k]
                    two += gr[k] * (row[k] - mu)
                f[c] += np.float64(one)
                t[c] += np.float64(two)


@kernel("bbbbbnnnsnddbbbb", fast=REASSOCIATE, uses=(channel_sums,))
def batch_norm_backward(grad: Any, x: Any, weight: Any, mean: Any, variance: Any, batch: int, channels: int, inner: int, eps: float,
                        training: int, flat: Any, tilt: Any, scales: Any, dx: Any, dw: Any, db: Any) -> None:  # fmt: skip
    """The gradients of x, weight and bias; in `training` mean and variance are x's own. `flat`, `tilt`, `scales`: room for a number per channel."""
    g = data(grad)
    p = data(x)
    w = data(weight)
    m = data(mean)
    v = data(variance)
    f = data(flat)
    t = data(tilt)
    a = data(scales)
    qx = data(dx)
    weighted = size(weight) > 0
    token = release(batch * channels * inner)
    channel_sums(g, p, m, batch, channels, inner, f, t)
    share = 1.0 / np.float64(batch * inner) if training != 0 else np.float64(0.0)
    for c in range(channels):
        scale = 1.0 / sqrt(np.float64(v[c]) + eps)
        data(db)[c] = real(f[c])
        data(dw)[c] = real(t[c] * scale)
        f[c] = f[c] * share
        t[c] = t[c] * scale * scale * share
        a[c] = real(scale) * w[c] if weighted else real(scale)
    for n in range(batch):
        if inner == 1:
            gr = offset(g, n * channels)
            row = offset(p, n * channels)
            end = offset(qx, n * channels)
            for c in range(channels):
                end[c] = a[c] * (gr[c] - real(f[c]) - (row[c] - m[c]) * real(t[c]))
        else:
            for c in range(channels):
                gr = offset(g, (n * channels + c) * inner)
                row = offset(p, (n * channels + c) * inner)
                end = offset(qx, (n * channels + c) * inner)
                scale = a[c]
                mu = m[c]
                one = real(f[c])
                two = real(t[c])
                for k in range(inner):
                    end[k] = scale * (gr[k] - one - (row[k] - mu) * two)
    restore(token)
