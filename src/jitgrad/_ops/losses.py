"""Losses that compare element by element: one scalar expression each, summed up in the same pass.

The forward of a mean or sum is one kernel, and so is the backward. The rule is the expression's partial derivative, an elementwise op, so
it gives derivatives of all orders.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._core.dtypes import Category, result_dtype
from .._core.shapes import broadcast_shapes
from .._expr import Expr, param, scalar as s, substitute, trace, var
from .._kernels.maps import map_kernel, reserve_kernel
from .._kernels.reduced import sum_kernel
from .._kernels.registry import Kernel
from .axes import HALF, SINGLE
from .derived import Map, compute
from .kinds import Array, Dispatch, Optional, Tensor, composite, general


class Pointwise:
    """A loss of single elements: its kernels and partials. The first two inputs take gradients, weights don't.

    `explicit` gives partials to be used instead of the derived ones.
    """

    def __init__(self, name: str, node: str, function: Callable[..., Expr], inputs: tuple[str, ...], params: tuple[str, ...] = (),
                 explicit: dict[str, Callable[..., Expr]] | None = None) -> None:  # fmt: skip
        self.name = name
        (output,) = trace(function, inputs, params)
        found = {key: trace(partial, inputs, params)[0] for key, partial in (explicit or {}).items()}
        self.map = Map(name, node, inputs, params, output, explicit=found)
        self.rest = (False,) * (len(inputs) - 2)
        self.total = sum_kernel(name, output, inputs, params)
        self.backs: dict[tuple[bool, ...], tuple[tuple[str, ...], Kernel]] = {}

    def forward(self, arrays: Sequence[Array], numbers: tuple[float, ...], reduction: str) -> Array:
        """The losses, their mean or their sum. Arrays of one shape and floating dtype."""
        kind = arrays[0].dtype
        if reduction == "none":
            return compute(self.map.kernels, arrays, numbers, arrays[0].shape, [kind])[0]
        if kind == HALF:
            return self.forward([x.astype(SINGLE) for x in arrays], numbers, reduction).astype(HALF)
        out = np.empty((), kind)
        arrays = [x if x.flags.c_contiguous else np.ascontiguousarray(x) for x in arrays]
        self.total[kind](*arrays, *numbers, float(arrays[0].size) if reduction == "mean" else 1.0, out)
        return out

    def back(self, needs: tuple[bool, ...]) -> tuple[tuple[str, ...], Kernel]:
        """What the kernel of the needed gradients reads, and that kernel; the incoming gradient is a number."""
        found = self.backs.get(needs)
        if found is None:
            scale = {var(self.map.incoming): param("scale")}
            outputs = tuple(substitute(self.map.cotangents[k], scale) for k, need in enumerate(needs) if need)
            reads, tag = self.map.saved(needs + self.rest), "".join("nx"[need] for need in needs)
            params = ("scale", *self.map.params)
            found = self.backs[needs] = reads, map_kernel(f"{self.name}_mean_backward_{tag}", outputs, reads, params, frozenset(), strided=False)
        return found

    def reserve(self, needs: tuple[bool, bool]) -> int:
        """The number of the kernel of the needed gradients, of a loss with one param, registered before anything is derived."""
        tag = "".join("nx"[need] for need in needs)
        return reserve_kernel(f"{self.name}_mean_backward_{tag}", "bbss" + "b" * needs.count(True), lambda: self.back(needs)[1]).index

    def fused(self, grad: Array, named: dict[str, Array], numbers: tuple[float, ...], reduction: str,
              needs: tuple[bool, ...]) -> tuple[Array | None, ...]:  # fmt: skip
        """The gradients of input and target."""
        like = next(iter(named.values()))
        count = needs.count(True)
        if reduction == "none" or like.dtype == HALF:
            if reduction == "mean":
                grad = np.asarray(grad / grad.dtype.type(like.size or 1))
            saved = [named[name] for name in self.map.saved(needs + self.rest)]
            outs = compute(self.map.backward(needs + self.rest), (grad, *saved), numbers, like.shape, [grad.dtype] * count)
        else:
            reads, kernel = self.back(needs)
            outs = [np.empty(like.shape, like.dtype) for _ in range(count)]
            scale = float(grad) / like.size if reduction == "mean" and like.size else float(grad)
            saved = [x if x.flags.c_contiguous else np.ascontiguousarray(x) for x in [named[name] for name in reads]]
            kernel[like.dtype](*saved, scale, *numbers, *outs)
        results = iter(outs)
        return tuple([next(results) if need else None for need in needs])

    def rule(self, grad: Tensor, named: dict[str, Tensor], numbers: tuple[float, ...], reduction: str,
             needs: tuple[bool, ...]) -> tuple[Tensor | None, ...]:  # fmt: skip
        """The same on tensors, recorded."""
        if reduction == "mean":
            grad = grad / next(iter(named.values())).meta.numel
        return tuple([Dispatch.invoke(self.map.partial(k), (grad, *[named[name] for name in self.map.saves[k]]), numbers) if need else None
                      for k, need in enumerate(needs)])  # fmt: skip


def distance(node: str, name: str, function: Callable[..., Expr]) -> tuple[Any, Pointwise]:
    """The op of a loss of input, target and a number, and what it is computed by."""
    loss = Pointwise(name, node, function, ("input", "target"), ("number",))

    @general(node=node, saves=("input", "target"), name=f"_{name}")
    def op(input: Array, target: Array, reduction: str, number: float) -> Array:
        return loss.forward((input, target), (number,), reduction)

    @op.rule
    def _(grad: Tensor, input: Tensor, target: Tensor, reduction: str, number: float, needs: tuple[bool, ...]) -> Any:
        return loss.rule(grad, {"input": input, "target": target}, (number,), reduction, needs)

    @op.fused
    def _(grad: Array, input: Array, target: Array, reduction: str, number: float, needs: tuple[bool, ...]) -> Any:
        return loss.fused(grad, {"input": input, "target": target}, (number,), reduction, needs)

    return op, loss


def smooth_l1(input: Expr, target: Expr, number: Expr) -> Expr:
    away = s.abs(input - target)
    return s.where(away < number, 0.5 * s.square(away) / number, away - 0.5 * number)


def huber(input: Expr, target: Expr, number: Expr) -> Expr:
    away = s.abs(input - target)
    return s.where(away <= number, 0.5 * s.square(away), number * (away - 0.5 * number))


mse_op, MSE = distance("MseLossBackward0", "mse_loss", lambda input, target, number: s.square(input - target))
smooth_l1_op, SMOOTH_L1 = distance("SmoothL1LossBackward0", "smooth_l1_loss", smooth_l1)
huber_op, HUBER = distance("HuberLossBackward0", "huber_loss", huber)


def together(kernel: str, input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Both operands in one floating dtype and one shape."""
    if input.meta is target.meta and input.meta.kind.is_floating_point:
        return input, target
    kind = result_dtype([(x.meta.kind, Category.DIM if x.meta.shape else Category.ZERO_DIM) for x in (input, target)])
    if not kind.is_floating_point:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{kind.scalar_name}'")
    shape = broadcast_shapes(input.meta.shape, target.meta.shape)
    both = (x if x.meta.kind is kind else x.to(kind) for x in (input, target))
    first, second = (x if x.meta.shape == shape else x.expand(shape) for x in both)
    return first, second


@composite(method=False, planned="planned_losses")
def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """(input - target)**2, its mean or its sum."""
    input, target = together("mse_cpu", input, target)
    return mse_op(input, target, reduction, 0.0)


@composite(method=False)
def l1_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """abs(input - target), its mean or its sum."""
    away = (input - target).abs()
    return away.mean() if reduction == "mean" else away.sum() if reduction == "sum" else away


@composite(method=False)
def smooth_l1_loss(input: Tensor, target: Tensor, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """d**2 / (2 beta) for a distance d below beta, d - beta / 2 elsewhere; one by one, their mean or sum. With beta 0 `l1_loss`."""
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    input, target = together("smooth_l1_cpu", input, target)
    return smooth_l1_op(input, target, reduction, float(beta)) if beta else l1_loss(input, target, reduction)


@composite(method=False)
def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    """d**2 / 2 for a distance d up to delta, delta * (d - delta / 2) elsewhere; one by one, their mean or sum."""
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    input, target = together("huber_cpu", input, target)
    return huber_op(input, target, reduction, float(delta))


# ---------------------------------------------------------------- binary cross entropy
def times(loss: Expr, weight: Expr | None) -> Expr:
    """The loss, weighted if there is a weight."""
    return loss if weight is None else loss * weight


def bce(input: Expr, target: Expr, weight: Expr | None = None) -> Expr:
    return times((target - 1.0) * s.maximum(s.log1p(-input), -100.0) - target * s.maximum(s.log(input), -100.0), weight)


def bce_input(input: Expr, target: Expr, weight: Expr | None = None) -> Expr:
    return times((input - target) / s.maximum((1.0 - input) * input, 1e-12), weight)


def bce_target(input: Expr, target: Expr, weight: Expr | None = None) -> Expr:
    return times(s.log1p(-input) - s.log(input), weight)


def logits(input: Expr, target: Expr, weight: Expr | None = None, pos_weight: Expr | None = None) -> Expr:
    log = s.logsigmoid(input)
    return times((1.0 - target) * input - (log if pos_weight is None else log * ((pos_weight - 1.0) * target + 1.0)), weight)


def logits_input(input: Expr, target: Expr, weight: Expr | None = None, pos_weight: Expr | None = None) -> Expr:
    if pos_weight is None:
        return times(s.sigmoid(input) - target, weight)
    return times((pos_weight * target + 1.0 - target) * s.sigmoid(input) - pos_weight * target, weight)


BCE_NODE, LOGITS_NODE = "BinaryCrossEntropyBackward0", "BinaryCrossEntropyWithLogitsBackward0"
BCE: dict[tuple[str, ...], Pointwise] = {
    names: Pointwise("_".join(("bce", *names[2:])), BCE_NODE, bce, names, (), {"input": bce_input, "target": bce_target})
    for names in (("input", "target"), ("input", "target", "weight"))
}
LOGITS: dict[tuple[str, ...], Pointwise] = {
    names: Pointwise("_".join(("bce_logits", *names[2:])), LOGITS_NODE, logits, names, (), {"input": logits_input})
    for names in (("input", "target"), ("input", "target", "weight"), ("input", "target", "pos_weight"), ("input", "target", "weight", "pos_weight"))
}


def given(**named: Any) -> dict[str, Any]:
    """Those that are not None."""
    return {name: value for name, value in named.items() if value is not None}


@general(node=BCE_NODE, saves=("input", "target", "weight"), differentiable=("input", "target"), name="_bce")
def bce_op(input: Array, target: Array, weight: Optional, reduction: str) -> Array:
    if input.size and not (input.min() >= 0 and input.max() <= 1):  # a NaN is refused too
        raise RuntimeError("all elements of input should be between 0 and 1")
    if target.size and not (target.min() >= 0 and target.max() <= 1):
        raise RuntimeError("all elements of target should be between 0 and 1")
    named = given(input=input, target=target, weight=weight)
    return BCE[tuple(named)].forward(tuple(named.values()), (), reduction)


@bce_op.rule
def _(grad: Tensor, input: Tensor, target: Tensor, weight: Any, reduction: str, needs: tuple[bool, ...]) -> Any:
    named = given(input=input, target=target, weight=weight)
    return BCE[tuple(named)].rule(grad, named, (), reduction, needs)


@bce_op.fused
def _(grad: Array, input: Array, target: Array, weight: Any, reduction: str, needs: tuple[bool, ...]) -> Any:
    named = given(input=input, target=target, weight=weight)
    return BCE[tuple(named)].fused(grad, named, (), reduction, needs)


@general(node=LOGITS_NODE, saves=("input", "target", "weight", "pos_weight"), differentiable=("input", "target"), name="_bce_logits")
def logits_op(input: Array, target: Array, weight: Optional, pos_weight: Optional, reduction: str) -> Array:
    named = given(input=input, target=target, weight=weight, pos_weight=pos_weight)
    return LOGITS[tuple(named)].forward(tuple(named.values()), (), reduction)


@logits_op.rule
def _(grad: Tensor, input: Tensor, target: Tensor, weight: Any, pos_weight: Any, reduction: str, needs: tuple[bool, ...]) -> Any:
    named = given(input=input, target=target, weight=weight, pos_weight=pos_weight)
    return LOGITS[tuple(named)].rule(grad, named, (), reduction, needs)


@logits_op.fused
def _(grad: Array, input: Array, target: Array, weight: Any, pos_weight: Any, reduction: str, needs: tuple[bool, ...]) -> Any:
    named = given(input=input, target=target, weight=weight, pos_weight=pos_weight)
    return LOGITS[tuple(named)].fused(grad, named, (), reduction, needs)


def factor(name: str, weight: Any, like: Tensor) -> Any:
    """A weight of the loss in its dtype and shape. RuntimeError if it takes a gradient or doesn't broadcast."""
    if weight is None:
        return None
    if weight.requires_grad:
        raise RuntimeError(f"The function 'binary_cross_entropy' is not differentiable with respect to argument '{name}'. This input cannot have "
                           "requires_grad True.")  # fmt: skip
    weight = weight if weight.meta.kind is like.meta.kind else weight.to(like.meta.kind)
    shape = broadcast_shapes(like.meta.shape, weight.meta.shape)
    if shape != like.meta.shape:
        raise RuntimeError(f"output with shape {list(like.meta.shape)} doesn't match the broadcast shape {list(shape)}")
    return weight if weight.meta.shape == shape else weight.expand(shape)


@composite(method=False)
def binary_cross_entropy(input: Tensor, target: Tensor, weight: Any = None, reduction: str = "mean") -> Tensor:
    """-(target * log(input) + (1 - target) * log(1 - input)), logarithms cut off at -100; one by one, their mean or sum.

    `weight` broadcasts. RuntimeError for elements outside [0, 1] or of another dtype than the input's.
    """
    kind = input.meta.kind
    if not kind.is_floating_point:
        raise NotImplementedError(f"\"binary_cross_entropy\" not implemented for '{kind.scalar_name}'")
    for other in (target, weight):
        if other is not None and other.meta.kind is not kind:
            raise RuntimeError(f"Found dtype {other.meta.kind.scalar_name} but expected {kind.scalar_name}")
    return bce_op(input, target, factor("weight", weight, input), reduction)


@composite(method=False)
def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Any = None, pos_weight: Any = None, reduction: Any = "mean") -> Tensor:
    """`binary_cross_entropy` of sigmoid(input), without overflow; `pos_weight` multiplies the positive part. Weights broadcast."""
    if not input.meta.kind.is_floating_point:
        raise NotImplementedError(f"\"log_sigmoid_cpu\" not implemented for '{input.meta.kind.scalar_name}'")
    if not target.meta.kind.is_floating_point:
        raise RuntimeError(f"result type {input.meta.kind.scalar_name} can't be cast to the desired output type {target.meta.kind.scalar_name}")
    input, target = together("log_sigmoid_cpu", input, target)
    return logits_op(input, target, factor("weight", weight, input), factor("pos_weight", pos_weight, input), reduction)
