"""What one loop computes: the expressions of its elements, with the loads they need.

`Inside` is a place in a loop over rows r and columns c, `Nested` one in a loop per axis. A Map that is not stored is put in where it is read;
nothing is computed twice in one loop.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._expr import Expr, const, is_condition, substitute, var
from .._expr.emit import Body, emit_body, spelling
from .access import Place, compose, place
from .operations import Map, Unsupported, View
from .schedule import Group, Space

TYPES = {"f": "f4", "d": "f8", "q": "i8", "l": "i8", "i": "i4", "h": "i2", "b": "i1", "B": "u1", "?": "u1"}


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
        """Lines with the number of regions filled in."""
        return [line.replace("@count@", str(len(self.regions))) for line in lines]


class Inside:
    """Expressions within one loop over rows and columns."""

    def __init__(self, writer: Any, loop: Loop, group: Group, stage: int, space: Space) -> None:
        self.writer, self.loop, self.group, self.stage, self.space = writer, loop, group, stage, space
        self.done: dict[object, str] = {}
        self.resolved: dict[object, Expr] = {}
        self.statements: dict[str, str] = {}

    def value_of(self, op: Map, dtype: np.dtype[Any]) -> str:
        """The spelling of a Map's element at this place; the statements that compute it are in the loop's body."""
        expr, compute, condition = self.expanded(op, dict(op.operands))
        return self.emit(expr, compute, dtype, condition)

    def operand(self, view: View, dtype: np.dtype[Any]) -> str:
        """The spelling of a view's element at this place."""
        found = self.resolve(view, dtype, False)
        return self.emit(found, dtype, dtype, dtype == np.bool_)

    def expanded(self, op: Map, views: dict[str, View]) -> tuple[Expr, np.dtype[Any], bool]:
        """A Map's expression over what is to be had here."""
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
        """An expression for an element."""
        value, op = view.value, view.value.op
        if view.constant is not None:
            number = view.constant
            return const(bool(number)) if value.dtype == np.bool_ else const(number if raw else float(number))
        inline = isinstance(op, Map) and (op.compute == compute or (value.dtype == np.bool_ and op.compute == compute))
        if isinstance(op, Map) and self.computed_here(view):
            parts = {name: compose(operand, value, view) for name, operand in op.operands.items()}
            if all(part is not None for part in parts.values()):
                key = ("expr", view)
                expr = substitute(
                    op.expr,
                    {
                        var(name): self.resolve(part, op.compute, name in op.raw)
                        for name, part in parts.items()
                        if part is not None
                    },
                )
                if inline and (value.dtype in (compute, np.bool_)):
                    return expr
                return self.named(key, expr, op.compute, value.dtype, compute, raw)
        return var(self.load(view, compute, raw))

    def named(
        self, key: object, expr: Expr, inner: np.dtype[Any], dtype: np.dtype[Any], compute: np.dtype[Any], raw: bool
    ) -> Expr:
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
            still = (
                at.across == 0
                and not any(term.across or term.terms for term, _, _ in at.terms)
                and self.space.columns > 1
            )
            (self.loop.hoisted if still else self.loop.body).append(f"{found} = {text}")
        return found

    def element(self, at: Place) -> str:
        """The spelling of an element in memory, or of the variable that holds it."""
        writer, value = self.writer, at.value
        index = self.index(at)
        if value.source is not None and value.source.kind == "position":
            return f"i8({index})"
        if value.number in writer.scalars:
            return value.label
        maker = writer.schedule.sinks.get(value.number)
        if (
            maker is not None
            and maker.group == self.group.number
            and maker.space is not None
            and maker.space.role == "row"
        ):
            return value.label
        writer.loaded.add(value.number)
        return f"get({writer.layout.pointer(value)}, {index}, {self.loop.region(writer.layout.region(value))})"

    def index(self, at: Place) -> str:
        """The spelling of an address."""
        text = spelled(
            ([("r", at.down)] if self.space.rows > 1 else []) + ([("c", at.across)] if self.space.columns > 1 else []),
            at.offset,
        )
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
        result = re.sub(
            r"\bt(\d+)\b", lambda match: image[match.group(0)], re.sub(r"\breal\(", f"{word}(", body.results[0])
        )
        if condition and dtype == np.bool_:
            return result
        return result if dtype == compute and not is_condition(expr) else f"{type_of(dtype)}({result})"


class Nested(Inside):
    """Expressions within one loop per axis."""

    def __init__(self, writer: Any, loop: Loop, names: list[str]) -> None:
        super().__init__(writer, loop, Group(-1, 0, 0), 0, Space("nest", (), 0, 0, 0))
        self.axes = names

    def computed_here(self, view: View) -> bool:
        """Whether a Map is computed where it is read."""
        return not self.writer.schedule.is_stored(view.value)

    def load(self, view: View, compute: np.dtype[Any], raw: bool) -> str:
        """The variable that holds a stored element."""
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
