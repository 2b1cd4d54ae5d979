"""Trigonometric functions. float32 is computed in float64, where the reduction modulo pi/2 is exact.

The reduction subtracts n pi/2 in four parts. The products with the first three are exact for n < 2**20 on every
processor, and up to about 2**45 where multiply-add is fused; `elementwise` takes the C library's functions for larger
angles.
"""

from __future__ import annotations

import math
from typing import Final

from . import coefficients as c
from .exponential import DOUBLE, INF
from .lane import Lane, estrin, horner

# pi/2 in four parts, 33 bits in each of the first three; float32 results need two and a rest
_PARTS: Final = (
    1.5707963267341256,
    6.077100506303966e-11,
    2.0222662487111665e-21,
    8.4784276603689e-32,
)
_SHORT: Final = (_PARTS[0], _PARTS[1], _PARTS[2] + _PARTS[3])


def _reduce(x: Lane, parts: tuple[float, ...]) -> tuple[Lane, Lane]:
    """Split x = n pi/2 + r in float64: the bits of a float whose lowest are those of n, and r."""
    shifted = x.fma(2.0 / math.pi, DOUBLE.magic)
    n = shifted - DOUBLE.magic
    r = x
    for part in parts:
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
    """Sine of x + quarter pi/2."""
    wide = x.widened()
    bits, r = _reduce(wide, _SHORT if x.single else _PARTS)
    bits = bits + quarter
    odd = (bits & 1) == 1
    y = odd.select(_cosine(r, x.single), _sine(r, x.single))
    y = (y.bits() ^ ((bits & 2) << 62)).unbits()
    if x.single:
        y = y.narrowed()
    return y if quarter else (x == 0.0).select(x, y)  # keeps -0


def sin(x: Lane) -> Lane:
    """Sine."""
    return _wave(x, 0)


def cos(x: Lane) -> Lane:
    """Cosine."""
    return _wave(x, 1)


def tan(x: Lane) -> Lane:
    """Tangent."""
    if not x.single:
        return x.library("tan")
    bits, r = _reduce(x.widened(), _SHORT)
    sine, cosine = _sine(r, True), _cosine(r, True)
    odd = (bits & 1) == 1
    return (odd.select(-cosine, sine) / odd.select(sine, cosine)).narrowed()


def _angle(y: Lane, x: Lane) -> Lane:
    """Angle of (x, y) in float64 to the accuracy of float32."""
    up, along = y.abs(), x.abs()
    steep = up > along
    smaller, larger = steep.select(along, up), steep.select(up, along)
    w = smaller / larger
    w = ((larger == 0.0) & (smaller == 0.0)).select(w.const(0.0), w)
    w = ((smaller == INF) & (larger == INF)).select(w.const(1.0), w)
    z = w * w
    p = w * z.fma(horner(z, c.ATAN_32), 1.0)
    p = steep.select(math.pi / 2 - p, p)
    p = (x.bits() < 0).select(math.pi - p, p)
    return p.copysign(y)


def atan(x: Lane) -> Lane:
    """Inverse tangent."""
    if not x.single:
        return x.library("atan")
    wide = x.widened()
    return _angle(wide, wide.const(1.0)).narrowed()


def atan2(y: Lane, x: Lane) -> Lane:
    """Angle of the point (x, y)."""
    if not x.single:
        return y.library("atan2", x)
    return _angle(y.widened(), x.widened()).narrowed()


def asin(x: Lane) -> Lane:
    """Inverse sine."""
    if not x.single:
        return x.library("asin")
    wide = x.widened()
    return _angle(wide, ((1.0 - wide) * (wide + 1.0)).sqrt()).narrowed()


def acos(x: Lane) -> Lane:
    """Inverse cosine."""
    if not x.single:
        return x.library("acos")
    wide = x.widened()
    return _angle(((1.0 - wide) * (wide + 1.0)).sqrt(), wide).narrowed()
