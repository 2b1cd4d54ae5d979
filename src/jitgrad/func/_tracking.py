"""Inputs that a reverse-mode transform follows, and results that it lets go of.

An input gets a view of its own, so that the same tensor captured elsewhere is not taken for it. Where the input has no history the view is
a leaf of the transform's; what leads to such leaves alone loses its history when it leaves the transform.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._engine import modes
from .._tensor import Tensor
from .._tensor.backward import grad
from .._tensor.base import AccumulateGrad, version_of, wrap
from .._tensor.dual_rules import StandIn
from .._tensor.edges import leads_elsewhere
from .._tensor.views import edge_of


def twin(x: Any, of_tangent: Callable[[Any], Any]) -> Any:
    """A tensor over the same memory without history, with what `of_tangent` makes of the tangents."""
    result = wrap(x.array)
    result.vc = version_of(x)
    level = modes.LOCAL.level if modes.SPECIAL else None
    while level is not None:
        tangent = level.of(x)
        if tangent is not None:
            level.hold(result, of_tangent(tangent))
        level = level.outer
    return result


class Tracking:
    """The leaves of one call of a transform."""

    def __init__(self) -> None:
        self.own: set[Any] = set()
        self.keep = modes.grad_enabled()  # whether results may have a history at all

    def follow(self, x: Any) -> Any:
        """A view of an input that takes a gradient, or a leaf over its memory.

        ValueError for what is no tensor, RuntimeError for a dtype that takes none.
        """
        if not isinstance(x, Tensor):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}")
        if not x.meta.kind.is_floating_point:
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        if edge_of(x) is not None:
            return x.view_as(x)
        leaf = x.clone() if x.is_inference() else twin(x, lambda tangent: tangent)
        leaf.fn = AccumulateGrad(leaf)
        self.own.add(leaf.fn)
        return leaf

    def leads_out(self, x: Any) -> bool:
        """Whether a tensor depends on anything outside that takes a gradient."""
        edge = edge_of(x)
        return edge is not None and leads_elsewhere(edge, lambda leaf: leaf in self.own or type(leaf) is StandIn)

    def release(self, x: Any) -> Any:
        """A result as it leaves the transform: with a history only where that leads out."""
        if not isinstance(x, Tensor) or edge_of(x) is None or (self.keep and self.leads_out(x)):
            return x
        return twin(x, self.release)

    def gradients(self, outputs: Sequence[Any], inputs: Sequence[Any], seeds: Sequence[Any] | None, retain: bool = False,
                  create_graph: bool | None = None) -> list[Any]:  # fmt: skip
        """The gradients of outputs, zeros where there are none; with a graph if the outputs or seeds lead out (and recording was on)."""
        given = [None] * len(outputs) if seeds is None else seeds
        pairs = [(x, seed) for x, seed in zip(outputs, given, strict=True) if x.requires_grad]
        if not pairs:
            return [x.new_zeros(x.meta.shape) for x in inputs]
        if create_graph is None:
            create_graph = self.keep and any(self.leads_out(x) or (seed is not None and seed.requires_grad) for x, seed in pairs)
        found = grad([x for x, _ in pairs], inputs, [seed for _, seed in pairs], retain or create_graph, create_graph, allow_unused=True)
        return [x.new_zeros(x.meta.shape) if part is None else self.release(part) for x, part in zip(inputs, found, strict=True)]
