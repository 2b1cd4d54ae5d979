"""Logarithms, what is built on them, and the power function."""

from __future__ import annotations

import math
from typing import Final

from . import coefficients as c
from .exponential import DOUBLE, INF, SINGLE, exp_below, format_of
from .lane import Lane, estrin, horner

NAN: Final = math.nan
_SQRT_HALF_BITS: Final = {SINGLE: 0x3F3504F3, DOUBLE: 0x3FE6A09E667F3BCD}
_LOG2_LOW: Final = {SINGLE: SINGLE.log2_low, DOUBLE: DOUBLE.log2_low}


def _split(x: Lane) -> tuple[Lane, Lane]:
    """Split x = 2**e (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2), for positive normal x: e as an integer, and f."""
    form = format_of(x)
    start = _SQRT_HALF_BITS[form]
    above = x.bits() - start
    mantissa = (above & ((1 << form.mantissa) - 1)) + start
    return above >> form.mantissa, mantissa.unbits() - 1.0


def _joined(f: Lane, e: Lane, extra: Lane | None = None) -> Lane:
    """The sum e log(2) + log(1 + f) + extra, the small parts summed first."""
    form = format_of(f)
    if f.single:
        z = f * f
        y = horner(f, c.LOG_32) * f * z
        y = y if extra is None else y + extra
        y = z.fma(-0.5, e.fma(form.log2_low, y))
        return e.fma(form.log2_high, f + y)
    s = f / (f + 2.0)
    z = s * s
    half = 0.5 * (f * f)
    t = e.fma(form.log2_low, s * (half + estrin(z, c.LOG_64) * z))
    t = t if extra is None else t + extra
    return e.fma(form.log2_high, f - (half - t))


def _log_normal(x: Lane, denormals: bool = True) -> Lane:
    """Logarithm of a positive finite number."""
    form = format_of(x)
    if not denormals:
        e, f = _split(x)
        return _joined(f, e.to_float())
    denormal = x < (2.0**-126 if x.single else 2.0**-1022)
    e, f = _split(denormal.select(x * 2.0**form.mantissa, x))
    return _joined(f, (denormal.select(e - form.mantissa, e)).to_float())


def _on_domain(x: Lane, y: Lane, pole: float) -> Lane:
    """The value y above the pole, -inf at it, NaN below; infinity and NaN stay."""
    y = (x < INF).select(y, x)
    return (x > pole).select(y, (x == pole).select(x.const(-INF), x.const(NAN)))


def log(x: Lane) -> Lane:
    """Natural logarithm."""
    return _on_domain(x, _log_normal(x), 0.0)


def log2(x: Lane) -> Lane:
    """Logarithm to base 2."""
    if x.single:
        return (log(x.widened()) * (1.0 / math.log(2.0))).narrowed()
    denormal = x < 2.0**-1022
    e, f = _split(denormal.select(x * 2.0**52, x))
    e = denormal.select(e - 52, e).to_float()
    return _on_domain(x, e + _joined(f, f.const(0.0)) * (1.0 / math.log(2.0)), 0.0)


def log10(x: Lane) -> Lane:
    """Logarithm to base 10."""
    if not x.single:
        return x.library("log10")  # exact at powers of ten
    return (log(x.widened()) * (1.0 / math.log(10.0))).narrowed()


def log1p(x: Lane) -> Lane:
    """Logarithm of the rounded 1 + x, plus what the rounding lost over it."""
    u = x + 1.0
    e, f = _split(u)
    y = _joined(f, e.to_float(), (x - (u - 1.0)) / u)
    y = (x == 0.0).select(x, y)
    return _on_domain(x, y, -1.0)


def log1p_unit(x: Lane) -> Lane:
    """Value of log1p for 0 <= x <= 1, where 1 / u of the correction may be rough, but right to first order at u = 1."""
    u = x + 1.0
    grown = u - 1.0
    e, f = _split(u)
    return _joined(f, e.to_float(), (x - grown) * grown.fma(grown.fma(0.5, -1.0), 1.0))


def softplus(x: Lane) -> Lane:
    """Value of log(1 + exp(x))."""
    return (x < 0.0).select(x.const(0.0), x) + log1p_unit(exp_below(-x.abs()))


def logsigmoid(x: Lane) -> Lane:
    """Value of -log(1 + exp(-x))."""
    return (x > 0.0).select(x.const(0.0), x) - log1p_unit(exp_below(-x.abs()))


def logaddexp(x: Lane, y: Lane) -> Lane:
    """Value of log(exp(x) + exp(y))."""
    larger = x.intrinsic("maximum", y)
    total = larger + log1p_unit(exp_below(-(x - y).abs()))
    return (x == y).select(x + math.log(2.0), total)  # equal infinities


def xlogy(x: Lane, y: Lane) -> Lane:
    """Product x log(y), 0 where x is 0 and y is not NaN."""
    return ((x == 0.0) & ~y.is_nan()).select(x.const(0.0), x * log(y))


def _in_double(x: Lane) -> Lane:
    return x.abs().widened()


def asinh(x: Lane) -> Lane:
    """Inverse hyperbolic sine."""
    if not x.single:
        return x.library("asinh")
    a = _in_double(x)
    square = a * a
    y = log1p(a + square / ((square + 1.0).sqrt() + 1.0))
    return (a < INF).select(y, a).narrowed().copysign(x)


def acosh(x: Lane) -> Lane:
    """Inverse hyperbolic cosine."""
    if not x.single:
        return x.library("acosh")
    t = x.widened() - 1.0
    y = log1p(t + (t * (t + 2.0)).sqrt())
    return (t < 0.0).select(y.const(NAN), y).narrowed()


def atanh(x: Lane) -> Lane:
    """Inverse hyperbolic tangent."""
    if not x.single:
        return x.library("atanh")
    a = _in_double(x)
    return (0.5 * log1p((a + a) / (1.0 - a))).narrowed().copysign(x)


def pow_(x: Lane, y: Lane) -> Lane:
    """float32: exp(y log|x|) in float64 with IEEE's table of special values; float64: the C library."""
    if not x.single:
        return x.library("pow", y)
    wide, power = x.widened(), y.widened()
    a = wide.abs()
    whole = power.intrinsic("trunc") == power
    halved = power * 0.5
    odd = whole & (halved.intrinsic("trunc") != halved)
    size = _exp(power * log(a))
    size = ((a == 1.0) & ~power.is_nan()).select(size.const(1.0), size)  # also to an infinite power
    signed = odd.select(size.copysign(wide), size)
    outside = (wide < 0.0) & (wide > -INF) & ~whole & ~power.is_nan()
    signed = outside.select(size.const(NAN), signed)
    return ((wide == 1.0) | (power == 0.0)).select(size.const(1.0), signed).narrowed()


def _exp(x: Lane) -> Lane:
    return (x <= DOUBLE.largest).select(exp_below(x), x + INF)
