"""Choices between elements: where, clamps, extrema, fills and interpolation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core.dtypes import bool_, dtype, uint8
from .._expr import Expr, scalar as s
from .checks import C_NAMES, check_fits, check_tensors, fitting, is_tensor, not_implemented
from .kinds import Dispatch, Tensor, composite, one_op
from .maps import NUMBERS, Elementwise, elementwise


# ---------------------------------------------------------------- where
@elementwise(name="_where", numbers=("input", "other"), conditions=("condition",), check=fitting)
def where_op(condition: Expr, input: Expr, other: Expr) -> Expr:
    return s.where(condition, input, other)


@composite(method=False)
def where(condition: Tensor, input: Any = None, other: Any = None) -> Any:
    """input where the condition holds, else other; shapes broadcast, dtypes promote, either may be a number.

    With the condition alone: the indices of its elements that are not zero, one tensor per axis. RuntimeError unless it is bool.
    """
    if input is None and other is None:
        return condition.nonzero(as_tuple=True)
    check_tensors("where", condition=condition)
    if input is None or other is None:
        raise TypeError("where() received an invalid combination of arguments - got (Tensor, Tensor)")
    kind = condition.meta.kind
    if kind is uint8:
        condition = condition != 0
    elif kind is not bool_:
        raise RuntimeError(f"where expected condition to be a boolean tensor, but got a tensor with dtype {kind.scalar_name}")
    return Dispatch.invoke(where_op, (condition, input, other), ())


@composite(name="where", public=False)
def where_method(input: Tensor, condition: Tensor, other: Any) -> Tensor:
    """The tensor where the condition holds, else other; shapes broadcast, dtypes promote."""
    return where(condition, input, other)


# ---------------------------------------------------------------- clamps
CLAMP = ("input", "min", "max")


@elementwise(name="_clamp", node="ClampBackward0", nodes={"tss": "ClampBackward1"}, numbers=("min", "max"), masks=True, check=fitting)
def clamp_both(input: Expr, min: Expr, max: Expr) -> Expr:
    return s.clamp(input, min, max)


def low(input: Expr, min: Expr) -> Expr:
    """input, but at least min; NaN of either stays."""
    return s.maximum(input, min)


def high(input: Expr, max: Expr) -> Expr:
    """input, but at most max; NaN of either stays."""
    return s.minimum(input, max)


ONE_BOUND: dict[str, Any] = {"masks": True, "check": fitting}
CLAMP_BOUND: dict[str, Any] = {"node": "ClampBackward0", "nodes": {"ts": "ClampBackward1"}, "edges": CLAMP, **ONE_BOUND}
clamp_low = elementwise(name="_clamp_low", numbers=("min",), **CLAMP_BOUND)(low)
clamp_high = elementwise(name="_clamp_high", numbers=("max",), **CLAMP_BOUND)(high)
clamp_min_op = elementwise(name="_clamp_min", node="ClampMinBackward1", nodes={"ts": "ClampMinBackward0"}, numbers=("min",), **ONE_BOUND)(low)
clamp_max_op = elementwise(name="_clamp_max", node="ClampMaxBackward1", nodes={"ts": "ClampMaxBackward0"}, numbers=("max",), **ONE_BOUND)(high)

for _op in (clamp_low, clamp_min_op):  # no halves at a tie, as a maximum would have
    _op.partial("input")(lambda input, min: s.where(input >= min, 1.0, 0.0))
    _op.partial("min")(lambda input, min: s.where(input < min, 1.0, 0.0))
for _op in (clamp_high, clamp_max_op):
    _op.partial("input")(lambda input, max: s.where(input <= max, 1.0, 0.0))
    _op.partial("max")(lambda input, max: s.where(input > max, 1.0, 0.0))


def check_bounds(name: str, **bounds: Any) -> None:
    """Bounds are two numbers or two tensors. TypeError for anything else."""
    given = [bound for bound in bounds.values() if bound is not None]
    tensors = [is_tensor(bound) for bound in given]
    if (any(tensors) and not all(tensors)) or not all(is_tensor(bound) or isinstance(bound, NUMBERS) for bound in given):
        words = ", ".join(f"{key}={type(bound).__name__}" for key, bound in bounds.items())
        raise TypeError(f"{name}() received an invalid combination of arguments - got (Tensor, {words})")


@one_op(inplace="write", aliases=("clip",))
def clamp(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """Each element moved into [min, max] (max wins where min > max); bounds are numbers, tensors or missing; NaN stays.

    RuntimeError without any bound, TypeError for a number and a tensor.
    """
    if type(min) is not float or type(max) is not float:
        check_bounds("clamp", min=min, max=max)
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if max is None:
        return clamp_low, (input, min), ()
    return (clamp_high, (input, max), ()) if min is None else (clamp_both, (input, min, max), ())


@one_op(inplace="write")
def clamp_min(input: Tensor, min: Any) -> Tensor:
    """Each element, but at least `min`, a number or a tensor; NaN stays."""
    return clamp_min_op, (input, min), ()


@one_op(inplace="write")
def clamp_max(input: Tensor, max: Any) -> Tensor:
    """Each element, but at most `max`, a number or a tensor; NaN stays."""
    return clamp_max_op, (input, max), ()


# ---------------------------------------------------------------- extrema
@elementwise(inplace=False, masks=True)
def maximum(input: Expr, other: Expr) -> Expr:
    """The larger one, NaN if either is; a tie shares the gradient half and half."""
    return s.maximum(input, other)


@elementwise(inplace=False, masks=True)
def minimum(input: Expr, other: Expr) -> Expr:
    """The smaller one, NaN if either is; a tie shares the gradient half and half."""
    return s.minimum(input, other)


@elementwise(inplace=False, masks=True)
def fmax(input: Expr, other: Expr) -> Expr:
    """The larger one, or the one that is not NaN; at a tie `input` has the gradient."""
    return s.where((input >= other) | s.isnan(other), input, other)


@elementwise(inplace=False, masks=True)
def fmin(input: Expr, other: Expr) -> Expr:
    """The smaller one, or the one that is not NaN; at a tie `input` has the gradient."""
    return s.where((input <= other) | s.isnan(other), input, other)


# ---------------------------------------------------------------- fills
@elementwise(name="_masked_fill", node="MaskedFillBackward1", nodes={"tts": "MaskedFillBackward0"}, numbers=("value",), conditions=("mask",),
             promote="first")  # fmt: skip
def masked_fill_op(input: Expr, mask: Expr, value: Expr) -> Expr:
    return s.where(mask, value, input)


def as_filling(name: str, value: Any, kind: dtype) -> Any:
    """What a tensor of that dtype is filled with: a number that fits, or a tensor without dimensions."""
    if not is_tensor(value):
        if isinstance(value, complex):
            raise RuntimeError(f"value cannot be converted to type {C_NAMES[kind]} without overflow")
        if not isinstance(value, NUMBERS):
            raise TypeError(f"{name}() received an invalid combination of arguments - got ({type(value).__name__})")
        check_fits(value, kind)
        return value if kind.is_floating_point else bool(value) if kind is bool_ else int(value) % 256 if kind is uint8 else int(value)
    return value


@one_op(inplace="write")
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """`value`, a number or a tensor without dimensions, where the mask holds, else the element; shapes broadcast.

    RuntimeError unless the mask is bool.
    """
    check_tensors("masked_fill", input=input, mask=mask)
    if mask.meta.kind is not bool_:
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {C_NAMES[mask.meta.kind]}")
    if is_tensor(value) and value.meta.shape:
        raise RuntimeError("masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                           f"{len(value.meta.shape)} dimension(s).")  # fmt: skip
    return masked_fill_op, (input, mask, as_filling("masked_fill", value, input.meta.kind)), ()


def constant(input: Expr, value: Expr) -> Expr:
    """The value, whatever the element was."""
    return value


fill_op = elementwise(name="_fill", node="FillBackward1", nodes={"ts": "FillBackward0"}, numbers=("value",), promote="first")(constant)
fill_inplace = elementwise(name="_fill_", node="FillBackward3", nodes={"ts": "FillBackward2"}, numbers=("value",), promote="first")(constant)


def check_filling(value: Any, name: str) -> None:
    """RuntimeError for a tensor that has dimensions."""
    if is_tensor(value) and value.meta.shape:
        raise RuntimeError(f"{name} only supports 0-dimension value tensor but got tensor with {len(value.meta.shape)} dimensions.")


@one_op(method=False)
def fill(input: Tensor, value: Any) -> Tensor:
    """A tensor of the same shape and dtype filled with `value`, a number or a tensor without dimensions."""
    check_tensors("fill", input=input)
    check_filling(value, "fill")
    return fill_op, (input, as_filling("fill", value, input.meta.kind)), ()


@one_op(name="fill", inplace="only")
def fill_twin(input: Tensor, value: Any) -> Tensor:
    """The same in place."""
    check_filling(value, "fill_")
    return fill_inplace, (input, as_filling("fill_", value, input.meta.kind)), ()


@elementwise(name="_zero")
def zero_op(input: Expr) -> Expr:
    return s.const(0)


@one_op(name="zero", inplace="only")
def zero(input: Tensor) -> Tensor:
    """Zeros, in place."""
    return zero_op, (input,), ()


@elementwise(name="_nan_to_num", masks=True)
def nan_to_num_op(input: Expr, *, nan: float, posinf: float, neginf: float) -> Expr:
    infinite = s.where(input > 0, posinf, neginf)
    return s.where(s.isnan(input), nan, s.where(s.isinf(input), infinite, input))


@composite(inplace="write")
def nan_to_num(input: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """NaN and infinities replaced: by 0 and the largest and smallest number of the dtype unless others are given."""
    if not input.meta.kind.is_floating_point:
        return input.clone()
    limits = np.finfo(input.meta.dtype)
    return nan_to_num_op(input, nan=0.0 if nan is None else nan, posinf=float(limits.max) if posinf is None else posinf,
                         neginf=float(limits.min) if neginf is None else neginf)  # fmt: skip


# ---------------------------------------------------------------- between two
def check_lerp(op: Elementwise, operands: Sequence[Any], statics: Sequence[Any]) -> None:
    """All dtypes are the same, and floating."""
    kind = operands[0].meta.kind
    for name, operand in zip(op.inputs, operands, strict=True):
        if is_tensor(operand) and operand.meta.kind is not kind:
            raise RuntimeError(f"expected dtype {C_NAMES[kind]} for `{name}` but got dtype {C_NAMES[operand.meta.kind]}")
    if not kind.is_floating_point:
        raise not_implemented("lerp_kernel_scalar", kind)


@elementwise(node="LerpBackward1", nodes={"tts": "LerpBackward0"}, numbers=("weight",), check=check_lerp, keeps={"weight": ("weight",)})
def lerp(input: Expr, end: Expr, weight: Expr) -> Expr:
    """input + weight * (end - input); the weight is a number or a tensor. RuntimeError unless all dtypes are the same."""
    way = end - input
    return s.where(s.abs(weight) < 0.5, input + weight * way, end - way * (1.0 - weight))


lerp.partial("input")(lambda weight: 1.0 - weight)
lerp.partial("end")(lambda weight: weight)
lerp.partial("weight")(lambda input, end: end - input)


@elementwise(refuses="heaviside", node="NotImplemented", name="_heaviside")
def heaviside_op(input: Expr, values: Expr) -> Expr:
    return s.where(input == 0, values, s.where(input > 0, 1, 0))


@composite(inplace="write")
def heaviside(input: Tensor, values: Tensor) -> Tensor:
    """0 where the element is negative, 1 where it is positive, and the value at 0. RuntimeError unless the dtypes are the same."""
    check_tensors("heaviside", input=input, values=values)
    if input.meta.kind is not values.meta.kind:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    return heaviside_op(input, values)
