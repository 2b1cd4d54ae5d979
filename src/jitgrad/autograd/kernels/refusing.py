"""What stands behind a gradient that a kernel computed where a graph of the backward is wanted: a history that says it can't be had."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..._engine import versions
from ..._engine.node import Node, next_number

if TYPE_CHECKING:
    from .node import KernelNode


class Refusing(Node):
    """Stands behind gradients that a kernel computed: they lead on to everything they depend on, but not through."""

    __slots__ = ("_edges", "words")
    _edges: tuple[Any, ...]
    words: str

    def edges(self) -> tuple[Node | None, ...]:
        """An edge per differentiable input."""
        return self._edges

    def apply(self, grad: Any, keep: bool) -> Any:
        """Arrays to arrays."""
        raise RuntimeError(self.words)

    def call(self, grads: tuple[Any, ...], keep: bool, create_graph: bool) -> Sequence[Any]:
        """Tensors to tensors; recorded where a graph of the backward is wanted."""
        raise RuntimeError(self.words)


def refuse_twice(node: KernelNode, grads: Sequence[Any], parts: list[Any]) -> None:
    """Give gradients that have no graph a history that says so when it is asked."""
    edges = tuple(
        edge for edge in [grad.fn for grad in grads if grad is not None] + list(node.edges()) if edge is not None
    )
    for part in parts:
        if part is not None and edges:
            end = type(node.label + "Backward", (Refusing,), {"__slots__": (), "__module__": "jitgrad.autograd"})()
            end._edges, end.words = edges, node.plan.contract.refusal_twice()
            end.meta, end.number, end.epoch = part.meta, next_number(), versions.WRITES
            end.buf = end.rare = end.vc = None
            part.fn = end
