"""Elementwise arithmetic: each op is one scalar expression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._core.dtypes import float64
from .._expr import Expr, scalar as s
from .checks import check_alpha, check_fits, is_tensor, no_bool, no_bool_message, not_implemented, subtraction
from .kinds import Tensor, composite, one_op
from .maps import Elementwise, elementwise

BOTH = ("input", "other")
OPERANDS = {"input": ("other",), "other": BOTH}  # what the gradients of a rounded quotient save in torch, though they are zero


# ---------------------------------------------------------------- sums and differences
@elementwise(operator="add", method=False, public=False, inplace=False, name="add", numbers=BOTH)
def add_op(input: Expr, other: Expr) -> Expr:
    """Sum; shapes broadcast, dtypes promote."""
    return input + other


@elementwise(operator="sub", method=False, public=False, inplace=False, name="sub", numbers=BOTH, check=subtraction)
def sub_op(input: Expr, other: Expr) -> Expr:
    """Difference; shapes broadcast, dtypes promote."""
    return input - other


@elementwise(operator="rsub", method=False, public=False, inplace=False, name="rsub", numbers=("other",), check=subtraction,
             nodes={"ts": "RsubBackward1"})  # fmt: skip
def rsub_op(input: Expr, other: Expr) -> Expr:
    """other - input; shapes broadcast, dtypes promote."""
    return other - input


@elementwise(node="AddBackward0", name="_add_scaled", numbers=BOTH)
def add_scaled(input: Expr, other: Expr, *, alpha: float = 1) -> Expr:
    return input + alpha * other


@elementwise(node="SubBackward0", name="_sub_scaled", numbers=BOTH, check=subtraction)
def sub_scaled(input: Expr, other: Expr, *, alpha: float = 1) -> Expr:
    return input - alpha * other


@elementwise(node="RsubBackward0", name="_rsub_scaled", numbers=("other",), check=subtraction, nodes={"ts": "RsubBackward1"})
def rsub_scaled(input: Expr, other: Expr, *, alpha: float = 1) -> Expr:
    return other - alpha * input


@one_op(inplace="write", augments="add")
def add(input: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """input + alpha * other; shapes broadcast, dtypes promote."""
    if type(alpha) is int and alpha == 1:
        return add_op, (input, other), ()
    return add_scaled, (input, other), (check_alpha("add", (input, other), alpha),)


@one_op(inplace="write", augments="sub", aliases=("subtract",))
def sub(input: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """input - alpha * other; shapes broadcast, dtypes promote. RuntimeError for truth values."""
    if type(alpha) is int and alpha == 1:
        return sub_op, (input, other), ()
    return sub_scaled, (input, other), (check_alpha("sub", (input, other), alpha),)


@one_op(method=False)
def rsub(input: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """other - alpha * input; shapes broadcast, dtypes promote. RuntimeError for truth values."""
    if type(alpha) is int and alpha == 1:
        return rsub_op, (input, other), ()
    return rsub_scaled, (input, other), (check_alpha("rsub", (input, other), alpha),)


# ---------------------------------------------------------------- products and quotients
@elementwise(operator="mul", aliases=("multiply",), numbers=BOTH)
def mul(input: Expr, other: Expr) -> Expr:
    """Product; shapes broadcast, dtypes promote."""
    return input * other


@elementwise(operator="truediv", method=False, public=False, inplace=False, name="div", promote="float", numbers=BOTH)
def div_op(input: Expr, other: Expr) -> Expr:
    """Quotient; shapes broadcast, integers become floats."""
    return input / other


@elementwise(name="_div_trunc", node="DivBackward2", numbers=BOTH, check=no_bool("div_trunc_cpu"), keeps=OPERANDS)
def div_trunc(input: Expr, other: Expr, *, whole: bool = False) -> Expr:
    return s.floor_divide(input - s.fmod(input, other), other) if whole else s.trunc(input / other)


@elementwise(name="_div_floor", node="DivBackward2", numbers=BOTH, check=no_bool("div_floor_cpu"), keeps=OPERANDS)
def div_floor(input: Expr, other: Expr) -> Expr:
    return s.floor_divide(input, other)


@one_op(inplace="write", augments="truediv", aliases=("divide", "true_divide"))
def div(input: Tensor, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """input / other; with `rounding_mode` "trunc" or "floor" the quotient is rounded, and integers stay integers.

    RuntimeError for another mode, or where an integer is divided by zero.
    """
    if rounding_mode is None:
        return div_op, (input, other), ()
    if rounding_mode == "floor":
        return div_floor, (input, other), ()
    if rounding_mode != "trunc":
        raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'")
    return div_trunc, (input, other), (not div_trunc.compute_dtype((input, other)).is_floating_point,)


@composite(name="__rdiv__", operator="rtruediv", public=False)
def rdiv(input: Tensor, other: Any) -> Tensor:
    """other / input, as torch computes it: by the reciprocal."""
    return input.reciprocal() * other


@elementwise(promote="float", keep_result=True)
def reciprocal(input: Expr) -> Expr:
    """1 / input; integers become floats."""
    return s.reciprocal(input)


@elementwise(name="_addcmul", check=no_bool("addcmul_cpu_out"))
def addcmul_op(input: Expr, tensor1: Expr, tensor2: Expr, *, value: float = 1) -> Expr:
    return input + value * tensor1 * tensor2


@one_op(inplace="write")
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    """input + value * tensor1 * tensor2; shapes broadcast, dtypes promote."""
    whole = all(is_tensor(x) and not x.meta.kind.is_floating_point for x in (input, tensor1, tensor2))
    return addcmul_op, (input, tensor1, tensor2), (int(value) if whole else value,)


@elementwise(name="_addcdiv", keeps={"input": ("tensor2",)})
def addcdiv_op(input: Expr, tensor1: Expr, tensor2: Expr, *, value: float = 1) -> Expr:
    return input + value * (tensor1 / tensor2)


@one_op(inplace="write")
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    """input + value * tensor1 / tensor2; shapes broadcast, dtypes promote. RuntimeError where two integers would be divided."""
    if all(is_tensor(x) and not x.meta.kind.is_floating_point for x in (tensor1, tensor2)):
        raise RuntimeError("Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a true division of "
                           "tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value * torch.trunc(tensor1 / tensor2))"
                           ".to(input.dtype) for integer inputs and as (input + value * tensor1 / tensor2) for float inputs.")  # fmt: skip
    return addcdiv_op, (input, tensor1, tensor2), (value,)


# ---------------------------------------------------------------- signs
@elementwise(operator="neg", aliases=("negative",), check=no_bool_message(
    "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the `~` or `logical_not()` "
    "operator instead."))  # fmt: skip
def neg(input: Expr) -> Expr:
    """Negative of each element. RuntimeError for truth values."""
    return -input


@composite(operator="pos")
def positive(input: Tensor) -> Tensor:
    """The tensor itself. RuntimeError for truth values."""
    if input.meta.kind.kind == "b":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


@elementwise(operator="abs", aliases=("absolute",), check=no_bool("abs_cpu"))
def abs(input: Expr) -> Expr:
    """Absolute value of each element; derivative 0 at 0."""
    return s.abs(input)


@elementwise
def sign(input: Expr) -> Expr:
    """-1, 0 or 1 by the sign of each element; 0 for NaN."""
    return s.sign(input)


@elementwise
def sgn(input: Expr) -> Expr:
    """The same as `sign` for real numbers."""
    return s.sign(input)


@elementwise(promote="float", numbers=("other",), nodes={"ts": "CopysignBackward1"})
def copysign(input: Expr, other: Expr) -> Expr:
    """Magnitude of `input` with the sign of `other`, which may be the sign of a zero."""
    return s.copysign(input, other)


# ---------------------------------------------------------------- powers
def check_pow(op: Elementwise, operands: Sequence[Any], statics: Sequence[Any]) -> None:
    """Integers are not raised to a negative number, truth values not to each other."""
    base, exponent = operands
    if not is_tensor(base) and not is_tensor(exponent):
        raise TypeError(f"pow() received an invalid combination of arguments - got ({type(base).__name__}, {type(exponent).__name__})")
    kind = op.compute_dtype(operands)
    if kind.kind == "b" and is_tensor(exponent):
        raise not_implemented("pow", kind)
    if is_tensor(base) and not is_tensor(exponent) and not kind.is_floating_point and exponent < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    check_fits(exponent, kind)


@elementwise(operator="pow", node="PowBackward1", nodes={"ts": "PowBackward0", "st": "PowBackward2"}, numbers=("input", "exponent"),
             keep_result=True, constants={"exponent": (0, 1, 2, 3, 0.5, -0.5, -1, -2)}, check=check_pow)  # fmt: skip
def pow(input: Expr, exponent: Expr) -> Expr:
    """input to the power of exponent; either may be a number. RuntimeError for integers to a negative number."""
    return input**exponent


@one_op(inplace="write")
def square(input: Tensor) -> Tensor:
    """Square of each element."""
    return pow, (input, 2), ()


@composite(inplace="write")
def float_power(input: Any, exponent: Any) -> Tensor:
    """input to the power of exponent, computed in float64."""
    return pow(*(x.to(float64) if is_tensor(x) else float(x) for x in (input, exponent)))
