"""Comparisons and tests: truth values, which take no gradient."""

from __future__ import annotations

from .._core.dtypes import default_dtype
from .._expr import Expr, scalar as s
from .checks import check_tensors
from .kinds import Tensor, composite
from .maps import elementwise

OTHER = ("other",)


@elementwise(operator="eq", promote="compare", numbers=OTHER)
def eq(input: Expr, other: Expr) -> Expr:
    """Whether the elements are equal; shapes broadcast."""
    return input == other


@elementwise(operator="ne", promote="compare", numbers=OTHER, aliases=("not_equal",))
def ne(input: Expr, other: Expr) -> Expr:
    """Whether the elements differ; shapes broadcast."""
    return input != other


@elementwise(operator="lt", promote="compare", numbers=OTHER, aliases=("less",))
def lt(input: Expr, other: Expr) -> Expr:
    """Whether input < other; shapes broadcast."""
    return input < other


@elementwise(operator="le", promote="compare", numbers=OTHER, aliases=("less_equal",))
def le(input: Expr, other: Expr) -> Expr:
    """Whether input <= other; shapes broadcast."""
    return input <= other


@elementwise(operator="gt", promote="compare", numbers=OTHER, aliases=("greater",))
def gt(input: Expr, other: Expr) -> Expr:
    """Whether input > other; shapes broadcast."""
    return input > other


@elementwise(operator="ge", promote="compare", numbers=OTHER, aliases=("greater_equal",))
def ge(input: Expr, other: Expr) -> Expr:
    """Whether input >= other; shapes broadcast."""
    return input >= other


@elementwise
def logical_and(input: Expr, other: Expr) -> Expr:
    """Whether both elements are not zero."""
    return s.logical_and(input, other)


@elementwise
def logical_or(input: Expr, other: Expr) -> Expr:
    """Whether one of the elements is not zero."""
    return s.logical_or(input, other)


@elementwise
def logical_xor(input: Expr, other: Expr) -> Expr:
    """Whether exactly one of the elements is not zero."""
    return s.logical_xor(input, other)


@elementwise
def logical_not(input: Expr) -> Expr:
    """Whether the element is zero."""
    return s.logical_not(input)


@elementwise(inplace=False)
def isnan(input: Expr) -> Expr:
    """Whether the element is NaN."""
    return s.isnan(input)


@elementwise(inplace=False)
def isinf(input: Expr) -> Expr:
    """Whether the element is an infinity."""
    return s.isinf(input)


@elementwise(inplace=False)
def isfinite(input: Expr) -> Expr:
    """Whether the element is neither an infinity nor NaN."""
    return s.isfinite(input)


@elementwise(inplace=False, name="_isposinf")
def isposinf_op(input: Expr) -> Expr:
    return s.isinf(input) & (input > 0)


@elementwise(inplace=False, name="_isneginf")
def isneginf_op(input: Expr) -> Expr:
    return s.isinf(input) & (input < 0)


@composite
def isposinf(input: Tensor) -> Tensor:
    """Whether the element is plus infinity."""
    return isposinf_op(input)


@composite
def isneginf(input: Tensor) -> Tensor:
    """Whether the element is minus infinity."""
    return isneginf_op(input)


@elementwise(inplace=False)
def signbit(input: Expr) -> Expr:
    """Whether the sign is minus; true of -0.0."""
    return s.copysign(1.0, input) < 0


# ---------------------------------------------------------------- closeness
@elementwise(name="_isclose")
def isclose_op(input: Expr, other: Expr, *, rtol: float, atol: float, equal_nan: bool = False) -> Expr:
    close = input == other
    if equal_nan:
        close = close | (s.isnan(input) & s.isnan(other))
    distance = s.abs(input - other)
    return close | (s.isfinite(distance) & (distance <= atol + s.abs(rtol * other)))


@composite
def isclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Whether |input - other| <= atol + rtol * |other|, or both are equal; NaN is close to NaN with `equal_nan` only.

    RuntimeError for two dtypes, or a negative tolerance.
    """
    check_tensors("isclose", input=input, other=other)
    kind = input.meta.kind
    if kind is not other.meta.kind:
        raise RuntimeError(f"{kind.scalar_name} did not match {other.meta.kind.scalar_name}")
    for name, value in (("rtol", rtol), ("atol", atol)):
        if not value >= 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {value:g}")
    if kind.is_floating_point:
        return isclose_op(input, other, rtol=rtol, atol=atol, equal_nan=equal_nan)
    same = eq(input, other)
    if rtol == 0 and atol == 0:
        return same
    wide = default_dtype()
    return logical_or(same, isclose_op(input.to(wide), other.to(wide), rtol=rtol, atol=atol, equal_nan=False))


@composite
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements are close; see `isclose`."""
    return bool(isclose(input, other, rtol, atol, equal_nan).all())


@composite
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether both have the same shape and the same elements; NaN equals nothing."""
    check_tensors("equal", input=input, other=other)
    return input.meta.shape == other.meta.shape and bool(eq(input, other).all())


