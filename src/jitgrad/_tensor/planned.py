"""The common case of the layers and losses of an MLP, spelled out: plain tensors whose Metas were seen together before.

`PLANS` maps an op and the Metas of its inputs to the Meta of its output, so shapes and dtypes are checked once per combination. Everything
unusual goes to the op's face, which is the definition; `tests/tensor/test_planned.py` holds the two together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from .._core.meta import Meta, meta_for
from .._engine import modes, versions
from .._engine.node import LEAF, RELEASED, Node, next_number, target
from .._kernels import products
from .._ops import matmul
from .._ops.kinds import General
from .base import TensorBase, version_of, wrap
from .fields import SlotFields, TBackward0, release_slots
from .nodes import contiguous, modified, second_time

empty = np.empty
LINEAR, LINEAR_BIAS, LINEAR_BACKWARD = products.linear.index, products.linear_bias.index, products.linear_backward.index
PLANS: dict[tuple[Any, ...], Meta] = {}


class PlannedNode(SlotFields, Node):
    """A node with edges e0 (e1, e2 ...) and saved inputs s0 (s1 ...) in slots; `kept` maps a slot to the op's name for it."""

    __slots__ = ()
    e0: Any
    e1: Any
    e2: Any
    s0: Any
    s1: Any
    s2: Any
    c0: Any
    c1: Any
    c2: Any
    op: ClassVar[General]
    kept: ClassVar[dict[str, str]]
    statics: ClassVar[dict[str, Any]] = {}

    def counter(self, slot: str) -> Any:
        edge = getattr(self, "e" + slot[1])
        return edge.vc if edge is not None else getattr(self, "c" + slot[1])

    def check(self) -> None:
        """Something was written since the op was recorded; was it one of ours?"""
        for slot in self.kept:
            array = getattr(self, slot)
            if array is not None and array is not RELEASED:
                versions.check_attached(getattr(self, "e" + slot[1]))
                counter = self.counter(slot)
                if counter is not None and counter.last > self.epoch:
                    maker = getattr(self, "e" + slot[1])
                    raise modified(self.epoch, counter, array, None if maker is None or maker.number == LEAF else target(maker))

    def release(self) -> None:
        release_slots(self, self.kept)

    def slot_names(self) -> dict[str, str]:
        return self.kept

    def call(self, grads: tuple[Any, ...], keep: bool, create_graph: bool) -> Sequence[Any]:
        (grad,) = grads
        if grad is None:
            return (None,) * self.arity
        if self.rare is not None and self.rare.packed:
            return self.call_unpacked(grads, keep, create_graph)  # type: ignore[no-any-return]
        if not create_graph and not modes.followed():
            array = contiguous(grad.array)  # a name of its own, so that `apply` does not take it for unshared
            results = self.apply(array, True)
            return [None if part is None else wrap(part) for part in (results if isinstance(results, tuple) else (results,))]
        saved: dict[str, Any] = {}
        for slot, name in self.kept.items():
            array = getattr(self, slot)
            if array is RELEASED:
                second_time()
            saved[name] = None
            if array is not None:
                saved[name] = wrap(array, getattr(self, "e" + slot[1]))
                saved[name].vc = self.counter(slot)
        if self.epoch != versions.WRITES:
            self.check()
        needs = tuple(edge is not None for edge in self.edges())
        assert self.op.backward is not None
        results = self.op.backward({"grad": grad, "needs": needs, **saved, **self.statics})
        return results if isinstance(results, tuple) else (results,)


class AddmmBackward0(PlannedNode):
    """A linear layer with bias."""

    __slots__ = ("c1", "c2", "e0", "e1", "e2", "s1", "s2")
    arity = 3
    op = matmul.linear_op
    kept: ClassVar = {"s1": "input", "s2": "weight"}

    def edges(self) -> tuple[Node | None, ...]:
        return self.e0, self.e1, self.e2

    def before_shown(self) -> None:
        if self.e2 is not None:
            self.e2 = TBackward0(self, self.e2)

    def apply(self, grad: Any, keep: bool) -> Any:
        x = self.s1
        w = self.s2
        if x is RELEASED:
            second_time()
        if self.epoch != versions.WRITES:
            self.check()
        if not keep:
            self.s1 = self.s2 = RELEASED
        gb = gx = gw = None
        wanted = 0
        if self.e0 is not None:
            m = self.e0.meta
            gb = empty(m.shape, m.dtype)
            wanted = 4
        if self.e2 is not None:
            m = self.e2.meta
            gw = empty(m.shape, m.dtype)
            wanted |= 2
        if self.e1 is not None:
            m = self.e1.meta
            gx = empty(m.shape, m.dtype)
            wanted |= 1
        if w is None:  # its shape is read all the same
            w = gw if gw is not None else empty((self.meta.shape[-1], 0), self.meta.dtype)
        self.meta.k[LINEAR_BACKWARD](grad, x if x is not None else grad, w, gx if gx is not None else grad,
                                     gw if gw is not None else grad, gb if gb is not None else grad, wanted)  # fmt: skip
        return gb, gx, gw


def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """`matmul.linear_general` where all three are plain and were seen together before."""
    if bias is None or not isinstance(input, TensorBase) or modes.SPECIAL:
        return matmul.linear_general(input, weight, bias)
    if input.rare is not None or weight.rare is not None or bias.rare is not None:
        return matmul.linear_general(input, weight, bias)
    mx = input.meta
    mw = weight.meta
    m = PLANS.get((LINEAR_BIAS, mx, mw, bias.meta))
    if m is None:
        return plan_linear(input, weight, bias)
    out = empty(m.shape, m.dtype)
    x = input.array
    w = weight.array
    m.k[LINEAR_BIAS](x, w, bias.array, out)
    t = TensorBase.kind()
    t.array = out
    t.meta = m
    t.vc = t.rare = None
    p = bias.fn
    q = input.fn
    r = weight.fn
    if (p is None and q is None and r is None) or (modes.NO_GRAD and not modes.grad_enabled()):
        t.fn = None
        return t
    t.fn = n = AddmmBackward0()
    n.e0 = p
    n.e1 = q
    n.e2 = r
    n.s1 = x if r is not None else None
    n.s2 = w if q is not None else None
    if q is None:
        n.c1 = input.vc or version_of(input)
    if r is None:
        n.c2 = weight.vc or version_of(weight)
    n.meta = m
    n.epoch = versions.WRITES
    n.number = next_number()
    n.buf = n.vc = n.rare = None
    return t


def plan_linear(input: Any, weight: Any, bias: Any) -> Any:
    """The first call with these Metas: the checked way, and a plan if it went the way of the kernel."""
    result = matmul.linear_general(input, weight, bias)
    mx, mw, mb = input.meta, weight.meta, bias.meta
    if len(mw.shape) == 2 and mx.shape[-1:] == mw.shape[1:] and mb.shape == mw.shape[:1] and mx.dtype == mw.dtype == mb.dtype:
        if len(PLANS) > 10_000:
            PLANS.clear()
        PLANS[LINEAR_BIAS, mx, mw, mb] = meta_for((*mx.shape[:-1], mw.shape[0]), mw.dtype)
    return result
