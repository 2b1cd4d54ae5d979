"""The scalar functions of the kernel language in plain Python, for `JITGRAD_JIT=0` and for stepping through a kernel.

The compiled twins of the same names are in `vector_math`. Results have the operand's type, so a float32 kernel rounds
and overflows as float32 does. IEEE's rules hold: poles give infinities, arguments outside the domain give NaN, nothing
raises.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

NAMES: Final = (
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "copysign", "cos", "cos_far", "cosh", "erf",
    "erfc", "exp", "exp2", "expm1", "floor", "floor_divide", "fma", "fmod", "hypot", "isfinite", "isinf", "isnan",
    "load", "log", "log10", "log1p", "log2", "logaddexp", "logsigmoid", "maximum", "minimum", "pow_", "remainder",
    "rint", "rsqrt", "sigmoid", "sign", "sin", "sin_far", "sinh", "softplus", "sqrt", "step", "store", "tan",
    "tan_far", "tanh", "trunc", "where", "xlogy", "zmul",
)  # fmt: skip

Number = Any  # a Python float or a NumPy scalar
_INF, _NAN = math.inf, math.nan


def _typed(function: Callable[..., float]) -> Callable[..., Number]:
    """The function on floats, its result in the type of the first argument (or of the second, if only that has one)."""

    @functools.wraps(function)
    def call(*arguments: Number) -> Number:
        result = function(*map(float, arguments))
        kinds = [type(argument) for argument in arguments if isinstance(argument, np.floating)]
        return kinds[0](result) if kinds else result

    return call


def _whole(function: Callable[[float], float]) -> Callable[..., Number]:
    """A rounding function: what has no fraction (integers, infinities, NaN, zeros) stays as it is."""

    def rounded(x: float) -> float:
        if not math.isfinite(x) or x == 0:
            return x
        return math.copysign(function(x), x)

    return _typed(functools.wraps(function)(rounded))


floor = _whole(math.floor)
ceil = _whole(math.ceil)
trunc = _whole(math.trunc)
rint = _whole(round)  # halves to even


@_typed
def exp(x: float) -> float:
    """Exponential."""
    return _or_inf(math.exp, x)


def _or_inf(function: Callable[[float], float], x: float) -> float:
    try:
        return function(x)
    except OverflowError:
        return _INF


@_typed
def exp2(x: float) -> float:
    """2 ** x."""
    return _power(2.0, x)


@_typed
def expm1(x: float) -> float:
    """Value of exp(x) - 1, accurate near 0."""
    return _or_inf(math.expm1, x)


def _logarithm(function: Callable[[float], float], pole: float) -> Callable[..., Number]:
    def call(x: float) -> float:
        if x == pole:
            return -_INF
        return function(x) if x > pole else _NAN

    return _typed(functools.wraps(function)(call))


log = _logarithm(math.log, 0.0)
log2 = _logarithm(math.log2, 0.0)
log10 = _logarithm(math.log10, 0.0)
log1p = _logarithm(math.log1p, -1.0)


def _finite_only(function: Callable[[float], float]) -> Callable[..., Number]:
    return _typed(functools.wraps(function)(lambda x: function(x) if math.isfinite(x) else _NAN))


sin = _finite_only(math.sin)
cos = _finite_only(math.cos)
tan = _finite_only(math.tan)
sin_far, cos_far, tan_far = sin, cos, tan  # for any angle: the compiled forms of the others end at `elementwise.FAR`
atan = _typed(math.atan)
atan2 = _typed(math.atan2)
asinh = _typed(math.asinh)
tanh = _typed(math.tanh)
erf = _typed(math.erf)
erfc = _typed(math.erfc)
copysign = _typed(math.copysign)
hypot = _typed(math.hypot)


@_typed
def asin(x: float) -> float:
    """Inverse sine."""
    return math.asin(x) if -1 <= x <= 1 else _NAN


@_typed
def acos(x: float) -> float:
    """Inverse cosine."""
    return math.acos(x) if -1 <= x <= 1 else _NAN


@_typed
def acosh(x: float) -> float:
    """Inverse hyperbolic cosine."""
    return math.acosh(x) if x >= 1 else _NAN


@_typed
def atanh(x: float) -> float:
    """Inverse hyperbolic tangent."""
    if abs(x) == 1:
        return math.copysign(_INF, x)
    return math.atanh(x) if -1 < x < 1 else _NAN


@_typed
def sinh(x: float) -> float:
    """Hyperbolic sine."""
    return math.copysign(_or_inf(math.sinh, abs(x)), x)


@_typed
def cosh(x: float) -> float:
    """Hyperbolic cosine."""
    return _or_inf(math.cosh, abs(x))


@_typed
def sqrt(x: float) -> float:
    """Square root."""
    return math.sqrt(x) if x >= 0 else _NAN


@_typed
def rsqrt(x: float) -> float:
    """1 / sqrt(x)."""
    if x == 0:
        return math.copysign(_INF, x)
    return 1 / math.sqrt(x) if x > 0 else _NAN


@_typed
def sigmoid(x: float) -> float:
    """1 / (1 + exp(-x))."""
    e = math.exp(-abs(x))
    return (e if x < 0 else 1.0) / (1.0 + e)


@_typed
def softplus(x: float) -> float:
    """log(1 + exp(x))."""
    return _or_nan(x) or max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def _or_nan(x: float) -> float:
    return x if math.isnan(x) else 0.0


@_typed
def logsigmoid(x: float) -> float:
    """log(sigmoid(x))."""
    return _or_nan(x) or min(x, 0.0) - math.log1p(math.exp(-abs(x)))


@_typed
def logaddexp(x: float, y: float) -> float:
    """log(exp(x) + exp(y))."""
    if x == y:  # equal infinities too
        return x + math.log(2.0)
    return max(x, y) + math.log1p(math.exp(-abs(x - y))) if not math.isnan(x - y) else _NAN


@_typed
def xlogy(x: float, y: float) -> float:
    """Product x * log(y); 0 where x is 0 and y is not NaN."""
    return 0.0 if x == 0 and not math.isnan(y) else x * float(log(y))


def _power(x: float, y: float) -> float:
    odd = y % 2 == 1 if math.isfinite(y) else False
    try:
        return math.pow(x, y)
    except OverflowError:
        return -_INF if x < 0 and odd else _INF
    except ValueError:  # a pole at zero, or a negative base with a fractional exponent
        return _NAN if x != 0 else math.copysign(_INF, x) if odd else _INF


pow_ = _typed(_power)


@_typed
def maximum(x: float, y: float) -> float:
    """The larger one; NaN if either is NaN."""
    return x + y if math.isnan(x) or math.isnan(y) else max(x, y)


@_typed
def minimum(x: float, y: float) -> float:
    """The smaller one; NaN if either is NaN."""
    return x + y if math.isnan(x) or math.isnan(y) else min(x, y)


@_typed
def sign(x: float) -> float:
    """-1, 0 or 1; 0 for NaN."""
    return float((x > 0) - (x < 0))


def _fmod(x: float, y: float) -> float:
    if math.isnan(x) or math.isnan(y) or math.isinf(x) or y == 0:
        return _NAN
    return math.fmod(x, y)


fmod = _typed(_fmod)


@_typed
def remainder(x: float, y: float) -> float:
    """Remainder with the sign of the divisor (a zero keeps the dividend's)."""
    left = _fmod(x, y)
    return left + y if left != 0 and (y < 0) != (left < 0) else left


@_typed
def floor_divide(x: float, y: float) -> float:
    """floor(x / y) without the error that rounding the quotient would make."""
    if y == 0:
        return math.copysign(_INF, x) * math.copysign(1.0, y) if x != 0 and not math.isnan(x) else _NAN
    left = _fmod(x, y)
    quotient = (x - left) / y
    if left != 0 and (y < 0) != (left < 0):
        quotient -= 1.0
    if quotient == 0 or not math.isfinite(quotient):
        return math.copysign(0.0, x / y) if quotient == 0 else quotient
    down = float(math.floor(quotient))
    return down + 1.0 if quotient - down > 0.5 else down


def fma(x: Number, y: Number, z: Number) -> Number:
    """Sum x * y + z, rounded once or twice."""
    return x * y + z


def where(condition: bool, x: Number, y: Number) -> Number:
    """Choice: x if the condition holds, else y; both have been computed."""
    return x if condition else y


def zmul(grad: Number, factor: Number) -> Number:
    """Product grad * factor, and `grad` itself where it is zero."""
    return grad if grad == 0 else grad * factor


def isnan(x: Number) -> bool:
    """Whether x is NaN."""
    return bool(np.isnan(x))


def isinf(x: Number) -> bool:
    """Whether x is an infinity."""
    return bool(abs(x) == _INF)


def isfinite(x: Number) -> bool:
    """Whether x is neither an infinity nor NaN."""
    return bool(abs(x) < _INF)


def load(flat: Any, index: int) -> Number:
    """The element of a flat array that `store` changes at most at the same index."""
    return flat[index]


def store(flat: Any, index: int, value: Number) -> None:
    """Write the element, once."""
    flat[index] = value


def step(x: Any, axis: int, rank: int) -> int:
    """Stride in elements along an axis of a broadcast shape of rank `rank`; 0 where the array is repeated."""
    own = axis - (rank - x.ndim)
    return 0 if own < 0 or x.shape[own] == 1 else int(x.strides[own]) // int(x.itemsize)
