"""The accelerated run: no graph of the backward, the whole graph, one thread. `run.py` is the definition, and goes on from here as soon
as a node with hooks is met.

Numbers fall along edges, so the newest node of the frontier has received all it will ever get: torch's order without counting
(counting costs 1.5 us a node with a dict, 0.8 with counts on nodes; `op_chain` in benchmarks/README.md). A chain never touches
the heap. Leaves take their sums at the end, which nobody can see without hooks. Gradients are arrays. The rule that makes it
safe: an array that a node returns owns its memory, and may be written to when nothing but the engine refers to it.
"""

from __future__ import annotations

from _heapq import heappop, heappush
from _thread import allocate_lock
from sys import getrefcount
from typing import Any, Final

import numpy as np

from .._kernels.basic import add_into
from . import modes
from .extras import NodeExtras
from .node import ACCUMULATE, LEAF, TOKEN, Node, Undefined, target

Pending = tuple[Node, int, Any]  # node, output number, gradient (an array, or None)
ENTERED: modes.UserRun | None = None
RUN: Final = allocate_lock()  # buffers sit on the nodes, so one accelerated run at a time; others take the full engine


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
            if edge.rare is not None:
                heappush(heap, (STOP.number, STOP))
        else:
            heappush(heap, (edge.number, edge))
    elif getrefcount(held) <= ALONE_IN_BUFFER and held is not grad:
        edge.meta.k[ADD_INTO](held, grad)
    else:
        edge.buf = total(held, grad)


class Stop(Node):
    """What is put at the head of the frontier when a leaf with hooks is met: has extras itself, and so ends the run."""

    __slots__ = ()

    def __init__(self) -> None:
        self.number = -(1 << 80)
        self.rare = NodeExtras()
        self.buf = None


STOP: Final = Stop()


def enter(keep: bool) -> None:
    """Before the first call of user code: switch recording off until the end of the run, which is the thread's run from now on.

    Called by nodes, and only where `modes.LOCAL.run` is None.
    """
    global ENTERED
    local = modes.LOCAL
    ENTERED = local.run = modes.UserRun(modes.set_grad(False), local.saved_hooks, [], keep)


def leave() -> None:
    """Give the thread its modes back."""
    global ENTERED
    left, ENTERED = ENTERED, None
    assert left is not None
    local = modes.LOCAL
    local.run = None
    modes.set_grad(left.grad)
    if local.saved_hooks is not left.saved_hooks:
        modes.set_saved_hooks(left.saved_hooks)


def unfinished(pending: list[Pending], heap: list[tuple[int, Node]], leaves: list[Node], node: Node | None = None) -> list[Pending]:
    """All that still has to be sent on, for the full run to go on from: last what came from `node`, in the order of its edges."""
    ends = [edge for _, edge in heap] + leaves
    if node is not None:
        last = {edge: place for place, edge in enumerate(node.edges())}
        ends.sort(key=lambda edge: last.get(edge, -1))
    for edge in ends:
        if edge is STOP:
            continue
        if edge.buf is TOKEN:
            gathered = edge.gathered  # type: ignore[attr-defined]
            pending += [(edge, index, grad) for index, grad in enumerate(gathered) if grad is not None]
        else:
            pending.append((*target(edge), edge.buf))
    return pending


def finish(leaves: list[Any]) -> None:
    """Hand the leaves their sums."""
    with ACCUMULATE:
        for leaf in leaves:
            grad = leaf.buf
            leaf.buf = None
            alone = getrefcount(grad) <= ALONE_HERE  # before the call: its arguments are references too
            leaf.accept(grad, alone)


def run(root: Node, grad: Any, keep: bool) -> list[Pending] | None:
    """Send a gradient through the graph below `root` and add to the leaves' `.grad`.

    `grad` is an array of the root's shape and dtype. Raises what a node raises; the graph stays usable. A node that gives no gradient
    for an input that has a history (a custom Function may) ends the run, since nodes below must see that nothing came; so does a
    node with hooks. The result is then what the full run has to go on from.
    """
    heap: list[tuple[int, Node]] = []
    leaves: list[Any] = []
    node: Any = root
    after: Any = None  # the next node of a chain, which never touches the heap
    try:
        while True:
            after = first = second = third = None
            arity = node.arity
            if arity == 1:
                first = node.apply(grad, keep)
            elif arity == 2:
                first, second = node.apply(grad, keep)
            elif arity == 3:
                first, second, third = node.apply(grad, keep)
            else:
                for edge, part in zip(node.edges(), node.apply(grad, keep), strict=True):
                    if part is not None and edge is not None:
                        give(edge, part, heap, leaves)
                part = None
            grad = None
            if first is not None:
                edge = node.e0
                if edge.buf is None and edge.number != LEAF:
                    edge.buf = first
                    after = edge
                else:
                    give(edge, first, heap, leaves)
                first = None
            if second is not None:
                edge = node.e1
                if after is None and edge.buf is None and edge.number != LEAF:
                    edge.buf = second
                    after = edge
                else:
                    give(edge, second, heap, leaves)
                second = None
            if third is not None:
                give(node.e2, third, heap, leaves)
                third = None
            if heap:
                if after is None or heap[0][0] < after.number:
                    if after is not None:
                        heappush(heap, (after.number, after))
                    after = heappop(heap)[1]
            elif after is None:
                break
            if after.rare is not None:
                return unfinished([], [*heap, (0, after)], leaves, node)
            node = after
            grad = node.buf
            node.buf = None
        finish(leaves)
        return None
    except Undefined as stop:
        return unfinished(stop.pending(node), heap, leaves)
    finally:
        clear(heap, leaves, after)


def clear(heap: list[tuple[int, Node]], leaves: list[Node], after: Node | None) -> None:
    """Leave no gradient on the nodes, however the run ended."""
    for edge in leaves:
        edge.buf = None
    for _, edge in heap:
        edge.forget()
    if after is not None:
        after.forget()
