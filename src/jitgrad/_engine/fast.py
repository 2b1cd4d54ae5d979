"""The accelerated run: no hooks, no graph of the backward, the whole graph, one thread. `run.py` is the definition.

Numbers fall along edges, so the newest node of the frontier has received all it will ever get: torch's order without counting
(counting costs 1.5 us a node with a dict, 0.8 with counts on nodes; `op_chain` in benchmarks/README.md). A chain never touches
the heap. Leaves take their sums at the end, which nobody can see without hooks. Gradients are arrays. The rule that makes it
safe: an array that a node returns owns its memory, and may be written to when nothing but the engine refers to it.
"""

from __future__ import annotations

import threading
from heapq import heappop, heappush
from sys import getrefcount
from typing import Any, Final

import numpy as np

from .._kernels.basic import add_into
from .node import ACCUMULATE, LEAF, TOKEN, Node, target

Pending = tuple[Node, int, Any]  # node, output number, gradient (an array, or None)
RUN: Final = threading.Lock()  # buffers sit on the nodes, so one accelerated run at a time; others take the full engine


def _alone() -> tuple[int, int, int]:
    """What `getrefcount` says where an array is referred to by the engine alone, as this interpreter counts."""

    class Holder:
        buf: Any = None

    def callee(grad: Any) -> int:
        return getrefcount(grad)

    grad = object()
    argument = callee(grad)
    holder = Holder()
    holder.buf = object()
    held = holder.buf
    shared = getrefcount(held)
    holder.buf = None
    return argument, shared, getrefcount(held)


ALONE, ALONE_IN_BUFFER, ALONE_HERE = _alone()
ADD_INTO: Final = add_into.index


def total(held: Any, grad: Any) -> Any:
    """The sum of two gradients in a new array; of two tokens the token."""
    return TOKEN if held is TOKEN else np.add(held, grad, out=np.empty(held.shape, held.dtype))


def give(edge: Node, grad: Any, heap: list[tuple[int, Node]], leaves: list[Node]) -> None:
    """Add a gradient to an edge's buffer; schedule the edge if it is the first."""
    held = edge.buf
    if held is None:
        edge.buf = grad
        if edge.number == LEAF:
            leaves.append(edge)
        else:
            heappush(heap, (edge.number, edge))
    else:
        edge.buf = total(held, grad)


def unfinished(undefined: list[Pending], heap: list[tuple[int, Node]], leaves: list[Node]) -> list[Pending]:
    """All that still has to be sent on, for the full run to go on from."""
    pending = undefined
    for edge in (*[edge for _, edge in heap], *leaves):
        if edge.buf is TOKEN:
            gathered = edge.gathered  # type: ignore[attr-defined]
            pending += [(edge, index, grad) for index, grad in enumerate(gathered) if grad is not None]
        else:
            pending.append((*target(edge), edge.buf))
    return pending


def run(root: Node, grad: Any, keep: bool) -> list[Pending] | None:
    """Send a gradient through the graph below `root` and add to the leaves' `.grad`.

    `grad` is an array of the root's shape and dtype. Raises what a node raises; the graph stays usable. A node that gives no gradient
    for an input that has a history (a custom Function may) ends the run: nodes below must see that nothing came, which the full
    run does; the result is then what it has to start from.
    """
    heap: list[tuple[int, Node]] = []
    leaves: list[Any] = []
    node: Any = root
    after: Any = None
    try:
        while True:
            after = None
            arity = node.arity
            if arity == 1:
                first, second = node.apply(grad, keep), None
            elif arity == 2:
                first, second = node.apply(grad, keep)
            elif arity == 3:
                first, second, third = node.apply(grad, keep)
                if third is not None:
                    give(node.e2, third, heap, leaves)
                    third = None
            else:
                first = second = None
                undefined: list[Pending] = []
                for edge, part in zip(node.edges(), node.apply(grad, keep), strict=True):
                    if edge is not None:
                        if part is not None:
                            give(edge, part, heap, leaves)
                        elif edge.number != LEAF:
                            undefined.append((*target(edge), None))
                part = None
                if undefined:
                    return unfinished(undefined, heap, leaves)
            grad = None
            if first is not None:
                edge = node.e0
                held = edge.buf
                if held is None:
                    edge.buf = first
                    if edge.number == LEAF:
                        leaves.append(edge)
                    else:
                        after = edge
                elif getrefcount(held) <= ALONE_IN_BUFFER and held is not first:
                    edge.meta.k[ADD_INTO](held, first)
                else:
                    edge.buf = total(held, first)
                first = None
            if second is not None:
                edge = node.e1
                held = edge.buf
                if held is None:
                    edge.buf = second
                    if edge.number == LEAF:
                        leaves.append(edge)
                    elif after is None:
                        after = edge
                    else:
                        heappush(heap, (edge.number, edge))
                elif getrefcount(held) <= ALONE_IN_BUFFER and held is not second:
                    edge.meta.k[ADD_INTO](held, second)
                else:
                    edge.buf = total(held, second)
                second = None
            held = None
            if heap:
                if after is None or heap[0][0] < after.number:
                    if after is not None:
                        heappush(heap, (after.number, after))
                    after = heappop(heap)[1]
            elif after is None:
                break
            node = after
            grad = node.buf
            node.buf = None
        with ACCUMULATE:
            for leaf in leaves:
                grad = leaf.buf
                leaf.buf = None
                leaf.accept(grad, getrefcount(grad) <= ALONE_HERE)
        return None
    finally:
        for edge in leaves:
            edge.buf = None
        for _, edge in heap:
            edge.forget()
        if after is not None:
            after.forget()
