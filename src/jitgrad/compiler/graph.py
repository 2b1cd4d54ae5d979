"""The graph of a traced run: operations in order, equal ones once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._expr import Expr, var
from .._expr.interpret import evaluate
from .._kernels.tiling import in_tiles
from .operations import Check, Draw, Gemm, Map, Operation, Reduce, Shape, Source, Value, View, contiguous_strides

# OpenBLAS multiplies small matrices by a transpose at a third of its speed (64x64 by 64x128: 28 us against 10), so that is copied first
SMALL_ROWS, SMALL_PRODUCT = 16, 1_000_000


class Graph:
    """Values and operations in the order of the trace; equal operations are one."""

    def __init__(self) -> None:
        self.values: list[Value] = []
        self.operations: list[Operation] = []
        self.sources: list[Value] = []
        self.checks: list[Check] = []
        self.draws: list[Draw] = []
        self.line = ""
        self.row_sums: dict[int, View] = {}  # of values whose rows have one element that is not zero
        self.streams: dict[int, tuple[int, int]] = {}  # where each stream of random numbers is, by identity
        self.bounded: dict[int, tuple[int, int]] = {}  # values that hold indices of a known range
        self._known: dict[Any, Any] = {}

    def value(self, shape: Shape, dtype: np.dtype[Any], name: str, **rest: Any) -> Value:
        """A new value."""
        rest.setdefault("strides", contiguous_strides(shape))
        made = Value(len(self.values), tuple(shape), np.dtype(dtype), name, **rest)
        self.values.append(made)
        if made.source is not None:
            self.sources.append(made)
        return made

    def number(self, number: float, shape: Shape, dtype: np.dtype[Any]) -> View:
        """The same number everywhere."""
        key = ("number", repr(number), np.dtype(dtype))
        if key not in self._known:
            self._known[key] = self.value((), dtype, "number", source=Source("number"), constant=number)
        return View(self._known[key], shape, (0,) * len(shape))

    def position(self, axis: int, shape: Shape) -> View:
        """The position along an axis."""
        if "position" not in self._known:
            self._known["position"] = self.value((), np.dtype(np.int64), "position", source=Source("position"))
        return View(self._known["position"], shape, tuple(int(k == axis) for k in range(len(shape))))

    def add(self, operation: Operation, key: Any = None) -> Operation:
        """Append an operation, or find the equal one that is there."""
        if key is not None:
            known = self._known.get(key)
            if known is not None:
                return known  # type: ignore[no-any-return]
            self._known[key] = operation
        operation.line = self.line
        for out in operation.outs:
            out.op = operation
        self.operations.append(operation)
        return operation

    def check(self, index: View, low: int, high: int, ignored: int | None, error: Any) -> None:
        """Let the program refuse indices outside [low, high) (`ignored` apart) before it writes anything."""
        inside = self.bounded.get(index.value.number)
        if inside is not None and low <= inside[0] and inside[1] <= high:
            return
        if not any(
            check.index == index and (check.low, check.high, check.ignored) == (low, high, ignored)
            for check in self.checks
        ):
            self.checks.append(Check(index, low, high, ignored, error))

    def within(self, index: View, low: int, high: int) -> None:
        """Note that all elements of a value lie in [low, high)."""
        self.bounded[index.value.number] = (low, high)

    def known(self, key: Any) -> Any:
        """What is remembered under a key, or None."""
        return self._known.get(key)

    def remember(self, key: Any, value: Any) -> Any:
        """Remember a value under a key."""
        self._known[key] = value
        return value

    @staticmethod
    def whole(operation: Operation) -> View:
        """The result of an operation that has one."""
        return operation.outs[0].whole()

    # ---- the operations that lowerings use
    def map(self, name: str, expr: Expr, operands: dict[str, View], shape: Shape, dtype: Any, compute: Any = None, raw: Sequence[str] = (),
            iota: dict[str, int] | None = None) -> View:  # fmt: skip
        """A new elementwise value."""
        dtype = np.dtype(dtype)
        compute = np.dtype(compute or dtype)
        operands = {key: view.broadcast(shape) for key, view in operands.items()}
        operands |= {key: self.position(axis, shape) for key, axis in (iota or {}).items()}
        if operands and all(view.constant is not None for view in operands.values()):
            return self.number(folded(expr, operands, compute), shape, dtype)
        known = ("map", expr, tuple(operands.items()), shape, dtype, compute, tuple(raw))
        found = self._known.get(known)
        if found is None:
            out = self.value(shape, dtype, name)
            found = self.add(Map([out], expr=expr, operands=operands, compute=compute, raw=frozenset(raw)), known)
        return self.whole(found)

    def reduce(
        self,
        kind: str,
        operand: View,
        axes: Sequence[int],
        keepdim: bool = False,
        divisor: float = 1.0,
        name: str = "",
        dtype: Any = None,
    ) -> View:
        """A reduction over axes; the view has them with length 1 if `keepdim`."""
        axes = tuple(sorted(axes))
        if (
            kind == "sum"
            and operand.is_whole
            and operand.value.number in self.row_sums
            and axes == (len(operand.shape) - 1,)
            and divisor == 1.0
        ):
            known_sum = self.row_sums[
                operand.value.number
            ]  # one element of each row is not zero, as the checks make sure
            shape = (*known_sum.shape, 1) if keepdim else known_sum.shape
            return View(
                known_sum.value, shape, (*known_sum.strides, 0) if keepdim else known_sum.strides, known_sum.offset
            )
        kept = tuple(1 if k in axes else n for k, n in enumerate(operand.shape) if keepdim or k not in axes)
        known = ("reduce", kind, operand, axes, keepdim, divisor, dtype)
        found = self._known.get(known)
        if found is None:
            out = self.value(kept, dtype or operand.value.dtype, name or kind)
            found = self.add(Reduce([out], kind=kind, operand=operand, axes=axes, divisor=divisor), known)
        return self.whole(found)

    def gemm(self, a: View, b: View, name: str = "mm") -> View:
        """A product; operands that BLAS can't read as they lie are copied first."""
        a, b = self.stored(a), self.stored(b)
        m, n, k = math.prod(a.shape[:-1]), b.shape[-1], a.shape[-1]
        small = m >= SMALL_ROWS and m * n * k <= SMALL_PRODUCT
        if len(b.shape) == 2 and b.strides[-1] != 1 and n > 1 and small and not in_tiles(m, n, k, a.value.dtype, True):
            b = self.copy(b, name="turned")
        known = ("gemm", a, b)
        found = self._known.get(known)
        if found is None:
            out = self.value((*a.shape[:-1], b.shape[-1]), a.value.dtype, name)
            found = self.add(Gemm([out], a=a, b=b), known)
        return self.whole(found)

    def stored(self, view: View) -> View:
        """The view itself where a row or a column of it is contiguous, else a copy."""
        rows, columns = view.shape[-2:]
        down, across = view.strides[-2:]
        plain = not view.terms and view.constant is None
        fits = (across == 1 or columns == 1) and (down >= columns or rows == 1)
        turned = (down == 1 or rows == 1) and (across >= rows or columns == 1)
        return view if plain and (fits or turned) else self.copy(view)

    def copy(self, view: View, dtype: Any = None, name: str = "copy") -> View:
        """The elements of a view in a value of their own."""
        dtype = np.dtype(dtype or view.value.dtype)
        if view.constant is None:
            return self.map(name, var("x"), {"x": view}, view.shape, dtype)
        known = ("filled", repr(view.constant), view.shape, dtype)
        if known not in self._known:
            out = self.value(view.shape, dtype, "filled", constant=view.constant)
            self.add(
                Map([out], expr=var("x"), operands={"x": self.number(view.constant, view.shape, dtype)}, compute=dtype),
                known,
            )
        return self.whole(self._known[known])

    def value_of(self, view: View) -> Value:
        """A value with exactly the view's elements in C order."""
        if view.is_whole and view.constant is None and view.strides == contiguous_strides(view.shape):
            return view.value
        return self.copy(view).value


def folded(expr: Expr, operands: dict[str, View], compute: np.dtype[Any]) -> float:
    """The value of an expression of numbers."""
    values = {
        name: np.asarray(view.constant, bool if view.value.dtype == np.bool_ else compute)
        for name, view in operands.items()
    }
    with np.errstate(all="ignore"):
        (found,) = evaluate((expr,), values, compute)
    number: float = np.asarray(found).item()
    return number
