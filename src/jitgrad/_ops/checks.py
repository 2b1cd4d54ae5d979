"""What elementwise ops refuse, in torch's words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from .._core.dtypes import bool_, dtype, float16, float32, float64, int8, int16, int32, int64, uint8
from .maps import NUMBERS, Elementwise, fits

Check = Callable[[Elementwise, Sequence[Any], Sequence[Any]], None]

# what C++ calls the types, as some messages say
C_NAMES: Final[dict[dtype, str]] = {
    uint8: "unsigned char", int8: "signed char", int16: "short int", int32: "int", int64: "long int", float16: "c10::Half", float32: "float",
    float64: "double", bool_: "bool",
}  # fmt: skip
_OVERFLOW_NAMES: Final[dict[dtype, str]] = {uint8: "uint8_t", int8: "int8_t", int16: "int16_t", int32: "int", int64: "int64_t"}


def is_tensor(operand: Any) -> bool:
    """Whether an operand is a tensor (not a number)."""
    return hasattr(operand, "meta")


def is_bool(operand: Any) -> bool:
    """Whether an operand is a bool tensor or a Python bool."""
    return operand.meta.kind is bool_ if is_tensor(operand) else isinstance(operand, bool)


def not_implemented(kernel: str, kind: dtype) -> NotImplementedError:
    """The error for a dtype that an op is not defined for; `kernel` is torch's name of the loop."""
    return NotImplementedError(f"\"{kernel}\" not implemented for '{kind.scalar_name}'")


def floating(kernel: str) -> Check:
    """A check that the op is computed in a floating dtype."""

    def check(op: Elementwise, operands: Sequence[Any], statics: Sequence[Any]) -> None:
        kind = op.compute_dtype(operands)
        if not kind.is_floating_point:
            raise not_implemented(kernel, kind)

    return check


def integral(kernel: str, *, boolean: bool = True) -> Check:
    """A check that the op is computed on integers, or truth values."""

    def check(op: Elementwise, operands: Sequence[Any], statics: Sequence[Any]) -> None:
        one_tensor(op, operands, statics)
        kind = op.compute_dtype(operands)
        if kind.is_floating_point or (kind is bool_ and not boolean):
            raise not_implemented(kernel, kind)

    return check


def no_bool(kernel: str) -> Check:
    """A check that the op is not computed on truth values, nor on numbers alone."""

    def check(op: Elementwise, operands: Sequence[Any], statics: Sequence[Any]) -> None:
        one_tensor(op, operands, statics)
        if op.compute_dtype(operands) is bool_:
            raise not_implemented(kernel, bool_)

    return check


def no_bool_message(message: str) -> Check:
    """The same with a sentence of its own."""

    def check(op: Elementwise, operands: Sequence[Any], statics: Sequence[Any]) -> None:
        if is_bool(operands[0]):
            raise RuntimeError(message)

    return check


def subtraction(op: Elementwise, operands: Sequence[Any], statics: Sequence[Any]) -> None:
    """Truth values are not subtracted."""
    found = [is_bool(operand) for operand in operands]
    if all(found):
        raise RuntimeError("Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead.")
    if any(found):
        raise RuntimeError("Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the "
                           "`~` or `logical_not()` operator instead.")  # fmt: skip


def check_alpha(name: str, operands: Sequence[Any], alpha: Any) -> Any:
    """The factor of `add` and `sub`, which must be a number that the result's dtype can take."""
    if not isinstance(alpha, NUMBERS):
        raise TypeError(f"{name}(): argument 'alpha' must be Number, not {type(alpha).__name__}")
    if isinstance(alpha, bool) and not all(is_bool(operand) for operand in operands):
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    kinds = [operand.meta.kind.is_floating_point if is_tensor(operand) else isinstance(operand, float) for operand in operands]
    if isinstance(alpha, float) and not any(kinds):
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    return bool(alpha) if all(is_bool(operand) for operand in operands) else alpha


def check_numbers(name: str, **given: Any) -> None:
    """Arguments that must be numbers. TypeError for any other."""
    for key, value in given.items():
        if not isinstance(value, NUMBERS):
            raise TypeError(f"{name}(): argument '{key}' must be Number, not {type(value).__name__}")


def check_tensors(name: str, **given: Any) -> None:
    """Arguments that must be tensors. TypeError for any other."""
    for place, (key, value) in enumerate(given.items()):
        if not is_tensor(value):
            raise TypeError(f"{name}(): argument '{key}' (position {place + 1}) must be Tensor, not {type(value).__name__}")


def wraps(number: Any, kind: dtype) -> bool:
    """Whether a number is a negative integer that an unsigned dtype takes as one modulo its size."""
    return kind is uint8 and isinstance(number, int) and -255 <= number < 0


def check_fits(number: Any, kind: dtype) -> None:
    """A number written into an integer tensor must not overflow; in an unsigned one a negative integer wraps."""
    if not is_tensor(number) and not kind.is_floating_point and not fits(number, kind) and not wraps(number, kind):
        raise RuntimeError(f"value cannot be converted to type {_OVERFLOW_NAMES[kind]} without overflow")


def one_tensor(op: Elementwise, operands: Sequence[Any], statics: Sequence[Any]) -> None:
    """A check that not all operands are numbers."""
    if not any(is_tensor(operand) for operand in operands):
        words = ", ".join(type(operand).__name__ for operand in operands)
        raise TypeError(f"{op.name}() received an invalid combination of arguments - got ({words})")


def fitting(op: Elementwise, operands: Sequence[Any], statics: Sequence[Any]) -> None:
    """A check that no number overflows the dtype that the op is computed in."""
    kind = op.compute_dtype(operands)
    for operand in operands:
        check_fits(operand, kind)
