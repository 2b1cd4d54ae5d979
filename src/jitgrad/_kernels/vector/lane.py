"""`Lane`: one value of a kernel under construction, with operators that emit LLVM instructions.

A formula written with lanes is straight-line code without calls, which LLVM's loop vectoriser turns into whole vectors.
Every floating-point instruction carries an explicit ``contract`` flag (multiply-add may fuse): Numba rewrites only
instructions without flags, so a kernel compiled with ``reassoc`` cannot take the error-compensation steps apart.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from llvmlite import ir

F32, F64, I32, I64 = ir.FloatType(), ir.DoubleType(), ir.IntType(32), ir.IntType(64)
FLAGS: Final = ("contract",)
Operand = Any  # a Lane or a Python number


class Lane:
    """An LLVM value and the builder that it was made by. Numbers mixed in become constants of the lane's own type."""

    __slots__ = ("builder", "value")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder = builder
        self.value = value

    @property
    def single(self) -> bool:
        """Whether this is a float32 (or an integer as wide)."""
        return self.value.type in (F32, I32)

    @property
    def is_float(self) -> bool:
        """Whether this is a float."""
        return self.value.type in (F32, F64)

    def of(self, value: Any) -> Lane:
        """A lane of the same builder."""
        return Lane(self.builder, value)

    def const(self, number: float) -> Lane:
        """A constant of this lane's type."""
        return self.of(self.operand(number))

    def operand(self, other: Operand) -> Any:
        """The LLVM value of an operand."""
        if isinstance(other, Lane):
            return other.value
        kind = self.value.type
        if not self.is_float:
            return ir.Constant(kind, int(other))
        if math.isnan(other):
            bits = ir.Constant(I32 if self.single else I64, 0x7FC00000 if self.single else 0x7FF8000000000000)
            return bits.bitcast(kind)
        with np.errstate(over="ignore", under="ignore"):
            return ir.Constant(kind, float(np.float32(other)) if self.single else float(other))

    def _arithmetic(self, floating: str, integer: str, left: Operand, right: Operand) -> Lane:
        left, right = self.operand(left), self.operand(right)
        if self.is_float:
            return self.of(getattr(self.builder, floating)(left, right, flags=FLAGS))
        return self.of(getattr(self.builder, integer)(left, right))

    def __add__(self, other: Operand) -> Lane:
        return self._arithmetic("fadd", "add", self, other)

    __radd__ = __add__

    def __sub__(self, other: Operand) -> Lane:
        return self._arithmetic("fsub", "sub", self, other)

    def __rsub__(self, other: Operand) -> Lane:
        return self._arithmetic("fsub", "sub", other, self)

    def __mul__(self, other: Operand) -> Lane:
        return self._arithmetic("fmul", "mul", self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Operand) -> Lane:
        return self._arithmetic("fdiv", "sdiv", self, other)

    def __rtruediv__(self, other: Operand) -> Lane:
        return self._arithmetic("fdiv", "sdiv", other, self)

    def __neg__(self) -> Lane:
        return self.of(self.builder.fneg(self.value))

    def __and__(self, other: Operand) -> Lane:
        return self.of(self.builder.and_(self.value, self.operand(other)))

    def __or__(self, other: Operand) -> Lane:
        return self.of(self.builder.or_(self.value, self.operand(other)))

    def __xor__(self, other: Operand) -> Lane:
        return self.of(self.builder.xor(self.value, self.operand(other)))

    def __invert__(self) -> Lane:
        return self.of(self.builder.not_(self.value))

    def __lshift__(self, count: int) -> Lane:
        return self.of(self.builder.shl(self.value, self.operand(count)))

    def __rshift__(self, count: int) -> Lane:
        return self.of(self.builder.ashr(self.value, self.operand(count)))

    # comparisons are false when an operand is NaN, != is true
    def _compare(self, sign: str, other: Operand) -> Lane:
        if not self.is_float:
            return self.of(self.builder.icmp_signed(sign, self.value, self.operand(other)))
        compare = self.builder.fcmp_unordered if sign == "!=" else self.builder.fcmp_ordered
        return self.of(compare(sign, self.value, self.operand(other), flags=FLAGS))

    def __lt__(self, other: Operand) -> Lane:
        return self._compare("<", other)

    def __le__(self, other: Operand) -> Lane:
        return self._compare("<=", other)

    def __gt__(self, other: Operand) -> Lane:
        return self._compare(">", other)

    def __ge__(self, other: Operand) -> Lane:
        return self._compare(">=", other)

    def __eq__(self, other: Operand) -> Lane:  # type: ignore[override]
        return self._compare("==", other)

    def __ne__(self, other: Operand) -> Lane:  # type: ignore[override]
        return self._compare("!=", other)

    def is_nan(self) -> Lane:
        """Whether this is NaN."""
        return self.of(self.builder.fcmp_unordered("uno", self.value, self.value, flags=FLAGS))

    def select(self, yes: Operand, no: Operand) -> Lane:
        """`yes` where this truth value holds, else `no`; one of them must be a lane."""
        like = yes if isinstance(yes, Lane) else no
        return self.of(self.builder.select(self.value, like.operand(yes), like.operand(no)))

    def at_most(self, bound: float) -> Lane:
        """Clamped from above; NaN stays (in this operand order x86 needs one instruction)."""
        limit = self.const(bound)
        return (limit < self).select(limit, self)

    def at_least(self, bound: float) -> Lane:
        """Clamped from below; NaN stays."""
        limit = self.const(bound)
        return (limit > self).select(limit, self)

    def intrinsic(self, name: str, *others: Operand) -> Lane:
        """An LLVM intrinsic whose operands and result are all of this lane's type."""
        kind = self.value.type
        arguments = [self.value, *map(self.operand, others)]
        suffix = {F32: "f32", F64: "f64"}[kind]
        function = self._function(f"llvm.{name}.{suffix}", kind, len(arguments))
        return self.of(self.builder.call(function, arguments, fastmath=FLAGS))

    def library(self, name: str, *others: Operand) -> Lane:
        """A scalar call into the C library (`name` for float64, name + 'f' for float32); it does not vectorise."""
        arguments = [self.value, *map(self.operand, others)]
        function = self._function(name + "f" * self.single, self.value.type, len(arguments))
        return self.of(self.builder.call(function, arguments))

    def _function(self, name: str, kind: Any, count: int) -> Any:
        module = self.builder.module
        return module.globals.get(name) or ir.Function(module, ir.FunctionType(kind, [kind] * count), name)

    def fma(self, factor: Operand, addend: Operand) -> Lane:
        """The sum self * factor + addend, fused where the processor can."""
        return self.intrinsic("fmuladd", factor, addend)

    def abs(self) -> Lane:
        """Absolute value."""
        return self.intrinsic("fabs")

    def sqrt(self) -> Lane:
        """Square root."""
        return self.intrinsic("sqrt")

    def copysign(self, sign: Lane) -> Lane:
        """This magnitude with that sign."""
        return self.intrinsic("copysign", sign)

    def bits(self) -> Lane:
        """The float's bit pattern as an integer of the same width."""
        return self.of(self.builder.bitcast(self.value, I32 if self.single else I64))

    def unbits(self) -> Lane:
        """The float with this bit pattern."""
        return self.of(self.builder.bitcast(self.value, F32 if self.single else F64))

    def to_float(self) -> Lane:
        """This integer as a float of the same width."""
        return self.of(self.builder.sitofp(self.value, F32 if self.single else F64))

    def widened(self) -> Lane:
        """This float32 as a float64 (a float64 stays)."""
        return self.of(self.builder.fpext(self.value, F64)) if self.single else self

    def narrowed(self) -> Lane:
        """This float64 as a float32."""
        return self.of(self.builder.fptrunc(self.value, F32))


def horner(x: Lane, coefficients: tuple[float, ...]) -> Lane:
    """A polynomial, lowest coefficient first, with the fewest operations."""
    result = x.const(coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        result = result.fma(x, coefficient)
    return result


def estrin(x: Lane, coefficients: tuple[float, ...]) -> Lane:
    """The same polynomial as a tree: a few operations more, a quarter of the latency (long polynomials in float64)."""
    level = [x.const(coefficient) for coefficient in coefficients]
    power = x
    while len(level) > 1:
        pairs = [level[i + 1].fma(power, level[i]) for i in range(0, len(level) - 1, 2)]
        level = pairs + level[len(level) & ~1 :]
        if len(level) > 1:
            power = power * power
    return level[0]
