"""Rounding, remainders, and the bits of integers."""

from __future__ import annotations

from typing import Any

from .._expr import Expr, scalar as s
from .checks import floating, integral, no_bool, not_implemented
from .kinds import Tensor, composite
from .maps import elementwise

BOTH = ("input", "other")


@elementwise(check=no_bool("floor_vml_cpu"))
def floor(input: Expr) -> Expr:
    """Each element rounded down; the derivative is zero."""
    return s.floor(input)


@elementwise(check=no_bool("ceil_vml_cpu"))
def ceil(input: Expr) -> Expr:
    """Each element rounded up; the derivative is zero."""
    return s.ceil(input)


@elementwise(aliases=("fix",), check=no_bool("trunc_vml_cpu"))
def trunc(input: Expr) -> Expr:
    """Each element rounded towards zero; the derivative is zero."""
    return s.trunc(input)


@elementwise(check=floating("frac_cpu"))
def frac(input: Expr) -> Expr:
    """input - trunc(input); the derivative is one."""
    return s.frac(input)


@elementwise(name="_round", check=no_bool("round_vml_cpu"))
def round_op(input: Expr) -> Expr:
    return s.round(input)


@elementwise(name="_round_decimals", node="RoundBackward1")
def round_decimals(input: Expr, *, scale: float, left: bool = False) -> Expr:
    return s.round(input / scale) * scale if left else s.round(input * scale) / scale


@composite(inplace="write")
def round(input: Tensor, *, decimals: int | None = None) -> Tensor:
    """Each element rounded to the nearest number of that many decimals, halves to even; the derivative is zero."""
    if decimals is None:
        return round_op(input)
    if not input.meta.kind.is_floating_point:
        raise not_implemented("round_cpu" if decimals else "round_vml_cpu", input.meta.kind)
    return round_decimals(input, scale=10.0 ** (decimals if decimals > 0 else -decimals), left=decimals < 0)


@elementwise(operator="floordiv", numbers=BOTH, refuses="floor_divide", node="NotImplemented", check=no_bool("div_floor_cpu"))
def floor_divide(input: Expr, other: Expr) -> Expr:
    """Quotient rounded down. RuntimeError where an integer is divided by zero."""
    return s.floor_divide(input, other)


@elementwise(operator="mod", node="RemainderBackward1", nodes={"ts": "RemainderBackward0"}, numbers=BOTH, check=no_bool("remainder_cpu"))
def remainder(input: Expr, other: Expr) -> Expr:
    """Remainder of the division that rounds down: it has the sign of `other`. RuntimeError where an integer is divided by zero."""
    return s.remainder(input, other)


@elementwise(node="FmodBackward1", nodes={"ts": "FmodBackward0"}, numbers=("other",), check=no_bool("fmod_cpu"))
def fmod(input: Expr, other: Expr) -> Expr:
    """Remainder of the division that rounds towards zero: it has the sign of `input`. RuntimeError where an integer is divided by zero."""
    return s.fmod(input, other)


# ---------------------------------------------------------------- bits
@elementwise(operator="and", numbers=BOTH, floats=False, check=integral("bitwise_and_cpu"))
def bitwise_and(input: Expr, other: Expr) -> Expr:
    """Bits that both have; of truth values, whether both hold."""
    return s.bitwise_and(input, other)


@elementwise(operator="or", numbers=BOTH, floats=False, check=integral("bitwise_or_cpu"))
def bitwise_or(input: Expr, other: Expr) -> Expr:
    """Bits that one of them has; of truth values, whether one holds."""
    return s.bitwise_or(input, other)


@elementwise(operator="xor", numbers=BOTH, floats=False, check=integral("bitwise_xor_cpu"))
def bitwise_xor(input: Expr, other: Expr) -> Expr:
    """Bits that exactly one of them has; of truth values, whether exactly one holds."""
    return s.bitwise_xor(input, other)


@elementwise(operator="lshift", numbers=BOTH, floats=False, check=integral("lshift_cpu", boolean=False))
def bitwise_left_shift(input: Expr, other: Expr) -> Expr:
    """Bits moved up by `other` places."""
    return s.bitwise_left_shift(input, other)


@elementwise(operator="rshift", numbers=BOTH, floats=False, check=integral("rshift_cpu", boolean=False))
def bitwise_right_shift(input: Expr, other: Expr) -> Expr:
    """Bits moved down by `other` places; the sign stays."""
    return s.bitwise_right_shift(input, other)


@elementwise(floats=False, check=integral("bitwise_not_cpu"))
def bitwise_not(input: Expr) -> Expr:
    """All bits flipped; of truth values, whether it does not hold."""
    return s.bitwise_not(input)


@composite(name="__invert__", public=False)
def invert(input: Any) -> Tensor:
    """Same as `bitwise_not`. TypeError for floats."""
    if input.meta.kind.is_floating_point:
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return bitwise_not(input)
