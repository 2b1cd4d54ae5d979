"""Sums of products over named axes: `einsum`, `tensordot`, and what comes down to them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from .kinds import Tensor, composite
from .matmul import check_kinds
from .views import unsafe_view_op

LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
DOTS: Final = -1  # an ellipsis among the numbers of the axes
_NOTHING: Final = "einsum(): must specify the equation string and at least one operand, or at least one operand and its subscripts list"


# ---------------------------------------------------------------- reading the equation
def parsed(text: str, operand: int | None) -> list[int]:
    """The axes of one operand (or of the output) as numbers, DOTS for an ellipsis. RuntimeError for anything else."""
    where = "the output" if operand is None else f"operand {operand}"
    found: list[int] = []
    place = 0
    while place < len(text):
        letter = text[place]
        if letter == ".":
            if text[place : place + 3] != "..." or DOTS in found:
                raise RuntimeError(f"einsum(): found '.' for {where} " + ("that is not part of any ellipsis" if text[place : place + 3] != "..." else
                                   "for which an ellipsis was already found"))  # fmt: skip
            found.append(DOTS)
            place += 3
            continue
        if letter != " ":
            if letter not in LETTERS:
                raise RuntimeError(f"einsum(): invalid subscript given at index {place} in the equation string, subscripts must be in [a-zA-Z]")
            found.append(LETTERS.index(letter))
        place += 1
    return found


def arguments(equation: Any, operands: Sequence[Any]) -> tuple[list[list[int]], list[int] | None, list[Tensor]]:
    """The axes of each operand, those of the output if given, and the operands; from an equation or from lists of axes."""
    if isinstance(equation, str):
        if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
            operands = operands[0]
        if not operands:
            raise ValueError(_NOTHING)
        left, arrow, right = equation.partition("->")
        terms = [parsed(term, place) for place, term in enumerate(left.split(","))]
        if len(terms) != len(operands):
            raise RuntimeError(f"einsum(): {'more' if len(terms) < len(operands) else 'fewer'} operands were provided than specified in the equation")
        return terms, parsed(right, None) if arrow else None, list(operands)
    rest = [equation, *operands]
    if len(rest) < 2:
        raise ValueError(_NOTHING)
    output = [DOTS if axis is Ellipsis else int(axis) for axis in rest.pop()] if len(rest) % 2 else None
    lists = [[DOTS if axis is Ellipsis else int(axis) for axis in axes] for axes in rest[1::2]]
    for axis in (axis for axes in lists for axis in axes):
        if not DOTS <= axis < len(LETTERS):
            raise ValueError(f"not a valid value for a subscript: {axis}")
    return lists, output, rest[::2]


class Plan:
    """Where the axes of the operands go: first those of the output, in order, then those summed over; and how long they are."""

    def __init__(self, terms: list[list[int]], output: list[int] | None, operands: list[Tensor]) -> None:
        self.hidden = 0  # axes that an ellipsis stands for
        for place, (term, x) in enumerate(zip(terms, operands, strict=True)):
            names = len(term) - (DOTS in term)
            if DOTS in term:
                self.hidden = max(self.hidden, x.ndim - names)
            if names > x.ndim or (names != x.ndim and DOTS not in term):
                raise RuntimeError(f"einsum(): the number of subscripts in the equation ({names}) " + (
                    f"does not match the number of dimensions ({x.ndim}) for operand {place} and no ellipsis was given" if DOTS not in term else
                    f"is more than the number of dimensions ({x.ndim}) for operand {place}"))  # fmt: skip
        seen = [axis for term in terms for axis in term if axis != DOTS]
        if output is None:
            output = ([DOTS] if any(DOTS in term for term in terms) else []) + sorted({axis for axis in seen if seen.count(axis) == 1})
        self.axes: dict[Any, int] = {}
        for axis in output:
            self.place_of(axis, seen)
        self.kept = len(self.axes)
        if self.hidden and DOTS not in output:
            for k in range(self.hidden):
                self.axes[DOTS, k] = len(self.axes)
        for axis in sorted(set(seen)):
            self.axes.setdefault(axis, len(self.axes))

    def place_of(self, axis: int, seen: list[int]) -> None:
        """Give an axis of the output the next place."""
        if axis == DOTS:
            for k in range(self.hidden):
                self.axes[DOTS, k] = len(self.axes)
            return
        if axis in self.axes:
            raise RuntimeError(f"einsum(): output subscript {LETTERS[axis]} appears more than once in the output")
        if axis not in seen:
            raise RuntimeError(f"einsum(): output subscript {LETTERS[axis]} does not appear in the equation for any input operand")
        self.axes[axis] = len(self.axes)

    def arranged(self, term: list[int], x: Tensor, operand: int) -> Tensor:
        """An operand with repeated axes joined and every axis in its place, those it lacks with length 1."""
        names: list[Any] = []
        for axis in term:
            count = x.ndim - len(term) + 1
            names += [(DOTS, self.hidden - count + k) for k in range(count)] if axis == DOTS else [axis]
        for axis in [name for k, name in enumerate(names) if name in names[:k]]:
            first, second = _first_two(names, axis)
            n, m = x.meta.shape[first], x.meta.shape[second]
            if n != m:
                raise RuntimeError(f"einsum(): subscript {LETTERS[axis]} is repeated for operand {operand} but the sizes don't match, {m} != {n}")
            x = x.diagonal(0, first, second)
            names = [name for k, name in enumerate(names) if k not in (first, second)] + [axis]
        absent = len(self.axes) - len(names)
        order = {name: k for k, name in enumerate(names)}
        dims, extra = [], len(names)
        for axis in self.axes:
            if axis in order:
                dims.append(order[axis])
            else:
                dims.append(extra)
                extra += 1
        for _ in range(absent):
            x = x.unsqueeze(-1)
        return x.permute(dims)


def _first_two(names: list[Any], axis: Any) -> tuple[int, int]:
    """The first two places of an axis that is there twice."""
    found = [k for k, name in enumerate(names) if name == axis]
    return found[0], found[1]


def check_lengths(plan: Plan, operands: list[Tensor]) -> None:
    """RuntimeError unless an axis has one length, or 1, in all operands."""
    names = list(plan.axes)
    lengths = [1] * len(names)
    for operand, x in enumerate(operands):
        for k, n in enumerate(x.meta.shape):
            if lengths[k] == 1:
                lengths[k] = n
            elif n not in (1, lengths[k]):
                name = "..." if isinstance(names[k], tuple) else LETTERS[names[k]]
                raise RuntimeError(f"einsum(): subscript {name} has size {n} for operand {operand} which does not broadcast with previously "
                                   f"seen size {lengths[k]}")  # fmt: skip


# ---------------------------------------------------------------- products
def contracted(a: Tensor, b: Tensor, dims: Sequence[int]) -> Tensor:
    """The product of two tensors of one rank, axes of length 1 broadcast, summed over `dims`, which stay with length 1: one `bmm`."""
    for k in dims:  # summed before the product where only one of the two has the axis
        if a.meta.shape[k] != 1 and b.meta.shape[k] == 1:
            a = a.sum(k, keepdim=True)
        elif b.meta.shape[k] != 1 and a.meta.shape[k] == 1:
            b = b.sum(k, keepdim=True)
    inner = [k for k in dims if a.meta.shape[k] != 1]
    if not inner:
        return a * b
    check_kinds("bmm", a, b)
    rest = [k for k in range(a.ndim) if k not in dims]
    both = [k for k in rest if a.meta.shape[k] != 1 and b.meta.shape[k] != 1]
    left, right = ([k for k in rest if k not in both and x.meta.shape[k] != 1] for x in (a, b))
    ones = [k for k in range(a.ndim) if k not in (*both, *left, *right, *inner)]
    lengths = [max(n, m) if 0 not in (n, m) else 0 for n, m in zip(a.meta.shape, b.meta.shape, strict=True)]

    def size(axes: list[int]) -> int:
        return math.prod(lengths[k] for k in axes)

    first = a.permute([*both, *left, *inner, *right, *ones]).reshape(size(both), size(left), size(inner))
    second = b.permute([*both, *inner, *right, *left, *ones]).reshape(size(both), size(inner), size(right))
    order = [*both, *left, *right, *inner, *ones]
    shape = [lengths[k] for k in (*both, *left, *right)] + [1] * (len(inner) + len(ones))
    back = [order.index(k) for k in range(a.ndim)]
    return first.bmm(second).view(shape).permute(back)


@composite(method=False)
def einsum(equation: Any, *operands: Any) -> Tensor:
    """Products of operands summed over axes, in Einstein's notation: `einsum("ij,jk->ik", a, b)`.

    Axes are letters, `...` stands for any number of them; without `->` the output has, in alphabetical order, the letters that are there
    once. Axes may be given as lists of numbers instead: `einsum(a, [0, 1], b, [1, 2], [0, 2])`. RuntimeError in torch's words where
    equation and shapes don't agree.
    """
    terms, output, tensors = arguments(equation, operands)
    plan = Plan(terms, output, tensors)
    arranged = [plan.arranged(term, x, k) for k, (term, x) in enumerate(zip(terms, tensors, strict=True))]
    check_lengths(plan, arranged)
    summed = list(range(plan.kept, len(plan.axes)))
    result = arranged[0]
    for k, x in enumerate(arranged[1:], 2):
        later = arranged[k:]
        now = [axis for axis in summed if all(other.meta.shape[axis] == 1 for other in later)]
        result = contracted(result, x, now)
    if any(result.meta.shape[axis] != 1 for axis in summed):
        return result.sum(summed)
    return result.view(result.meta.shape[: plan.kept]) if summed else result


# ---------------------------------------------------------------- tensordot and its like
def contracted_dims(a: Tensor, b: Tensor, dims: Any) -> tuple[list[int], list[int]]:
    """The axes of both operands that are summed over."""
    if hasattr(dims, "meta"):
        dims = dims.tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.ndim, b.ndim):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        return list(range(a.ndim - dims, a.ndim)), list(range(dims))
    if not isinstance(dims, (tuple, list)) or len(dims) != 2:
        raise RuntimeError("tensordot expects dims to be int or tuple[list[int], list[int]] or list[list[int]] containing two lists, but got "
                           f"dims={dims}")  # fmt: skip
    lists = [axes if isinstance(axes, (tuple, list)) else [axes] for axes in dims]
    first, second = ([k % max(x.ndim, 1) for k in axes] for axes, x in zip(lists, (a, b), strict=True))
    if len(first) != len(second):
        raise RuntimeError("both dimension lists should have same length")
    return first, second


@composite(method=False)
def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    """The product of two tensors summed over axes: the last `dims` of `a` and the first of `b`, or two lists of axes.

    RuntimeError where lengths or dtypes don't agree.
    """
    first, second = contracted_dims(a, b, dims)
    for k, m in zip(first, second, strict=True):
        n, other = a.meta.shape[k], b.meta.shape[m]
        if n == other:
            continue
        if other == 1:
            a = a.sum(k, keepdim=True, dtype=a.meta.kind)
        elif n == 1:
            b = b.sum(m, keepdim=True, dtype=b.meta.kind)
        else:
            raise RuntimeError(f"contracted dimensions need to match, but first has size {n} in dim {k} and second has size {other} in dim {m}")
    check_kinds("mm", a, b)
    left, right = [k for k in range(a.ndim) if k not in first], [k for k in range(b.ndim) if k not in second]
    count = math.prod(a.meta.shape[k] for k in first)
    rows = a.permute([*left, *first]).reshape(math.prod(a.meta.shape[k] for k in left), count)
    columns = b.permute([*second, *right]).reshape(count, math.prod(b.meta.shape[k] for k in right))
    return rows.mm(columns).view([a.meta.shape[k] for k in left] + [b.meta.shape[k] for k in right])


@composite
def inner(input: Tensor, other: Tensor) -> Tensor:
    """Sums of products along the last axis of both: (..., n) and (..., n) give the leading axes of one, then of the other."""
    if not input.ndim or not other.ndim:
        return input * other
    if input.meta.shape[-1] != other.meta.shape[-1]:
        raise RuntimeError("inner() the last dimension must match on both input tensors but got shapes "
                           f"{list(input.meta.shape)} and {list(other.meta.shape)}")  # fmt: skip
    return tensordot(input, other, ([-1], [-1]))


@composite
def kron(input: Tensor, other: Tensor) -> Tensor:
    """Kronecker's product: every element of `input` times all of `other`, in blocks."""
    rank = max(input.ndim, other.ndim)
    first, second = ((1,) * (rank - x.ndim) + tuple(x.meta.shape) for x in (input, other))
    left = input.reshape([n for m in first for n in (m, 1)])
    right = other.reshape([n for m in second for n in (1, m)])
    return unsafe_view_op(left * right, tuple(n * m for n, m in zip(first, second, strict=True)))
