"""A `jit_function` in forward mode."""

from __future__ import annotations

from typing import Any

from ..._engine import modes
from ..._engine.node import target
from ..._tensor.base import TensorBase
from ..._tensor.dual_rules import transposed


def call_dual(function: Any, args: tuple[Any, ...]) -> Any:
    """A call in forward mode: the tangents come from the double backward, as from a transposed transpose."""
    local, contract = modes.LOCAL, function._contract
    level = local.level
    tangents = [level.of(x) if isinstance(x, TensorBase) else None for x in args]
    local.level = level.outer
    try:
        if all(tangent is None for tangent in tangents):
            return function.general(args)
        if contract.rule is None or contract.mutates:
            raise NotImplementedError(contract.refusal_forward())
        results, found = transposed(function.general, args, tangents, lambda node: node.plan.diff)
        outs = results if isinstance(results, tuple) else (results,)
        for out, tangent in zip(outs, found, strict=False):
            if tangent is not None:
                level.give(out, tangent)
        node: Any = next((target(out.fn)[0] for out in outs if out.fn is not None), None)
        for place in () if node is None else (*node.plan.saved_inputs, *node.plan.saved_outputs):
            tangent = level.of((*args, *outs)[place]) if isinstance((*args, *outs)[place], TensorBase) else None
            if tangent is not None:
                level.note_one(node, place, tangent)
    finally:
        local.level = level
    return results
