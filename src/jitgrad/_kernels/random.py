"""Random numbers from a counter; `philox.py` says which.

A fill takes consecutive blocks of four 32-bit words from `start` on, 1024 words at a time through `work` (1024 uint64). Element i is made
of word i (float32, bits, bounded integers) or of words 2i and 2i + 1 (float64, wide integers); normal numbers come in pairs. So a fill is a
function of seed and start alone, whoever computes it.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .language import data, offset, real, release, restore, size, words
from .registry import kernel
from .scalar_fallback import cos, log, sin, sqrt

CHUNK: Final = 1024  # words


@kernel("bwwssu")
def uniform_single(out: Any, seed: int, start: int, low: float, span: float, work: Any) -> None:
    """out = low + span * uniform in [0, 1): 24 bits of a word."""
    n = size(out)
    q = data(out)
    w = data(work)
    scale = real(span) * real(2.0**-24)
    base = real(low)
    token = release(n)
    for part in range((n + 1023) // 1024):
        count = min(n - part * 1024, 1024)
        words(w, start + np.uint64(part * 256), seed, (count + 3) // 4)
        end = offset(q, part * 1024)
        for k in range(count):
            end[k] = real(np.int32(w[k] >> np.uint64(8))) * scale + base
    restore(token)


@kernel("bwwssu")
def uniform_double(out: Any, seed: int, start: int, low: float, span: float, work: Any) -> None:
    """out = low + span * uniform in [0, 1): 53 bits of two words."""
    n = size(out)
    q = data(out)
    w = data(work)
    scale = span * 2.0**-53
    token = release(n)
    for part in range((n + 511) // 512):
        count = min(n - part * 512, 512)
        words(w, start + np.uint64(part * 256), seed, (count + 1) // 2)
        end = offset(q, part * 512)
        for k in range(count):
            bits = real(np.int32(w[2 * k] >> np.uint64(5))) * 67108864.0 + real(np.int32(w[2 * k + 1] >> np.uint64(6)))
            end[k] = bits * scale + low
    restore(token)


@kernel("bssb")
def normal_pairs(x: Any, mean: float, std: float, out: Any) -> None:
    """Normal numbers by Box and Muller's transform of uniform ones in [0, 1), which are a pair for each pair of results (rounded up)."""
    n = size(out)
    p = data(x)
    q = data(out)
    scale = real(std)
    base = real(mean)
    token = release(n)
    for k in range(n // 2):
        radius = sqrt(real(-2) * log(real(1) - p[2 * k])) * scale
        angle = real(6.283185307179586) * p[2 * k + 1]
        q[2 * k] = radius * cos(angle) + base
        q[2 * k + 1] = radius * sin(angle) + base
    if n % 2 > 0:
        q[n - 1] = sqrt(real(-2) * log(real(1) - p[n - 1])) * scale * cos(real(6.283185307179586) * p[n]) + base
    restore(token)


@kernel("bwwwsbmu")
def dropout(x: Any, seed: int, start: int, below: int, scale: float, out: Any, mask: Any, work: Any) -> None:
    """mask = whether a word is under `below` (of 2**32), out = x * scale where it is, x * 0 elsewhere: a NaN stays."""
    n = size(x)
    p = data(x)
    q = data(out)
    m = data(mask)
    w = data(work)
    factor = real(scale)
    token = release(n)
    for part in range((n + 1023) // 1024):
        count = min(n - part * 1024, 1024)
        words(w, start + np.uint64(part * 256), seed, (count + 3) // 4)
        source = offset(p, part * 1024)
        end = offset(q, part * 1024)
        kept = offset(m, part * 1024)
        for k in range(count):
            keep = w[k] < below
            kept[k] = keep
            end[k] = source[k] * (factor if keep else real(0))
    restore(token)


@kernel("bmsb")
def dropout_backward(grad: Any, mask: Any, scale: float, out: Any) -> None:
    """out = grad * scale where the mask is set, grad * 0 elsewhere."""
    n = size(grad)
    g = data(grad)
    m = data(mask)
    q = data(out)
    factor = real(scale)
    token = release(n)
    for k in range(n):
        q[k] = g[k] * (factor if m[k] != 0 else real(0))
    restore(token)


@kernel("iwwnwu")
def integers(out: Any, seed: int, start: int, low: int, span: int, work: Any) -> None:
    """out = low + a number in [0, span): a word times span / 2**32 where span is at most 2**32, else two words modulo span (0: 2**64)."""
    n = size(out)
    q = data(out)
    w = data(work)
    half = np.uint64(32)
    narrow = np.uint64(0) < span <= np.uint64(4294967296)
    per = 1 if narrow else 2
    room = 1024 // per
    token = release(n)
    for part in range((n + room - 1) // room):
        count = min(n - part * room, room)
        words(w, start + np.uint64(part * 256), seed, (count * per + 3) // 4)
        end = offset(q, part * room)
        if narrow:
            for k in range(count):
                end[k] = low + np.int64((w[k] * span) >> half)
        else:
            for k in range(count):
                wide = (w[2 * k] << half) | w[2 * k + 1]
                if span != np.uint64(0):
                    wide = wide % span
                end[k] = low + np.int64(wide)
    restore(token)


@kernel("iwwu")
def permutation(out: Any, seed: int, start: int, work: Any) -> None:
    """A shuffle of 0 .. n - 1 by Fisher and Yates's exchanges from the end, n at most 2**32."""
    n = size(out)
    q = data(out)
    w = data(work)
    half = np.uint64(32)
    token = release(n)
    for k in range(n):
        q[k] = k
    for part in range((n + 1023) // 1024):
        count = min(n - part * 1024, 1024)
        words(w, start + np.uint64(part * 256), seed, (count + 3) // 4)
        for k in range(count):
            last = n - 1 - part * 1024 - k
            other = np.int64((w[k] * np.uint64(last + 1)) >> half)
            held = q[last]
            q[last] = q[other]
            q[other] = held
    restore(token)
