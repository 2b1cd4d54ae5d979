"""Operations that are no loop over rows and columns: products by BLAS, gathering and scattering, optimizer rules, random masks, odd axes."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from .._expr import param, substitute, var
from .._expr.emit import emit_body
from .._kernels.tiling import in_tiles
from .access import Place, place
from .draw_calls import draw_lines
from .expressions import Loop, Nested, spelled, type_of
from .kernel_calls import call_lines
from .layout import Layout
from .operations import Call, Collect, Draw, Gemm, Map, Reduce, Rowwise, Unsupported, Update, View
from .schedule import Schedule, Sink
from .tiled_calls import across_lines, tiled_lines


class Calls:
    """See the module's docstring; a part of `emit.Writer`."""

    schedule: Schedule
    layout: Layout
    loaded: set[int]
    scalars: set[int]
    functions: set[str]
    loops: int

    def line(self, depth: int, text: str) -> None:
        """Append a line."""
        raise NotImplementedError

    def accumulator(self, op: Reduce) -> str:
        """The word for the type that a reduction is made in."""
        raise NotImplementedError

    def zero(self, op: Reduce, word: str) -> str:
        """What a reduction begins with."""
        raise NotImplementedError

    def combined(self, op: Reduce, held: str, value: str) -> str:
        """One step of a reduction."""
        raise NotImplementedError

    def scaled(self, op: Reduce, total: str) -> str:
        """A finished sum in the dtype of its value."""
        raise NotImplementedError

    def other(self, sink: Sink) -> None:
        """One operation in a group of its own."""
        op = sink.op
        if isinstance(op, Gemm):
            self.gemm(op)
        elif isinstance(op, Collect):
            self.collect(op)
        elif isinstance(op, Update):
            self.update(op)
        elif isinstance(op, Draw):
            self.draw(op)
        elif isinstance(op, Rowwise):
            self.rowwise(op)
        elif isinstance(op, Call):
            for text in call_lines(self, op):
                self.line(1, text)
        else:
            self.nest(sink)

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
        if not batch and in_tiles(m, n, k, out.dtype, bool(flag_b)):
            width = out.dtype.itemsize
            if flag_b and not flag_a and m < n and m % (64 // width) == 0:
                room = f"at_{word}({self.layout.scratch(out, m * k * width)})"
                for text in across_lines(self, (m, n, k), (pointers[0], lda), (pointers[1], ldb), result, width, room):
                    self.line(1, text)
                return
            scratch = f"at_{word}({self.layout.scratch(out, n * k * width)})" if flag_b else ""
            steps = (1, lda) if flag_a else (lda, 1)
            for text in tiled_lines(self, (m, n, k), (pointers[0], *steps), (pointers[1], ldb), result, width, scratch):
                self.line(1, text)
            return
        result = f"offset({result}, {at_c})" if at_c else result
        self.line(
            depth,
            f"gemm({flag_a}, {flag_b}, {m}, {n}, {k}, {word}(1.0), {pointers[0]}, {lda}, {pointers[1]}, {ldb}, {word}(0.0), {result}, {n})",
        )

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

    def rowwise(self, op: Rowwise) -> None:
        """A function of rows."""
        out = op.outs[0]
        self.functions.add(op.function)
        self.loaded |= {view.value.number for view in op.operands}
        given = [self.layout.pointer(view.value) for view in op.operands]
        given += [str(number) for number in (op.rows, op.length, *op.numbers)]
        given.append(self.layout.pointer(out))
        if op.work:
            given.append(f"at_i8({self.layout.scratch(out, op.work * 8)})")
        self.line(1, f"{op.function}({', '.join(given)})")

    def draw(self, op: Draw) -> None:
        """Random numbers."""
        for text in draw_lines(self, op):
            self.line(1, text)

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
        mapping = {var(name): var(f"x{name}{tag}") for name in op.operands} | {
            param(name): param(f"{name}{tag}") for name in op.numbers
        }
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
            lines.append(
                f"x{name}{tag} = get({self.layout.pointer(view.value)}, c, {loop.region(self.layout.region(view.value))})"
            )
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
