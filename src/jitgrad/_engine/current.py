"""The node that runs and the graph it belongs to, for those who ask during a backward.

They are found on the stack of the thread: to note the running node would cost every node of every backward, and hardly anybody asks.
"""

from __future__ import annotations

import sys
from _heapq import heappop
from typing import Any, Final

from . import fast, modes
from .node import Node, target
from .run import Run

_FRAMES: Final = frozenset((fast.run.__code__, Run.step.__code__))


def _innermost() -> Any:
    """The local variables of the innermost run of this thread where it calls a node; none outside a backward."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code not in _FRAMES:
        frame = frame.f_back  # type: ignore[assignment]
    return {} if frame is None else frame.f_locals


def current_node() -> Node | None:
    """The node whose hooks or backward run in this thread, None outside a backward."""
    node: Node | None = _innermost().get("node")
    return None if node is None else node.shown()


def current_run() -> Any:
    """The backward that runs in this thread, None outside one. (A node that is called by itself is none.)"""
    run = modes.LOCAL.run
    return None if run is None or run.after_all is None else run


def dependencies() -> dict[Node, int]:
    """All nodes of the backward that runs in this thread, and how many edges lead to each."""
    known: dict[Node, int] = dict.fromkeys(_roots(), 0)
    todo = list(known)
    while todo:
        for edge in todo.pop().edges():
            if edge is not None:
                below = target(edge)[0]
                if below not in known:
                    known[below] = 0
                    todo.append(below)
                known[below] += 1
    return known


def _roots() -> list[Node]:
    run = modes.LOCAL.run
    if isinstance(run, Run):
        return run.roots
    root = _innermost()["root"]  # without a number it stands for several
    return list(dict.fromkeys(target(edge)[0] for edge in ([root] if hasattr(root, "number") else root.edges())))


def executes(node: Node) -> bool:
    """Whether the backward that runs in this thread has anything to do at a node."""
    run = modes.LOCAL.run
    if run.needed is None:
        return node in dependencies()
    answer: bool = run.executes(node)
    return answer


def order() -> list[Node]:
    """The nodes of the backward that runs in this thread in the order of their execution, from the first one on."""
    waiting = dependencies()
    planned = Run(True, False)
    for node in _roots():
        if waiting[node] == 0:
            planned.push(node)
    found = []
    while planned.ready:
        node = heappop(planned.ready)[1]
        found.append(node.shown())
        for edge in node.edges():
            if edge is not None:
                below = target(edge)[0]
                waiting[below] -= 1
                if waiting[below] == 0 and executes(below):
                    planned.push(below)
    return found
