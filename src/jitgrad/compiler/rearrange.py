"""Lowerings of what copies, joins, gathers and scatters."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._expr import scalar as s, var
from .graph import Graph
from .lower import lowering, reshape
from .operations import Collect, Shape, Term, Unsupported, View, contiguous_strides


# ---------------------------------------------------------------- copies
@lowering("_clone")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    return ins[0]


@lowering("_to_copy", "_to_copy_adjoint")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    kind = st["likes"][0].dtype if "likes" in st else st["kind"].numpy
    return convert(g, ins[0], kind)


def convert(g: Graph, view: View, kind: np.dtype[Any]) -> View:
    """The view in another dtype."""
    have = view.value.dtype
    if have == kind:
        return view
    if kind == np.bool_:
        return g.map("to_bool", var("x") != 0, {"x": view}, view.shape, kind, have if have != np.bool_ else np.float32)
    if kind.char == "e" or have.char == "e":
        raise Unsupported("float16")
    if have.kind == "f" and kind.char in "hbB":  # as NumPy does on this machine, also where the number doesn't fit
        view = g.copy(view, np.int32, "to")
    return g.copy(view, kind, "to")


@lowering("_copy")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    return convert(g, ins[1], ins[0].value.dtype).broadcast(ins[0].shape)


@lowering("_copy_adjoint")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> list[View]:
    found = []
    for like, need, first in zip(st["likes"], st["needs"], (True, False), strict=True):
        if need:
            grad = g.number(0.0, tuple(like.shape), like.dtype) if first else unbroadcast(g, ins[0], tuple(like.shape))
            found.append(convert(g, grad, like.dtype))
    return found


@lowering("_zero")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    return g.number(0.0, ins[0].shape, ins[0].value.dtype)


@lowering("_clone_adjoint")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    return ins[0]


@lowering("_expand_adjoint")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    return unbroadcast(g, ins[0], st["likes"][0].shape)


def unbroadcast(g: Graph, grad: View, shape: Shape) -> View:
    """The sum along the axes that were repeated."""
    lead = len(grad.shape) - len(shape)
    axes = tuple(range(lead)) + tuple(lead + k for k, n in enumerate(shape) if n == 1 != grad.shape[lead + k])
    return reshape(g, g.reduce("sum", grad, axes, True), shape) if axes else grad


# ---------------------------------------------------------------- parts put back in place
def collect(g: Graph, shape: Shape, base: View | None, part: View, strides: Shape, offset: int, terms: tuple[Term, ...] = (), add: bool = False,
            name: str = "put") -> View:  # fmt: skip
    """`base`, or zeros, with a part at places of it."""
    out = g.value(shape, part.value.dtype, name)
    g.add(Collect([out], base=base, part=part, strides=strides, offset=offset, terms=terms, add=add))
    return out.whole()


@lowering("_select_adjoint")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    shape, dim = st["likes"][0].shape, st["dim"]
    steps = contiguous_strides(shape)
    index = st["index"] % shape[dim]
    return collect(g, shape, None, ins[0], steps[:dim] + steps[dim + 1 :], index * steps[dim], name="select_back")


@lowering("_slice_adjoint")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    shape, dim = st["likes"][0].shape, st["dim"]
    steps = list(contiguous_strides(shape))
    start, _, step = slice(st["start"], st["stop"], st["step"]).indices(shape[dim])
    offset = start * steps[dim]
    steps[dim] *= step
    return collect(g, shape, None, ins[0], tuple(steps), offset, name="slice_back")


@lowering("_split_adjoint", "_split_with_sizes_adjoint", "_unsafe_split_adjoint", "_unsafe_split_with_sizes_adjoint")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    shape, dim, parts, at = st["likes"][0].shape, st["dim"], iter(ins), 0
    steps, result = contiguous_strides(shape), None
    for size, given in zip(st["sizes"], st["given"], strict=True):
        if given:
            result = collect(g, shape, result, next(parts), steps, at * steps[dim], name="split_back")
        at += size
    assert result is not None
    return result


@lowering("_gather_adjoint")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    index, dim, shape = integers(g, st["index"]), st["dim"], st["likes"][0].shape
    steps = contiguous_strides(shape)
    strides = tuple(0 if k == dim else step for k, step in enumerate(steps))
    return collect(g, shape, None, ins[0], strides, 0, (Term(index, steps[dim], shape[dim]),), True, "gather_back")


@lowering("_cat")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    dim = st["dim"]
    ins = [view for view in ins if view.shape != (0,)]
    if len({view.value.dtype for view in ins}) > 1:
        raise Unsupported("cat of several dtypes")
    shape = (*ins[0].shape[:dim], sum(view.shape[dim] for view in ins), *ins[0].shape[dim + 1 :])
    steps, at = contiguous_strides(shape), 0
    result: View | None = None
    for view in ins:
        result = collect(g, shape, result, view, steps, at * steps[dim], name="cat")
        at += view.shape[dim]
    assert result is not None
    return result


@lowering("_stack")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    dim = st["dim"]
    if len({view.value.dtype for view in ins}) > 1:
        raise Unsupported("stack of several dtypes")
    shape = (*ins[0].shape[:dim], len(ins), *ins[0].shape[dim:])
    steps = contiguous_strides(shape)
    result: View | None = None
    for place, view in enumerate(ins):
        result = collect(g, shape, result, view, steps[:dim] + steps[dim + 1 :], place * steps[dim], name="stack")
    assert result is not None
    return result


# ---------------------------------------------------------------- by index
def out_of_range(value: int, position: int) -> Exception:
    """The error for an index of a table."""
    return IndexError("index out of range in self")


def integers(g: Graph, view: View) -> View:
    """An index in int64."""
    return view if view.value.dtype == np.int64 else g.copy(view, np.int64, "index")


def rows_of(g: Graph, table: View, index: View, dim: int) -> View:
    """table[..., index, ...] along an axis: the axes of the index stand in the place of that axis."""
    shape = (*table.shape[:dim], *index.shape, *table.shape[dim + 1 :])
    strides = (*table.strides[:dim], *(0,) * len(index.shape), *table.strides[dim + 1 :])
    places = (*(0,) * dim, *index.strides, *(0,) * (len(table.shape) - dim - 1))
    spread = View(index.value, shape, places, index.offset, index.terms)
    return View(
        table.value, shape, strides, table.offset, (*table.terms, Term(spread, table.strides[dim], table.shape[dim]))
    )


@lowering("_embedding")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    index = integers(g, ins[1])
    g.check(index, 0, ins[0].shape[0], None, out_of_range)
    return g.copy(rows_of(g, ins[0], index, 0), name="embedding")


@lowering("_collect_rows")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    grad, index = ins[0], integers(g, ins[1])
    if st["by_frequency"]:
        raise Unsupported("an embedding that scales its gradient by frequency")
    width = grad.shape[-1]
    places = View(index.value, grad.shape, (*index.strides, 0), index.offset)
    if st["padding_idx"] >= 0:
        grad = g.map(
            "kept",
            s.where(var("i") == st["padding_idx"], 0.0, var("g")),
            {"g": grad, "i": places},
            grad.shape,
            grad.value.dtype,
            raw=("i",),
        )
    term = Term(places, width, st["rows"])
    strides = (0,) * (len(grad.shape) - 1) + (1,)
    return collect(g, (st["rows"], width), None, grad, strides, 0, (term,), True, "embedding_back")


@lowering("_index_select")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    index = integers(g, ins[1])
    g.check(index, 0, ins[0].shape[st["dim"]], None, lambda value, position: IndexError("index out of range in self"))
    return g.copy(rows_of(g, ins[0], index, st["dim"]), name="index_select")


@lowering("_gather")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    source, index, dim = ins[0], integers(g, ins[1]), st["dim"]
    bound = source.shape[dim] if source.shape else 1

    def error(value: int, position: int) -> Exception:
        return RuntimeError(f"index {value} is out of bounds for dimension {dim} with size {bound}")

    g.check(index, 0, bound, None, error)
    strides = tuple(0 if k == dim else step for k, step in enumerate(source.strides))
    return g.copy(
        View(
            source.value, index.shape, strides, source.offset, (*source.terms, Term(index, source.strides[dim], bound))
        ),
        name="gather",
    )


@lowering("_index_select_adjoint")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    grad, index, dim = ins[0], integers(g, st["index"]), st["dim"]
    shape = st["likes"][0].shape
    steps = contiguous_strides(shape)
    lead = (0,) * dim
    places = View(index.value, grad.shape, (*lead, *index.strides, *(0,) * (len(shape) - dim - 1)), index.offset)
    strides = tuple(0 if k == dim else step for k, step in enumerate(steps))
    return collect(g, shape, None, grad, strides, 0, (Term(places, steps[dim], shape[dim]),), True, "index_select_back")
