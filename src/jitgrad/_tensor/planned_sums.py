"""Sums and means of plain tensors, spelled out as `planned.py` does it for layers.

Everything unusual goes to the op's face, which is the definition; `tests/tensor/test_planned_losses.py` holds the two together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from .._core.meta import Meta, meta_for
from .._engine import modes, versions
from .._engine.node import Node, next_number
from .._ops import reductions
from .._ops.kinds import Dispatch
from .base import TensorBase, wrap
from .nodes import AdjointCall, contiguous
from .planned import PlannedNode

empty = np.empty
SUM = reductions.SUM.index
SCALARS: dict[Meta, Meta] = {}  # a Meta to that of one number of the same dtype


def scalar_meta(m: Meta) -> Meta:
    """The Meta of a 0-d tensor of the same dtype."""
    found = SCALARS[m] = meta_for((), m.dtype)
    return found


def finished(out: Any, m: Meta) -> Any:
    """A tensor around a new 0-d array, without history."""
    t = TensorBase.kind()
    t.array = out
    t.meta = SCALARS.get(m) or scalar_meta(m)
    t.fn = t.vc = t.rare = None
    return t


def recorded(t: Any, n: Any) -> None:
    """Make a node, whose edges and saved values are set, a tensor's history."""
    t.fn = n
    n.meta = t.meta
    n.epoch = versions.WRITES
    n.number = next_number()
    n.buf = n.vc = n.rare = None


# ---------------------------------------------------------------- sum and mean of everything
class AllNode(PlannedNode):
    """The sum of all elements over a number: the gradient is the same everywhere."""

    __slots__ = ("e0",)
    e0: Any
    arity = 1
    kept: ClassVar = {}

    def edges(self) -> tuple[Node | None, ...]:
        return (self.e0,)

    def call(self, grads: tuple[Any, ...], keep: bool, create_graph: bool) -> Sequence[Any]:
        (grad,) = grads
        if grad is None:
            return (None,)
        if not create_graph and not modes.followed():
            return [wrap(self.apply(contiguous(grad.array), True))]
        op: Any = self.op
        return Dispatch.invoke(op.transposed, (grad,), (AdjointCall(op, (self.e0.meta,), (True,), (None,), {}, (True,)),))  # type: ignore[no-any-return]


class SumBackward0(AllNode):
    """Of `sum`."""

    __slots__ = ()
    op = reductions.sum_all_op

    def apply(self, grad: Any, keep: bool) -> Any:
        m = self.e0.meta
        out = empty(m.shape, m.dtype)
        out.fill(grad)
        return out


class MeanBackward0(AllNode):
    """Of `mean`."""

    __slots__ = ()
    op = reductions.mean_all_op

    def apply(self, grad: Any, keep: bool) -> Any:
        m = self.e0.meta
        out = empty(m.shape, m.dtype)
        out.fill(grad / m.dtype.type(m.numel or 1))
        return out


def sum(input: Any, dim: Any = ..., keepdim: bool = False, *, dtype: Any = None) -> Any:
    """`reductions.sum_` of all elements of a plain tensor."""
    if dim is not ... or dtype is not None or keepdim or not isinstance(input, TensorBase) or input.rare is not None or modes.SPECIAL:
        return reductions.sum_(input, dim, keepdim, dtype=dtype)
    m = input.meta
    out = empty((), m.dtype)
    m.k[SUM](input.array, 1.0, out)
    t = finished(out, m)
    p = input.fn
    if p is not None and (not modes.NO_GRAD or modes.grad_enabled()):
        n = SumBackward0()
        n.e0 = p
        recorded(t, n)
    return t


def mean(input: Any, dim: Any = ..., keepdim: bool = False, *, dtype: Any = None) -> Any:
    """`reductions.mean` of all elements of a plain tensor."""
    if dim is not ... or dtype is not None or keepdim or not isinstance(input, TensorBase) or input.rare is not None or modes.SPECIAL:
        return reductions.mean(input, dim, keepdim, dtype=dtype)
    m = input.meta
    out = empty((), m.dtype)
    m.k[SUM](input.array, float(m.numel), out)
    t = finished(out, m)
    p = input.fn
    if p is not None and (not modes.NO_GRAD or modes.grad_enabled()):
        n = MeanBackward0()
        n.e0 = p
        recorded(t, n)
    return t


# ---------------------------------------------------------------- squared error
