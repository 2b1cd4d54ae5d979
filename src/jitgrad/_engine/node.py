"""Nodes of the graph and the edges between them.

An edge is the node it leads to; where a node has several outputs an edge leads to a `Port`, a node of one output that hands its
gradient on. `Tensor.fn` is the edge that others record: the maker, a `Port` of it, or a leaf's accumulator. Nodes are numbered
downwards: the newest has the smallest number, so a heap of numbers pops the newest first, and a number is always smaller
than those of the nodes that its edges lead to.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from .._core.meta import Meta
from .versions import Version

if TYPE_CHECKING:
    from .hooks import NodeExtras

next_number: Final[Callable[[], int]] = itertools.count(-1, -1).__next__
LEAF: Final = 0  # the number of every accumulator: larger than any other, found by one comparison
ACCUMULATE: Final = threading.RLock()  # held while gradients are added to leaves: several runs may share one
SECOND_TIME: Final = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed). "
    "Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if "
    "you need to backward through the graph a second time or if you need to access saved tensors after calling backward."
)


class Released:
    """Stands where a saved value was."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<released>"


RELEASED: Final = Released()


class Node:
    """One recorded op.

    `meta` is the output's Meta, `number` the place in the order, `epoch` the last write when it was recorded, `buf` the engine's
    sum of the gradients that came in, `vc` the version counter of its own output, `rare` hooks and other extras or None.
    `arity` says where the edges are: 1, 2 or 3 in the slots `e0`, `e1`, `e2`, -1 in what `edges()` returns.
    """

    __slots__ = ("__weakref__", "buf", "epoch", "meta", "number", "rare", "vc")
    arity: ClassVar[int] = -1
    outputs: int = 1
    buf: Any
    epoch: int
    meta: Meta
    number: int
    rare: NodeExtras | None
    vc: Version | None

    def edges(self) -> Sequence[Node | None]:
        """An edge per input, None where the input takes no gradient."""
        raise NotImplementedError

    def apply(self, grad: Any, keep: bool) -> Any:
        """Arrays in, arrays out: the gradient of each input (not in a tuple when `arity` is 1)."""
        raise NotImplementedError

    def call(self, grads: tuple[Any, ...], keep: bool, create_graph: bool) -> Sequence[Any]:
        """Tensors in, tensors out: what the full engine calls. `grads` has an entry, or None, per output."""
        raise NotImplementedError

    def release(self) -> None:
        """Let the saved values go."""

    def forget(self) -> None:
        """Drop what an interrupted run left here."""
        self.buf = None

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """For each input the node its gradient goes to, or None, and which output of that node it is."""
        return tuple((None, 0) if edge is None else target(edge) for edge in self.edges())

    def name(self) -> str:
        """The name of the node's class, as torch has it."""
        return type(self).__name__

    def _sequence_nr(self) -> int:
        return (1 << 64) - 1 if self.number == LEAF else -self.number - 1

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {id(self):#x}>"


class Token:
    """What a port puts into its node's `buf`: the gradients themselves wait in the node's `gathered`. A sum of tokens is a token."""

    __slots__ = ()

    def __add__(self, other: Token) -> Token:
        return self


TOKEN: Final = Token()


class Port(Node):
    """One output of a node with several."""

    __slots__ = ("e0", "index")
    arity = 1
    e0: Node
    index: int

    def __init__(self, node: Node, index: int, meta: Meta) -> None:
        self.e0, self.index, self.meta = node, index, meta
        self.number = next_number()
        self.buf = self.vc = self.rare = None
        self.epoch = node.epoch

    def edges(self) -> tuple[Node]:
        return (self.e0,)

    def apply(self, grad: Any, keep: bool) -> Token:
        gathered = self.e0.gathered  # type: ignore[attr-defined]
        held = gathered[self.index]
        gathered[self.index] = grad if held is None else held + grad  # an unpacked saved output comes by another port
        return TOKEN


def target(edge: Node) -> tuple[Node, int]:
    """The node behind an edge and which of its outputs."""
    if type(edge) is Port:
        return edge.e0, edge.index
    return edge, 0
