"""Exponentials, logarithms, trigonometric and hyperbolic functions; integers become floats."""

from __future__ import annotations

import math
from typing import Any

from .._expr import Expr, scalar as s
from .checks import floating, one_tensor
from .kinds import Tensor, composite
from .maps import elementwise

LN2 = math.log(2.0)


@elementwise(promote="float", keep_result=True)
def exp(input: Expr) -> Expr:
    """e to the power of each element."""
    return s.exp(input)


@elementwise(promote="float", keep_result=True)
def exp2(input: Expr) -> Expr:
    """2 to the power of each element."""
    return s.exp2(input)


@elementwise(promote="float", keep_result=True)
def expm1(input: Expr) -> Expr:
    """exp(input) - 1, accurate near 0."""
    return s.expm1(input)


@elementwise(promote="float")
def log(input: Expr) -> Expr:
    """Natural logarithm of each element."""
    return s.log(input)


@elementwise(promote="float")
def log2(input: Expr) -> Expr:
    """Logarithm to base 2 of each element."""
    return s.log2(input)


@elementwise(promote="float")
def log10(input: Expr) -> Expr:
    """Logarithm to base 10 of each element."""
    return s.log10(input)


@elementwise(promote="float", node="Log1PBackward0")
def log1p(input: Expr) -> Expr:
    """log(1 + input), accurate near 0."""
    return s.log1p(input)


@elementwise(promote="float", keep_result=True)
def sqrt(input: Expr) -> Expr:
    """Square root of each element."""
    return s.sqrt(input)


@elementwise(promote="float", keep_result=True)
def rsqrt(input: Expr) -> Expr:
    """1 / sqrt(input)."""
    return s.rsqrt(input)


@elementwise(promote="float", keep_result=True)
def sigmoid(input: Expr) -> Expr:
    """1 / (1 + exp(-input)), without overflow."""
    return s.sigmoid(input)


@elementwise(promote="float")
def sin(input: Expr) -> Expr:
    """Sine of each element, in radians."""
    return s.sin(input)


@elementwise(promote="float")
def cos(input: Expr) -> Expr:
    """Cosine of each element, in radians."""
    return s.cos(input)


@elementwise(promote="float", keep_result=True)
def tan(input: Expr) -> Expr:
    """Tangent of each element, in radians."""
    return s.tan(input)


@elementwise(promote="float", aliases=("arcsin",))
def asin(input: Expr) -> Expr:
    """Inverse sine of each element."""
    return s.asin(input)


@elementwise(promote="float", aliases=("arccos",))
def acos(input: Expr) -> Expr:
    """Inverse cosine of each element."""
    return s.acos(input)


@elementwise(promote="float", aliases=("arctan",))
def atan(input: Expr) -> Expr:
    """Inverse tangent of each element."""
    return s.atan(input)


@elementwise(promote="float", aliases=("arctan2",))
def atan2(input: Expr, other: Expr) -> Expr:
    """Angle of the point (other, input); derivatives 0 at the origin."""
    return s.atan2(input, other)


@elementwise(promote="float")
def sinh(input: Expr) -> Expr:
    """Hyperbolic sine of each element."""
    return s.sinh(input)


@elementwise(promote="float")
def cosh(input: Expr) -> Expr:
    """Hyperbolic cosine of each element."""
    return s.cosh(input)


@elementwise(promote="float", keep_result=True)
def tanh(input: Expr) -> Expr:
    """Hyperbolic tangent of each element."""
    return s.tanh(input)


@elementwise(promote="float", aliases=("arcsinh",))
def asinh(input: Expr) -> Expr:
    """Inverse hyperbolic sine of each element."""
    return s.asinh(input)


@elementwise(promote="float", aliases=("arccosh",))
def acosh(input: Expr) -> Expr:
    """Inverse hyperbolic cosine of each element."""
    return s.acosh(input)


@elementwise(promote="float", aliases=("arctanh",))
def atanh(input: Expr) -> Expr:
    """Inverse hyperbolic tangent of each element."""
    return s.atanh(input)


@elementwise(promote="float")
def erf(input: Expr) -> Expr:
    """Error function of each element."""
    return s.erf(input)


@elementwise(promote="float")
def erfc(input: Expr) -> Expr:
    """1 - erf(input), accurate in the tail."""
    return s.erfc(input)


@elementwise(keep_result=True, check=floating("hypot_cpu"))
def hypot(input: Expr, other: Expr) -> Expr:
    """sqrt(input**2 + other**2), without overflow."""
    return s.hypot(input, other)


@elementwise(inplace=False, check=floating("logaddexp_cpu"))
def logaddexp(input: Expr, other: Expr) -> Expr:
    """log(exp(input) + exp(other)), without overflow."""
    return s.logaddexp(input, other)


@elementwise(inplace=False, check=floating("logaddexp2_cpu"))
def logaddexp2(input: Expr, other: Expr) -> Expr:
    """log2(2**input + 2**other), without overflow."""
    return s.logaddexp(input * LN2, other * LN2) / LN2


@elementwise(promote="float", numbers=("input", "other"), nodes={"ts": "XlogyBackward2", "st": "XlogyBackward1"}, check=one_tensor)
def xlogy(input: Expr, other: Expr) -> Expr:
    """input * log(other), and 0 where input is 0 (unless other is NaN)."""
    return s.xlogy(input, other)


@elementwise(promote="float", numbers=("input", "other"), check=one_tensor, method=False, inplace=False,
             nodes={"tt": "SpecialXlog1PyBackward0", "st": "SpecialXlog1PyBackward1", "ts": "SpecialXlog1PyBackward2"})  # fmt: skip
def special_xlog1py(input: Expr, other: Expr) -> Expr:
    """input * log1p(other), and 0 where input is 0 (unless other is NaN)."""
    return s.where(s.isnan(other), other, s.where(input == 0, 0.0, input * s.log1p(other)))


@special_xlog1py.partial("input")
def _(input: Expr, other: Expr) -> Expr:
    return s.where((input == 0) & (other <= -1), 0.0, s.log1p(other))


@special_xlog1py.partial("other")
def _(input: Expr, other: Expr) -> Expr:
    return input / (other + 1.0)


@elementwise(node="SpecialEntrBackward0", promote="float", method=False, inplace=False)
def special_entr(input: Expr) -> Expr:
    """-input * log(input); 0 at 0, -inf below."""
    return s.where(s.isnan(input), input, s.where(input > 0, -input * s.log(input), s.where(input == 0, 0.0, -math.inf)))


@special_entr.partial("input")
def _(input: Expr) -> Expr:
    return -(s.log(input) + 1.0)


@elementwise(promote="float", keep_result=True)
def ldexp(input: Expr, other: Expr) -> Expr:
    """input * 2 ** other."""
    return input * s.exp2(other)


@ldexp.partial("other")
def _(result: Expr) -> Expr:
    return result * LN2


@elementwise(name="_logit", promote="float")
def logit_plain(input: Expr) -> Expr:
    return s.log(input / (1.0 - input))


@logit_plain.partial("input")
def _(input: Expr) -> Expr:
    # torch: NaN outside of [0, 1], infinite at its ends
    return s.where((input < 0.0) | (input > 1.0), math.nan, 1.0 / (input * (1.0 - input)))


@elementwise(name="_logit_eps", node="LogitBackward0", promote="float")
def logit_eps(input: Expr, *, eps: float) -> Expr:
    inside = s.minimum(s.maximum(input, eps), 1.0 - eps)
    return s.log(inside / (1.0 - inside))


@logit_eps.partial("input")
def _(input: Expr, eps: Expr) -> Expr:
    return s.where((input < eps) | (input > 1.0 - eps), 0.0, 1.0 / (input * (1.0 - input)))


@composite(inplace="write")
def logit(input: Tensor, eps: Any = None) -> Tensor:
    """log(input / (1 - input)); with `eps` the input is first moved into [eps, 1 - eps]."""
    return logit_plain(input) if eps is None else logit_eps(input, eps=eps)


@elementwise(promote="float", node="Deg2RadBackward0")
def deg2rad(input: Expr) -> Expr:
    """Degrees to radians."""
    return input * (math.pi / 180.0)


@elementwise(promote="float", node="Rad2DegBackward0")
def rad2deg(input: Expr) -> Expr:
    """Radians to degrees."""
    return input * (180.0 / math.pi)


@elementwise(promote="float")
def sinc(input: Expr) -> Expr:
    """sin(pi * input) / (pi * input), and 1 at 0."""
    return s.where(input == 0.0, 1.0, s.sin(input * math.pi) / (input * math.pi))


@sinc.partial("input")
def _(input: Expr) -> Expr:
    angle = input * math.pi
    return s.where(input == 0.0, 0.0, (s.cos(angle) * angle - s.sin(angle)) / (angle * input))
