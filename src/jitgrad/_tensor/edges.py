"""`GradientEdge`: a place in the graph where a gradient is computed, without the tensor that led there; where edges lead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .._engine.node import LEAF, Node, target
from .views import edge_of


class GradientEdge(NamedTuple):
    """The gradient of output `output_nr` of `node`; `ownership_token` keeps alive what the node alone would not."""

    node: Node
    output_nr: int
    ownership_token: Any = None


def get_gradient_edge(tensor: Any) -> GradientEdge:
    """The edge at which the gradient of a tensor is computed; `autograd.grad` takes it in the tensor's place.

    RuntimeError for a tensor that takes no gradient.
    """
    edge = edge_of(tensor)
    if edge is None:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return GradientEdge(*target(edge))


def leads_elsewhere(edge: Any, is_own: Callable[[Any], bool]) -> bool:
    """Whether a history leads to any leaf that is not one's own."""
    seen: set[Any] = {edge}
    todo = [edge]
    while todo:
        node = todo.pop()
        if node.number == LEAF and not is_own(node):
            return True
        for below in node.edges():
            if below is not None and below not in seen:
                seen.add(below)
                todo.append(below)
    return False
