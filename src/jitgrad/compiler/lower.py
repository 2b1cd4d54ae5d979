"""What each op becomes in the graph. `LOWERINGS` has a function per op name: (graph, views of the inputs, statics by name, call) -> view(s).

Elementwise ops and Maps need no entry: their expression is their lowering. Views need none either: the geometry of a traced view is read off the
traced arrays (`trace.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from .._expr import Expr, apply, const, param, scalar as s, substitute, topological, var
from .._ops.derived import Map as MapOp
from .graph import Graph
from .operations import Shape, Unsupported, View, contiguous_strides

Lowering = Callable[..., Any]
LOWERINGS: Final[dict[str, Lowering]] = {}
FLOATS: Final = "fd"
_LOGIC: Final = {f"bitwise_{word}": f"logical_{word}" for word in ("and", "or", "xor", "not")}
_INTEGER_ATOMS: Final = frozenset({"add", "sub", "mul", "neg", "abs", "sign", "square", "maximum", "minimum", "where", "clamp", "lt", "le", "gt",
                                   "ge", "eq", "ne", "logical_and", "logical_or", "logical_xor", "logical_not"})  # fmt: skip


def lowering(*names: str) -> Callable[[Lowering], Lowering]:
    """Declare the lowering of ops by name."""

    def declare(function: Lowering) -> Lowering:
        LOWERINGS.update(dict.fromkeys(names, function))
        return function

    return declare


def binary(g: Graph, name: str, function: Callable[[Expr, Expr], Expr], x: View, y: View) -> View:
    """An expression of two views that broadcast."""
    shape = np.broadcast_shapes(x.shape, y.shape)
    return g.map(name, function(var("x"), var("y")), {"x": x, "y": y}, shape, x.value.dtype)


def unary(g: Graph, name: str, function: Callable[[Expr], Expr], x: View) -> View:
    """An expression of one view."""
    return g.map(name, function(var("x")), {"x": x}, x.shape, x.value.dtype)


# ---------------------------------------------------------------- elementwise
def lower_map(
    g: Graph, op: MapOp, views: Sequence[View], params: Sequence[Any], shape: Shape, compute: Any, out: Any
) -> View:
    """An elementwise op: its expression, the numbers put in."""
    compute = np.dtype(compute)
    if compute.char not in FLOATS and not (compute.kind in "ib" and compute in (np.int64, np.bool_)):
        raise Unsupported(f"{op.name} in {compute}")
    expr = substitute(
        op.output, {param(name): const(number_of(value)) for name, value in zip(op.params, params, strict=True)}
    )
    if compute == np.bool_ == np.dtype(out):
        expr = in_logic(expr)
    if compute.char not in FLOATS:
        strange = {node.op for node in topological(expr) if node.args} - _INTEGER_ATOMS
        if strange or (compute == np.bool_ and np.dtype(out) != np.bool_):
            raise Unsupported(f"{op.name} in {compute}")
    if expr.op == "const":
        return g.number(float(expr.value), shape, np.dtype(out))
    return g.map(op.name.strip("_"), expr, dict(zip(op.inputs, views, strict=True)), shape, out, compute)


def in_logic(expr: Expr) -> Expr:
    """An expression of truth values, operations on bits replaced by those of logic."""
    return apply(_LOGIC.get(expr.op, expr.op), *map(in_logic, expr.args)) if expr.args else expr


def number_of(value: Any) -> Any:
    """A Python number out of what was passed as one."""
    return value.item() if isinstance(value, np.generic) else value


# ---------------------------------------------------------------- sums
@lowering("_sum", "_sum_dims", "_mean", "_mean_dims")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    x = ins[0]
    kind = st.get("kind") or (x.value.dtype if x.value.dtype.kind == "f" else np.dtype(np.int64))
    if x.value.dtype != kind:
        x = g.copy(x, kind)
    axes = tuple(st["dims"]) if "dims" in st else tuple(range(len(x.shape)))
    count = math.prod(x.shape[k] for k in axes)
    return g.reduce(
        "sum",
        x,
        axes,
        bool(st.get("keepdim", False)),
        float(count) if "mean" in op.name else 1.0,
        op.name.strip("_").removesuffix("_dims"),
    )


def spread(g: Graph, grad: View, shape: Shape, dims: Sequence[int]) -> View:
    """A reduced gradient repeated along the axes that are gone (or have length 1)."""
    kept = tuple(1 if k in dims else n for k, n in enumerate(shape))
    return reshape(g, grad, kept).broadcast(shape)


def reshape(g: Graph, view: View, shape: Shape) -> View:
    """The same elements in another shape; only axes of length 1 may come and go without a copy."""
    if [n for n in view.shape if n != 1] == [n for n in shape if n != 1] and not view.terms:
        steps = iter(step for n, step in zip(view.shape, view.strides, strict=True) if n != 1)
        return View(view.value, shape, tuple(0 if n == 1 else next(steps) for n in shape), view.offset)
    value = g.value_of(view)
    return View(value, shape, contiguous_strides(shape))


@lowering("_sum_adjoint", "_sum_dims_adjoint", "_mean_adjoint", "_mean_dims_adjoint")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    like = st["likes"][0]
    dims = tuple(st["dims"]) if "dims" in st else tuple(range(len(like.shape)))
    grad = ins[0]
    if "mean" in op.name:
        count = float(math.prod(like.shape[k] for k in dims))
        grad = unary(g, "mean_back", lambda x: x / count, grad)
    return spread(g, grad, like.shape, dims)


@lowering("_max_over", "_amax", "_amin", "_max", "_min")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    x = ins[0]
    if x.value.dtype.char not in FLOATS:
        raise Unsupported(f"{op.name} in {x.value.dtype}")
    axes = tuple(st["dims"]) if "dims" in st else tuple(range(len(x.shape)))
    return g.reduce(
        "max" if "max" in op.name else "min", x, axes, bool(st.get("keepdim", False)), name=op.name.strip("_")
    )


@lowering("_var_mean", "_std_mean")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> list[View]:
    x, dims = ins[0], tuple(st["dims"])
    mean = g.reduce("sum", x, dims, bool(st["keepdim"]), float(math.prod(x.shape[k] for k in dims)), "mean")
    return [spread_of(g, x, st, op.name == "_std_mean"), mean]


@lowering("_var", "_std")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    return spread_of(g, ins[0], st, op.name == "_std")


def spread_of(g: Graph, x: View, st: dict[str, Any], root: bool) -> View:
    """Variance or (`root`) standard deviation."""
    dims = tuple(st["dims"])
    count = math.prod(x.shape[k] for k in dims)
    mean = g.reduce("sum", x, dims, True, float(count), "mean")
    away = binary(g, "away", lambda a, b: s.square(a - b), x, mean)
    free = max(count - st["correction"], 0.0)
    found = g.reduce("sum", away, dims, bool(st["keepdim"]), float(free), "var")
    return unary(g, "std", s.sqrt, found) if root else found


@lowering("_logsumexp")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    x, dims, keep = ins[0], tuple(st["dims"]), bool(st["keepdim"])
    top = g.reduce("max", x, dims, True, name="top")
    safe = unary(g, "shift", lambda t: s.where(abs(t) == math.inf, 0.0, t), top)
    total = g.reduce("sum", binary(g, "exp", lambda a, b: s.exp(a - b), x, safe), dims, keep, name="total")
    return binary(g, "logsumexp", lambda a, b: s.log(a) + b, total, reshape(g, safe, total.shape))


# ---------------------------------------------------------------- softmax
def soft(g: Graph, x: View, dim: int) -> tuple[View, View, View]:
    """Maximum, and exp(x - maximum) and its sum, along an axis."""
    top = g.reduce("max", x, (dim,), True, name="top")
    raised = binary(g, "exp", lambda a, b: s.exp(a - b), x, top)
    return top, raised, g.reduce("sum", raised, (dim,), True, name="total")


@lowering("_softmax")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    _, raised, total = soft(g, ins[0], st["dim"])
    return binary(g, "softmax", lambda a, b: a * b, raised, unary(g, "scale", lambda t: 1.0 / t, total))


@lowering("_log_softmax")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    top, _, total = soft(g, ins[0], st["dim"])
    return binary(
        g,
        "log_softmax",
        lambda a, b: a - b,
        binary(g, "away", lambda a, b: a - b, ins[0], top),
        unary(g, "shift", s.log, total),
    )


# ---------------------------------------------------------------- products
@lowering("_mm", "_bmm")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    return product(g, ins[0], ins[1], op.name.strip("_"))


def product(g: Graph, a: View, b: View, name: str) -> View:
    """A product of matrices; a single row, column or inner element needs no BLAS and fuses with what is around it."""
    if a.value.dtype.char not in FLOATS:
        raise Unsupported(f"{name} in {a.value.dtype}")
    if len(a.shape) == 2 and a.shape[1] == 1:
        return binary(g, name, lambda x, y: x * y, a, b)
    if len(a.shape) == 2 and b.shape[1] == 1 and a.strides[1] == 1:  # rows times a vector
        vector = View(b.value, (1, b.shape[0]), (0, b.strides[0]), b.offset, b.terms)
        if not b.terms:
            return g.reduce("sum", binary(g, "product", lambda x, y: x * y, a, vector), (1,), True, name=name)
    if len(a.shape) == 2 and a.shape[0] == 1 and not a.terms and b.strides[1] == 1:  # a vector times columns
        column = View(a.value, (a.shape[1], 1), (a.strides[1], 0), a.offset)
        return g.reduce("sum", binary(g, "product", lambda x, y: x * y, column, b), (0,), True, name=name)
    return g.gemm(a, b, name)


@lowering("_linear")
def _(g: Graph, ins: list[Any], st: dict[str, Any], op: Any) -> View:
    bias, x, weight = ins
    rows = math.prod(x.shape[:-1])
    flat = x if len(x.shape) == 2 else reshape(g, x, (rows, x.shape[-1]))
    turned = View(weight.value, weight.shape[::-1], weight.strides[::-1], weight.offset, weight.terms)
    out = product(g, flat, turned, "linear")
    if bias is not None:
        out = binary(g, "linear", lambda a, b: a + b, out, bias)
    return out if len(x.shape) == 2 else reshape(g, out, (*x.shape[:-1], weight.shape[0]))


@lowering("_addmm")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    result = product(g, ins[1], ins[2], "addmm")
    alpha, beta = float(st["alpha"]), float(st["beta"])
    if alpha != 1:
        result = unary(g, "scaled", lambda x: x * alpha, result)
    if beta == 0:
        return result
    return binary(g, "addmm", lambda x, y: x + (y if beta == 1 else y * beta), result, ins[0])


@lowering("_mv")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    return g.reduce("sum", binary(g, "product", lambda a, b: a * b, ins[0], ins[1]), (1,), name="mv")


@lowering("_dot")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    return g.reduce("sum", binary(g, "product", lambda a, b: a * b, ins[0], ins[1]), (0,), name="dot")
