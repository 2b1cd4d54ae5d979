"""Which loops there are: what is stored, what is computed where it is needed, and what shares a loop.

Everything but a Map is computed once and stored, a *sink*. A Map is put into the loops that read it, unless it must lie in memory or would be
computed dearly in several loops. Sinks that run over the same rows share a group: one loop over rows, and in it, stage by stage, loops over
columns; a row's sum made in one stage is a number in the next. Sums over all rows end a group for those who read them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from .._expr import Expr, topological
from .access import Place, compose, place
from .graph import Graph
from .operations import Call, Collect, Gemm, Map, Operation, Reduce, Rowwise, Unsupported, Update, Value, View

WIDE = 8  # columns from which a loop over rows is as good as a flat one
_DEAR = frozenset({"exp", "log", "tanh", "sigmoid", "erf", "erfc", "sin", "cos", "tan", "pow", "log1p", "expm1", "softplus", "logsigmoid", "sqrt",
                   "rsqrt", "div", "exp2", "log2", "log10", "sinh", "cosh", "asin", "acos", "atan", "atan2", "hypot", "logaddexp",
                   "xlogy"})  # fmt: skip


@dataclass(eq=False)
class Space:
    """How a sink's axes become rows and columns. `role`: "map", "row" (a result per row), "column" (per column), "full" (one), "nest" (any axes)."""

    role: str
    order: tuple[int, ...]
    split: int
    rows: int
    columns: int


@dataclass(eq=False)
class Sink:
    """A value that is computed in a loop of its own or shared: where."""

    op: Operation
    space: Space | None = None
    group: int = -1
    stage: int = 0


@dataclass(eq=False)
class Group:
    """Sinks that run in one loop over rows; `opaque` for a single operation that is no loop of ours."""

    number: int
    rows: int
    columns: int  # of a flat group (rows 1), else 0
    opaque: bool = False
    sinks: list[Sink] = field(default_factory=list)


def expr_cost(expr: Expr) -> int:
    """What an expression costs per element, in additions."""
    return sum(8 if node.op in _DEAR else 1 for node in topological(expr) if node.args)


class Schedule:
    """Groups of sinks for a graph whose `wanted` values must end up in memory."""

    def __init__(self, graph: Graph, wanted: list[Value]) -> None:
        self.graph = graph
        self.wanted = wanted
        self.stored: set[int] = set()
        self.known: dict[View, tuple[View, ...]] = {}
        self.operations = self.alive()
        self.must_store()
        self.build()
        if self.store_dear():
            self.known.clear()
            self.build()

    def alive(self) -> list[Operation]:
        """The operations that something wanted depends on."""
        needed: set[int] = set()
        todo = list(self.wanted)
        while todo:
            value = todo.pop()
            op = value.op
            if op is None or id(op) in needed:
                continue
            needed.add(id(op))
            for view in op.reads:
                todo.append(view.value)
                todo.extend(index_values(view))
        return [op for op in self.graph.operations if id(op) in needed]

    def is_stored(self, value: Value) -> bool:
        """Whether a value lies in memory."""
        return not isinstance(value.op, Map) or value.number in self.stored

    def must_store(self) -> None:
        """Maps that are wanted, or read by what can't compute them on the way."""
        self.stored |= {value.number for value in self.wanted}
        alive = {id(op) for op in self.operations}
        self.stored |= {check.index.value.number for check in self.graph.checks if id(check.index.value.op) in alive}
        for op in self.operations:
            if isinstance(op, (Gemm, Collect, Update, Call, Rowwise)):
                self.stored |= {view.value.number for view in op.reads}
            if isinstance(op, Map) and op.outs[0].numel == 1:
                self.stored.add(op.outs[0].number)
            for view in op.reads:
                self.stored |= {value.number for value in index_values(view)}
        changed = True
        while changed:
            before = len(self.stored)
            self.known.clear()
            for op in self.operations:
                for view in op.reads:
                    self.leaves(view)
            changed = len(self.stored) != before

    def leaves(self, view: View) -> tuple[View, ...]:
        """The stored values that a read comes down to, each once; a Map that can't be read through `view` becomes stored."""
        found = self.known.get(view)
        if found is None:
            found = self.known[view] = self.find_leaves(view)
        return found

    def find_leaves(self, view: View) -> tuple[View, ...]:
        """The stored values below a read."""
        value = view.value
        op = value.op
        if not isinstance(op, Map) or value.number in self.stored:
            return (view,)
        parts = [compose(operand, value, view) for operand in op.operands.values()]
        if any(part is None for part in parts):
            self.stored.add(value.number)
            return (view,)
        return tuple(dict.fromkeys(leaf for part in parts if part is not None for leaf in self.leaves(part)))

    def reads(self, op: Operation) -> list[View]:
        """The stored values an operation reads, in its own axes."""
        views = [leaf for view in op.reads for leaf in (self.leaves(view) if isinstance(op, (Map, Reduce)) else [view])]
        return list(dict.fromkeys(views))

    # ---- groups
    def build(self) -> None:
        """Schedule all that is computed once."""
        self.groups: list[Group] = []
        self.reduced = self.find_reduced()
        self.sinks: dict[int, Sink] = {}
        for op in self.operations:
            if isinstance(op, Map) and op.outs[0].number not in self.stored:
                continue
            sink = Sink(op)
            for out in op.outs:
                self.sinks[out.number] = sink
            self.assign(sink)

    def assign(self, sink: Sink) -> None:
        """Give a sink a group and a stage."""
        reads = self.reads(sink.op)
        if not isinstance(sink.op, (Map, Reduce)):
            self.append(sink, None)
            return
        found = [(space, places) for space in spaces(sink.op) if (places := placed(reads, space)) is not None]
        if not found:
            self.append(sink, nest(sink.op))
            return
        for space, places in found:
            for group in self.groups:
                if group.opaque or group.rows != space.rows or (space.rows == 1 and group.columns != space.columns):
                    continue
                stage = self.fits(places, group, space)
                if stage >= 0:
                    self.join(sink, group, space, stage)
                    return
        flat = [space for space, _ in found if space.rows == 1]
        self.append(sink, flat[0] if flat and sink.op.outs[0].number not in self.reduced else found[0][0])

    def find_reduced(self) -> set[int]:
        """The stored Maps that are summed by rows or columns, so that a loop over rows can take the sum in."""
        found: set[int] = set()
        for op in self.operations:
            if isinstance(op, Reduce) and len(op.axes) < len(op.operand.shape) and op.operand.shape[-1] >= WIDE:
                found |= {view.value.number for view in self.leaves(op.operand) if view.is_whole}
        return found

    def fits(self, places: list[Place], group: Group, space: Space) -> int:
        """The stage in which a sink with these reads can run in a group; -1 for none."""
        stage = 0
        for read in places:
            for value in [read.value, *(term.value for term, _, _ in read.terms)]:
                maker = self.sinks.get(value.number)
                if maker is None or maker.group < group.number:
                    continue
                if maker.group > group.number or value is not read.value or not here(read, maker, space):
                    return -1
                assert maker.space is not None
                stage = max(stage, maker.stage + (maker.space.role == "row"))
        return stage

    def append(self, sink: Sink, space: Space | None) -> None:
        """Begin a group."""
        opaque = space is None or space.role == "nest"
        flat = space is not None and space.rows == 1
        group = Group(
            len(self.groups),
            0 if space is None else space.rows,
            space.columns if space is not None and flat else 0,
            opaque,
        )
        self.groups.append(group)
        self.join(sink, group, space, 0)

    def join(self, sink: Sink, group: Group, space: Space | None, stage: int) -> None:
        """Put a sink into a group."""
        sink.space, sink.group, sink.stage = space, group.number, stage
        group.sinks.append(sink)

    # ---- what is dear to compute twice
    def store_dear(self) -> bool:
        """Store Maps that several loops would compute at a high price; whether there were any."""
        sites: dict[int, set[object]] = {}
        cost: dict[int, int] = {}
        for op in self.operations:
            if isinstance(op, Map):
                own = expr_cost(op.expr)
                cost[op.outs[0].number] = own + sum(
                    cost.get(v.value.number, 0) for v in op.reads if not self.is_stored(v.value)
                )
        before = len(self.stored)
        for op in reversed(self.operations):
            out = op.outs[0]
            if isinstance(op, Map) and out.number not in self.stored:
                mine = sites.get(out.number, set())
                if len(mine) > 1 and cost[out.number] >= 8:
                    self.stored.add(out.number)
                    mine = {out.number}
            else:
                sink = self.sinks.get(out.number)
                columns = sink.space.columns if sink is not None and sink.space is not None else 0
                mine = {(sink.group, sink.stage, columns)} if sink is not None else {out.number}
            for view in op.reads:
                value = view.value
                if value.numel * 8 > out.numel and not self.is_stored(value):
                    sites.setdefault(value.number, set()).update(mine)
        return len(self.stored) != before


def index_values(view: View) -> Iterator[Value]:
    """The values of index tensors that a view reads."""
    for term in view.terms:
        yield term.index.value
        yield from index_values(term.index)


def loop_shape(op: Operation) -> tuple[int, ...]:
    """The axes that an operation runs over."""
    return op.operand.shape if isinstance(op, Reduce) else op.outs[0].shape


def spaces(op: Map | Reduce) -> list[Space]:
    """The ways to see an operation as rows and columns, rows first."""
    shape = loop_shape(op)
    rank = len(shape)
    order = tuple(range(rank))

    def space(role: str, order: tuple[int, ...], split: int) -> Space:
        return Space(
            role, order, split, math.prod(shape[k] for k in order[:split]), math.prod(shape[k] for k in order[split:])
        )

    if isinstance(op, Reduce) and len(op.axes) < rank:
        kept = tuple(k for k in order if k not in op.axes)
        rows = space("row", kept + op.axes, len(kept))
        if op.axes == order[len(kept) :]:
            return [rows]
        if op.axes == order[: len(op.axes)]:
            return [space("column", order, len(op.axes)), rows]
        return [rows]
    role = "full" if isinstance(op, Reduce) else "map"
    found = [space(role, order, rank - 1)] if rank > 1 else []
    if rank and shape[-1] > 1:
        found.append(space(role, order, rank))
    found.append(space(role, order, 0))
    return [x for k, x in enumerate(found) if all((x.rows, x.columns) != (y.rows, y.columns) for y in found[:k])]


def nest(op: Map | Reduce) -> Space:
    """One loop per axis."""
    rank = len(loop_shape(op))
    return Space("nest", tuple(range(rank)), rank, 0, 0)


def placed(reads: list[View], space: Space) -> list[Place] | None:
    """All reads in a space, None where one of them doesn't fit."""
    found = []
    for view in reads:
        at = place(view, space.order, space.split)
        if at is None:
            return None
        found.append(at)
    return found


def here(read: Place, maker: Sink, space: Space) -> bool:
    """Whether a read of what the same group makes needs nothing but its own row, and in that nothing but its own column."""
    own = maker.space
    if own is None or own.role in ("column", "full", "nest") or read.offset or read.terms:
        return False
    if own.role == "row":
        return (
            (read.down == 1 or space.rows == 1) and (read.across == 0 or space.columns == 1) and own.rows == space.rows
        )
    if own.columns == 1:
        return (read.down == 1 or space.rows == 1) and (read.across == 0 or space.columns == 1)
    same = own.columns == space.columns
    return (
        same
        and (read.down == own.columns or space.rows == 1)
        and read.across == 1
        and own.order == tuple(range(len(own.order)))
    )


__all__ = ["Group", "Schedule", "Sink", "Space", "Unsupported"]
