"""Lowerings of losses and normalisation."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from .._expr import Expr, const, scalar as s, var
from .._ops.losses import BCE, LOGITS, huber, smooth_l1
from .graph import Graph
from .lower import LOWERINGS, binary, lower_map, lowering, reshape, unary
from .operations import Shape, Term, Unsupported, View

# ---------------------------------------------------------------- losses
_DISTANCES: Final[dict[str, Callable[[Expr, Expr, Expr], Expr]]] = {
    "_mse_loss": lambda x, y, n: s.square(x - y), "_smooth_l1_loss": smooth_l1, "_huber_loss": huber,
}  # fmt: skip


def reduced(g: Graph, losses: View, reduction: str, name: str) -> View:
    """The losses, their mean or their sum."""
    if reduction == "none":
        return losses
    axes = tuple(range(len(losses.shape)))
    return g.reduce(
        "sum", losses, axes, divisor=float(math.prod(losses.shape)) if reduction == "mean" else 1.0, name=name
    )


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
    losses = lower_map(
        g, found, views, (), np.broadcast_shapes(*(v.shape for v in views)), views[0].value.dtype, views[0].value.dtype
    )
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
        each = g.map(
            "part", s.where(var("w") == 0, 0.0, -(var("g") * var("w"))), {"g": scale, "w": kept}, self.rows, dtype
        )
        lifted = View(each.value, (*self.rows, 1), (*each.strides, 0), each.offset).broadcast(shape)
        target = View(self.target.value, (*self.rows, 1), (*self.target.strides, 0), self.target.offset).broadcast(
            shape
        )
        hot = s.where(var("i") == var("t"), var("g"), 0.0)
        found = g.map(
            "one_hot", hot, {"g": lifted, "t": target}, shape, dtype, raw=("t", "i"), iota={"i": len(shape) - 1}
        )
        g.row_sums[found.value.number] = each
        return found


@lowering("_nll_NllLossBackward0", "_nll_NllLoss2DBackward0")
def _(g: Graph, ins: list[Any], st: dict[str, Any], op: Any) -> list[View]:
    logs, target, weight = ins
    return list(Classes(g, logs.shape, target, weight, st["ignore_index"]).loss(logs, st["reduction"]))


@lowering("_nll_back")
def _(g: Graph, ins: list[Any], st: dict[str, Any], op: Any) -> View:
    grad, target, weight, total = ins
    return Classes(g, tuple(st["shape"]), target, weight, st["ignore_index"]).back(
        grad, tuple(st["shape"]), total, st["reduction"]
    )


@lowering("_cross_entropy")
def _(g: Graph, ins: list[Any], st: dict[str, Any], op: Any) -> list[View]:
    x, target, weight = ins
    logs = LOWERINGS["_log_softmax"](g, [x], {"dim": 1}, op)
    loss, total = Classes(g, x.shape, target, weight, st["ignore_index"]).loss(logs, st["reduction"])
    return [loss, total]  # the op keeps more of each row; its rule reads the last number, the sum of the weights


# ---------------------------------------------------------------- normalisation
def normalised(
    g: Graph, x: View, weight: View | None, bias: View | None, mean: View, square: View, eps: float, name: str
) -> View:
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
    assert mean is not None
    assert square is not None
    return normalised(g, x, weight, bias, mean, square, st["eps"], "batch_norm")
