"""Values of special functions on float64 arrays, by series, continued fractions and asymptotic expansions; no derivatives here.

NumPy has none of them, and the standard library only `lgamma` and the error functions, one number at a time. Every loop runs over terms,
not over elements, until the last element has converged.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from .kinds import Array

TERMS: Final = 20000  # more than any argument below 1e8 needs
EPS: Final = 2.0**-53
# B(2k) / (2k): the asymptotic series of digamma; B(2k) / (2k)!: Euler and Maclaurin's of zeta
_BERNOULLI: Final = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)


def by_element(function: Callable[[float], float]) -> Callable[[Array], Array]:
    """A function of the standard library on arrays."""
    wide = np.frompyfunc(function, 1, 1)

    def call(x: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(wide(x), np.float64)

    return call


erf, erfc = by_element(math.erf), by_element(math.erfc)


# ---------------------------------------------------------------- the gamma family
def _lgamma(x: float) -> float:
    if math.isinf(x) or (x <= 0 and x == math.floor(x)):
        return math.inf
    return math.lgamma(x)


lgamma = by_element(_lgamma)


def digamma(x: Array) -> Array:
    """The logarithmic derivative of gamma: by reflection below 0, by recurrence up to 10, by its asymptotic series beyond."""
    with np.errstate(all="ignore"):
        reflected = x < 0.5
        y = np.where(reflected, 1 - x, x)
        total = np.zeros(x.shape)
        for _ in range(10):
            small = y < 10
            total = np.where(small, total - 1 / y, total)
            y = np.where(small, y + 1, y)
        inverse, power, tail = 1 / (y * y), np.ones(x.shape), np.zeros(x.shape)
        for k, number in enumerate(_BERNOULLI, 1):
            power = power * inverse
            tail = tail + number / (2 * k) * power
        total = total + np.log(y) - 0.5 / y - tail
        angle = x - np.round(x)  # exact, where pi * x would lose its fraction
        total = np.where(reflected, total - np.where(angle == 0, np.nan, math.pi / np.tan(math.pi * angle)), total)
        return np.asarray(np.where(x == 0, np.copysign(np.inf, -x), total))


def zeta(s: Array, q: Array) -> Array:
    """Hurwitz's zeta, the sum of (q + k) ** -s, by Euler and Maclaurin's formula. inf at s = 1 and for whole q <= 0, NaN for s < 1."""
    s, q = np.broadcast_arrays(s, q)
    with np.errstate(all="ignore"):
        total, a = np.zeros(s.shape), q.astype(np.float64)
        steps = 10 + max(0, int(-np.min(q[np.isfinite(q)], initial=0.0)))
        for _ in range(min(steps, TERMS)):
            near = a < 10
            total = np.where(near, total + _power(a, -s), total)
            a = np.where(near, a + 1, a)
        edge = a**-s
        total = total + edge * a / (s - 1) + 0.5 * edge
        factor = s * edge / a
        for k, number in enumerate(_BERNOULLI, 1):
            total = total + factor * number / math.factorial(2 * k)
            factor = factor * (s + 2 * k - 1) * (s + 2 * k) / (a * a)
        total = np.where(q == np.inf, 0.0, total)
        whole = (q <= 0) & (q == np.floor(q))
        total = np.where(whole, np.inf, np.where((q < 0) & (s != np.floor(s)), np.nan, total))
        return np.asarray(np.where(s == 1, np.inf, np.where(s < 1, np.nan, total)))


def _power(base: Array, exponent: Array) -> Array:
    """base ** exponent, also for negative bases and whole exponents, whose sign follows from their parity."""
    size = np.abs(base) ** exponent
    odd = np.mod(exponent, 2) == 1
    return np.where((base < 0) & odd, -size, size)


def polygamma(n: int, x: Array) -> Array:
    """The n-th derivative of digamma."""
    if n == 0:
        return digamma(x)
    return np.asarray((1.0 if n % 2 else -1.0) * math.factorial(n) * zeta(np.asarray(n + 1.0), x))


def gammainc(a: Array, x: Array, upper: bool) -> Array:
    """The regularised incomplete gamma function from 0 to x, or (`upper`) from x on."""
    a, x = (np.asarray(v, np.float64) for v in np.broadcast_arrays(a, x))
    with np.errstate(all="ignore"):
        front = np.exp(a * np.log(x) - x - lgamma(a))
        by_series = (x <= 1) | (x <= a)
        low = front * _lower_series(a, x, by_series)
        high = front * _upper_fraction(a, x, ~by_series)
        value = np.where(by_series, 1 - low if upper else low, high if upper else 1 - high)
        value = np.where((x == 0) | (a == np.inf), float(upper), value)
        value = np.where((a == 0) | (x == np.inf), float(not upper), value)
        bad = (x < 0) | (a < 0) | np.isnan(a) | np.isnan(x) | ((a == 0) & (x == 0)) | ((a == np.inf) & (x == np.inf))
        return np.asarray(np.where(bad, np.nan, value))


def _lower_series(a: Array, x: Array, wanted: Array) -> Array:
    """The sum of x**k / (a (a+1) ... (a+k))."""
    term = 1 / a
    total = term
    for k in range(1, TERMS):
        term = term * (x / (a + k))
        total = total + term
        if not np.any(wanted & (np.abs(term) > EPS * np.abs(total))):
            break
    return total


def _upper_fraction(a: Array, x: Array, wanted: Array) -> Array:
    """Legendre's continued fraction by Lentz's method."""
    tiny = 1e-300
    b = x + 1 - a
    c, d = np.full(x.shape, 1 / tiny), 1 / b
    value = d
    for k in range(1, TERMS):
        factor = -k * (k - a)
        b = b + 2
        d = factor * d + b
        d = 1 / np.where(np.abs(d) < tiny, tiny, d)
        c = b + factor / c
        c = np.where(np.abs(c) < tiny, tiny, c)
        step = c * d
        value = value * step
        if not np.any(wanted & (np.abs(step - 1) > EPS)):
            break
    return value


# ---------------------------------------------------------------- error functions
def erfcx(x: Array) -> Array:
    """exp(x * x) * erfc(x), without overflow of the one or underflow of the other."""
    with np.errstate(all="ignore"):
        z = np.abs(x)
        near = np.exp(z * z) * erfc(z)
        inverse, term, tail = 1 / (z * z), np.ones(x.shape), np.ones(x.shape)
        for k in range(1, 12):
            term = term * (-(2 * k - 1) / 2) * inverse
            tail = tail + term
        positive = np.where(z < 10, near, tail / (z * math.sqrt(math.pi)))
        return np.asarray(np.where(x < 0, 2 * np.exp(x * x) - positive, positive))


def ndtri(p: Array) -> Array:
    """The inverse of the normal distribution function: a rough start, then Newton's and Halley's steps in the tail that is nearer."""
    with np.errstate(all="ignore"):
        low = np.minimum(p, 1 - p)
        t = np.sqrt(-2 * np.log(low))
        z = t - (2.30753 + 0.27061 * t) / (1 + t * (0.99229 + t * 0.04481))  # within 0.003 for 0 < low <= 0.5
        for _ in range(4):
            tail = 0.5 * erfc(np.where(np.isfinite(z), z, 0.0) / math.sqrt(2))
            slope = np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
            step = (tail - low) / slope
            z = z + step / (1 - 0.5 * z * step)
        z = np.where(low == 0, np.inf, z)
        z = np.where(p < 0.5, -z, np.where(p == 0.5, 0.0, z))
        return np.asarray(np.where((p < 0) | (p > 1) | np.isnan(p), np.nan, z))


def erfinv(x: Array) -> Array:
    """The inverse of the error function: a series near 0, elsewhere the normal quantile, both refined by Newton's steps."""
    with np.errstate(all="ignore"):
        small = np.abs(x) < 0.5
        y = np.where(small, x * math.sqrt(math.pi) / 2 * (1 + math.pi / 12 * x * x), 0.0)
        for _ in range(4):
            y = y - (erf(y) - np.where(small, x, 0.0)) * (math.sqrt(math.pi) / 2) * np.exp(y * y)
        far = -ndtri((1 - np.abs(x)) / 2) / math.sqrt(2)
        return np.asarray(np.where(small, y, np.copysign(far, x)))


# ---------------------------------------------------------------- modified Bessel functions
def scaled_bessel(order: int, x: Array) -> Array:
    """exp(-abs(x)) * I(x) for order 0 or 1: the power series up to 20, whose terms are all positive, the asymptotic one beyond."""
    with np.errstate(all="ignore"):
        z = np.abs(x)
        near = np.minimum(z, 20.0)
        term = np.exp(-near) * (near / 2) ** order
        total = term
        for k in range(1, 80):
            term = term * (near * near / 4) / (k * (k + order))
            total = total + term
        far = np.maximum(z, 20.0)
        wave, tail = np.ones(x.shape), np.ones(x.shape)
        for k in range(1, 30):
            wave = wave * ((2 * k - 1) ** 2 - 4 * order * order) / (8 * k * far)
            tail = tail + wave
        value = np.where(z <= 20, total, tail / np.sqrt(2 * math.pi * far))
        return np.asarray(np.where(np.isnan(x), x, np.copysign(value, x) if order else value))


def bessel(order: int, x: Array) -> Array:
    """I(x) for order 0 or 1."""
    with np.errstate(all="ignore"):
        return np.asarray(scaled_bessel(order, x) * np.exp(np.abs(x)))


