"""Nodes of the graph and the edges between them.

An edge is the node it leads to; where a node has several outputs an edge leads to a `Port`, a node of one output that hands its
gradient on. `Tensor.fn` is the edge that others record: the maker, a `Port` of it, or a leaf's accumulator. Nodes are numbered
downwards: the newest has the smallest number, so a heap of numbers pops the newest first, and a number is always smaller
than those of the nodes that its edges lead to.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

from .._core.hooks import RemovableHandle, add_hook
from .._core.locks import forking_lock
from .._core.meta import Meta
from . import modes
from .extras import Hook, NodeExtras
from .versions import Version

next_number: Final[Callable[[], int]] = itertools.count(-1, -1).__next__
LEAF: Final = 0  # the number of every accumulator: larger than any other, found by one comparison
ACCUMULATE: Final = forking_lock(outer=True)  # held while gradients are added to leaves: several runs may share one
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
    requires_grad: ClassVar[bool] = True  # as torch's nodes say
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

    def kept_values(self) -> list[tuple[str, Any, Node | None]]:
        """What the node keeps alive for its backward: a name, the value (RELEASED once it was let go), the edge that leads to it."""
        return []

    def check_saved(self) -> None:
        """RuntimeError where a saved value was written to."""

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """For each input the node its gradient goes to, or None, and which output of that node it is."""
        found = [(None, 0) if edge is None or type(edge) is Nowhere else target(edge) for edge in self.edges()]
        return tuple((node if node is None else node.shown(), index) for node, index in found)

    def name(self) -> str:
        """The name of the node's class, as torch has it."""
        return type(self).__name__

    def shown(self) -> Node:
        """The node itself, about to be seen by the user."""
        return self

    def output_meta(self, index: int) -> Meta | None:
        """The Meta of one of the outputs; None where it takes no gradient."""
        return self.meta

    # ---- what programs do with `grad_fn`
    def _extras(self) -> NodeExtras:
        if self.rare is None:
            self.rare = NodeExtras()
        return self.rare

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for whatever the user wants to keep here."""
        return self._extras().metadata

    def register_hook(self, fn: Hook) -> RemovableHandle:
        """Call `fn(grad_inputs, grad_outputs)` after the node was run; a tuple that it returns takes the place of `grad_inputs`."""
        return add_hook(self._extras().after, fn)

    def register_prehook(self, fn: Hook) -> RemovableHandle:
        """Call `fn(grad_outputs)` before the node is run; a tuple that it returns takes the place of `grad_outputs`."""
        return add_hook(self._extras().before, fn)

    def __call__(self, *grads: Any) -> Any:
        """Run the node by itself, without hooks: a gradient per output to a gradient, or None, per input. TypeError for other arguments."""
        if len(grads) != self.outputs:
            raise TypeError(f"expected {self.outputs} arguments, got {len(grads)} instead")
        for place, grad in enumerate(grads):
            if grad is not None and not isinstance(getattr(grad, "meta", None), Meta):
                raise TypeError(f"argument {place} is not a Variable")
        local = modes.LOCAL
        outer, local.run = local.run, modes.UserRun(local.grad, local.saved_hooks, None, True)
        try:
            results = tuple(self.call(grads, True, local.grad))
        finally:
            local.run = outer
        return results[0] if len(results) == 1 else results

    @property
    def _input_metadata(self) -> tuple[Any, ...]:
        return tuple([OutputMetadata(self.output_meta(index)) for index in range(self.outputs)])

    def _register_hook_dict(self, tensor: Any) -> None:
        """Let the hooks in the table of a tensor (`_backward_hooks`) be called with its gradient."""
        if not isinstance(getattr(tensor, "meta", None), Meta):
            raise TypeError("_register_hook_dict expected a variable")
        table = tensor._backward_hooks
        if table is not None:
            self._extras().tensor[tensor.output_nr] = table

    def _sequence_nr(self) -> int:
        return (1 << 64) - 1 if self.number == LEAF else -self.number - 1

    def _set_sequence_nr(self, number: int) -> None:
        """Choose the place in the order: among the nodes that are ready the one with the largest number is run first."""
        if not 0 <= number < 1 << 64:
            raise OverflowError("int too big to convert" if number > 0 else "can't convert negative int to unsigned")
        self._extras()  # takes it off the accelerated run, which relies on the order of recording
        self.number = -number - 1

    def __lt__(self, other: object) -> bool:
        """No node comes before another of the same number: a heap of (number, node) then gives accumulators in the order of torch's."""
        return False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {id(self):#x}>"


class Nowhere(Node):
    """Where the gradient goes of a view that has no history of its own, though its base takes a gradient (one made under `no_grad`, say).

    What is computed from such a view is recorded; what comes back is dropped. To the user there is no node.
    """

    __slots__ = ()
    arity = 0

    def __init__(self, meta: Meta) -> None:
        self.number, self.meta = LEAF, meta
        self.buf = self.vc = self.rare = None
        self.epoch = 0

    def edges(self) -> tuple[Node, ...]:
        return ()

    def owner(self) -> None:
        """There is no leaf."""

    def accept(self, grad: Any, alone: bool) -> None:
        """Drop a gradient."""

    def accept_tensor(self, grad: Any, create_graph: bool, alone: bool = False) -> None:
        """Drop a gradient."""


class Undefined(Exception):
    """Raised by `apply` where a node has no gradient for an input that has a history; `results` are those that it has."""

    def __init__(self, results: Sequence[Any]) -> None:
        self.results = results

    def pending(self, node: Node) -> list[tuple[Node, int, Any]]:
        """All that the node sends on: node, output number, gradient or None."""
        return [(*target(edge), part) for edge, part in zip(node.edges(), self.results, strict=True) if edge is not None]


class OutputMetadata:
    """Shape and dtype of a node's output."""

    __slots__ = ("_meta",)
    is_nested_tensor = False
    is_cpp_nested_tensor = False
    device = "cpu"

    def __init__(self, meta: Meta | None) -> None:
        self._meta = meta

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return () if self._meta is None else self._meta.shape

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return None if self._meta is None else self._meta.kind


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
