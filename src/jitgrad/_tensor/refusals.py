"""Values with a history that refuses to be run: where a derivative exists, but its own derivative would be wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from .._engine import versions
from .._engine.node import Node, next_number
from .base import AccumulateGrad, TensorBase, wrap
from .edges import leads_elsewhere


class Error(Node):
    """A history that refuses to be run. `edges` lead to all that the values depend on; `given` are what a backward returned together, or None."""

    __slots__ = ("_edges", "given", "text")
    _edges: tuple[Node | None, ...]
    given: Sequence[Any] | None
    text: str

    def name(self) -> str:
        return f"torch::autograd::{type(self).__name__}"

    def edges(self) -> tuple[Node | None, ...]:
        return self._edges

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """As torch shows them: a leaf in place of each value that a backward returned."""
        if self.given is None:
            return super().next_functions
        return tuple((AccumulateGrad(x) if isinstance(x, TensorBase) else None, 0) for x in self.given)

    def apply(self, grad: Any, keep: bool) -> Any:
        raise RuntimeError(self.text)

    def call(self, grads: tuple[Any, ...], keep: bool, create_graph: bool) -> Any:
        return self.apply(None, keep)


NOT_IMPLEMENTED: Final[Any] = type("NotImplemented", (Error,), {"__slots__": (), "__module__": __name__})


def not_implemented(tensor: Any, edges: tuple[Node | None, ...], name: str) -> None:
    """Let a write that has no derivative be the tensor's history."""
    tensor.fn = refusing(tensor, edges, f"derivative for {name} is not implemented", None, NOT_IMPLEMENTED).fn
    tensor.fn.vc = tensor.vc


def refusing(tensor: Any, edges: tuple[Node | None, ...], text: str, given: Sequence[Any] | None, kind: type[Error] = Error) -> Any:
    """The same values with a history that refuses."""
    result = wrap(tensor.array)
    node = result.fn = kind()
    node._edges, node.given, node.text = edges, given, text
    node.meta, node.epoch, node.number = result.meta, versions.WRITES, next_number()
    node.buf = node.vc = node.rare = None
    return result


def refuse(tensor: Any, text: str) -> Any:
    """For rules: the tensor, whose history from here on refuses to be run; as it is where it has none, or one that forward mode made up."""
    if tensor.fn is None or not leads_elsewhere(tensor.fn, lambda leaf: leaf.transient):
        return tensor
    return refusing(tensor, (tensor.fn,), text, None)

