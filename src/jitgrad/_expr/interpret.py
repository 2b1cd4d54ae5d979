"""The interpreter: scalar expressions evaluated with NumPy, for every dtype, without any compilation.

It serves integer and bool tensors, `JITGRAD_JIT=0`, and as the oracle of emitted kernels. It is the one module of this
package that imports NumPy: its values are arrays, and the rest of the package stays importable without it.

Results keep the compute dtype (constants and params are converted to it, so nothing turns into float64). Floating-point
warnings are silenced, as torch has none. Integers follow torch: they wrap, and a zero divisor raises RuntimeError.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from .atoms import ATOMS, CONDITION, lower_powers
from .node import Expr, Number, topological

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
Value: TypeAlias = Any  # an array or a NumPy scalar, which ufuncs make of 0-d arrays


def evaluate(
    outputs: Sequence[Expr], env: Mapping[str, Array | Number], dtype: np.dtype[Any] | type | str = "float32"
) -> tuple[Array, ...]:
    """The arrays that `outputs` stand for.

    env: name -> array (var) or number (param); arrays broadcast. dtype: what numbers are computed in; bool arrays
    stay conditions. Returns one array per output: bool for a condition, else of `dtype`, in the broadcast shape of the
    inputs it uses. KeyError for a name that is missing, RuntimeError "ZeroDivisionError" as torch for integers.
    """
    compute = np.dtype(dtype)
    roots = lower_powers(*outputs, integer=compute.kind in "iub")
    values: dict[Expr, Value] = {}
    with np.errstate(all="ignore"):
        for node in topological(*roots):
            values[node] = _leaf(node, env, compute) if not node.args else _apply(node, values, compute)
    return tuple(_result(values[root], compute) for root in roots)


def _leaf(node: Expr, env: Mapping[str, Array | Number], compute: np.dtype[Any]) -> Value:
    value = node.value if node.op == "const" else env[node.name]
    if isinstance(value, (np.ndarray, np.generic)) and node.op == "var":
        return value if value.dtype in (compute, np.bool_) else value.astype(compute)
    return _number(value, compute)


def _number(value: Any, compute: np.dtype[Any]) -> Value:
    """A constant in the compute dtype; one that an integer dtype cannot hold stays what it is."""
    if isinstance(value, (bool, np.bool_)):
        return np.bool_(value)
    if compute.kind in "iu":
        return np.int64(value).astype(compute) if float(value).is_integer() else np.float64(value)
    return np.asarray(value)[()] if compute.kind == "b" else compute.type(value)


def _apply(node: Expr, values: Mapping[Expr, Value], compute: np.dtype[Any]) -> Value:
    operands = []
    for arg, kind in zip(node.args, ATOMS[node.op].takes, strict=True):
        value = values[arg]
        if kind != CONDITION and value.dtype == np.bool_ and compute.kind != "b":
            value = value.astype(compute)
        elif kind == CONDITION and value.dtype != np.bool_:
            value = value != 0
        operands.append(value)
    return NUMPY[node.op](*operands)


def _result(value: Value, compute: np.dtype[Any]) -> Array:
    array = np.asarray(value)
    return array if array.dtype == np.bool_ else array.astype(compute, copy=False)


# ---- the atoms
def _integral(x: Value) -> bool:
    return bool(x.dtype.kind in "iub")


def _nonzero_divisor(divide: Callable[[Value, Value], Value]) -> Callable[[Value, Value], Value]:
    def checked(x: Value, y: Value) -> Value:
        if _integral(x) and _integral(y) and not np.all(y):
            raise RuntimeError("ZeroDivisionError")
        return divide(x, y)

    return checked


def _power(x: Value, y: Value) -> Value:
    if not (_integral(x) and _integral(y)):
        return np.power(x, y)
    # torch: an integer to a negative power is 1 / x ** -y rounded towards zero, 0 for a zero base
    negative = y < 0
    if not np.any(negative):
        return np.power(x, y)
    power = np.power(x, np.where(negative, -y, y))
    return np.where(negative, np.where(np.abs(x) == 1, power, x.dtype.type(0)), power)


def _sign(x: Value) -> Value:
    if x.dtype.kind == "b":
        return x
    return np.where(np.isnan(x), x.dtype.type(0), np.sign(x)) if x.dtype.kind == "f" else np.sign(x)


def _sigmoid(x: Value) -> Value:
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, x.dtype.type(1)) / (1 + e)


def _softplus(x: Value) -> Value:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _logsigmoid(x: Value) -> Value:
    return np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x)))


def _elementwise(function: Callable[[float], float]) -> Callable[[Value], Value]:
    """NumPy has no erf: the standard library's, one element at a time."""
    ufunc = np.frompyfunc(function, 1, 1)
    return lambda x: np.asarray(ufunc(x)).astype(x.dtype)


def _xlogy(x: Value, y: Value) -> Value:
    return np.where((x == 0) & ~np.isnan(y), x.dtype.type(0), x * np.log(y))


def _remainder(x: Value, y: Value) -> Value:
    # NumPy gives a zero remainder the divisor's sign, torch keeps the dividend's
    if _integral(x):
        return np.remainder(x, y)
    left = np.fmod(x, y)
    return np.where((left != 0) & ((y < 0) != (left < 0)), left + y, left)


def _zmul(g: Value, d: Value) -> Value:
    return np.where(g == 0, g, g * d)


NUMPY: dict[str, Callable[..., Value]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.true_divide, "neg": np.negative, "abs": np.abs,
    "sign": _sign, "square": lambda x: x * x, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x),
    "reciprocal": lambda x: 1 / x, "pow": _power, "zmul": _zmul,
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10,
    "log1p": np.log1p, "sigmoid": _sigmoid, "softplus": _softplus, "logsigmoid": _logsigmoid,
    "logaddexp": np.logaddexp, "xlogy": _xlogy,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "atan2": np.arctan2, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "hypot": np.hypot, "erf": _elementwise(math.erf), "erfc": _elementwise(math.erfc),
    "maximum": np.maximum, "minimum": np.minimum, "clamp": lambda x, lo, hi: np.minimum(np.maximum(x, lo), hi),
    "where": np.where, "floor": np.floor, "ceil": np.ceil, "round": np.rint, "trunc": np.trunc,
    "frac": lambda x: x - np.trunc(x), "floor_divide": _nonzero_divisor(np.floor_divide),
    "fmod": _nonzero_divisor(np.fmod), "remainder": _nonzero_divisor(_remainder), "copysign": np.copysign,
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal,
    "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor,
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor, "bitwise_not": np.invert,
    "bitwise_left_shift": np.left_shift, "bitwise_right_shift": np.right_shift,
    "logical_not": np.logical_not, "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite,
}  # fmt: skip
