"""The history of what a compiled function returns: none that could still be run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from .._engine.node import RELEASED, Node
from .._tensor.nodes import second_time


class Done(Node):
    """The history of a result whose graph the compiled function has already run backward: there is nothing left to run."""

    __slots__ = ()
    arity: ClassVar[int] = -1

    def edges(self) -> tuple[Node | None, ...]:
        """None."""
        return ()

    def apply(self, grad: Any, keep: bool) -> Any:
        """There is nothing to run."""
        second_time()

    def call(self, grads: tuple[Any, ...], keep: bool, create_graph: bool) -> Sequence[Any]:
        """There is nothing to run."""
        second_time()
        return ()


def is_done(fn: Any) -> bool:
    """Whether the graph behind an edge has been run and let go."""
    saved = getattr(fn, "_saved", None)
    if saved is RELEASED or getattr(fn, "values", None) is RELEASED:
        return True
    if getattr(fn, "number", 0) == 0 or saved:
        return False
    return any(edge is not None and is_done(edge) for edge in fn.edges())


def hooks_of(rare: Any) -> Any:
    """All hooks of a node, to be compared."""
    if rare is None:
        return None
    tables = [tuple(table.values()) for table in (rare.before, rare.after, rare.accumulated)]
    on_outputs = [(key, tuple(table.values())) for key, table in rare.tensor.items() if table]
    retained = [(key, tuple(calls)) for key, calls in rare.retain.items() if calls]
    return tables, on_outputs, retained, rare.takes
