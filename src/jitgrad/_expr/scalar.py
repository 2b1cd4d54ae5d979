"""The functions an op is written in: `from jitgrad._expr import scalar as s`, then `s.tanh(x)`.

Each builds one node. Names, edge cases and derivatives are PyTorch's; the numbers live in `atoms`.
"""

from __future__ import annotations

from .node import Expr, Number, Scalar, apply, const, param, var

__all__ = [
    "Expr",
    "Number",
    "Scalar",
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "ceil",
    "clamp",
    "const",
    "copysign",
    "cos",
    "cosh",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "floor_divide",
    "fmod",
    "frac",
    "hypot",
    "isfinite",
    "isinf",
    "isnan",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logsigmoid",
    "maximum",
    "minimum",
    "param",
    "pow",
    "reciprocal",
    "relu",
    "remainder",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "softplus",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "trunc",
    "var",
    "where",
    "xlogy",
    "zmul",
]


def abs(x: Scalar) -> Expr:
    """Absolute value; derivative 0 at 0."""
    return apply("abs", x)


def sign(x: Scalar) -> Expr:
    """-1, 0 or 1; 0 for NaN as in torch; derivative declared zero."""
    return apply("sign", x)


def sqrt(x: Scalar) -> Expr:
    """Square root."""
    return apply("sqrt", x)


def rsqrt(x: Scalar) -> Expr:
    """1 / sqrt(x)."""
    return apply("rsqrt", x)


def reciprocal(x: Scalar) -> Expr:
    """1 / x."""
    return apply("reciprocal", x)


def square(x: Scalar) -> Expr:
    """The square, x * x."""
    return apply("square", x)


def exp(x: Scalar) -> Expr:
    """Exponential, e ** x."""
    return apply("exp", x)


def exp2(x: Scalar) -> Expr:
    """2 ** x."""
    return apply("exp2", x)


def expm1(x: Scalar) -> Expr:
    """exp(x) - 1, accurate near 0."""
    return apply("expm1", x)


def log(x: Scalar) -> Expr:
    """Natural logarithm."""
    return apply("log", x)


def log2(x: Scalar) -> Expr:
    """Logarithm to base 2."""
    return apply("log2", x)


def log10(x: Scalar) -> Expr:
    """Logarithm to base 10."""
    return apply("log10", x)


def log1p(x: Scalar) -> Expr:
    """log(1 + x), accurate near 0."""
    return apply("log1p", x)


def sin(x: Scalar) -> Expr:
    """Sine of an angle in radians."""
    return apply("sin", x)


def cos(x: Scalar) -> Expr:
    """Cosine of an angle in radians."""
    return apply("cos", x)


def tan(x: Scalar) -> Expr:
    """Tangent of an angle in radians."""
    return apply("tan", x)


def asin(x: Scalar) -> Expr:
    """Inverse sine."""
    return apply("asin", x)


def acos(x: Scalar) -> Expr:
    """Inverse cosine."""
    return apply("acos", x)


def atan(x: Scalar) -> Expr:
    """Inverse tangent."""
    return apply("atan", x)


def atan2(y: Scalar, x: Scalar) -> Expr:
    """Angle of the point (x, y); derivatives 0 at the origin."""
    return apply("atan2", y, x)


def sinh(x: Scalar) -> Expr:
    """Hyperbolic sine."""
    return apply("sinh", x)


def cosh(x: Scalar) -> Expr:
    """Hyperbolic cosine."""
    return apply("cosh", x)


def tanh(x: Scalar) -> Expr:
    """Hyperbolic tangent."""
    return apply("tanh", x)


def asinh(x: Scalar) -> Expr:
    """Inverse hyperbolic sine."""
    return apply("asinh", x)


def acosh(x: Scalar) -> Expr:
    """Inverse hyperbolic cosine."""
    return apply("acosh", x)


def atanh(x: Scalar) -> Expr:
    """Inverse hyperbolic tangent."""
    return apply("atanh", x)


def sigmoid(x: Scalar) -> Expr:
    """1 / (1 + exp(-x)), without overflow."""
    return apply("sigmoid", x)


def logsigmoid(x: Scalar) -> Expr:
    """log(sigmoid(x)), without overflow."""
    return apply("logsigmoid", x)


def softplus(x: Scalar) -> Expr:
    """log(1 + exp(x)), without overflow."""
    return apply("softplus", x)


def logaddexp(x: Scalar, y: Scalar) -> Expr:
    """log(exp(x) + exp(y)), without overflow."""
    return apply("logaddexp", x, y)


def erf(x: Scalar) -> Expr:
    """Error function."""
    return apply("erf", x)


def erfc(x: Scalar) -> Expr:
    """1 - erf(x), accurate in the tail."""
    return apply("erfc", x)


def xlogy(x: Scalar, y: Scalar) -> Expr:
    """The product x * log(y), and 0 where x is 0 (unless y is NaN)."""
    return apply("xlogy", x, y)


def hypot(x: Scalar, y: Scalar) -> Expr:
    """sqrt(x*x + y*y), without overflow."""
    return apply("hypot", x, y)


def pow(x: Scalar, y: Scalar) -> Expr:
    """Power x ** y; the derivative in x is 0 where y is 0, the one in y is 0 where x is 0 and y is not negative."""
    return apply("pow", x, y)


def maximum(x: Scalar, y: Scalar) -> Expr:
    """The larger one, NaN if either is; a tie shares the gradient half and half."""
    return apply("maximum", x, y)


def minimum(x: Scalar, y: Scalar) -> Expr:
    """The smaller one, NaN if either is; a tie shares the gradient half and half."""
    return apply("minimum", x, y)


def clamp(x: Scalar, lo: Scalar, hi: Scalar) -> Expr:
    """The value of x moved into [lo, hi] (hi wins where lo > hi), NaN kept; derivative 1 on the closed interval."""
    return apply("clamp", x, lo, hi)


def relu(x: Scalar) -> Expr:
    """Rectifier: x where it is positive, else 0; NaN kept; derivative 0 at 0."""
    x = x if isinstance(x, Expr) else const(x)
    return where(x <= 0, 0, x)


def fmod(x: Scalar, y: Scalar) -> Expr:
    """Remainder with the sign of x."""
    return apply("fmod", x, y)


def remainder(x: Scalar, y: Scalar) -> Expr:
    """Remainder with the sign of y."""
    return apply("remainder", x, y)


def floor_divide(x: Scalar, y: Scalar) -> Expr:
    """Quotient rounded down; derivative declared zero."""
    return apply("floor_divide", x, y)


def floor(x: Scalar) -> Expr:
    """Rounded down; derivative declared zero."""
    return apply("floor", x)


def ceil(x: Scalar) -> Expr:
    """Rounded up; derivative declared zero."""
    return apply("ceil", x)


def round(x: Scalar) -> Expr:
    """Rounded to the nearest integer, halves to even; derivative declared zero."""
    return apply("round", x)


def trunc(x: Scalar) -> Expr:
    """Rounded towards 0; derivative declared zero."""
    return apply("trunc", x)


def frac(x: Scalar) -> Expr:
    """Fraction x - trunc(x); derivative 1."""
    return apply("frac", x)


def copysign(x: Scalar, y: Scalar) -> Expr:
    """|x| with the sign of y, which may be the sign of a zero."""
    return apply("copysign", x, y)


def where(condition: Scalar, x: Scalar, y: Scalar) -> Expr:
    """Choice: x where `condition` holds, else y; the derivative chooses between the finished derivatives."""
    return apply("where", condition, x, y)


def bitwise_and(x: Scalar, y: Scalar) -> Expr:
    """Bits that both integers have."""
    return apply("bitwise_and", x, y)


def bitwise_or(x: Scalar, y: Scalar) -> Expr:
    """Bits that one of the integers has."""
    return apply("bitwise_or", x, y)


def bitwise_xor(x: Scalar, y: Scalar) -> Expr:
    """Bits that exactly one of the integers has."""
    return apply("bitwise_xor", x, y)


def bitwise_not(x: Scalar) -> Expr:
    """All bits of an integer flipped."""
    return apply("bitwise_not", x)


def bitwise_left_shift(x: Scalar, y: Scalar) -> Expr:
    """Bits of x moved up by y places."""
    return apply("bitwise_left_shift", x, y)


def bitwise_right_shift(x: Scalar, y: Scalar) -> Expr:
    """Bits of x moved down by y places; the sign stays."""
    return apply("bitwise_right_shift", x, y)


def logical_and(x: Scalar, y: Scalar) -> Expr:
    """Whether both are non-zero."""
    return apply("logical_and", x, y)


def logical_or(x: Scalar, y: Scalar) -> Expr:
    """Whether one of them is non-zero."""
    return apply("logical_or", x, y)


def logical_xor(x: Scalar, y: Scalar) -> Expr:
    """Whether exactly one of them is non-zero."""
    return apply("logical_xor", x, y)


def logical_not(x: Scalar) -> Expr:
    """Whether x is zero."""
    return apply("logical_not", x)


def isnan(x: Scalar) -> Expr:
    """Whether x is NaN."""
    return apply("isnan", x)


def isinf(x: Scalar) -> Expr:
    """Whether x is an infinity."""
    return apply("isinf", x)


def isfinite(x: Scalar) -> Expr:
    """Whether x is neither an infinity nor NaN."""
    return apply("isfinite", x)


def zmul(grad: Scalar, factor: Scalar) -> Expr:
    """The product grad * factor, but `grad` itself where it is zero: an infinite or NaN factor cannot poison it."""
    return apply("zmul", grad, factor)
