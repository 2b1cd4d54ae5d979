"""Operators with one operand that is not a tensor."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np

from .._core.errors import argument_error
from .._engine import modes
from .._ops.maps import NUMBERS, Elementwise
from .._ops.outputs import FACTORS_FIRST
from .base import TensorBase, wrap
from .convert import own_array
from .elementwise import run_plan
from .invoke import invoke

Number: TypeAlias = int | float | bool
COMMUTE: Final = ("add", "mul")
EQUALITY: Final = ("eq", "ne")


def check_operands(function: str, *operands: tuple[str, Any, int]) -> None:
    """TypeError for the first operand (name, value, position) that is no tensor."""
    for name, value, position in operands:
        if not isinstance(value, TensorBase):
            raise argument_error(function, name, position, "Tensor", value)


def factors_first(name: str, function: Callable[..., Any], args: tuple[Any, ...], **named: Any) -> Any:
    """A call by torch's old order, where numbers stand before the tensors that they multiply: `x.add_(-0.1, y)`, `addmm(2, c, 3, a, b)`.

    Warns. TypeError for what fits that order no better.
    """
    factors = FACTORS_FIRST[name.removesuffix("_")]
    tensors = [x for x in args if isinstance(x, TensorBase)]
    numbers = [x for x in args if isinstance(x, NUMBERS)]
    wanted = 2 if factors == ("alpha",) else 3
    if len(tensors) != wanted or len(tensors) + len(numbers) != len(args) or len(numbers) > len(factors) or args[-1] is not tensors[-1]:
        raise TypeError(f"{name}() takes {wanted} positional arguments but {len(args)} were given")
    given = dict(zip(factors, numbers, strict=False))
    instead = ", ".join(f"{factor}={number}" for factor, number in given.items())
    warnings.warn(f"This overload of {name} is deprecated:\n\tgive the factors by name, behind the tensors: {instead}", UserWarning, stacklevel=3)
    return function(*tensors, **given, **named)


def scalar_operand(op: Elementwise, tensor: Any, number: Any) -> Any:
    """`tensor op number`; NotImplemented for anything else, so that Python asks the other operand."""
    try:
        plan = op.plans.get((tensor.meta, op.key_of(1, number) if op.constants else type(number)))
    except TypeError:  # an ndarray can't be looked up
        return NotImplemented
    if plan is not None and not modes.SPECIAL:
        return run_plan(plan, (tensor,), (number,) if plan.numbers else ())
    if isinstance(number, NUMBERS):
        return invoke(op, (tensor, number))
    if op.operator in EQUALITY and isinstance(number, np.ndarray):  # NumPy would leave it to Python, which would compare identities
        return invoke(op, (tensor, wrap(own_array(number, None))))
    return NotImplemented


def scalar_first(op: Elementwise, number: Any, tensor: Any) -> Any:
    """`number op tensor`."""
    if not isinstance(tensor, TensorBase):
        raise TypeError(f"a reflected operator of Tensor doesn't apply to a '{type(tensor).__name__}' object")
    if op.operator in COMMUTE:  # torch's edges and saved values then are those of `tensor op number`
        return invoke(op, (tensor, number)) if isinstance(number, TensorBase) else scalar_operand(op, tensor, number)
    if isinstance(number, (TensorBase, *NUMBERS)):
        return invoke(op, (number, tensor))
    return NotImplemented
