"""The source of a program's body: one commented block per group.

Every loop is plain, every size a literal. Memory is reached through typed pointers: `data` of arguments and results, addresses from a table for
captured tensors, places in one arena for everything between.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from .calls import Calls
from .expressions import Inside, Loop, spelled, type_of
from .graph import Graph
from .layout import Layout
from .operations import Map, Reduce, Value
from .schedule import Group, Schedule, Sink, Space

BLOCK = 1024  # lanes sum this many float32 before float64 takes over
SHORT = 8, 48  # columns of an inner loop that LLVM would unroll, up to so many lines in all, before it vectorises; see `program.keep_rolled`
UNROLLED = 280
INDENT = "    "


class Writer(Calls):
    """Writes the body of a program; `layout` says where values lie, `loaded` collects those that are read from memory."""

    def __init__(self, graph: Graph, schedule: Schedule, layout: Layout, needed: set[int] | None) -> None:
        self.graph, self.schedule, self.layout = graph, schedule, layout
        self.needed = needed
        self.loaded: set[int] = set()
        self.lines: list[str] = []
        self.loops = 0
        self.scalars: set[int] = set()
        self.rolled = False  # whether there is a loop that is marked so
        self.functions: set[str] = set()

    def line(self, depth: int, text: str) -> None:
        """Append a line."""
        self.lines.append(INDENT * depth + text)

    def write(self, after: Callable[[int, Writer], list[str]]) -> list[str]:
        """Write everything, and what `after` says when a group is done; returns the lines."""
        for group in self.schedule.groups:
            self.group(group)
            for text in after(group.number, self):
                self.line(1, text)
        return self.lines

    # ---- groups
    def group(self, group: Group) -> None:
        """One group under its comment."""
        names = ", ".join(out.label for sink in group.sinks for out in sink.op.outs)
        where = {sink.op.line.rpartition("/")[2]: None for sink in group.sinks if sink.op.line}
        self.line(1, f"# {group.number}: {names}" + (f"  ({', '.join(where)})" if where else ""))
        if not group.opaque:
            self.rows(group)
            return
        for sink in group.sinks:
            self.other(sink)

    def rows(self, group: Group) -> None:
        """A loop over rows with its stages, what is summed over all rows set up before and finished after."""
        depth = 1
        over = [sink for sink in group.sinks if sink.space is not None and sink.space.role in ("full", "column")]
        for sink in over:
            self.start(sink)
        if group.rows > 1:
            self.line(1, f"for r in range({group.rows}):")
            depth = 2
        for stage in sorted({sink.stage for sink in group.sinks}):
            for columns in dict.fromkeys(
                s.space.columns for s in group.sinks if s.stage == stage and s.space is not None
            ):
                chosen = [
                    s for s in group.sinks if s.stage == stage and s.space is not None and s.space.columns == columns
                ]
                self.columns(group, chosen, depth, stage)
        for sink in over:
            self.finish(sink)

    def start(self, sink: Sink) -> None:
        """Set up a sum over rows."""
        op, space = sink.op, sink.space
        assert isinstance(op, Reduce)
        assert space is not None
        out = op.outs[0]
        if space.role == "full":
            self.line(1, f"{out.label}_all = {self.zero(op, 'f8')}")
            return
        acc = self.accumulator(op)
        self.line(
            1,
            f"{out.label}_all = at_{acc}({self.layout.scratch(out, space.columns * (8 if acc in ('f8', 'i8') else 4))})",
        )
        self.line(1, f"for c in range({space.columns}):")
        self.line(2, f"{out.label}_all[c] = {self.zero(op, acc)}")

    def accumulator(self, op: Reduce) -> str:
        """The word for the type that a reduction is made in."""
        kind = op.operand.value.dtype
        if kind.kind in "ib":
            return "i8"
        return "f8" if op.kind == "sum" else type_of(kind)

    def zero(self, op: Reduce, word: str) -> str:
        """What a reduction begins with."""
        if op.kind == "sum":
            return "i8(0)" if self.accumulator(op) == "i8" else f"{word}(0.0)"
        word = type_of(op.operand.value.dtype)
        return f"{word}({'-' if op.kind == 'max' else ''}np.inf)"

    def combined(self, op: Reduce, held: str, value: str) -> str:
        """One step of a reduction."""
        if op.kind == "sum":
            return f"plus({held}, {value})"
        self.functions.add("maximum" if op.kind == "max" else "minimum")
        return f"{'maximum' if op.kind == 'max' else 'minimum'}({held}, {value})"

    def scaled(self, op: Reduce, total: str) -> str:
        """A finished sum in the dtype of its value."""
        word = type_of(op.outs[0].dtype)
        return f"{word}({total} / {op.divisor!r})" if op.divisor != 1 else f"{word}({total})"

    def finish(self, sink: Sink) -> None:
        """Bring a sum over rows to its place."""
        op, space = sink.op, sink.space
        assert isinstance(op, Reduce)
        assert space is not None
        out = op.outs[0]
        if space.role == "full":
            self.scalar(out, self.scaled(op, f"{out.label}_all"))
            return
        self.line(1, f"for c in range({space.columns}):")
        self.line(2, f"{self.layout.pointer(out)}[c] = {self.scaled(op, f'{out.label}_all[c]')}")

    def scalar(self, out: Value, text: str, depth: int = 1) -> None:
        """A value of one element lives in a variable, and in memory if somebody looks there."""
        self.line(depth, f"{out.label} = {text}")
        self.scalars.add(out.number)
        if self.stores(out):
            self.line(depth, f"{self.layout.pointer(out)}[0] = {out.label}")

    def stores(self, value: Value) -> bool:
        """Whether a value is looked for in memory."""
        return self.needed is None or value.number in self.needed

    # ---- loops over columns
    def columns(self, group: Group, sinks: list[Sink], depth: int, stage: int) -> None:
        """One loop over columns for all sinks of a stage."""
        self.loops += 1
        loop = Loop(self.loops)
        space = sinks[0].space
        assert space is not None
        columns = space.columns
        inside = Inside(self, loop, group, stage, space)
        before, after = [], []
        split = self.blocks(group, sinks, columns)
        for sink in sinks:
            inside.space = sink.space or space
            pieces = self.sink(sink, inside, columns)
            before += pieces[0]
            loop.body += pieces[1]
            after += pieces[2]
        head = [*loop.hoisted, *before]
        body = [*loop.loads, *loop.body]
        for text in loop.finished(head):
            self.line(depth, text)
        if not body:
            pass
        elif columns == 1:
            for text in loop.finished(body):
                self.line(depth, re.sub(r"\bc\b", "0", text) if "c" in text else text)
        elif split > 1:
            self.split_loop(loop, body, columns, split, depth, sinks)
        else:
            self.line(depth, f"for c in range({columns}):")
            lines = loop.finished(body)
            for text in lines:
                self.line(depth + 1, text)
            if depth == 2 and SHORT[0] <= columns <= SHORT[1] and columns * len(lines) <= UNROLLED:
                self.rolled = True
                self.line(depth + 1, "rolled()")
        for text in loop.finished(after):
            self.line(depth, text)

    def blocks(self, group: Group, sinks: list[Sink], columns: int) -> int:
        """The number of blocks a long row of float32 is summed in, 1 for no blocks."""
        sums = [
            s
            for s in sinks
            if isinstance(s.op, Reduce)
            and s.op.kind == "sum"
            and s.space is not None
            and s.space.role in ("full", "row")
        ]
        if not sums or columns <= 8 * BLOCK:
            return 1
        return next((columns // size for size in range(4 * BLOCK, BLOCK // 2, -1) if columns % size == 0), 0) or 0

    def split_loop(self, loop: Loop, body: list[str], columns: int, split: int, depth: int, sinks: list[Sink]) -> None:
        """A loop in blocks, whose sums are added up one by one."""
        size = columns // split
        self.line(depth, f"for block in range({split}):")
        self.line(depth + 1, f"first = block * {size}")
        parts = [
            s
            for s in sinks
            if isinstance(s.op, Reduce)
            and s.op.kind == "sum"
            and s.space is not None
            and s.space.role in ("full", "row")
        ]
        for sink in parts:
            assert isinstance(sink.op, Reduce)
            self.line(depth + 1, f"{sink.op.outs[0].label}_part = {self.zero(sink.op, self.lane(sink.op))}")
        self.line(depth + 1, f"for k in range({size}):")
        self.line(depth + 2, "c = first + k")
        for text in loop.finished(body):
            self.line(
                depth + 2,
                re.sub(r"plus\((\w+)_sum, ", r"plus(\1_part, ", re.sub(r"^(\w+)_sum = plus", r"\1_part = plus", text)),
            )
        for sink in parts:
            label = sink.op.outs[0].label
            self.line(depth + 1, f"{label}_sum += {label}_part")

    def lane(self, op: Reduce) -> str:
        """The type in which the elements of one row are summed."""
        return "i8" if self.accumulator(op) == "i8" else type_of(op.operand.value.dtype)

    def sink(self, sink: Sink, inside: Inside, columns: int) -> tuple[list[str], list[str], list[str]]:
        """What stands before, in and after the loop for one sink."""
        op, space = sink.op, sink.space
        assert space is not None
        out = op.outs[0]
        if isinstance(op, Map):
            value = inside.value_of(op, out.dtype)
            if out.numel == 1:
                self.scalars.add(out.number)
                stores = [f"{self.layout.pointer(out)}[0] = {out.label}"] if self.stores(out) else []
                return [], [f"{out.label} = {value}", *stores], []
            if not self.stores(out):
                return [], [], []
            return (
                [],
                [
                    f"put({self.layout.pointer(out)}, {self.address(space)}, {value}, {inside.loop.region(self.layout.region(out))})"
                ],
                [],
            )
        assert isinstance(op, Reduce)
        value = inside.operand(op.operand, op.operand.value.dtype)
        if space.role == "column":
            held = f"get({out.label}_all, c, {inside.loop.region(out.number)})"
            word = self.accumulator(op)
            return (
                [],
                [
                    f"put({out.label}_all, c, {self.combined(op, held, f'{word}({value})')}, {inside.loop.region(out.number)})"
                ],
                [],
            )
        lane = self.lane(op)
        exact = op.kind == "sum" and lane == "f4" and columns > 8 * BLOCK
        start = [f"{out.label}_sum = {self.zero(op, 'f8' if exact else lane)}"]
        step = [f"{out.label}_sum = {self.combined(op, f'{out.label}_sum', f'{lane}({value})')}"]
        if space.role == "full":
            total = (
                f"{out.label}_all + {out.label}_sum"
                if op.kind == "sum"
                else self.combined(op, f"{out.label}_all", f"{out.label}_sum")
            )
            return start, step, [f"{out.label}_all = {total}"]
        end = [f"{out.label} = {self.scaled(op, f'{out.label}_sum')}"]
        if self.stores(out):
            row = "r" if space.rows > 1 else "0"
            end.append(f"{self.layout.pointer(out)}[{row}] = {out.label}")
        if space.rows == 1 and out.numel == 1:
            self.scalars.add(out.number)
        return start, step, end

    def address(self, space: Space) -> str:
        """Where an element of a stored value lies."""
        parts = ([("r", space.columns)] if space.rows > 1 else []) + ([("c", 1)] if space.columns > 1 else [])
        return spelled(parts, 0)
