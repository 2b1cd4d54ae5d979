"""The run of a backward: count, seed, then for each node in turn pre-hooks, call, post-hooks, validate, release, scatter.

This is the definition. Its state is in dicts, so runs may nest and several threads may run at once. Gradients are tensors; they
are seen through a small protocol (`+`, `meta`, `sum_to_size`, `to`). Order is torch's: among the nodes whose gradients are complete
the newest first, accumulators before all others.
"""

from __future__ import annotations

from _heapq import heappop, heappush
from collections.abc import Iterable, Sequence
from sys import getrefcount
from typing import TYPE_CHECKING, Any, Protocol

from .._core.late import LateModule
from .._core.meta import Meta, meta_for
from . import modes
from .hooks import call_after, call_before, call_tensor_hooks
from .node import LEAF, Node, target

if TYPE_CHECKING:
    from . import anomaly
else:
    anomaly = LateModule("jitgrad._engine.anomaly")

Output = tuple[Node, int]
Seed = tuple[Node, int, Any]  # a node, the number of one of its outputs, the gradient of that, or None where there is none


class Gradient(Protocol):
    """What the engine asks of a gradient."""

    meta: Meta

    def __add__(self, other: Any) -> Any: ...
    def sum_to_size(self, *size: Any) -> Any: ...
    def to(self, *args: Any) -> Any: ...


def _alone() -> tuple[int, int]:
    """What `getrefcount` says in `run_leaf` of a gradient, and of its array, that the engine alone refers to."""

    class Holder:
        def __init__(self) -> None:
            self.array = object()

    def run_leaf(grads: tuple[Holder, ...]) -> tuple[int, int]:
        grad = grads[0]
        return getrefcount(grad), getrefcount(grad.array)

    return run_leaf((Holder(),))


ALONE, ALONE_ARRAY = _alone()


class Run:
    """One backward. `captures` maps an output of a node to the places in the result that want its gradient, `accumulate` names nodes
    (leaves, mostly) to be run; where one of the two is given, only what lies between the roots and them is run.
    """

    def __init__(self, keep: bool, create_graph: bool, captures: dict[Output, list[int]] | None = None,
                 accumulate: frozenset[Node] = frozenset()) -> None:  # fmt: skip
        self.keep = keep
        self.create_graph = create_graph
        self.captures = captures
        self.accumulate = accumulate
        self.captured: dict[int, Any] = {}
        self.waiting: dict[Node, int] = {}  # how many edges to a node have not delivered yet
        self.gathered: dict[Node, list[Any]] = {}  # the sums that came in, one per output
        self.ready: list[tuple[int, Node]] = []
        self.roots: list[Node] = []  # where the run starts
        self.needed: set[Node] | None = None  # None: all nodes
        self.wanted: set[Node] = set()  # the nodes whose gradients are captured
        self.after_all: list[Any] = []  # functions to call at the end
        self.watch: anomaly.Watch | Any = None  # what the steps go through, if anything
        self.current: Node | None = None  # the node that runs, in anomaly mode

    def __call__(self, seeds: Iterable[Seed]) -> dict[int, Any]:
        """Run from the given gradients of outputs; returns the captured ones by place."""
        seeds = list(seeds)
        roots = self.roots = list(dict.fromkeys(node for node, _, _ in seeds))
        self.count(roots)
        local = modes.LOCAL
        outer, local.run = local.run, self
        was, saved_hooks = modes.set_grad(self.create_graph), local.saved_hooks
        modes.RUNNING.append(None)
        self.watch = anomaly.Watch(local.anomaly) if local.anomaly is not None else local.profile
        try:
            for node, index, grad in seeds:
                if grad is not None and node.number == LEAF and node.rare is not None:  # it may have chosen a dtype
                    grad = fit(grad, taken(node, grad), node, index)
                self.collect(node, index, grad)
            for node in roots:
                if self.waiting[node] == 0:
                    self.push(node)
            while self.ready:
                node = heappop(self.ready)[1]
                if self.watch is None:
                    self.step(node)
                else:
                    self.watch.step(self, node)
            for function in self.after_all:
                function()
        finally:
            modes.RUNNING.pop()
            modes.set_grad(was)
            local.run = outer
            if local.saved_hooks is not saved_hooks:  # a hook set some and left them
                modes.set_saved_hooks(saved_hooks)
        return self.captured

    # ---- stages
    def count(self, roots: Sequence[Node]) -> None:
        """How many edges lead to each node; with captures, which nodes lead to one."""
        above: dict[Node, list[Node]] = {}
        waiting = self.waiting
        todo = list(roots)
        waiting.update(dict.fromkeys(roots, 0))
        partial = self.captures is not None
        while todo:
            node = todo.pop()
            for edge in node.edges():
                if edge is not None:
                    below = target(edge)[0]
                    if below not in waiting:
                        waiting[below] = 0
                        todo.append(below)
                    waiting[below] += 1
                    if partial:
                        above.setdefault(below, []).append(node)
        if partial:
            self.wanted = {node for node, _ in self.captures or ()}
            self.needed = {node for node in self.accumulate if node in waiting}
            self.mark_needed(above)

    def mark_needed(self, above: dict[Node, list[Node]]) -> None:
        """The nodes from which one that is wanted can be reached."""
        needed = self.needed
        assert needed is not None
        todo = list(self.wanted | needed)
        while todo:
            for node in above.get(todo.pop(), ()):
                if node not in needed:
                    needed.add(node)
                    todo.append(node)

    def push(self, node: Node) -> None:
        number = node.number if node.number != LEAF else -(1 << 62)
        heappush(self.ready, (number, node))

    def collect(self, node: Node, index: int, grad: Any) -> None:
        """Add a gradient to an output's sum."""
        sums = self.gathered.get(node)
        if sums is None:
            sums = self.gathered[node] = [None] * node.outputs
        if grad is not None:
            held = sums[index]
            sums[index] = grad if held is None else held + grad

    def step(self, node: Node) -> None:
        """One node whose gradients are complete."""
        grads = tuple(self.gathered.pop(node))
        rare = node.rare
        if self.needed is not None:
            runs = node in self.needed
            if rare is not None and not runs:
                grads = call_tensor_hooks(rare, grads)
            if node in self.wanted:  # of a node that runs too, torch captures what its hooks have not seen yet
                self.capture(node, grads)
            if not runs:
                return
        seen: tuple[Any, ...] = ()  # what torch tells of the gradients to hooks that the node's own call puts on it
        if rare is not None:
            grads = call_before(rare, call_tensor_hooks(rare, grads))
            seen = grads if rare.after else ()
        results = self.run_leaf(node, grads) if node.number == LEAF else validate(node, node.call(grads, self.keep, self.create_graph))
        if self.needed is not None and (node.rare is not None or self.watch is not None):  # nobody else sees what isn't handed on
            results = self.only_needed(node, results)
        if node.rare is not None:
            results = call_after(node.rare, results, seen)
        if not self.keep:
            node.release()
        if self.watch is not None:
            self.watch.check(node, results)
        self.scatter(node, results)

    def run_leaf(self, node: Any, grads: tuple[Any, ...]) -> Sequence[Any]:
        """Add to a leaf's `.grad`; its hooks are called even where no gradient came."""
        rare, grad = node.rare, grads[0]
        alone = getrefcount(grad) <= ALONE and getrefcount(grad.array) <= ALONE_ARRAY if grad is not None else False
        if rare is None or not rare.accumulated:
            if grad is not None:
                node.accept_tensor(grad, self.create_graph, alone)
            return ()
        with rare.guard():  # as in torch: no other run adds to the leaf between the sum and the hooks, which may take the sum away
            if grad is not None:
                node.accept_tensor(grad, self.create_graph, alone)
            leaf = node.variable
            for hook in list(rare.accumulated.values()):
                if hook(leaf) is not None:
                    raise RuntimeError("Tensor post accumulate grad hooks should return None.")
        return ()

    def capture(self, node: Node, grads: tuple[Any, ...]) -> None:
        """Note the gradients that were asked for."""
        assert self.captures is not None
        for index, grad in enumerate(grads):
            for place in self.captures.get((node, index), ()):
                self.captured[place] = grad

    def executes(self, node: Node) -> bool:
        """Whether a node has anything to do in a partial run."""
        return self.needed is None or node in self.needed or node in self.wanted

    def only_needed(self, node: Node, results: Sequence[Any]) -> Sequence[Any]:
        """In a partial run, None for the inputs that lead to nothing that is wanted."""
        return [grad if edge is not None and self.executes(target(edge)[0]) else None
                for edge, grad in zip(node.edges(), results, strict=True)]  # fmt: skip

    def scatter(self, node: Node, results: Sequence[Any]) -> None:
        """Hand the results on; a node that has received all it will get becomes ready."""
        for edge, grad in zip(node.edges(), results, strict=True):
            if edge is None:
                continue
            below, index = target(edge)
            self.waiting[below] -= 1
            if self.executes(below):
                self.collect(below, index, grad)
                if self.waiting[below] == 0:
                    self.push(below)


def validate(node: Node, results: Sequence[Any]) -> list[Any]:
    """The one place where a gradient gets the shape and dtype of what it is a gradient of."""
    edges = node.edges()
    if len(results) != len(edges):
        raise RuntimeError(f"Function {node.name()} returned an incorrect number of gradients (expected {len(edges)}, got {len(results)})")
    return [grad if edge is None or grad is None else fit(grad, edge.meta if edge.rare is None else taken(edge, grad), node, index)
            for index, (edge, grad) in enumerate(zip(edges, results, strict=True))]  # fmt: skip


def taken(edge: Node, grad: Any) -> Meta:
    """The shape and dtype that a gradient gets on its way to a node with extras: a leaf may ask for another dtype than its own."""
    takes: Any = ... if edge.rare is None else edge.rare.takes
    if takes is ...:
        return edge.meta
    if takes is not None and not takes.is_floating_point:
        raise RuntimeError(f"a gradient can't have the dtype {takes} that was chosen by grad_dtype")
    return meta_for(edge.meta.shape, grad.meta.dtype if takes is None else takes.numpy)


def fit(grad: Any, meta: Meta, node: Node, index: int) -> Any:
    """Un-broadcast and cast one gradient."""
    have = grad.meta
    if have is meta:
        return grad
    if have.shape != meta.shape:
        if not expandable(meta.shape, have.shape):
            raise RuntimeError(f"Function {node.name()} returned an invalid gradient at index {index} - got {list(have.shape)} "
                               f"but expected shape compatible with {list(meta.shape)}")  # fmt: skip
        grad = grad.sum_to_size(meta.shape)
    return grad if grad.meta.dtype == meta.dtype else grad.to(meta.kind)


def expandable(small: tuple[int, ...], large: tuple[int, ...]) -> bool:
    """Whether `small` broadcasts to `large`."""
    return len(small) <= len(large) and all(a in (1, b) for a, b in zip(reversed(small), reversed(large), strict=False))
