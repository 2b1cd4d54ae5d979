"""What elements are made of: powers of two, neighbours, divisors; and what complex numbers would have, for real ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._core.dtypes import Category, bool_, default_dtype, float16, result_dtype
from .._core.shapes import broadcast_shapes
from .axes import HALF, SINGLE
from .checks import check_tensors
from .kinds import Array, Tensor, composite, general
from .results import FrexpResult


# ---------------------------------------------------------------- powers of two
@general(node="FrexpBackward0", saves=("exponent",), extras=("exponent",), name="_frexp")
def mantissa_op(input: Array) -> tuple[Array, Array]:
    mantissa, exponent = np.frexp(input)
    return np.asarray(mantissa), np.asarray(exponent, np.int32)


@mantissa_op.rule
def _(grad: Tensor, exponent: Tensor) -> Tensor:
    return grad / exponent.to(grad.meta.kind).exp2()


@general(name="_exponent", differentiable=())
def exponent_op(input: Array) -> Array:
    return np.asarray(np.frexp(input)[1], np.int32)


@composite
def frexp(input: Tensor) -> Any:
    """Each number as mantissa * 2 ** exponent with 0.5 <= abs(mantissa) < 1: a named tuple; exponents are int32. Floating dtypes only."""
    if not input.meta.kind.is_floating_point:
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    return FrexpResult(mantissa_op(input), exponent_op(input))


@general(node="NextafterBackward0", name="_nextafter", saves=("input", "other"))
def nextafter_op(input: Array, other: Array) -> Array:
    return np.asarray(np.nextafter(input, other))


@nextafter_op.rule
def _(grad: Tensor, input: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    return grad * (input != other), grad * 0


@composite(inplace="write")
def nextafter(input: Tensor, other: Tensor) -> Tensor:
    """The next number of the dtype after `input` towards `other`. float32 and float64 only."""
    check_tensors("nextafter", input=input, other=other)
    kind = promoted(input, other)
    if not kind.is_floating_point or kind is float16:
        raise NotImplementedError(f"\"nextafter_cpu\" not implemented for '{kind.scalar_name}'")
    broadcast_shapes(input.meta.shape, other.meta.shape)
    return nextafter_op(input.to(kind), other.to(kind))


def promoted(input: Tensor, other: Tensor) -> Any:
    """The dtype of arithmetic on two tensors."""
    return result_dtype([(x.meta.kind, Category.DIM if x.ndim else Category.ZERO_DIM) for x in (input, other)])


# ---------------------------------------------------------------- divisors
@general(name="_gcd", differentiable=())
def gcd_op(input: Array, other: Array) -> Array:
    return np.asarray(np.gcd(input, other))


@general(name="_lcm", differentiable=())
def lcm_op(input: Array, other: Array) -> Array:
    return np.asarray(np.lcm(input, other))


def whole(function: str, input: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """Both operands in the integer dtype they promote to. NotImplementedError for others."""
    check_tensors(function, input=input, other=other)
    kind = promoted(input, other)
    if kind.is_floating_point or kind is bool_:
        raise NotImplementedError(f"\"{function}_cpu\" not implemented for '{kind.scalar_name}'")
    broadcast_shapes(input.meta.shape, other.meta.shape)
    return input.to(kind), other.to(kind)


@composite(inplace="write")
def gcd(input: Tensor, other: Tensor) -> Tensor:
    """The greatest common divisor of each pair of integers."""
    return gcd_op(*whole("gcd", input, other))


@composite(inplace="write")
def lcm(input: Tensor, other: Tensor) -> Tensor:
    """The least common multiple of each pair of integers."""
    return lcm_op(*whole("lcm", input, other))


# ---------------------------------------------------------------- real numbers among complex ones
@general(node="AngleBackward0", saves=("input",), name="_angle")
def angle_op(input: Array) -> Array:
    if input.dtype == HALF:
        return np.asarray(angle_op.function(input.astype(SINGLE)), HALF)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(np.isnan(input), input, np.where(input < 0, math.pi, 0.0)), input.dtype)


@angle_op.rule
def _(grad: Tensor) -> Tensor:
    return grad * 0


@composite
def angle(input: Tensor) -> Tensor:
    """The angle in the complex plane: pi for negative numbers, 0 for others, NaN for NaN."""
    return angle_op(input if input.meta.kind.is_floating_point else input.to(default_dtype()))


@composite
def isreal(input: Tensor) -> Tensor:
    """True for each element."""
    return input.new_ones(input.meta.shape, dtype=bool_)
