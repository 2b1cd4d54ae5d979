"""Elementwise arithmetic: each op is one scalar expression."""

from __future__ import annotations

from typing import Any

from .._expr import Expr
from .._expr import scalar as s
from .kinds import Tensor, composite
from .maps import elementwise


@elementwise(operator="add", method=False, public=False, inplace=False, node="AddBackward0", name="add")
def add_op(input: Expr, other: Expr) -> Expr:
    """Sum; shapes broadcast, dtypes promote."""
    return input + other


@elementwise(operator="sub", method=False, public=False, inplace=False, node="SubBackward0", name="sub")
def sub_op(input: Expr, other: Expr) -> Expr:
    """Difference; shapes broadcast, dtypes promote."""
    return input - other


@elementwise(operator="mul", aliases=("multiply",))
def mul(input: Expr, other: Expr) -> Expr:
    """Product; shapes broadcast, dtypes promote."""
    return input * other


@elementwise(node="AddBackward0", name="_add_scaled")
def add_scaled(input: Expr, other: Expr, *, alpha: float = 1) -> Expr:
    return input + alpha * other


@elementwise(node="SubBackward0", name="_sub_scaled")
def sub_scaled(input: Expr, other: Expr, *, alpha: float = 1) -> Expr:
    return input - alpha * other


@composite(inplace="write")
def add(input: Tensor, other: Any, *, alpha: float = 1) -> Tensor:
    """input + alpha * other; shapes broadcast, dtypes promote."""
    return input + other if alpha == 1 else add_scaled(input, other, alpha=alpha)


@elementwise(operator="neg", aliases=("negative",))
def neg(input: Expr) -> Expr:
    """Negative of each element."""
    return -input


@elementwise(promote="float", keep_result=True)
def exp(input: Expr) -> Expr:
    """e to the power of each element."""
    return s.exp(input)


@elementwise(promote="float", keep_result=True)
def tanh(input: Expr) -> Expr:
    """Hyperbolic tangent of each element."""
    return s.tanh(input)


@elementwise(keep_result=True)
def relu(input: Expr) -> Expr:
    """max(input, 0); NaN stays NaN."""
    return s.relu(input)


@relu.partial("input")
def _(result: Expr) -> Expr:
    return s.where(result > 0, 1.0, 0.0)
