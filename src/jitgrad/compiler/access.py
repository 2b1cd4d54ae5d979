"""Index maps: how a read through a view of a computed value becomes a read of what that value was computed from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .operations import Shape, Term, Value, View


def _segments(shape: Shape, steps: Shape, rows: Sequence[Shape]) -> list[tuple[int, int, tuple[int, ...]]]:
    """Axes in the order of their steps in memory as (length, step, strides of each row), merged where every row allows."""
    found: list[tuple[int, int, tuple[int, ...]]] = []
    for axis in sorted(range(len(shape)), key=lambda axis: -steps[axis]):
        n, step = shape[axis], steps[axis]
        if n == 1:
            continue
        strides = tuple(row[axis] for row in rows)
        if found:
            length, last, before = found[-1]
            if step * n == last and all(s * n == b for s, b in zip(strides, before, strict=True)):
                found[-1] = (length * n, step, strides)
                continue
        found.append((n, step, strides))
    return found


def compose(inner: View, value: Value, outer: View) -> View | None:
    """`inner`, which has the axes of `value`, read at the places where `outer` reads `value`; None where that is no view."""
    if outer.shape == value.shape and outer.is_whole:
        return inner
    return carried(inner, value.shape, value.strides, outer)


def carried(inner: View, shape: Shape, steps: Shape, outer: View) -> View | None:
    """`inner`, whose axes lie in some memory with given steps, read at the places of that memory where `outer` reads."""
    rows = [inner.strides, *(term.index.strides for term in inner.terms)]
    segments = _segments(shape, steps, rows)
    where = [0] * len(segments)
    reach = [0] * len(segments)
    rest = outer.offset
    for k, (_, step, _) in enumerate(segments):
        where[k], rest = divmod(rest, step)
    if rest:
        return None

    def moved(step: int, count: int) -> tuple[int, ...] | None:
        """The strides of every row for a step in memory, taken `count` - 1 times."""
        if step == 0 or count <= 1:
            return (0,) * len(rows)
        for k, (_, own, strides) in enumerate(segments):
            if 0 < own <= step and step % own == 0:
                reach[k] += step // own * (count - 1)
                return tuple(s * (step // own) for s in strides)
        return None

    axes = [moved(step, n) for n, step in zip(outer.shape, outer.strides, strict=True)]
    terms = [moved(term.stride, term.bound) for term in outer.terms]
    if any(x is None for x in (*axes, *terms)) or any(
        w + r >= n for w, r, (n, _, _) in zip(where, reach, segments, strict=True)
    ):
        return None
    if any(x is not None and any(x[1:]) for x in terms):
        return None
    at = [sum(w * strides[row] for w, (_, _, strides) in zip(where, segments, strict=True)) for row in range(len(rows))]
    steps_of = [tuple(x[k + 1] for x in axes if x is not None) for k in range(len(inner.terms))]
    old = tuple(
        Term(View(term.index.value, outer.shape, steps_of[k], term.index.offset + at[k + 1], term.index.terms), term.stride, term.bound, term.ignored)
        for k, term in enumerate(inner.terms)
    )
    new = tuple(
        Term(term.index, x[0], term.bound, term.ignored)
        for term, x in zip(outer.terms, terms, strict=True)
        if x is not None and x[0]
    )
    return View(inner.value, outer.shape, tuple(x[0] for x in axes if x is not None), inner.offset + at[0], old + new)


@dataclass(frozen=True)
class Place:
    """An address in a loop over rows r and columns c: offset + r * down + c * across + the terms (index place, stride, ignored index)."""

    value: Value
    offset: int
    down: int
    across: int
    terms: tuple[tuple[Place, int, int | None], ...] = ()


def _flat(shape: Sequence[int], strides: Sequence[int]) -> int | None:
    """One stride that walks all axes in order, None where there is none."""
    step: int | None = None
    width = 1
    for n, s in zip(reversed(shape), reversed(strides), strict=True):
        if n == 1:
            continue
        if step is None:
            step = s
        elif s != step * width:
            return None
        width *= n
    return 0 if step is None else step


def place(view: View, order: Sequence[int], split: int) -> Place | None:
    """A view in a loop whose rows are the axes `order[:split]` and whose columns are the rest."""
    shape, strides = [view.shape[k] for k in order], [view.strides[k] for k in order]
    down, across = _flat(shape[:split], strides[:split]), _flat(shape[split:], strides[split:])
    if down is None or across is None:
        return None
    terms = []
    for term in view.terms:
        inner = place(term.index, order, split)
        if inner is None:
            return None
        terms.append((inner, term.stride, term.ignored))
    return Place(view.value, view.offset, down, across, tuple(terms))
