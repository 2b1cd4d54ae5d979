"""What each op becomes in the graph. `LOWERINGS` has a function per op name: (graph, views of the inputs, statics by name, call) -> view(s).

Elementwise ops and Maps need no entry: their expression is their lowering. Views need none either: the geometry of a traced view is read off the
traced arrays (`trace.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from .._expr import Expr, const, param, substitute, topological, var
from .._expr import scalar as s
from .._ops.derived import Map as MapOp
from .._ops.losses import BCE, LOGITS, huber, smooth_l1
from .graph import Graph, Shape, Term, Unsupported, View, contiguous_strides

Lowering = Callable[..., Any]
LOWERINGS: Final[dict[str, Lowering]] = {}
FLOATS: Final = "fd"
_INTEGER_ATOMS: Final = frozenset({"add", "sub", "mul", "neg", "abs", "sign", "square", "maximum", "minimum", "where", "clamp", "lt", "le", "gt", "ge", "eq", "ne",
                                   "logical_and", "logical_or", "logical_xor", "logical_not"})  # fmt: skip


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
def lower_map(g: Graph, op: MapOp, views: Sequence[View], params: Sequence[Any], shape: Shape, compute: Any, out: Any) -> View:
    """An elementwise op: its expression, the numbers put in."""
    compute = np.dtype(compute)
    if compute.char not in FLOATS and not (compute.kind in "ib" and compute in (np.int64, np.bool_)):
        raise Unsupported(f"{op.name} in {compute}")
    expr = substitute(op.output, {param(name): const(number_of(value)) for name, value in zip(op.params, params, strict=True)})
    if compute.char not in FLOATS:
        strange = {node.op for node in topological(expr) if node.args} - _INTEGER_ATOMS
        if strange or (compute == np.bool_ and np.dtype(out) != np.bool_):
            raise Unsupported(f"{op.name} in {compute}")
    if expr.op == "const":
        return g.number(float(expr.value), shape, np.dtype(out))
    return g.map(op.name.strip("_"), expr, dict(zip(op.inputs, views, strict=True)), shape, out, compute)


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
    return g.reduce("sum", x, axes, bool(st.get("keepdim", False)), float(count) if "mean" in op.name else 1.0, op.name.strip("_").removesuffix("_dims"))


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
    return g.reduce("max" if "max" in op.name else "min", x, axes, bool(st.get("keepdim", False)), name=op.name.strip("_"))


@lowering("_var", "_std")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    x, dims = ins[0], tuple(st["dims"])
    count = math.prod(x.shape[k] for k in dims)
    mean = g.reduce("sum", x, dims, True, float(count), "mean")
    away = binary(g, "away", lambda a, b: s.square(a - b), x, mean)
    free = max(count - st["correction"], 0.0)
    found = g.reduce("sum", away, dims, bool(st["keepdim"]), float(free), "var")
    return unary(g, "std", s.sqrt, found) if op.name == "_std" else found


@lowering("_logsumexp")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    x, dims, keep = ins[0], tuple(st["dims"]), bool(st["keepdim"])
    top = g.reduce("max", x, dims, True, name="top")
    safe = unary(g, "shift", lambda t: s.where(abs(t) == math.inf, 0.0, t), top)
    total = g.reduce("sum", binary(g, "exp", lambda a, b: s.exp(a - b), x, safe), dims, keep, name="total")
    return binary(g, "logsumexp", lambda a, b: s.log(a) + b, total, reshape(g, safe, total.shape))


@lowering("_vector_norm")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    if st["order"] != 2:
        raise Unsupported(f"a norm of order {st['order']}")
    return unary(g, "norm", s.sqrt, g.reduce("sum", unary(g, "square", s.square, ins[0]), tuple(st["dims"]), bool(st["keepdim"])))


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
    return binary(g, "log_softmax", lambda a, b: a - b, binary(g, "away", lambda a, b: a - b, ins[0], top), unary(g, "shift", s.log, total))


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


# ---------------------------------------------------------------- losses
_DISTANCES: Final[dict[str, Callable[[Expr, Expr, Expr], Expr]]] = {
    "_mse_loss": lambda x, y, n: s.square(x - y), "_smooth_l1_loss": smooth_l1, "_huber_loss": huber,
}  # fmt: skip


def reduced(g: Graph, losses: View, reduction: str, name: str) -> View:
    """The losses, their mean or their sum."""
    if reduction == "none":
        return losses
    axes = tuple(range(len(losses.shape)))
    return g.reduce("sum", losses, axes, divisor=float(math.prod(losses.shape)) if reduction == "mean" else 1.0, name=name)


@lowering(*_DISTANCES)
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    function = _DISTANCES[op.name]
    losses = binary(g, "distance", lambda x, y: function(x, y, const(float(st["number"]))), *ins)
    return reduced(g, losses, st["reduction"], op.name.strip("_"))


@lowering("_bce", "_bce_logits")
def _(g: Graph, ins: list[Any], st: dict[str, Any], op: Any) -> View:
    if op.name == "_bce":
        raise Unsupported("binary_cross_entropy, which looks at the values (use the one with logits)")
    names = tuple(name for name, view in zip(op.inputs, ins, strict=True) if view is not None)
    found = (BCE if op.name == "_bce" else LOGITS)[names].map
    views = [view for view in ins if view is not None]
    losses = lower_map(g, found, views, (), np.broadcast_shapes(*(v.shape for v in views)), views[0].value.dtype, views[0].value.dtype)
    return reduced(g, losses, st["reduction"], "bce")


def bad_class(value: int, position: int) -> Exception:
    """The error for a target that is no class."""
    return IndexError(f"Target {value} is out of bounds.")


class Classes:
    """What the losses over classes share: rows of `classes`, each with a target."""

    def __init__(self, g: Graph, shape: Shape, target: View, weight: View | None, ignored: int) -> None:
        self.g, self.target, self.weight, self.ignored = g, target, weight, ignored
        if len(shape) > 2 or target.value.dtype != np.int64 or not shape:
            raise Unsupported("a loss over classes with more axes than (batch, classes), or targets that aren't int64")
        self.classes = shape[-1]
        self.rows = shape[:-1]
        g.check(target, 0, self.classes, ignored, bad_class)

    def kept(self, dtype: Any) -> View:
        """The weight of each row, zero where the target is ignored."""
        operands = {"t": self.target}
        weight: Expr = const(1.0)
        if self.weight is not None:
            term = Term(self.target, self.weight.strides[0], self.classes, self.ignored)
            operands["w"] = View(self.weight.value, self.rows, (0,) * len(self.rows), self.weight.offset, (term,))
            weight = var("w")
        if not 0 <= self.ignored < self.classes and self.weight is None and self.never_ignored:
            return self.g.number(1.0, self.rows, dtype)
        keep = s.where(var("t") == self.ignored, 0.0, weight)
        return self.g.map("weight", keep, operands, self.rows, dtype, raw=("t",))

    never_ignored = False

    def picked(self, logs: View) -> View:
        """The element of each row that its target names."""
        term = Term(self.target, logs.strides[-1], self.classes, self.ignored)
        return View(logs.value, self.rows, logs.strides[:-1], logs.offset, (*logs.terms, term))

    def loss(self, logs: View, reduction: str) -> tuple[View, View]:
        """The loss and the sum of the weights."""
        g, dtype = self.g, logs.value.dtype
        kept = self.kept(dtype)
        operands = {"l": self.picked(logs), "w": kept}
        each = g.map("nll", s.where(var("w") == 0, 0.0, -(var("l") * var("w"))), operands, self.rows, dtype)
        axes = tuple(range(len(self.rows)))
        total = g.reduce("sum", kept, axes, name="weights", dtype=np.dtype(np.float64))
        if reduction == "none":
            return each, total
        if reduction == "sum":
            return g.reduce("sum", each, axes, name="loss"), total
        summed = g.reduce("sum", each, axes, name="losses", dtype=np.dtype(np.float64))
        return g.map("loss", var("a") / var("b"), {"a": summed, "b": total}, (), dtype, np.float64), total

    def back(self, grad: View, shape: Shape, total: View, reduction: str) -> View:
        """The gradient of the rows: one element of each."""
        g, dtype = self.g, grad.value.dtype
        kept = self.kept(dtype)
        scale = grad
        if reduction == "mean":
            scale = g.map("scale", var("g") / var("n"), {"g": grad, "n": reshape(g, total, ())}, (), dtype, np.float64)
        each = g.map("part", s.where(var("w") == 0, 0.0, -(var("g") * var("w"))), {"g": scale, "w": kept}, self.rows, dtype)
        lifted = View(each.value, (*self.rows, 1), (*each.strides, 0), each.offset).broadcast(shape)
        target = View(self.target.value, (*self.rows, 1), (*self.target.strides, 0), self.target.offset).broadcast(shape)
        hot = s.where(var("i") == var("t"), var("g"), 0.0)
        found = g.map("one_hot", hot, {"g": lifted, "t": target}, shape, dtype, raw=("t", "i"), iota={"i": len(shape) - 1})
        g.row_sums[found.value.number] = each
        return found


@lowering("_nll_NllLossBackward0", "_nll_NllLoss2DBackward0")
def _(g: Graph, ins: list[Any], st: dict[str, Any], op: Any) -> list[View]:
    logs, target, weight = ins
    return list(Classes(g, logs.shape, target, weight, st["ignore_index"]).loss(logs, st["reduction"]))


@lowering("_nll_back")
def _(g: Graph, ins: list[Any], st: dict[str, Any], op: Any) -> View:
    grad, target, weight, total = ins
    return Classes(g, tuple(st["shape"]), target, weight, st["ignore_index"]).back(grad, tuple(st["shape"]), total, st["reduction"])


@lowering("_cross_entropy")
def _(g: Graph, ins: list[Any], st: dict[str, Any], op: Any) -> list[View]:
    x, target, weight = ins
    logs = LOWERINGS["_log_softmax"](g, [x], {"dim": 1}, op)
    loss, total = Classes(g, x.shape, target, weight, st["ignore_index"]).loss(logs, st["reduction"])
    return [loss, total]  # the op keeps more of each row; its rule reads the last number, the sum of the weights


# ---------------------------------------------------------------- normalisation
def normalised(g: Graph, x: View, weight: View | None, bias: View | None, mean: View, square: View, eps: float, name: str) -> View:
    """(x - mean) * rsqrt(square + eps) * weight + bias."""
    rstd = unary(g, "rstd", lambda v: s.rsqrt(v + eps), square)
    hat = binary(g, "hat", lambda a, b: a * b, binary(g, "away", lambda a, b: a - b, x, mean), rstd)
    hat = hat if weight is None else binary(g, "scaled", lambda a, b: a * b, hat, weight)
    return hat if bias is None else binary(g, name, lambda a, b: a + b, hat, bias)


@lowering("_layer_norm")
def _(g: Graph, ins: list[Any], st: dict[str, Any], op: Any) -> list[View]:
    x, weight, bias = ins
    dims = tuple(range(len(x.shape) - st["axes"], len(x.shape)))
    count = float(math.prod(x.shape[k] for k in dims))
    mean = g.reduce("sum", x, dims, True, count, "mean")
    away = binary(g, "away", lambda a, b: a - b, x, mean)
    square = g.reduce("sum", binary(g, "mul", lambda a, b: a * b, away, away), dims, True, count, "mean")
    out = normalised(g, x, weight, bias, mean, square, st["eps"], "layer_norm")
    return [out, mean, square]


@lowering("_channel_moments")
def _(g: Graph, ins: list[Any], st: dict[str, Any], op: Any) -> list[View]:
    x = ins[0]
    dims = tuple(k for k in range(len(x.shape)) if k != 1)
    count = float(math.prod(x.shape[k] for k in dims))
    mean = g.reduce("sum", x, dims, True, count, "mean")
    away = binary(g, "away", lambda a, b: a - b, x, mean)
    square = g.reduce("sum", binary(g, "mul", lambda a, b: a * b, away, away), dims, False, count, "mean")
    return [reshape(g, mean, square.shape), square]


@lowering("_batch_norm")
def _(g: Graph, ins: list[Any], st: dict[str, Any], op: Any) -> View:
    x = ins[0]
    along = (1, x.shape[1], *(1,) * (len(x.shape) - 2))
    weight, bias, mean, square = (None if view is None else reshape(g, view, along) for view in ins[1:])
    assert mean is not None and square is not None
    return normalised(g, x, weight, bias, mean, square, st["eps"], "batch_norm")
