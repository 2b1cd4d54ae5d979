"""The common call of an elementwise function spelled out: one or two plain tensors of equal Meta, one result, no keyword-only arguments.

What `tools/gen_api.py` writes for each built-in op stands here once, by kernel numbers (a call and its backward through the general way cost
twice as much). Everything unusual takes the general way, which is the definition.
"""

from __future__ import annotations

from sys import getrefcount
from typing import Any, ClassVar

import numpy as np

from ..._engine import modes, versions
from ..._engine.fast import ALONE
from ..._engine.node import RELEASED, next_number
from ..._ops.derived import RESULT, Map
from ..._ops.maps import Elementwise
from ..._tensor.base import TensorBase, version_of
from ..._tensor.fast_nodes import FastNode
from ..._tensor.nodes import second_time

empty = np.empty


class OneOperand(FastNode):
    """A function of one operand whose derivative reads the operand."""

    __slots__ = ("c0", "e0", "s0")
    arity = 1
    kept = ("s0",)
    index: ClassVar[int]

    def apply(self, grad: Any, keep: bool) -> Any:
        """Arrays to arrays."""
        a = self.s0
        if a is RELEASED:
            second_time()
        if self.epoch != versions.WRITES:
            self.check()
        if not keep:
            self.s0 = RELEASED
        m = self.meta
        gx = grad if getrefcount(grad) <= ALONE else empty(m.shape, m.dtype)
        m.k[self.index](grad, a, gx)
        return gx


class TwoOperands(FastNode):
    """A function of two operands, each read by some derivative. `both`, `first`, `second`: kernel number and what it reads."""

    __slots__ = ("c0", "c1", "e0", "e1", "s0", "s1")
    arity = 2
    kept = ("s0", "s1")
    both: ClassVar[tuple[int, str]]
    first: ClassVar[tuple[int, str]]
    second: ClassVar[tuple[int, str]]

    def apply(self, grad: Any, keep: bool) -> Any:
        """Arrays to arrays."""
        a, b = self.s0, self.s1
        if a is RELEASED:
            second_time()
        if self.epoch != versions.WRITES:
            self.check()
        if not keep:
            self.s0 = self.s1 = RELEASED
        m = self.meta
        index, reads = (
            self.both if self.e0 is not None and self.e1 is not None else self.first if self.e1 is None else self.second
        )
        given = (a, b) if reads == "xy" else (a,) if reads == "x" else (b,) if reads == "y" else ()
        out = grad if getrefcount(grad) <= ALONE else empty(m.shape, m.dtype)
        if self.e1 is None:
            m.k[index](grad, *given, out)
            return out, None
        if self.e0 is None:
            m.k[index](grad, *given, out)
            return None, out
        other = empty(m.shape, m.dtype)
        m.k[index](grad, *given, out, other)
        return out, other


class Quick:
    """The call of one op; made by `quick_of`."""

    __slots__ = ("count", "index", "node")

    def __init__(self, count: int, index: int, node: Any) -> None:
        self.count, self.index, self.node = count, index, node

    def one(self, x: Any) -> Any:
        """A call with one plain tensor."""
        m = x.meta
        a = x.array
        result = TensorBase.kind()
        result.array = out = empty(m.shape, m.dtype)
        m.k[self.index](a, out)
        result.meta = m
        result.vc = result.rare = None
        edge = x.fn
        if edge is None or (modes.NO_GRAD and not modes.grad_enabled()):
            result.fn = None
            return result
        result.fn = node = self.node()
        node.e0 = edge
        node.s0 = a
        node.meta = m
        node.epoch = versions.WRITES
        node.number = next_number()
        node.buf = node.vc = node.rare = None
        return result

    def two(self, x: Any, y: Any) -> Any:
        """A call with two plain tensors of one Meta."""
        m = x.meta
        a, b = x.array, y.array
        result = TensorBase.kind()
        result.array = out = empty(m.shape, m.dtype)
        m.k[self.index](a, b, out)
        result.meta = m
        result.vc = result.rare = None
        p, q = x.fn, y.fn
        if (p is None and q is None) or (modes.NO_GRAD and not modes.grad_enabled()):
            result.fn = None
            return result
        result.fn = node = self.node()
        node.e0, node.e1 = p, q
        node.c0 = node.c1 = None
        if p is not None and q is not None:
            node.s0, node.s1 = a, b
        else:  # what no gradient needs is not kept, and may be written to
            reads = node.second[1] if p is None else node.first[1]
            node.s0 = a if "x" in reads else None
            node.s1 = b if "y" in reads else None
            if p is None:
                node.c0 = x.vc or version_of(x)
            else:
                node.c1 = y.vc or version_of(y)
        node.meta = m
        node.epoch = versions.WRITES
        node.number = next_number()
        node.buf = node.vc = node.rare = None
        return result


def quick_of(op: Elementwise) -> Quick | None:
    """The quick call of an op; None where it has no common case."""
    count = len(op.inputs)
    if op.statics or op.conditions or count > 2:
        return None
    found = op.map("t" * count)
    try:
        saves = found.saves
    except TypeError:  # a scalar function without partials: the general way says so when a gradient is asked
        return None
    if found.is_condition or not all(saves) or any(RESULT in names for names in saves):
        return None
    forward = found.kernels.flat.index
    scope: dict[str, Any] = {"__slots__": (), "op": op, "__module__": "jitgrad.autograd"}
    if count == 1:
        return Quick(
            count, forward, type(op.node, (OneOperand,), {**scope, "index": found.backward((True,)).flat.index})
        )
    if set(found.saved((True, True))) != set(found.inputs):
        return None
    scope |= {
        "both": reading(found, (True, True)),
        "first": reading(found, (True, False)),
        "second": reading(found, (False, True)),
    }
    return Quick(count, forward, type(op.node, (TwoOperands,), scope))


def reading(found: Map, needs: tuple[bool, ...]) -> tuple[int, str]:
    """The number of a backward's kernel, and which operands it reads."""
    saved = found.saved(needs)
    return found.backward(needs).flat.index, "".join(
        word for word, name in zip("xy", found.inputs, strict=True) if name in saved
    )
