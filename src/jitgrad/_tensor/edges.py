"""`GradientEdge`: a place in the graph where a gradient is computed, without the tensor that led there."""

from __future__ import annotations

from typing import Any, NamedTuple

from .._engine.node import Node, target
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
