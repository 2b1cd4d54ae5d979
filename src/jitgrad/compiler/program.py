"""From a finished trace to a program: what is wanted, where it goes, the whole source, the compiled function and what it is called with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from .._expr import param, substitute
from .._expr.emit import emit_body
from .._kernels import language, opaque
from .._kernels.elementwise import is_foreign
from .emit import INDENT, Writer
from .expressions import type_of
from .graph import Graph
from .layout import Layout
from .operations import Call, Check, Map, Source, Update, Value, View, Write
from .schedule import Schedule
from .trace import Tracer

PROGRAM_WORDS: Final = ("at_b1", "at_f4", "at_f8", "at_i1", "at_i2", "at_i4", "at_i8", "at_u1", "at_u8", "get", "put", "plus", "address", "shaped",
                        "rolled", "keep_rolled")  # fmt: skip
LETTERS: Final = {"f4": "b", "f8": "d", "i8": "i", "u1": "m", "i4": "k", "i2": "g", "i1": "j"}
OVERLAP: Final = -2  # an argument shares memory with what the program writes
APART: Final = -3  # parameters that had made as many steps no longer have


@dataclass
class Table:
    """The addresses a program is handed: for each entry what it is the address of."""

    entries: list[tuple[str, Any]] = field(default_factory=list)

    def place(self, kind: str, what: Any) -> int:
        """Add an entry; returns its number."""
        self.entries.append((kind, what))
        return len(self.entries) - 1


class Program:
    """The source of a trace. `returned` are the values that the function gives back, `grads` those that become `.grad` of leaves; with
    `changes` it also writes what the run wrote.
    """

    def __init__(self, tracer: Tracer, returned: Sequence[View], grads: Sequence[View], changes: bool = True) -> None:
        self.graph: Graph = tracer.graph
        self.recipes = tracer.recipes if changes else []
        self.writes: list[Write] = tracer.writes() if changes else []
        self.found: dict[int, int] = {}  # where in the table a check leaves the index it refuses
        self.limit = tracer.count if changes else 1 << 30
        self.table = Table()
        self.numbers: list[tuple[int, str]] = []
        self.returned = [self.graph.value_of(view) for view in returned]
        self.grads = [self.graph.value_of(view) for view in grads]
        self.copies: list[tuple[str, Value]] = []
        self.homes: dict[int, str] = {}
        self.declared: list[str] = []
        wanted = [*self.returned, *self.grads, *(write.value for write in self.writes)]
        self.schedule = Schedule(self.graph, list(dict.fromkeys(wanted)))
        self.late = self.late_checks()
        self.ends = [group.number for group in self.schedule.groups for sink in group.sinks if isinstance(sink.op, Call)] + list(self.late)
        self.choose_homes()
        self.drawn: list[tuple[int, Any, int]] = []  # place of the seed in the table, stream, blocks
        self.calls = any(isinstance(op, Call) for op in self.schedule.operations)  # of kernels that may raise
        self.text = ""
        self.arena = 0

    # ---- places outside
    def choose_homes(self) -> None:
        """A memory of its own for each result; what already has one is copied at the end."""
        for k, value in enumerate(self.grads):
            self.declared.append(f"g{k} = at_{type_of(value.dtype)}(table[{self.table.place('grad', k)}])")
            self.home(value, f"g{k}", True)
        for k, value in enumerate(self.returned):
            self.declared.append(f"q{k} = data(o{k})")
            self.home(value, f"q{k}", True)
        for write in self.writes:
            source = self.value_of(write.source)
            self.home(write.value, f"p_{source.label}", self.is_last(source, write.value))

    def home(self, value: Value, pointer: str, direct: bool) -> None:
        """Let a value lie, or be copied, where a pointer points."""
        if direct and value.source is None and value.number not in self.homes:
            self.homes[value.number] = pointer
        else:
            self.copies.append((pointer, value))

    def value_of(self, source: Source) -> Value:
        """The value of a source."""
        return next(value for value in self.graph.sources if value.source is source)

    def is_last(self, source: Value, value: Value) -> bool:
        """Whether nobody reads a source after its new value is written over it; who writes it may, at the same place."""
        maker = self.schedule.sinks[value.number]
        if any(end >= maker.group for end in self.ends):
            return False  # the program may still end, and then it has written nothing
        for group in self.schedule.groups:
            for sink in group.sinks:
                reads = [view for view in self.schedule.reads(sink.op) if view.value is source]
                if not reads or group.number < maker.group:
                    continue
                if (
                    sink is not maker
                    or not all(view.is_whole for view in reads)
                    or not isinstance(sink.op, (Map, Update))
                ):
                    return False
        return True

    # ---- the source
    def write(self, name: str) -> str:
        """The whole module."""
        first = Writer(self.graph, self.schedule, Layout(self.graph, self.schedule, self.homes, None), None)
        first.write(self.after)
        needed = first.loaded | {value.number for value in self.schedule.wanted}
        layout = Layout(self.graph, self.schedule, self.homes, needed)
        writer = Writer(self.graph, self.schedule, layout, needed)
        prelude = [
            *self.overlaps(layout),
            *self.checks(layout, writer),
            *self.counts(),
            *self.streams(),
            f"work = {0 if any(map(is_foreign, first.functions)) else self.work()}",  # what may raise needs the GIL
            "token = release(work)",
            *self.scalars(writer),
        ]
        body = writer.write(self.after)
        tail = self.counted()
        tail += [line for pointer, value in self.copies for line in self.copy(pointer, value, layout, writer)]
        self.arena = layout.size
        pointers = self.pointers(layout)
        arguments = ", ".join(
            [
                "addresses",
                "settings",
                *(f"a{k}" for k in range(self.argument_count())),
                *(f"o{k}" for k in range(len(self.returned))),
            ]
        )
        lines = [
            f"def {name}({arguments}):",
            *(INDENT + line for line in [*pointers, *prelude]),
            *body,
            *(INDENT + line for line in [*tail, "restore(token)", *(["keep_rolled()"] if writer.rolled else []), "return -1"]),
        ]
        text = "\n".join(lines) + "\n"
        called = {op.word for op in self.schedule.operations if isinstance(op, Call)}
        self.text = self.header(writer.functions - called, called) + text
        return self.text

    def header(self, functions: set[str], called: set[str]) -> str:
        """The head of the module."""
        origin: dict[str, list[str]] = {}
        for word in sorted({*functions, "data", "release", "restore", "offset"}):
            if word in language.WORDS:
                origin.setdefault(language.WORDS[word], []).append(word)
        imports = "".join(
            f"from jitgrad._kernels.{module} import {', '.join(words)}\n" for module, words in sorted(origin.items())
        )
        return ('"""A compiled function, written by jitgrad."""\n\nfrom __future__ import annotations\n\nimport numpy as np\n'
                f"{imports}from jitgrad._kernels.program import {', '.join(PROGRAM_WORDS)}\n\n"
                f"{opaque.definitions(functions)}{opaque.definitions(called, 'whole')}"
                "f4 = np.float32\nf8 = np.float64\ni8 = np.int64\n"
                "i4 = np.int32\ni2 = np.int16\ni1 = np.int8\nu1 = np.uint8\nu8 = np.uint64\n\n\n")  # fmt: skip

    def argument_count(self) -> int:
        """How many tensors the program is handed."""
        return len(self.arguments())

    def arguments(self) -> list[Value]:
        """The values of the tensor arguments that the program is handed, by position."""
        found = [
            value
            for value in self.graph.sources
            if value.source is not None and value.source.kind == "arg" and value.source.position < self.limit
        ]
        return sorted(found, key=lambda value: value.source.position if value.source is not None else 0)

    def spec(self) -> str:
        """The parameter letters of the function."""
        return "id" + "".join(LETTERS[type_of(v.dtype)] for v in [*self.arguments(), *self.returned]) + "->n"

    def pointers(self, layout: Layout) -> list[str]:
        """Declarations of the pointers that the body uses."""
        lines = list(self.declared)
        used = set(layout.used) | {self.value_of(write.source).number for write in self.writes}
        positions = {value.number: k for k, value in enumerate(self.arguments())}
        for value in self.graph.values:
            source = value.source
            if value.number not in used or value.number in self.homes:
                continue
            if source is None:
                lines.append(
                    f"p_{value.label} = at_{type_of(value.dtype)}(arena + {layout.slots[value.number].offset})"
                )
            elif source.kind == "arg":
                lines.append(f"p_{value.label} = data(a{positions[value.number]})")
            elif source.kind in ("captured", "constant"):
                entry = self.table.place(source.kind, source)
                lines.append(f"p_{value.label} = at_{type_of(value.dtype)}(table[{entry}])")
        return [
            "table = data(addresses)",
            "numbers = data(settings)",
            f"arena = table[{self.table.place('arena', None)}]",
            *lines,
        ]

    def overlaps(self, layout: Layout) -> list[str]:
        """Refuse arguments that share memory with captured tensors that are written."""
        targets = [self.value_of(write.source) for write in self.writes]
        readers = [value for value in self.arguments() if value not in targets]
        if not targets or not readers:
            return []
        first = len(self.table.entries)
        for value in targets:
            self.table.place("captured", value.source)
            self.table.place("size", value.numel * value.dtype.itemsize)
        lines = [
            f"for k in range({len(targets)}):",
            f"    low = table[{first} + 2 * k]",
            f"    high = low + table[{first} + 2 * k + 1]",
        ]
        for value in readers:
            layout.pointer(value)
            at, size = f"address(p_{value.label})", value.numel * value.dtype.itemsize
            lines += [f"    if {at} < high and low < {at} + {size}:", f"        return {OVERLAP}"]
        return lines

    def after(self, group: int, writer: Writer) -> list[str]:
        """What is tested when a group is done."""
        return [line for number in self.late.get(group, ()) for line in self.check(number, writer, ["restore(token)"])]

    def late_checks(self) -> dict[int, list[int]]:
        """The checks of indices that are computed on the way, by the group after which they are made."""
        late: dict[int, list[int]] = {}
        for number, check in enumerate(self.graph.checks):
            value = check.index.value
            if value.source is None and value.number in self.schedule.sinks:
                late.setdefault(self.schedule.sinks[value.number].group, []).append(number)
        return late

    def checks(self, layout: Layout, writer: Writer) -> list[str]:
        """Look at all indices that come from outside before anything is written."""
        return [
            line
            for number, check in enumerate(self.graph.checks)
            if check.index.value.source is not None
            for line in self.check(number, writer, [])
        ]

    def check(self, number: int, writer: Writer, before: list[str]) -> list[str]:
        """The lines of one check; `before`: what is done before the program ends."""
        check = self.graph.checks[number]
        index = check.index
        axes = [(n, step) for n, step in zip(index.shape, index.strides, strict=True) if step]
        names = [f"i{k}" for k in range(len(axes))]
        plain = View(index.value, tuple(n for n, _ in axes), tuple(step for _, step in axes), index.offset)
        found = self.found.setdefault(number, self.table.place("size", 0))
        test = f"index < {check.low} or index >= {check.high}"
        if check.ignored is not None:
            test = f"({test}) and index != {check.ignored}"
        lines = [f"{INDENT * k}for {name} in range({n}):" for k, (name, (n, _)) in enumerate(zip(names, axes, strict=True))]
        ending = [*before, f"table[{found}] = index", f"return {number}"]
        inner = [f"index = {writer.nested(plain, names)}", f"if {test}:", *(INDENT + line for line in ending)]
        return lines + [INDENT * len(names) + line for line in inner]

    def failed(self, status: int, table: Any) -> Exception:
        """The exception for what a check found."""
        check: Check = self.graph.checks[status]
        error: Exception = check.error(int(table[self.found[status]]), 0)
        return error

    def work(self) -> int:
        """Elements touched, roughly: what decides whether other threads may run meanwhile."""
        return sum(value.numel for value in self.graph.values if value.source is None)

    def streams(self) -> list[str]:
        """Seed and first block of each random mask, which the entry puts into the table."""
        lines = []
        self.drawn = []
        for draw in self.graph.draws:
            seed, start = self.table.place("size", 0), self.table.place("size", 0)
            self.drawn.append((seed, draw.stream, draw.blocks))  # also what nobody reads: the stream goes on as in eager mode
            if draw.outs[0].number in self.schedule.sinks:
                lines += [f"seed_{draw.number} = u8(table[{seed}])", f"start_{draw.number} = u8(table[{start}])"]
        return lines

    # ---- numbers of optimizers
    def counts(self) -> list[str]:
        """The counts of steps; parameters that went together must still do so."""
        lines: list[str] = []
        for k, (_, _, recipe, steps) in enumerate(self.recipes):
            seen: set[int] = set()
            for index, (which, tensor) in enumerate(steps if recipe.counts else ()):
                name, word = f"count_{k}_{index}", type_of(tensor.array.dtype)
                lines.append(f"{name} = at_{word}(table[{self.table.place('tensor', tensor)}])")
                if which not in seen:
                    seen.add(which)
                    lines.append(f"steps_{k}_{which} = f8({name}[0]) + 1.0")
                else:
                    lines += [f"if f8({name}[0]) + 1.0 != steps_{k}_{which}:", f"    return {APART}"]
        return lines

    def counted(self) -> list[str]:
        """The counts of steps, one more."""
        return [
            f"count_{k}_{index}[0] = {type_of(tensor.array.dtype)}(steps_{k}_{which})"
            for k, (_, _, recipe, steps) in enumerate(self.recipes)
            for index, (which, tensor) in enumerate(steps if recipe.counts else ())
        ]

    def scalars(self, writer: Writer) -> list[str]:
        """The numbers of the update rules, out of hyper-parameters and counts of steps."""
        lines: list[str] = []
        for k, (_, _, recipe, steps) in enumerate(self.recipes):
            for name in recipe.hyper:
                lines.append(f"{name}_of_{k} = numbers[{len(self.numbers)}]")
                self.numbers.append((k, name))
            for which in dict.fromkeys(which for which, _ in steps):
                mapping = {param(name): param(f"{name}_of_{k}") for name in recipe.hyper} | {
                    param("steps"): param(f"steps_{k}_{which}")
                }
                body = emit_body([substitute(expr, mapping) for expr in recipe.numbers])
                writer.functions |= body.functions
                tag = f"{k}of{which}"
                lines += [writer.typed(text, "f8", tag) for text in body.statements]
                names = [f"{name}_{k}_{which}" for name in recipe.rule.params]
                lines += [
                    f"{name} = {writer.typed(text, 'f8', tag)}" for name, text in zip(names, body.results, strict=True)
                ]
        return lines

    def copy(self, pointer: str, value: Value, layout: Layout, writer: Writer) -> list[str]:
        """Copy a value to where it also has to be."""
        at = View(value, (value.numel,), (1,))
        return [
            f"for c in range({value.numel}):",
            f"    {pointer}[c] = {type_of(value.dtype)}({writer.nested(at, ['c'])})",
        ]


Entry = Callable[..., Any]


def filled(array: np.ndarray[Any, Any]) -> int:
    """The address of an array's elements."""
    return int(array.__array_interface__["data"][0])
