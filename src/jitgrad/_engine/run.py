"""The run of a backward: count, seed, then for each node in turn pre-hooks, apply, post-hooks, validate, release, scatter.

This is the definition. Its state is in dicts, so runs may nest and several threads may run at once. Gradients are tensors; they
are seen through a small protocol (`+`, `meta`, `sum_to_size`, `to`). Order is torch's: among the nodes whose gradients are complete
the newest first, accumulators before all others.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from typing import Any, Protocol

from .._core.meta import Meta
from . import modes
from .node import LEAF, Node, target

Output = tuple[Node, int]


class Gradient(Protocol):
    """What the engine asks of a gradient."""

    meta: Meta

    def __add__(self, other: Any) -> Any: ...
    def sum_to_size(self, *size: Any) -> Any: ...
    def to(self, *args: Any) -> Any: ...


class Run:
    """One backward. `captures` maps an output of a node to the places in the result that want its gradient; with captures only
    the part of the graph between the roots and them is run, and nothing is accumulated unless `accumulate` names it."""

    def __init__(self, keep: bool, create_graph: bool, captures: dict[Output, list[int]] | None = None,
                 accumulate: frozenset[Node] = frozenset()) -> None:  # fmt: skip
        self.keep = keep
        self.create_graph = create_graph
        self.captures = captures
        self.accumulate = accumulate
        self.captured: dict[int, Any] = {}
        self.waiting: dict[Node, int] = {}
        self.gathered: dict[Node, list[Any]] = {}
        self.ready: list[tuple[int, int, Node]] = []
        self.needed: set[Node] | None = None
        self.tick = itertools.count().__next__

    def __call__(self, seeds: Iterable[tuple[Node, int, Any]]) -> dict[int, Any]:
        """Run from the given gradients of outputs; returns the captured ones by place."""
        seeds = [(*target(node), grad) if index < 0 else (node, index, grad) for node, index, grad in seeds]
        roots = list(dict.fromkeys(node for node, _, _ in seeds))
        self.count(roots)
        was = modes.set_grad(self.create_graph)
        try:
            for node, index, grad in seeds:
                self.collect(node, index, grad)
            for node in roots:
                if self.waiting[node] == 0:
                    self.push(node)
            while self.ready:
                self.step(heappop(self.ready)[2])
        finally:
            modes.set_grad(was)
        return self.captured

    # ---- stages
    def count(self, roots: Sequence[Node]) -> None:
        """How many edges lead to each node that will run; which nodes lead to a capture."""
        order: list[Node] = []
        waiting = self.waiting
        todo = list(roots)
        waiting.update(dict.fromkeys(roots, 0))
        while todo:
            node = todo.pop()
            order.append(node)
            for edge in node.edges():
                if edge is not None:
                    below = target(edge)[0]
                    if below not in waiting:
                        waiting[below] = 0
                        todo.append(below)
                    waiting[below] += 1
        if self.captures is not None:
            self.mark_needed(order)

    def mark_needed(self, order: list[Node]) -> None:
        """The nodes from which a capture, or a leaf to accumulate into, can be reached."""
        wanted = {node for node, _ in self.captures or ()} | self.accumulate
        self.needed = needed = set()
        # a node's number is smaller than those below it, so from the largest number up every node sees its edges decided
        for node in sorted(order, key=lambda node: -node.number if node.number != LEAF else -1):
            if any(below in wanted or below in needed for below in (target(edge)[0] for edge in node.edges() if edge is not None)):
                needed.add(node)

    def push(self, node: Node) -> None:
        number = node.number if node.number != LEAF else -(1 << 62)
        heappush(self.ready, (number, self.tick(), node))

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
        grads = tuple(self.gathered.pop(node, ()))
        grads = self.before(node, grads)
        runs = self.needed is None or node in self.needed or node in self.accumulate
        if node.number == LEAF:
            if runs and grads and grads[0] is not None:
                node.accept_tensor(grads[0], self.create_graph)  # type: ignore[attr-defined]
            return
        results: Sequence[Any]
        if runs:
            results = node.call(grads, self.keep, self.create_graph)
            results = self.after(node, results, grads)
            results = validate(node, results)
        else:
            results = (None,) * len(node.edges())
        if runs and not self.keep:
            node.release()
        self.scatter(node, results)

    def before(self, node: Node, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        """Tensor hooks, capture, retained gradients, then the node's own pre-hooks."""
        extras = node.rare
        if extras is not None:
            for index, hooks in extras.tensor.items():
                grads = run_tensor_hooks(node, grads, index, hooks)
            for index, keep in extras.retain.items():
                keep(grads[index])
        if self.captures is not None:
            for index, grad in enumerate(grads):
                for place in self.captures.get((node, index), ()):
                    self.captured[place] = grad
        if extras is not None and (self.needed is None or node in self.needed or node in self.accumulate):
            for hook in list(extras.before.values()):
                changed = hook(grads)
                if changed is not None:
                    grads = changed if isinstance(changed, tuple) else (changed,)
        return grads

    def after(self, node: Node, results: Sequence[Any], grads: tuple[Any, ...]) -> Sequence[Any]:
        """The node's post-hooks; each may put other gradients in place of the results."""
        if node.rare is None:
            return results
        for hook in list(node.rare.after.values()):
            changed = hook(tuple(results), grads)
            if changed is not None:
                results = changed if isinstance(changed, tuple) else (changed,)
        return results

    def scatter(self, node: Node, results: Sequence[Any]) -> None:
        """Hand the results on; a node that has received all it will get becomes ready."""
        for edge, grad in zip(node.edges(), results, strict=True):
            if edge is None:
                continue
            below, index = target(edge)
            self.collect(below, index, grad)
            self.waiting[below] -= 1
            if self.waiting[below] == 0:
                self.push(below)


def run_tensor_hooks(node: Node, grads: tuple[Any, ...], index: int, hooks: Any) -> tuple[Any, ...]:
    """The hooks of one output, in order; a hook's result takes the gradient's place."""
    grad = grads[index] if index < len(grads) else None
    if grad is None:
        return grads
    for hook in list(hooks.values()):
        changed = hook(grad)
        if changed is not None:
            check_replacement(changed, grad)
            grad = changed
    return (*grads[:index], grad, *grads[index + 1 :])


def check_replacement(new: Any, old: Any) -> None:
    """A hook may change the value of a gradient only."""
    meta = getattr(new, "meta", None)
    if not isinstance(meta, Meta):
        raise TypeError(f"expected Variable, but hook returned '{type(new).__name__}'")
    if meta.shape != old.meta.shape:
        raise RuntimeError(f"hook '{'unknown'}' has changed the size of value")
    if meta.dtype != old.meta.dtype:
        raise RuntimeError(f"hook '{'unknown'}' has changed the type of value (was torch.{old.meta.kind} got torch.{meta.kind})")


def validate(node: Node, results: Sequence[Any]) -> list[Any]:
    """The one place where a gradient gets the shape and dtype of what it is a gradient of."""
    edges = node.edges()
    if len(results) != len(edges):
        raise RuntimeError(f"Function {node.name()} returned an incorrect number of gradients (expected {len(edges)}, got {len(results)})")
    return [grad if edge is None or grad is None else fit(grad, edge.meta, node, index)
            for index, (edge, grad) in enumerate(zip(edges, results, strict=True))]  # fmt: skip


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
