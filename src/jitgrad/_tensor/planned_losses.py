"""Losses of plain tensors, spelled out as `planned.py` does it for layers. Loaded when the first loss is computed.

Everything unusual goes to the op's face, which is the definition; `tests/tensor/test_planned_losses.py` holds the two together.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from .._core.meta import Meta
from .._engine import modes, versions
from .._engine.node import RELEASED, Node, next_number
from .._kernels import losses as kernels
from .._ops import classes, losses
from .base import ODD, TensorBase, version_of, wrap
from .nodes import second_time
from .planned import PlannedNode
from .planned_sums import SCALARS, finished, recorded, scalar_meta

empty = np.empty
MSE, CROSS_ENTROPY, CROSS_ENTROPY_BACKWARD = (
    losses.MSE.total.index, kernels.cross_entropy.index, kernels.cross_entropy_backward.index,
)  # fmt: skip
MSE_BACK_X, MSE_BACK_Y, MSE_BACK_XY = (losses.MSE.reserve(needs) for needs in ((True, False), (False, True), (True, True)))
NO_WEIGHT = {np.dtype(kind): np.empty(0, kind) for kind in (np.float32, np.float64)}
CODES = {"mean": 1, "sum": 2}


class MseLossBackward0(PlannedNode):
    """The mean or sum of squared distances."""

    __slots__ = ("c0", "c1", "divisor", "e0", "e1", "like", "reduction", "s0", "s1")
    e0: Any
    e1: Any
    s0: Any
    s1: Any
    c0: Any
    c1: Any
    divisor: float
    like: Meta
    reduction: str
    arity = 2
    op = losses.mse_op
    kept: ClassVar = {"s0": "input", "s1": "target"}

    @property
    def statics(self) -> dict[str, Any]:  # type: ignore[override]
        """What the rule asks for besides."""
        return {"reduction": self.reduction, "number": 0.0}

    def edges(self) -> tuple[Node | None, ...]:
        return self.e0, self.e1

    def apply(self, grad: Any, keep: bool) -> Any:
        x = self.s0
        y = self.s1
        if x is RELEASED:
            second_time()
        if self.epoch != versions.WRITES:
            self.check()
        if not keep:
            self.s0 = self.s1 = RELEASED
        m = self.like
        scale = grad.item() / self.divisor
        gx = empty(m.shape, m.dtype)
        if self.e1 is None:
            m.k[MSE_BACK_X](x, y, scale, 0.0, gx)
            return gx, None
        if self.e0 is None:
            m.k[MSE_BACK_Y](x, y, scale, 0.0, gx)
            return None, gx
        gy = empty(m.shape, m.dtype)
        m.k[MSE_BACK_XY](x, y, scale, 0.0, gx, gy)
        return gx, gy


def mse_loss(input: Any, target: Any, reduction: str = "mean") -> Any:
    """`losses.mse_loss` of plain tensors of one Meta, summed up."""
    if not isinstance(input, TensorBase) or not isinstance(target, TensorBase) or input.meta is not target.meta or reduction not in CODES:
        return losses.mse_loss(input, target, reduction)
    m = input.meta
    if input.rare is not None or target.rare is not None or modes.SPECIAL or not m.numel:
        return losses.mse_loss(input, target, reduction)
    x = input.array
    y = target.array
    out = empty((), m.dtype)
    divisor = float(m.numel) if reduction == "mean" else 1.0
    m.k[MSE](x, y, 0.0, divisor, out)
    t = TensorBase.kind()
    t.array = out
    t.meta = SCALARS.get(m) or scalar_meta(m)
    t.vc = t.rare = None
    p = input.fn
    q = target.fn
    if (p is None and q is None) or (modes.NO_GRAD and not modes.grad_enabled()):
        t.fn = None
        return t
    t.fn = n = MseLossBackward0()
    n.e0 = p
    n.e1 = q
    n.s0 = x
    n.s1 = y
    if p is None:
        n.c0 = input.vc or version_of(input)
    if q is None:
        n.c1 = target.vc or version_of(target)
    n.like = m
    n.divisor = divisor
    n.reduction = reduction
    n.meta = t.meta
    n.epoch = versions.WRITES
    n.number = next_number()
    n.buf = n.vc = n.rare = None
    return t


# ---------------------------------------------------------------- cross entropy
class NllLossBackward0(PlannedNode):
    """Cross entropy of logits in rows, without class weights, its mean or sum."""

    __slots__ = ("c1", "e0", "ignored", "reduction", "s0", "s1", "sums")
    e0: Any
    s0: Any
    s1: Any
    c1: Any
    ignored: int
    reduction: str
    sums: Any
    arity = 1
    op = classes.cross_entropy_op
    kept: ClassVar = {"s0": "input", "s1": "target"}
    e1: ClassVar[None] = None  # type: ignore[misc]

    @property
    def statics(self) -> dict[str, Any]:  # type: ignore[override]
        """What the rule asks for besides."""
        return {"reduction": self.reduction, "ignore_index": self.ignored, "weight": None, "sums": wrap(self.sums)}

    def edges(self) -> tuple[Node | None, ...]:
        return (self.e0,)

    def kept_values(self) -> list[tuple[str, Any, Node | None]]:
        return [*super().kept_values(), ("sums", self.sums, None)]

    def release(self) -> None:
        super().release()
        self.sums = RELEASED

    def apply(self, grad: Any, keep: bool) -> Any:
        x = self.s0
        target = self.s1
        if x is RELEASED:
            second_time()
        if self.epoch != versions.WRITES:
            self.check()
        sums = self.sums
        if not keep:
            self.s0 = self.s1 = self.sums = RELEASED
        m = self.e0.meta
        batch, classes = m.shape
        out = empty(m.shape, m.dtype)
        m.k[CROSS_ENTROPY_BACKWARD](grad, x, target, NO_WEIGHT[m.dtype], batch, classes, self.ignored, CODES[self.reduction], sums, out)
        return out


PLANS: dict[tuple[Meta, Meta], bool] = {}


def cross_entropy(input: Any, target: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean",
                  label_smoothing: float = 0.0) -> Any:  # fmt: skip
    """`classes.cross_entropy` of plain rows of logits with int64 classes, seen together before."""
    if weight is not None or label_smoothing or reduction not in CODES or not isinstance(input, TensorBase) or not isinstance(target, TensorBase):
        return classes.cross_entropy(input, target, weight, ignore_index, reduction, label_smoothing)
    m = input.meta
    if (m, target.meta) not in PLANS or input.rare is not None or target.rare is not ODD or modes.SPECIAL:
        result = classes.cross_entropy(input, target, weight, ignore_index, reduction, label_smoothing)
        plan(m, target.meta, target.array)
        return result
    batch, count = m.shape
    out, sums = empty((), m.dtype), empty(2 * batch + 1)
    x = input.array
    y = target.array
    bad = m.k[CROSS_ENTROPY](x, y, NO_WEIGHT[m.dtype], batch, count, ignore_index, CODES[reduction], sums, out)
    if bad >= 0:
        classes.checked(bad, y)
    t = finished(out, m)
    p = input.fn
    if p is None or (modes.NO_GRAD and not modes.grad_enabled()):
        return t
    n = NllLossBackward0()
    n.e0 = p
    n.s0 = x
    n.s1 = y
    n.c1 = target.vc or version_of(target)
    n.sums = sums
    n.ignored = ignore_index
    n.reduction = reduction
    recorded(t, n)
    return t


def plan(m: Meta, other: Meta, target: np.ndarray[Any, Any]) -> None:
    """Remember that these Metas, which went through the checks, go the way of the kernel."""
    if len(m.shape) == 2 and m.plain and other.shape == m.shape[:1] and other.dtype == np.int64 and target.flags.c_contiguous:
        if len(PLANS) > 10_000:
            PLANS.clear()
        PLANS[m, other] = True
