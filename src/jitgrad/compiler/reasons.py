"""Why a call did not fit a compiled version, in words; what a program is expected to compute."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .history import hooks_of
from .operations import Gemm, Map, Reduce, Update
from .schedule import Schedule, expr_cost


def why_not(version: Any, tensors: Sequence[Any], spec: Any) -> str:
    """The first thing that is not as a version was made for."""
    if version.spec != spec:
        return "other arguments beside the tensors"
    for place, (tensor, meta) in enumerate(zip(tensors, version.argument_metas, strict=True)):
        if tensor.meta is not meta:
            return f"argument {place} is {described(tensor.meta)}, not {described(meta)}"
        if (tensor.fn is not None) is not version.argument_leaf[place]:
            return f"argument {place} {'takes' if tensor.fn is not None else 'takes no'} gradient"
    changed: str = version.guards.differs()
    if changed:
        return f"{changed} changed"
    for (tensor, _, fn, rare), meta, hooks in zip(version.captured, version.captured_metas, version.hooks, strict=True):
        if tensor.meta is not meta:
            return f"a captured tensor is {described(tensor.meta)}, not {described(meta)}"
        if tensor.fn is not fn:
            return "whether a captured tensor takes a gradient"
        if fn is not None and (fn.rare is not rare or hooks_of(fn.rare) != hooks):
            return "hooks of a captured tensor"
    if version.program.recipes and not version.read_hyper():
        return "options of an optimizer that ask for another rule"
    return "gradients that are there, or not, when the call begins"


def described(meta: Any) -> str:
    """Dtype and shape."""
    return f"{meta.dtype.name}{list(meta.shape)}"


def operations_of(schedule: Schedule) -> int:
    """Floating-point operations of a call, roughly: two per multiplication of a product, one per addition or so of an expression."""
    total = 0
    for op in schedule.operations:
        if isinstance(op, Gemm):
            total += 2 * math.prod(op.outs[0].shape) * op.a.shape[-1]
        elif isinstance(op, Map):
            total += op.outs[0].numel * expr_cost(op.expr)
        elif isinstance(op, Reduce):
            total += math.prod(op.operand.shape)
        elif isinstance(op, Update):
            total += op.outs[0].numel * sum(expr_cost(expr) for expr in op.exprs)
    return total


def explained(version: Any) -> list[str]:
    """What a version is made of."""
    schedule, program = version.program.schedule, version.program
    lines = [
        f"version {version.digest}: {len(schedule.operations)} operations in {len(schedule.groups)} groups, {program.arena} bytes of arena, "
        f"about {operations_of(schedule):,} floating-point operations a call"
    ]
    for group in schedule.groups:
        names = ", ".join(out.label for sink in group.sinks for out in sink.op.outs)
        inlined = "" if group.opaque else f"  ({group.rows} rows)" if group.rows > 1 else ""
        lines.append(f"  {group.number}: {names}{inlined}")
    lines.append(f"  captured: {len(version.captured)} tensors, {sum(a.nbytes for _, a, _, _ in version.captured)} bytes")
    lines += [f"    {described(tensor.meta)}" for tensor, _, _, _ in version.captured]
    guards = version.guards
    lines.append(f"  guards: {len(guards.entries)} entries, {len(guards.held)} containers, {version.argument_count} arguments")
    lines += [f"    {name}" for name in dict.fromkeys(entry.name for entry in guards.entries)]
    return lines
