"""Exponentials. Every function takes and returns lanes; errors stay below 2 units in the last place."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from . import coefficients as c
from .lane import Lane, estrin, horner

LOG2_E: Final = 1.4426950408889634
INF: Final = math.inf


class Format(NamedTuple):
    """What the formulas must know of a float format."""

    magic: float  # 1.5 * 2**mantissa: added to a small number it leaves its nearest integer in the low bits
    mantissa: int
    log2_high: float  # log(2) in two parts; an exponent times the first is exact
    log2_low: float
    largest: float  # exp of anything larger is infinite
    tiny: float  # exp of anything smaller is computed 2**guard too large and scaled down, to reach the denormals
    zero: float  # exp of anything smaller is 0
    guard: int
    negligible: float  # x + x*x rounds to x below


SINGLE: Final = Format(12582912.0, 23, 0.693359375, -2.12194440e-4, 88.72283172607422, -86.5, -104.0, 64, 1e-8)
DOUBLE: Final = Format(
    6755399441055744.0, 52, 6.93147180369123816490e-01, 1.90821492927058770002e-10, 709.782712893384, -707.5, -746.0,
    128, 1e-17,
)  # fmt: skip


def format_of(x: Lane) -> Format:
    """The format of a lane."""
    return SINGLE if x.single else DOUBLE


def reduce(x: Lane) -> tuple[Lane, Lane]:
    """Split x = n log(2) + r: the float whose low bits hold n, and r."""
    f = format_of(x)
    shifted = x.fma(LOG2_E, f.magic)
    n = shifted - f.magic
    return shifted, n.fma(-f.log2_low, n.fma(-f.log2_high, x))


def mantissa_of_exp(r: Lane) -> Lane:
    """Value of exp(r) for |r| <= log(2)/2."""
    q = horner(r, c.EXP_32) if r.single else estrin(r, c.EXP_64)
    return r.fma(r.fma(q, 1.0), 1.0)


def scaled(p: Lane, shifted: Lane) -> Lane:
    """The number p * 2**n, n from `reduce`, where that is a normal number."""
    return (p.bits() + (shifted.bits() << format_of(p).mantissa)).unbits()


def exp_normal(x: Lane) -> Lane:
    """Exponential where it is neither denormal nor infinite; anything for NaN."""
    shifted, r = reduce(x)
    return scaled(mantissa_of_exp(r), shifted)


def exp_below(x: Lane) -> Lane:
    """Exponential for x up to the largest that has a finite one; anything for NaN."""
    shifted, r = reduce(x.at_least(format_of(x).zero))
    return _with_denormals(x, mantissa_of_exp(r), shifted, format_of(x).tiny)


def _with_denormals(x: Lane, p: Lane, shifted: Lane, tiny: float) -> Lane:
    f = format_of(x)
    small = x < tiny
    exponent = shifted.bits() << f.mantissa
    lifted = small.select(exponent + (f.guard << f.mantissa), exponent)
    y = (p.bits() + lifted).unbits()
    return small.select(y * 2.0**-f.guard, y)


def exp(x: Lane) -> Lane:
    """Exponential."""
    y = exp_below(x)
    return (x <= format_of(x).largest).select(y, x + INF)  # infinity, or NaN for NaN


def exp2(x: Lane) -> Lane:
    """Power of two."""
    f = format_of(x)
    largest = 128.0 if x.single else 1024.0
    bounded = x.at_least(f.zero * LOG2_E)
    shifted = bounded + f.magic
    r = (bounded - (shifted - f.magic)) * math.log(2.0)
    y = _with_denormals(x, mantissa_of_exp(r), shifted, f.tiny * LOG2_E)
    return (x < largest).select(y, x + INF)


def expm1(x: Lane) -> Lane:
    """Value of exp(x) - 1."""
    f = format_of(x)
    bounded = x.at_least(-18.0 if x.single else -40.0).at_most(89.0 if x.single else 709.9)
    shifted, r = reduce(bounded)
    q = horner(r, c.EXPM1_32) if x.single else estrin(r, c.EXPM1_64)
    p = (r * r).fma(q, r)
    # half of it, so that 2**n with the largest n is still a number
    half = scaled(x.const(0.5), shifted)
    y = half.fma(p, half - 0.5) * 2.0
    return (x.abs() > f.negligible).select(y, x)  # keeps -0 and NaN


def tanh(x: Lane) -> Lane:
    """An odd polynomial up to 0.6, beyond it 1 - 2 / (exp(2|x|) + 1), whose errors shrink with the fraction."""
    f = format_of(x)
    a = x.abs()
    bounded = a.at_most(9.1 if x.single else 19.1)
    doubled = bounded + bounded
    if x.single:  # one part of log(2) is enough: an error of r is weighed by the fraction
        shifted = doubled.fma(LOG2_E, f.magic)
        r = (shifted - f.magic).fma(-math.log(2.0), doubled)
    else:
        shifted, r = reduce(doubled)
    large = 1.0 - 2.0 / (scaled(mantissa_of_exp(r), shifted) + 1.0)
    z = x * x
    q = horner(z, c.TANH_32) if x.single else estrin(z, c.TANH_64)
    small = (z * q).fma(a, a)
    return (a > 0.6).select(large, small).copysign(x)  # NaN takes the polynomial and stays


def sigmoid(x: Lane) -> Lane:
    """With e = exp(-|x|) and w = e / (1 + e): e - e w on the left, 1 - w on the right; w's errors count half."""
    e = exp_below(-x.abs())
    w = e / (e + 1.0)
    y = (x < 0.0).select((-e).fma(w, e), 1.0 - w)
    return x.is_nan().select(x, y)


def sinh(x: Lane) -> Lane:
    """Hyperbolic sine."""
    if not x.single:
        return x.library("sinh")
    t = expm1(x.abs().at_most(100.0).widened())
    return (0.5 * (t + t / (t + 1.0))).narrowed().copysign(x)


def cosh(x: Lane) -> Lane:
    """Hyperbolic cosine."""
    if not x.single:
        return x.library("cosh")
    e = exp(x.abs().at_most(100.0).widened())
    return (0.5 * (e + 1.0 / e)).narrowed()
