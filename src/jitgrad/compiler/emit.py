"""The source of a program: a Python function in the kernel language, one commented block per group.

Every loop is plain, every size a literal. Memory is reached through typed pointers: `data` of arguments and results, addresses from a table for
captured tensors, places in one arena for everything between.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._expr import Body, Expr, const, emit_body, is_condition, param, spelling, substitute, var
from .access import Place, compose, place
from .graph import Collect, Draw, Gemm, Graph, Map, Reduce, Unsupported, Update, Value, View
from .layout import Layout
from .schedule import Group, Schedule, Sink, Space

TYPES = {"f": "f4", "d": "f8", "q": "i8", "l": "i8", "?": "u1"}
BLOCK = 1024  # lanes sum this many float32 before float64 takes over
INDENT = "    "


def type_of(dtype: np.dtype[Any]) -> str:
    """The word for a dtype in the source."""
    if dtype.char not in TYPES:
        raise Unsupported(f"values of dtype {dtype}")
    return TYPES[dtype.char]


def spelled(terms: Sequence[tuple[str, int]], offset: int) -> str:
    """An address: the sum of factors times literal steps."""
    parts = [name if step == 1 else f"{name} * {step}" for name, step in terms if step]
    if offset or not parts:
        parts.append(str(offset))
    return " + ".join(parts)


@dataclass
class Loop:
    """One innermost loop under construction: its number, the memory it touches, hoisted loads, loads, statements."""

    number: int
    regions: dict[object, int] = field(default_factory=dict)
    names: dict[Place, str] = field(default_factory=dict)
    hoisted: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    masks: set[str] = field(default_factory=set)

    def region(self, key: object) -> str:
        """The marker of a memory region, completed when the loop is."""
        return f"{self.number}, {self.regions.setdefault(key, len(self.regions))}, @count@"

    def finished(self, lines: list[str]) -> list[str]:
        return [line.replace("@count@", str(len(self.regions))) for line in lines]


class Writer:
    """Writes the body of a program; `layout` says where values lie, `loaded` collects those that are read from memory."""

    def __init__(self, graph: Graph, schedule: Schedule, layout: Layout, needed: set[int] | None) -> None:
        self.graph, self.schedule, self.layout = graph, schedule, layout
        self.needed = needed
        self.loaded: set[int] = set()
        self.lines: list[str] = []
        self.loops = 0
        self.scalars: set[int] = set()
        self.functions: set[str] = set()

    def line(self, depth: int, text: str) -> None:
        self.lines.append(INDENT * depth + text)

    def write(self) -> list[str]:
        for group in self.schedule.groups:
            self.group(group)
        return self.lines

    # ---- groups
    def group(self, group: Group) -> None:
        names = ", ".join(out.label for sink in group.sinks for out in sink.op.outs)
        where = {sink.op.line.rpartition("/")[2]: None for sink in group.sinks if sink.op.line}
        self.line(1, f"# {group.number}: {names}" + (f"  ({', '.join(where)})" if where else ""))
        if not group.opaque:
            self.rows(group)
            return
        for sink in group.sinks:
            op = sink.op
            if isinstance(op, Gemm):
                self.gemm(op)
            elif isinstance(op, Collect):
                self.collect(op)
            elif isinstance(op, Update):
                self.update(op)
            elif isinstance(op, Draw):
                self.draw(op)
            else:
                self.nest(sink)

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
            for columns in dict.fromkeys(s.space.columns for s in group.sinks if s.stage == stage and s.space is not None):
                chosen = [s for s in group.sinks if s.stage == stage and s.space is not None and s.space.columns == columns]
                self.columns(group, chosen, depth, stage)
        for sink in over:
            self.finish(sink)

    def start(self, sink: Sink) -> None:
        """Set up a sum over rows."""
        op, space = sink.op, sink.space
        assert isinstance(op, Reduce) and space is not None
        out = op.outs[0]
        if space.role == "full":
            self.line(1, f"{out.label}_all = {self.zero(op, 'f8')}")
            return
        acc = self.accumulator(op)
        self.line(1, f"{out.label}_all = at_{acc}({self.layout.scratch(out, space.columns * (8 if acc in ('f8', 'i8') else 4))})")
        self.line(1, f"for c in range({space.columns}):")
        self.line(2, f"{out.label}_all[c] = {self.zero(op, acc)}")

    def accumulator(self, op: Reduce) -> str:
        """The word for the type that a reduction is made in."""
        kind = op.operand.value.dtype
        if kind.kind in "ib":
            return "i8"
        return "f8" if op.kind == "sum" else type_of(kind)

    def zero(self, op: Reduce, word: str) -> str:
        if op.kind == "sum":
            return "i8(0)" if self.accumulator(op) == "i8" else f"{word}(0.0)"
        word = type_of(op.operand.value.dtype)
        return f"{word}({'-' if op.kind == 'max' else ''}np.inf)"

    def combined(self, op: Reduce, held: str, value: str) -> str:
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
        assert isinstance(op, Reduce) and space is not None
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
        if columns == 1:
            for text in loop.finished(body):
                self.line(depth, re.sub(r"\bc\b", "0", text) if "c" in text else text)
        elif split > 1:
            self.split_loop(loop, body, columns, split, depth, sinks)
        else:
            self.line(depth, f"for c in range({columns}):")
            for text in loop.finished(body):
                self.line(depth + 1, text)
        for text in loop.finished(after):
            self.line(depth, text)

    def blocks(self, group: Group, sinks: list[Sink], columns: int) -> int:
        """The number of blocks a long row of float32 is summed in, 1 for no blocks."""
        sums = [s for s in sinks if isinstance(s.op, Reduce) and s.op.kind == "sum" and s.space is not None and s.space.role in ("full", "row")]
        if not sums or columns <= 8 * BLOCK:
            return 1
        return next((columns // size for size in range(4 * BLOCK, BLOCK // 2, -1) if columns % size == 0), 0) or 0

    def split_loop(self, loop: Loop, body: list[str], columns: int, split: int, depth: int, sinks: list[Sink]) -> None:
        size = columns // split
        self.line(depth, f"for block in range({split}):")
        self.line(depth + 1, f"first = block * {size}")
        parts = [s for s in sinks if isinstance(s.op, Reduce) and s.op.kind == "sum" and s.space is not None and s.space.role in ("full", "row")]
        for sink in parts:
            assert isinstance(sink.op, Reduce)
            self.line(depth + 1, f"{sink.op.outs[0].label}_part = {self.zero(sink.op, self.lane(sink.op))}")
        self.line(depth + 1, f"for k in range({size}):")
        self.line(depth + 2, "c = first + k")
        for text in loop.finished(body):
            self.line(depth + 2, re.sub(r"plus\((\w+)_sum, ", r"plus(\1_part, ", re.sub(r"^(\w+)_sum = plus", r"\1_part = plus", text)))
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
            return [], [f"put({self.layout.pointer(out)}, {self.address(space)}, {value}, {inside.loop.region(self.layout.region(out))})"], []
        assert isinstance(op, Reduce)
        value = inside.operand(op.operand, op.operand.value.dtype)
        if space.role == "column":
            held = f"get({out.label}_all, c, {inside.loop.region(out.number)})"
            word = self.accumulator(op)
            return [], [f"put({out.label}_all, c, {self.combined(op, held, f'{word}({value})')}, {inside.loop.region(out.number)})"], []
        lane = self.lane(op)
        exact = op.kind == "sum" and lane == "f4" and columns > 8 * BLOCK
        start = [f"{out.label}_sum = {self.zero(op, 'f8' if exact else lane)}"]
        step = [f"{out.label}_sum = {self.combined(op, f'{out.label}_sum', f'{lane}({value})')}"]
        if space.role == "full":
            total = f"{out.label}_all + {out.label}_sum" if op.kind == "sum" else self.combined(op, f"{out.label}_all", f"{out.label}_sum")
            return start, step, [f"{out.label}_all = {total}"]
        end = [f"{out.label} = {self.scaled(op, f'{out.label}_sum')}"]
        if self.stores(out):
            row = "r" if space.rows > 1 else "0"
            end.append(f"{self.layout.pointer(out)}[{row}] = {out.label}")
        if space.rows == 1 and out.numel == 1:
            self.scalars.add(out.number)
        return start, step, end

    def address(self, space: Space) -> str:
        parts = ([("r", space.columns)] if space.rows > 1 else []) + ([("c", 1)] if space.columns > 1 else [])
        return spelled(parts, 0)

    # ---- operations that are no loop of ours
    def gemm(self, op: Gemm) -> None:
        """A product, or one per matrix of a stack."""
        out = op.outs[0]
        word = type_of(out.dtype)
        self.functions.add("gemm")
        m, k = op.a.shape[-2:]
        n = op.b.shape[-1]
        flag_a, lda = orientation(op.a)
        flag_b, ldb = orientation(op.b)
        batch = out.shape[:-2]
        depth, at_a, at_b, at_c = 1, str(op.a.offset), str(op.b.offset), ""
        if batch:
            self.line(1, f"for r in range({math.prod(batch)}):")
            depth = 2
            at_a, at_b = (spelled([("r", batch_stride(view))], view.offset) for view in (op.a, op.b))
            at_c = spelled([("r", m * n)], 0)
        pointers = []
        for view, at in ((op.a, at_a), (op.b, at_b)):
            self.loaded.add(view.value.number)
            pointer = self.layout.pointer(view.value)
            pointers.append(pointer if at == "0" else f"offset({pointer}, {at})")
        result = self.layout.pointer(out)
        result = f"offset({result}, {at_c})" if at_c else result
        self.line(depth, f"gemm({flag_a}, {flag_b}, {m}, {n}, {k}, {word}(1.0), {pointers[0]}, {lda}, {pointers[1]}, {ldb}, {word}(0.0), {result}, {n})")

    def collect(self, op: Collect) -> None:
        """A copy of the base (or zeros), then the parts, one after the other."""
        out = op.outs[0]
        word, target = type_of(out.dtype), self.layout.pointer(out)
        self.loops += 1
        self.line(1, f"for c in range({out.numel}):")
        if op.base is None:
            self.line(2, f"{target}[c] = {word}(0)")
        else:
            at = place(op.base, range(len(op.base.shape)), 0)
            if at is None:
                raise Unsupported("a copy of a strided tensor")
            self.line(2, f"{target}[c] = {self.element(at, {'c': 'c'})}")
        names = [f"i{k}" for k in range(len(op.part.shape))]
        depth = 1
        for name, n in zip(names, op.part.shape, strict=True):
            self.line(depth, f"for {name} in range({n}):")
            depth += 1
        index = spelled(list(zip(names, op.strides, strict=True)), op.offset)
        for term in op.terms:
            index += f" + {self.picked(self.nested(term.index, names), term.ignored)} * {term.stride}"
        self.line(depth, f"at = {index}")
        value = f"{word}({self.nested(op.part, names)})"
        self.line(depth, f"{target}[at] = {f'{target}[at] + {value}' if op.add else value}")

    def draw(self, op: Draw) -> None:
        """A mask out of random words, 1024 at a time."""
        out = op.outs[0]
        self.functions.add("words")
        name = f"words_{op.number}"
        self.line(1, f"{name} = at_u8({self.layout.scratch(out, 1024 * 8)})")
        self.line(1, f"for part in range({(out.numel + 1023) // 1024}):")
        self.line(2, f"count = min({out.numel} - part * 1024, 1024)")
        self.line(2, f"words({name}, start_{op.number} + u8(part * 256), seed_{op.number}, (count + 3) // 4)")
        self.line(2, "for c in range(count):")
        self.line(3, f"{self.layout.pointer(out)}[part * 1024 + c] = u1({name}[c] < u8({op.below}))")

    def element(self, at: Place, names: dict[str, str]) -> str:
        """The element at a place, by plain indexing."""
        constant = View(at.value, (), ()).constant
        if constant is not None:
            return repr(constant)
        if at.value.number in self.scalars:
            return at.value.label
        self.loaded.add(at.value.number)
        return f"{self.layout.pointer(at.value)}[{spelled([('r', at.down), ('c', at.across)], at.offset)}]"

    def nested(self, view: View, names: Sequence[str]) -> str:
        """The element of a view at loop variables, by plain indexing."""
        if view.constant is not None:
            return repr(view.constant)
        source = view.value.source
        index = spelled(list(zip(names, view.strides, strict=True)), view.offset)
        for term in view.terms:
            index += f" + {self.picked(self.nested(term.index, names), term.ignored)} * {term.stride}"
        if source is not None and source.kind == "position":
            return f"({index})"
        if view.value.number in self.scalars:
            return view.value.label
        self.loaded.add(view.value.number)
        return f"{self.layout.pointer(view.value)}[{index}]"

    def picked(self, index: str, ignored: int | None) -> str:
        """An index, 0 where it stands for none: what is read there is not used, but must be there."""
        if ignored is None:
            return index
        self.functions.add("where")
        return f"where({index} == {ignored}, i8(0), {index})"

    def update(self, op: Update) -> None:
        """An optimizer's rule over one parameter."""
        self.loops += 1
        loop = Loop(self.loops)
        first = op.outs[0]
        word = type_of(first.dtype)
        tag = f"_{loop.number}"
        for name, number in op.numbers.items():
            self.line(1, f"{name}{tag} = {word}({number})")
        mapping = {var(name): var(f"x{name}{tag}") for name in op.operands} | {param(name): param(f"{name}{tag}") for name in op.numbers}
        body = emit_body([substitute(expr, mapping) for expr in op.exprs])
        self.functions |= body.functions
        self.line(1, f"for c in range({first.numel}):")
        lines = []
        for name, view in op.operands.items():
            constant = view.constant
            if constant is not None:
                lines.append(f"x{name}{tag} = {word}({constant!r})")
                continue
            self.loaded.add(view.value.number)
            lines.append(f"x{name}{tag} = get({self.layout.pointer(view.value)}, c, {loop.region(self.layout.region(view.value))})")
        lines += [self.typed(text, word, loop.number) for text in body.statements]
        for out, result in zip(op.outs, body.results, strict=True):
            value = self.typed(result, word, loop.number)
            lines.append(f"put({self.layout.pointer(out)}, c, {value}, {loop.region(self.layout.region(out))})")
        for text in loop.finished(lines):
            self.line(2, text)

    def typed(self, text: str, word: str, tag: int | str) -> str:
        """A statement of the expression language in a dtype, its temporaries named after the loop."""
        return re.sub(r"\bt(\d+)\b", rf"t\1_{tag}", re.sub(r"\breal\(", f"{word}(", text))

    def nest(self, sink: Sink) -> None:
        """One loop per axis, for what is no rows and columns."""
        op = sink.op
        assert isinstance(op, (Map, Reduce))
        self.loops += 1
        shape = op.operand.shape if isinstance(op, Reduce) else op.outs[0].shape
        names = [f"i{k}" for k in range(len(shape))]
        inside = Nested(self, Loop(self.loops), names)
        out = op.outs[0]
        target = self.layout.pointer(out)
        if isinstance(op, Map):
            value, held = inside.value_of(op, out.dtype), spelled(list(zip(names, out.strides, strict=True)), 0)
            store = f"{target}[{held}] = {value}"
        else:
            acc = self.accumulator(op)
            total = f"{out.label}_all"
            self.line(1, f"{total} = at_{acc}({self.layout.scratch(out, out.numel * 8)})")
            self.line(1, f"for c in range({out.numel}):")
            self.line(2, f"{total}[c] = {self.zero(op, acc)}")
            kept = [k for k in range(len(shape)) if k not in op.axes]
            steps = out.strides if len(out.strides) == len(kept) else tuple(out.strides[k] for k in kept)
            held = spelled([(names[k], step) for k, step in zip(kept, steps, strict=True)], 0)
            value = inside.operand(op.operand, op.operand.value.dtype)
            store = f"{total}[{held}] = {self.combined(op, f'{total}[{held}]', f'{acc}({value})')}"
        depth = 1
        for name, n in zip(names, shape, strict=True):
            self.line(depth, f"for {name} in range({n}):")
            depth += 1
        for text in [*inside.loop.hoisted, *inside.loop.loads, *inside.loop.body, store]:
            self.line(depth, text)
        if isinstance(op, Reduce):
            self.line(1, f"for c in range({out.numel}):")
            self.line(2, f"{target}[c] = {self.scaled(op, f'{out.label}_all[c]')}")


class Inside:
    """Expressions within one loop over rows and columns."""

    def __init__(self, writer: Writer, loop: Loop, group: Group, stage: int, space: Space) -> None:
        self.writer, self.loop, self.group, self.stage, self.space = writer, loop, group, stage, space
        self.done: dict[object, str] = {}
        self.resolved: dict[object, Expr] = {}
        self.statements: dict[str, str] = {}

    def value_of(self, op: Map, dtype: np.dtype[Any]) -> str:
        """The spelling of a Map's element at this place; the statements that compute it are in the loop's body."""
        expr, compute, condition = self.expanded(op, {name: view for name, view in op.operands.items()})
        return self.emit(expr, compute, dtype, condition)

    def operand(self, view: View, dtype: np.dtype[Any]) -> str:
        """The spelling of a view's element at this place."""
        found = self.resolve(view, dtype, False)
        return self.emit(found, dtype, dtype, dtype == np.bool_)

    def expanded(self, op: Map, views: dict[str, View]) -> tuple[Expr, np.dtype[Any], bool]:
        mapping = {var(name): self.resolve(view, op.compute, name in op.raw) for name, view in views.items()}
        return substitute(op.expr, mapping), op.compute, op.outs[0].dtype == np.bool_

    def resolve(self, view: View, compute: np.dtype[Any], raw: bool) -> Expr:
        """An expression for a view's element, computed here where that is possible."""
        key = (view, compute, raw, self.space.columns)
        found = self.resolved.get(key)
        if found is None:
            found = self.resolved[key] = self.resolve_anew(view, compute, raw)
        return found

    def resolve_anew(self, view: View, compute: np.dtype[Any], raw: bool) -> Expr:
        value, op = view.value, view.value.op
        if view.constant is not None:
            number = view.constant
            return const(bool(number)) if value.dtype == np.bool_ else const(number if raw else float(number))
        inline = isinstance(op, Map) and (op.compute == compute or value.dtype == np.bool_ and op.compute == compute)
        if isinstance(op, Map) and self.computed_here(view):
            parts = {name: compose(operand, value, view) for name, operand in op.operands.items()}
            if all(part is not None for part in parts.values()):
                key = ("expr", view)
                expr = substitute(op.expr, {var(name): self.resolve(part, op.compute, name in op.raw) for name, part in parts.items() if part is not None})
                if inline and (value.dtype == compute or value.dtype == np.bool_):
                    return expr
                return self.named(key, expr, op.compute, value.dtype, compute, raw)
        return var(self.load(view, compute, raw))

    def named(self, key: object, expr: Expr, inner: np.dtype[Any], dtype: np.dtype[Any], compute: np.dtype[Any], raw: bool) -> Expr:
        """An expression in another dtype, given a variable of its own."""
        found = self.done.get((key, compute, raw))
        if found is None:
            text = self.emit(expr, inner, dtype, dtype == np.bool_)
            found = f"v{len(self.done)}_{self.loop.number}"
            if dtype == np.bool_:
                self.loop.masks.add(found)
            elif not raw and dtype != compute:
                text = f"{type_of(compute)}({text})"
            self.loop.body.append(f"{found} = {text}")
            self.done[(key, compute, raw)] = found
        return var(found)

    def computed_here(self, view: View) -> bool:
        """Whether a Map's value is to be had without looking into memory."""
        schedule = self.writer.schedule
        value = view.value
        if not schedule.is_stored(value):
            return True
        maker = schedule.sinks[value.number]
        return maker.group == self.group.number and maker.stage == self.stage and value.numel > 1

    def load(self, view: View, compute: np.dtype[Any], raw: bool) -> str:
        """The variable that holds a stored element."""
        at = place(view, self.space.order, self.space.split)
        if at is None:
            raise Unsupported("a read that fits no loop")
        key = (at, None if raw else compute)
        found = self.done.get(key)
        if found is None:
            value = view.value
            found = spelling(f"{value.name}{value.number}_{len(self.done)}_{self.loop.number}")
            self.done[key] = found
            text = self.element(at)
            if value.dtype == np.bool_:
                text = f"{text} != 0"
                self.loop.masks.add(found)
            elif value.dtype != compute and not raw:
                text = f"{type_of(compute)}({text})"
            still = at.across == 0 and not any(term.across or term.terms for term, _, _ in at.terms) and self.space.columns > 1
            (self.loop.hoisted if still else self.loop.body).append(f"{found} = {text}")
        return found

    def element(self, at: Place) -> str:
        writer, value = self.writer, at.value
        index = self.index(at)
        if value.source is not None and value.source.kind == "position":
            return f"i8({index})"
        if value.number in writer.scalars:
            return value.label
        maker = writer.schedule.sinks.get(value.number)
        if maker is not None and maker.group == self.group.number and maker.space is not None and maker.space.role == "row":
            return value.label
        writer.loaded.add(value.number)
        return f"get({writer.layout.pointer(value)}, {index}, {self.loop.region(writer.layout.region(value))})"

    def index(self, at: Place) -> str:
        text = spelled(([("r", at.down)] if self.space.rows > 1 else []) + ([("c", at.across)] if self.space.columns > 1 else []), at.offset)
        for term, step, ignored in at.terms:
            text += f" + {self.writer.picked(self.element(term), ignored)} * {step}"
        return text

    def emit(self, expr: Expr, compute: np.dtype[Any], dtype: np.dtype[Any], condition: bool) -> str:
        """Statements for an expression, none of them twice; the spelling of the result in `dtype`."""
        if expr.op == "var" and expr.name in self.loop.masks and not condition:
            return f"{type_of(dtype)}({expr.name})"
        body: Body = emit_body([expr], self.loop.masks, "c" if condition else "r")
        self.writer.functions |= body.functions
        word = type_of(compute) if compute != np.bool_ else "f4"
        image: dict[str, str] = {}
        for statement in body.statements:
            name, _, text = statement.partition(" = ")
            text = re.sub(r"\bt(\d+)\b", lambda match: image[match.group(0)], re.sub(r"\breal\(", f"{word}(", text))
            known = self.statements.get(text)
            if known is None:
                known = self.statements[text] = f"t{len(self.statements)}_{self.loop.number}"
                self.loop.body.append(f"{known} = {text}")
            image[name] = known
        result = re.sub(r"\bt(\d+)\b", lambda match: image[match.group(0)], re.sub(r"\breal\(", f"{word}(", body.results[0]))
        if condition and dtype == np.bool_:
            return result
        return result if dtype == compute and not is_condition(expr) else f"{type_of(dtype)}({result})"


class Nested(Inside):
    """Expressions within one loop per axis."""

    def __init__(self, writer: Writer, loop: Loop, names: list[str]) -> None:
        super().__init__(writer, loop, Group(-1, 0, 0), 0, Space("nest", (), 0, 0, 0))
        self.axes = names

    def computed_here(self, view: View) -> bool:
        return not self.writer.schedule.is_stored(view.value)

    def load(self, view: View, compute: np.dtype[Any], raw: bool) -> str:
        key = (view, None if raw else compute)
        found = self.done.get(key)
        if found is None:
            value = view.value
            found = self.done[key] = spelling(f"{value.name}{value.number}_{len(self.done)}_{self.loop.number}")
            text = self.writer.nested(view, self.axes)
            if value.dtype == np.bool_:
                text = f"{text} != 0"
                self.loop.masks.add(found)
            elif value.dtype != compute and not raw:
                text = f"{type_of(compute)}({text})"
            self.loop.body.append(f"{found} = {text}")
        return found


def orientation(view: View) -> tuple[int, int]:
    """BLAS's flag for a matrix (1: it lies transposed) and the length of its rows in memory."""
    rows, columns = view.shape[-2:]
    down, across = view.strides[-2:]
    if (across == 1 or columns == 1) and (down >= columns or rows == 1):
        return 0, max(down if rows > 1 else columns, columns, 1)
    return 1, max(across if columns > 1 else rows, rows, 1)


def batch_stride(view: View) -> int:
    """The step from one matrix of a stack to the next."""
    lead, steps = view.shape[:-2], view.strides[:-2]
    if len(lead) != 1:
        raise Unsupported("a stack of matrices with several leading axes")
    return steps[0]
