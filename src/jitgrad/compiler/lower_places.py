"""Lowerings of what reads and writes at places that tensors name: brackets, scatter and index ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from .._expr import scalar as s, var
from .graph import Graph
from .lower import lowering, unary
from .operations import Shape, Term, Unsupported, View, contiguous_strides
from .rearrange import collect, integers, rows_of

LONG: Final = np.dtype(np.int64)


# ---------------------------------------------------------------- along an axis, element by element
def bounded_by(dim: int, bound: int) -> Callable[[int, int], Exception]:
    """The error for an index of an axis."""
    return lambda value, position: RuntimeError(f"index {value} is out of bounds for dimension {dim} with size {bound}")


class Along:
    """Places along one axis: an index of the part's shape says where in the axis each element goes."""

    def __init__(self, g: Graph, index: View, shape: Shape, dim: int) -> None:
        if not shape:
            raise Unsupported("places in a number")
        self.g, self.index, self.shape, self.dim = g, integers(g, index), shape, dim
        g.check(self.index, 0, shape[dim], None, bounded_by(dim, shape[dim]))
        self.steps = contiguous_strides(shape)
        self.strides = tuple(0 if k == dim else step for k, step in enumerate(self.steps))

    def put(self, base: View, part: View, add: bool, name: str) -> View:
        """`base` with a part written, or added, there."""
        part = View(part.value, self.index.shape, part.strides, part.offset, part.terms)
        term = Term(self.index, self.steps[self.dim], self.shape[self.dim])
        return collect(self.g, self.shape, base, part, self.strides, 0, (term,), add, name)

    def take(self, x: View, name: str) -> View:
        """The elements there."""
        strides = tuple(0 if k == self.dim else step for k, step in enumerate(x.strides))
        term = Term(self.index, x.strides[self.dim], self.shape[self.dim])
        return self.g.copy(View(x.value, self.index.shape, strides, x.offset, (*x.terms, term)), name=name)


@lowering("_scatter_add", "_scatter", "_scatter_value")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    names = dict(zip(op.inputs, ins, strict=True))
    base, index = names["input"], names["index"]
    part = names.get("src")
    if part is None:
        part = g.number(float(st["value"]), index.shape, base.value.dtype)
    return Along(g, index, base.shape, st["dim"]).put(base, part, op.name == "_scatter_add", op.name.strip("_"))


@lowering("_scatter_add_adjoint", "_scatter_adjoint")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> list[View]:
    grad, found = ins[0], []
    along = Along(g, st["index"], grad.shape, st["dim"])
    if st["needs"][0]:
        zero = g.number(0.0, along.index.shape, grad.value.dtype)
        found.append(grad if "add" in op.name else along.put(grad, zero, False, "scatter_back"))
    if st["needs"][1]:
        if tuple(st["likes"][1].shape) != along.index.shape:
            raise Unsupported("a scatter of a part of its source")
        found.append(along.take(grad, "scatter_back"))
    return found


# ---------------------------------------------------------------- along an axis, slice by slice
class Slices:
    """Slices along one axis: an index of one axis says which."""

    def __init__(self, g: Graph, index: View, shape: Shape, dim: int, part: Shape) -> None:
        if not shape or len(index.shape) != 1:
            raise Unsupported("slices of a number")
        self.g, self.index, self.shape, self.dim = g, integers(g, index), shape, dim
        g.check(self.index, 0, shape[dim], None, lambda value, position: IndexError("index out of range in self"))
        self.steps = contiguous_strides(shape)
        lead, tail = (0,) * dim, (0,) * (len(shape) - dim - 1)
        self.places = View(self.index.value, part, (*lead, *self.index.strides, *tail), self.index.offset, self.index.terms)

    def put(self, base: View, part: View, add: bool, name: str) -> View:
        """`base` with slices written, or added, there."""
        strides = tuple(0 if k == self.dim else step for k, step in enumerate(self.steps))
        term = Term(self.places, self.steps[self.dim], self.shape[self.dim])
        return collect(self.g, self.shape, base, part, strides, 0, (term,), add, name)

    def take(self, x: View, name: str) -> View:
        """The slices there."""
        return self.g.copy(rows_of(self.g, x, self.index, self.dim), name=name)


@lowering("_index_add", "_index_copy")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    names = dict(zip(op.inputs, ins, strict=True))
    base, part = names["input"], scaled(g, names["source"], st.get("alpha", 1))
    slices = Slices(g, names["index"], base.shape, st["dim"], part.shape)
    return slices.put(base, part, op.name == "_index_add", op.name.strip("_"))


def scaled(g: Graph, view: View, alpha: Any) -> View:
    """The view times a number."""
    return view if alpha == 1 else unary(g, "scaled", lambda x: x * float(alpha), view)


@lowering("_index_add_adjoint", "_index_copy_adjoint")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> list[View]:
    grad, dim, add, found = ins[0], st["dim"], "add" in op.name, []
    index = st["index"]
    part = (*grad.shape[:dim], *index.shape, *grad.shape[dim + 1 :])
    slices = Slices(g, index, grad.shape, dim, part)
    if st["needs"][0]:
        zero = g.number(0.0, part, grad.value.dtype)
        found.append(grad if add else slices.put(grad, zero, False, "index_copy_back"))
    if st["needs"][1]:
        found.append(scaled(g, slices.take(grad, "index_back"), st.get("alpha", 1)))
    return found


@lowering("_index_fill")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    base, index = ins
    part = (*base.shape[: st["dim"]], *index.shape, *base.shape[st["dim"] + 1 :])
    slices = Slices(g, index, base.shape, st["dim"], part)
    return slices.put(base, g.number(float(st["value"]), part, base.value.dtype), False, "index_fill")


def from_zero(g: Graph, index: View, size: int, error: Callable[[int, int], Exception]) -> View:
    """An index counted from 0, where negative ones count from the end; checked."""
    index = integers(g, index)
    g.check(index, -size, size, None, error)
    known = g.bounded.get(index.value.number)
    if known is not None and known[0] >= 0:
        return index
    found = g.map("wrapped", s.where(var("i") < 0, var("i") + size, var("i")), {"i": index}, index.shape, LONG, LONG)
    g.within(found, 0, size)
    return found


@lowering("_counted")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    return from_zero(g, ins[0], st["length"], lambda value, position: IndexError("index out of range in self"))


# ---------------------------------------------------------------- brackets
class Key:
    """The places that index tensors in brackets name: the shape of what they take, the strides in a memory, what the tensors add."""

    def __init__(self, g: Graph, shape: Shape, key: tuple[Any, ...]) -> None:
        self.g, self.key = g, key
        self.dims = [axis for axis, entry in enumerate(key) if entry is not None]
        self.gathered = tuple(np.broadcast_shapes(*(key[axis].shape for axis in self.dims)))
        self.at = self.dims[0] if self.dims[-1] - self.dims[0] + 1 == len(self.dims) else 0
        self.kept = [axis for axis in range(len(shape)) if axis not in self.dims]
        lengths = [shape[axis] for axis in self.kept]
        self.bounds = shape
        self.shape: Shape = (*lengths[: self.at], *self.gathered, *lengths[self.at :])

    def spread(self, index: View) -> View:
        """An index with the axes of what is taken."""
        index = index.broadcast(self.gathered)
        lead, tail = (0,) * self.at, (0,) * (len(self.kept) - self.at)
        terms = tuple(Term(self.spread(t.index), t.stride, t.bound, t.ignored) for t in index.terms)
        return View(index.value, self.shape, (*lead, *index.strides, *tail), index.offset, terms)

    def places(self, steps: Shape) -> tuple[Shape, tuple[Term, ...]]:
        """Strides and terms over a memory with the given steps."""
        own = [steps[axis] for axis in self.kept]
        strides = (*own[: self.at], *(0,) * len(self.gathered), *own[self.at :])
        return strides, tuple(Term(self.spread(self.key[axis]), steps[axis], self.bounds[axis]) for axis in self.dims)

    def take(self, x: View, name: str) -> View:
        """What is at the places."""
        x = self.g.value_of(x).whole() if x.terms else x
        strides, terms = self.places(x.strides)
        return self.g.copy(View(x.value, self.shape, strides, x.offset, terms), name=name)

    def put(self, base: View | None, part: View, add: bool, name: str) -> View:
        """`base`, or zeros, with a part at the places."""
        strides, terms = self.places(contiguous_strides(self.bounds))
        part = part.broadcast(self.shape)
        return collect(self.g, self.bounds, base, part, strides, 0, terms, add, name)


@lowering("_index")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    return Key(g, ins[0].shape, st["key"]).take(ins[0], "index")


@lowering("_index_adjoint")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    return Key(g, st["likes"][0].shape, st["key"]).put(None, ins[0], True, "index_back")


@lowering("_index_put")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    return Key(g, ins[0].shape, st["key"]).put(ins[0], ins[1], bool(st["accumulate"]), "index_put")


@lowering("_index_put_adjoint")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> list[View]:
    grad, found = ins[0], []
    key = Key(g, grad.shape, st["key"])
    if st["needs"][0]:
        zero = g.number(0.0, key.shape, grad.value.dtype)
        found.append(grad if st["accumulate"] else key.put(grad, zero, False, "index_put_back"))
    if st["needs"][1]:
        found.append(key.take(grad, "index_put_back"))
    return found
