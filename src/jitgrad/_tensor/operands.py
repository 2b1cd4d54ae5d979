"""Operators with one operand that is not a tensor."""

from __future__ import annotations

from typing import Any, TypeAlias

from .._ops.maps import NUMBERS, Elementwise
from .base import TensorBase
from .invoke import invoke

Number: TypeAlias = int | float | bool


def scalar_operand(op: Elementwise, tensor: Any, number: Any) -> Any:
    """`tensor op number`; NotImplemented for anything else, so that Python asks the other operand."""
    if isinstance(number, NUMBERS):
        return invoke(op, (tensor, number))
    return NotImplemented


def scalar_first(op: Elementwise, number: Any, tensor: Any) -> Any:
    """`number op tensor`."""
    if isinstance(number, (TensorBase, *NUMBERS)) and isinstance(tensor, TensorBase):
        return invoke(op, (number, tensor))
    return NotImplemented
