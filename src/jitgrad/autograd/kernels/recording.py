"""From a call of a `jit_function` to its node: edges, saved values and their version counters, a `Port` per output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._engine import anomaly, modes, versions
from ..._engine.node import Port, next_number
from ..._tensor.base import TensorBase
from ..._tensor.elementwise import counter_of
from ..._tensor.saved import pack
from ..._tensor.views import edge_of
from .mutation import link_written

if TYPE_CHECKING:
    from .plan import Plan


def record(plan: Plan, args: Sequence[Any], call: Sequence[Any], kept: Sequence[Any], results: Sequence[Any]) -> None:
    """Give the results a node if one of the differentiable inputs takes a gradient."""
    edges = [edge_of(args[place]) if isinstance(args[place], TensorBase) else None for place in plan.diff]
    likes = tuple([result.meta if result.meta.kind.is_floating_point else None for result in results])
    if all([edge is None for edge in edges]) or all([like is None for like in likes]):  # noqa: C419  (faster than a generator)
        return
    mutates = plan.contract.mutates
    several = len(results) > 1
    node = plan.node_class(2 if several else 1)()
    node.set_edges(edges)
    node.plan = plan
    node.values = plan.values([constant(x, a) for x, a in zip(call, args, strict=True)], kept)
    node.counters = None
    node.meta, node.number, node.epoch = results[0].meta, next_number(), versions.WRITES
    node.buf = node.rare = node.vc = None
    if several:
        node.set_outputs(likes)
    for place in plan.loose:
        note(node, place, args[place])
    note_unlinked(node, args, edges)
    for index, (result, like) in enumerate(zip(results, likes, strict=True)):
        end = None if like is None else Port(node, index, like) if several else node
        if index < len(mutates):
            link_written(plan.contract.name, result, end, several)
        elif end is not None:
            result.fn, end.vc = end, result.vc
    for place in plan.saved_outputs if several or mutates else ():
        note(node, place, results[len(mutates) + place - plan.count])
    if modes.SPECIAL:
        watch(node, plan, args, results)


def constant(x: Any, given: Any) -> Any:
    """An argument as it is saved: a NumPy array of the user's, which may change behind our back, is copied."""
    return x if isinstance(given, TensorBase) or not isinstance(x, np.ndarray) else x.copy()


def note(node: Any, place: int, tensor: Any) -> None:
    """Remember the version counter of a saved tensor that no edge of the node leads to."""
    node.counters = {**(node.counters or {}), place: counter_of(tensor, None)}


def note_unlinked(node: Any, args: Sequence[Any], edges: Sequence[Any]) -> None:
    """Remember the counters of saved inputs that could take a gradient and don't, or are written to."""
    plan = node.plan
    for place, edge in zip(plan.diff, edges, strict=True):
        if (edge is None or place in plan.contract.mutates) and place in plan.saved_inputs:
            note(node, place, args[place])


def watch(node: Any, plan: Plan, args: Sequence[Any], results: Sequence[Any]) -> None:
    """What the special modes do with a node that was just recorded."""
    if modes.LOCAL.anomaly is not None:
        anomaly.note(node)
    if modes.LOCAL.saved_hooks:
        values = list(node.values)
        for place in plan.saved_inputs:
            values[place] = pack(args[place], node)
        for place in plan.saved_outputs:
            values[place] = pack(results[len(plan.contract.mutates) + place - plan.count], node)
        node.values = values
