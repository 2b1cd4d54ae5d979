"""Error functions, and the small functions of the kernel language that are more than one instruction."""

from __future__ import annotations

import math

from llvmlite import ir

from . import coefficients as c
from .exponential import INF, exp_below, exp_normal
from .lane import Lane, estrin, horner


def _erf_near(x: Lane) -> Lane:
    """Value of erf for |x| <= 1."""
    z = x * x
    return x.fma(horner(z, c.ERF_32) if x.single else estrin(z, c.ERF_64), x)


def _erf_ratio(z: Lane) -> Lane:
    """Ratio erf(x) / x for z = x^2 <= 1, to float32."""
    return horner(z, c.ERF_32) + 1.0


def _erfc_far(a: Lane, coefficients: c.Coefficients) -> Lane:
    """Value of erfc in float64 where the coefficients hold."""
    q = estrin((a - 4.0) / (a + 4.0), coefficients) / (a + a + 1.0)
    return exp_below(-(a * a)) * q


def erf(x: Lane) -> Lane:
    """Error function."""
    a = x.abs()
    if x.single:
        far = 1.0 - exp_normal(horner(a.at_most(4.0), c.ERF_TAIL_32))
    else:
        far = 1.0 - _erfc_far(a.at_most(6.0), c.ERF_TAIL_64)
    return (a > 1.0).select(far, _erf_near(a)).copysign(x)  # NaN takes the polynomial and stays


def erfc(x: Lane) -> Lane:
    """Complement of the error function."""
    if not x.single:
        return x.library("erfc")
    wide = x.widened()
    a = wide.abs()
    far = _erfc_far(a.at_most(11.0), c.ERFC_32)
    far = (wide < 0.0).select(2.0 - far, far)
    return (a > 0.5).select(far, 1.0 - wide * _erf_ratio(wide * wide)).narrowed()


def hypot(x: Lane, y: Lane) -> Lane:
    """Length of (x, y)."""
    if not x.single:
        return x.library("hypot", y)
    wide, high = x.widened(), y.widened()
    length = (wide * wide + high * high).sqrt().narrowed()
    return ((x.abs() == INF) | (y.abs() == INF)).select(x.const(INF), length)


def rsqrt(x: Lane) -> Lane:
    """Reciprocal of the square root."""
    return 1.0 / x.sqrt()


def sign(x: Lane) -> Lane:
    """-1, 0 or 1; 0 for NaN."""
    zero = x.const(0)
    return (x > zero).select(x.const(1), (x < zero).select(x.const(-1), zero))


def zmul(grad: Lane, factor: Lane) -> Lane:
    """Product, but `grad` itself where it is zero."""
    return (grad == 0).select(grad, grad * factor)


def maximum(x: Lane, y: Lane) -> Lane:
    """The larger one, NaN if either is."""
    return x.intrinsic("maximum", y) if x.is_float else (x > y).select(x, y)


def minimum(x: Lane, y: Lane) -> Lane:
    """The smaller one, NaN if either is."""
    return x.intrinsic("minimum", y) if x.is_float else (x < y).select(x, y)


def fmod(x: Lane, y: Lane) -> Lane:
    """Remainder with the sign of x."""
    return x.of(x.builder.frem(x.value, y.value))


def remainder(x: Lane, y: Lane) -> Lane:
    """Remainder with the sign of y."""
    left = fmod(x, y)
    return ((left != 0.0) & ((y < 0.0) ^ (left < 0.0))).select(left + y, left)


def floor_divide(x: Lane, y: Lane) -> Lane:
    """Python's algorithm: the quotient of what the remainder leaves is almost whole, so rounding it is safe."""
    left = fmod(x, y)
    quotient = (x - left) / y
    quotient = ((left != 0.0) & ((y < 0.0) ^ (left < 0.0))).select(quotient - 1.0, quotient)
    down = quotient.intrinsic("floor")
    down = (quotient - down > 0.5).select(down + 1.0, down)
    ratio = x / y
    down = (quotient == 0.0).select(x.const(0.0).copysign(ratio), down)
    return (y == 0.0).select(ratio, down)


def _constant(x: Lane, truth: bool) -> Lane:
    """The answer for integers."""
    return x.of(ir.Constant(ir.IntType(1), truth))


def isnan(x: Lane) -> Lane:
    """Whether x is NaN."""
    return x.is_nan() if x.is_float else _constant(x, False)


def isinf(x: Lane) -> Lane:
    """Whether x is an infinity."""
    return x.abs() == math.inf if x.is_float else _constant(x, False)


def isfinite(x: Lane) -> Lane:
    """Whether x is a number."""
    return x.abs() < math.inf if x.is_float else _constant(x, True)
