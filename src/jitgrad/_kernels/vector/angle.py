"""Trigonometric functions. float32 is computed in float64, where the reduction modulo pi/2 stays exact far out.

The reduction subtracts n pi/2 in three parts; with a fused multiply-add it is accurate up to `FAR`, without one up to about
1e6 in float64. Beyond that an argument's neighbours are further apart than a period.
"""

from __future__ import annotations

import math
from typing import Final

from . import coefficients as c
from .exponential import DOUBLE, INF
from .lane import Lane, estrin, horner

FAR: Final = 2.0**30
# pi/2 in three parts, 33 bits in each of the first two
_PARTS: Final = (1.57079632673412561417, 6.07710050630396597660e-11, 2.02226624879595063154e-21)


def _reduce(x: Lane) -> tuple[Lane, Lane]:
    """x = n pi/2 + r in float64: the bits of a float whose lowest are those of n, and r."""
    shifted = x.fma(2.0 / math.pi, DOUBLE.magic)
    n = shifted - DOUBLE.magic
    r = x
    for part in _PARTS:
        r = n.fma(-part, r)
    return shifted.bits(), r


def _sine(r: Lane, short: bool) -> Lane:
    z = r * r
    if short:
        return r * z.fma(horner(z, c.SIN_32), 1.0)
    return (z * estrin(z, c.SIN_64)).fma(r, r)


def _cosine(r: Lane, short: bool) -> Lane:
    z = r * r
    q = horner(z, c.COS_32) if short else estrin(z, c.COS_64)
    return z.fma(z.fma(q, -0.5), 1.0)


def _wave(x: Lane, quarter: int) -> Lane:
    """sin(x + quarter pi/2)."""
    wide = x.widened()
    bits, r = _reduce(wide)
    bits = bits + quarter
    odd = (bits & 1) == 1
    y = odd.select(_cosine(r, x.single), _sine(r, x.single))
    y = (y.bits() ^ ((bits & 2) << 62)).unbits()
    if x.single:
        y = y.narrowed()
    return y if quarter else (x == 0.0).select(x, y)  # keeps -0


def sin(x: Lane) -> Lane:
    return _wave(x, 0)


def cos(x: Lane) -> Lane:
    return _wave(x, 1)


def tan(x: Lane) -> Lane:
    if not x.single:
        return x.library("tan")
    bits, r = _reduce(x.widened())
    sine, cosine = _sine(r, True), _cosine(r, True)
    odd = (bits & 1) == 1
    return (odd.select(-cosine, sine) / odd.select(sine, cosine)).narrowed()


def _angle(y: Lane, x: Lane) -> Lane:
    """atan2 in float64 to the accuracy of float32."""
    up, along = y.abs(), x.abs()
    steep = up > along
    smaller, larger = steep.select(along, up), steep.select(up, along)
    w = smaller / larger
    w = (larger == 0.0).select(w.const(0.0), w)
    w = ((smaller == INF) & (larger == INF)).select(w.const(1.0), w)
    z = w * w
    p = w * z.fma(horner(z, c.ATAN_32), 1.0)
    p = steep.select(math.pi / 2 - p, p)
    p = (x.bits() < 0).select(math.pi - p, p)
    return p.copysign(y)


def atan(x: Lane) -> Lane:
    if not x.single:
        return x.library("atan")
    wide = x.widened()
    return _angle(wide, wide.const(1.0)).narrowed()


def atan2(y: Lane, x: Lane) -> Lane:
    if not x.single:
        return y.library("atan2", x)
    return _angle(y.widened(), x.widened()).narrowed()


def asin(x: Lane) -> Lane:
    if not x.single:
        return x.library("asin")
    wide = x.widened()
    return _angle(wide, ((1.0 - wide) * (wide + 1.0)).sqrt()).narrowed()


def acos(x: Lane) -> Lane:
    if not x.single:
        return x.library("acos")
    wide = x.widened()
    return _angle(((1.0 - wide) * (wide + 1.0)).sqrt(), wide).narrowed()
