"""`saved_memory`: which node keeps how many bytes alive for its backward."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ..._engine.node import LEAF
from .tables import ROWS, counted, html_table, shortened, size_of, text_table
from .walk import Names, held_by, line_of, nodes_below, roots_of

__all__ = ["SavedMemory", "SavedValue", "saved_memory"]


class SavedValue(NamedTuple):
    """One value that a node saved.

    `nbytes` is what it adds to the total: 0 where the memory was counted with an older node's value (`shared`). A view keeps all
    of its base alive, so that `nbytes` may be more than shape and dtype tell. `leaf` says that the memory is a leaf's, which lives
    on without the graph; `line` is `file:line in function`, known where the op was recorded in anomaly mode.
    """

    op: str
    name: str
    shape: tuple[int, ...]
    dtype: str
    nbytes: int
    shared: bool
    leaf: bool
    tensor: str
    line: str


class SavedMemory:
    """The result of `saved_memory`: prints as a table; iterable, the largest value first."""

    def __init__(self, values: list[SavedValue], nodes: int) -> None:
        self.values = sorted(values, key=lambda value: -value.nbytes)
        self.nodes = nodes

    @property
    def total(self) -> int:
        """Bytes that the graph keeps alive, each piece of memory counted once."""
        return sum(value.nbytes for value in self.values)

    @property
    def of_leaves(self) -> int:
        """The part of `total` that belongs to leaves: it is not freed with the graph."""
        return sum(value.nbytes for value in self.values if value.leaf)

    def by_op(self) -> dict[str, int]:
        """Bytes by the name of the node, most first."""
        return self._by("op")

    def by_line(self) -> dict[str, int]:
        """Bytes by the line of the program that called the op, most first; '' for ops that were not recorded in anomaly mode."""
        return self._by("line")

    def _by(self, field: str) -> dict[str, int]:
        sums: dict[str, int] = {}
        for value in self.values:
            key = getattr(value, field)
            sums[key] = sums.get(key, 0) + value.nbytes
        return dict(sorted(sums.items(), key=lambda item: -item[1]))

    def __iter__(self) -> Iterator[SavedValue]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)

    def _title(self) -> str:
        leaves = f", {size_of(self.of_leaves)} of them the leaves' own" if self.of_leaves else ""
        values, nodes = counted(len(self.values), "saved value"), counted(self.nodes, "node")
        return f"{size_of(self.total)} kept alive by {values} of {nodes}{leaves}"

    def _table(self) -> tuple[list[str], list[Any], list[int]]:
        head = ["op", "saved", "shape", "dtype", "bytes", "memory of", "line"]
        rows = [
            (value.op, value.name, str(list(value.shape)), value.dtype, "shared" if value.shared else f"{value.nbytes:,}",
             value.tensor or ("a leaf" if value.leaf else ""), value.line)
            for value in self.values
        ]  # fmt: skip
        if not any(value.line for value in self.values):
            head, rows = head[:-1], [row[:-1] for row in rows]  # type: ignore[misc]
        return head, shortened(rows, ROWS, "values"), [4]

    def __str__(self) -> str:
        sums = [(op, f"{count:,}") for op, count in self.by_op().items()]
        parts = [
            self._title(),
            "",
            text_table(["op", "bytes"], shortened(sums, ROWS, "ops"), [1]),
            "",
            text_table(*self._table()),
        ]
        lines = self.by_line()
        if set(lines) - {""}:
            rows = [(line or "(recorded outside of anomaly mode)", f"{count:,}") for line, count in lines.items()]
            parts[2:2] = [text_table(["line", "bytes"], shortened(rows, ROWS, "lines"), [1]), ""]
        return "\n".join(parts)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(self._title(), *self._table())


def saved_memory(outputs: Any, params: Any = None) -> SavedMemory:
    """Which node of the graph behind `outputs` keeps how many bytes alive until its backward has run.

    `outputs`: a tensor of any shape, a `GradientEdge` or a node, or several of them. `params` names tensors: a module, a dict, or
    pairs of name and tensor. Memory that several values share is counted once, with the oldest node that keeps it. Where an op was
    recorded under `detect_anomaly()` the line that called it is known. RuntimeError for a tensor that takes no gradient, TypeError
    for what is no tensor.

    >>> import jitgrad
    >>> x = jitgrad.ones(10, requires_grad=True)
    >>> y = x.exp()
    >>> memory = jitgrad.autograd.graph.saved_memory((y * y).sum())
    >>> memory.total, memory.by_op()
    (40, {'ExpBackward0': 40, 'MulBackward0': 0})
    """
    names = Names(params)
    nodes = nodes_below(roots_of(outputs, "saved_memory"))
    seen: set[int] = set()
    values = []
    keeping = 0
    for node in reversed(nodes):  # oldest first
        held = held_by(node)
        keeping += bool(held)
        line = line_of(node) if held else ""
        for value in held:
            fresh = {owner: nbytes for owner, nbytes in value.pieces if owner not in seen}
            seen.update(fresh)
            shared, nbytes = bool(value.pieces) and not fresh, sum(fresh.values())
            leaf = value.array is not None and value.edge is not None and value.edge.number == LEAF
            what = (
                names.label(node),
                value.name,
                value.shape,
                value.dtype,
                nbytes,
                shared,
                leaf,
                names.of_value(value) or "",
                line,
            )
            values.append(SavedValue(*what))
    return SavedMemory(values, keeping)
