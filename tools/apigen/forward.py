"""The method of an elementwise op with a common case: compute, wrap, record, without one call that could be spared."""

from typing import Final

from .common_case import CommonCase
from .declarations import reference
from .templates import docstring, render

UNARY: Final = """
    def {name}(self) -> Any:
        {doc}
        m = self.meta
        if self.rare is not None or modes.SPECIAL:
            return invoke({op}, (self,))
        a = self.array
        out = empty(m.shape, m.dtype)
        m.k[{kernel}](a, out)
        t = blank()
        t.array = out
        t.meta = m
        t.vc = t.rare = None
        p = self.fn
        if p is None or (modes.NO_GRAD and not modes.grad_enabled()):
            t.fn = None
            return t
        t.fn = n = _nodes.{node}()
        n.e0 = p
        {saving}
        n.meta = m
        n.epoch = versions.WRITES
        n.number = next_number()
        n.buf = n.vc = n.rare = None
        return t
"""

BINARY: Final = """
    def {name}(self, {y}: Tensor | Number) -> Any:
        {doc}
        if type({y}) is not Tensor and not isinstance({y}, Tensor):
            return {with_number}
        m = self.meta
        if m is not {y}.meta or self.rare is not None or {y}.rare is not None or modes.SPECIAL:
            return invoke({op}, (self, {y}))
        b = {y}.array
        a = self.array
        out = empty(m.shape, m.dtype)
        m.k[{kernel}](a, b, out)
        t = blank()
        t.array = out
        t.meta = m
        t.vc = t.rare = None
        p = self.fn
        q = {y}.fn
        if (p is None and q is None) or (modes.NO_GRAD and not modes.grad_enabled()):
            t.fn = None
            return t
        t.fn = n = _nodes.{node}()
        n.e0 = p
        n.e1 = q
        {saving}
        n.meta = m
        n.epoch = versions.WRITES
        n.number = next_number()
        n.buf = n.vc = n.rare = None
        return t
"""

SAVE_OPERAND: Final = """
    n.s{place} = {array}
    if {edge} is None:
        n.c{place} = {operand}.vc or version_of({operand})
"""


def forward_method(case: CommonCase, name: str) -> str:
    """The method under a name."""
    op = case.op
    call = reference(op)
    parts = {"name": name, "doc": docstring(op.doc), "op": call, "kernel": case.kernel, "node": op.node}
    if case.unary:
        return render(UNARY, saving=save_unary(case), **parts)
    y = op.inputs[1]
    with_number = f"scalar_operand({call}, self, {y})" if op.operator else f"invoke({call}, (self, {y}))"
    saving = "".join(save_operand(case, place) for place in case.saved)
    return render(BINARY, y=y, with_number=with_number, saving=saving, **parts)


def save_unary(case: CommonCase) -> str:
    """The lines by which a node of one edge saves operand and result."""
    return "\n".join(["n.s0 = a"] * bool(case.saved) + ["n.r = out"] * case.keeps_result)


def save_operand(case: CommonCase, place: int) -> str:
    """The lines by which a node of two edges saves one operand: only if a gradient that reads it is wanted.

    The version counter is found through the edge; an operand without one has its counter saved too.
    """
    edges, readers = "pq", case.readers(place)
    condition = "" if len(readers) == 2 else f" if {edges[readers[0]]} is not None else None"
    operand = "self" if place == 0 else case.op.inputs[1]
    return render(SAVE_OPERAND, place=str(place), array="ab"[place] + condition, edge=edges[place], operand=operand)
