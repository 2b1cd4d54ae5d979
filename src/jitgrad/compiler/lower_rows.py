"""Lowerings of what works row by row - order, places of extremes, running sums and products - and of what only moves elements.

An op that moves elements is asked once, in the trace, where each element comes from; the program has the answer as a constant table.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from .._expr import scalar as s, var
from .graph import Graph
from .lower import lowering, reshape, unary
from .operations import Rowwise, Shape, Source, Term, Unsupported, View, contiguous_strides
from .rearrange import collect

LONG: Final = np.dtype(np.int64)
MOVES: Final = ("_flip", "_roll", "_repeat", "_rot90", "_tril", "_triu", "_diagonal_copy", "_diag_embed", "_narrow_copy", "_shift")
VIEWS: Final = ("_unbind", "_diagonal", "_unfold", "_as_strided")
RESHAPES: Final = ("_view", "_reshape_alias", "_unsafe_view", "_squeeze", "_squeeze_dim", "_squeeze_dims", "_unsqueeze", "_alias")


# ---------------------------------------------------------------- rows
def last(view: View, dim: int) -> View:
    """The view with an axis moved to the end."""
    order = [k for k in range(len(view.shape)) if k != dim] + [dim]
    return permuted(view, order)


def permuted(view: View, order: list[int]) -> View:
    """The view with its axes in another order."""
    terms = tuple(Term(permuted(term.index, order), term.stride, term.bound, term.ignored) for term in view.terms)
    return View(view.value, tuple(view.shape[k] for k in order), tuple(view.strides[k] for k in order), view.offset, terms)


def back(view: View, dim: int) -> View:
    """The view with its last axis moved back to its place."""
    rank = len(view.shape)
    order = [*range(dim), rank - 1, *range(dim, rank - 1)]
    return permuted(view, order)


def by_rows(g: Graph, function: str, operands: list[View], dim: int, numbers: tuple[int, ...], width: int, dtype: Any, work: int = 0) -> View:
    """A function of rows along an axis, whose results have rows of `width` elements (0: one each, without the axis)."""
    stored = [g.value_of(last(view, dim)).whole() for view in operands]
    *lead, n = stored[0].shape
    shape = (*lead, width) if width else tuple(lead)
    key = (function, tuple(stored), numbers, shape, dtype)
    out = g.value(shape, np.dtype(dtype), function.removesuffix("_rows"))
    op = g.add(Rowwise([out], function=function, operands=stored, rows=math.prod(lead), length=n, numbers=numbers, work=work), key)
    whole = op.outs[0].whole()
    return back(whole, dim) if width else whole


def comparable(view: View) -> View:
    """A view whose elements can be put in order. Unsupported for narrow integers."""
    if view.value.dtype.char not in "fdlqihbB?":
        raise Unsupported(f"an order of {view.value.dtype}")
    return view


@lowering("_extreme_index")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    x, dim = comparable(ins[0]), st["dim"]
    shape = x.shape
    whole = dim is None or not shape
    if whole:
        x, dim = reshape(g, x, (math.prod(shape),)), 0
    found = by_rows(g, "extreme_rows", [x], dim, (int(st["sign"] > 0),), 0, LONG)
    g.within(found, 0, x.shape[dim])
    if not st["keepdim"]:
        return found
    kept = tuple(1 if whole or k == dim else n for k, n in enumerate(shape))
    return reshape(g, found, kept)


@lowering("_max_dim", "_min_dim")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    x, index, dim = ins[0], ins[1], st["dim"]
    if not x.shape:
        return x
    g.check(index, 0, x.shape[dim], None, misplaced)
    kept = len(index.shape) == len(x.shape)
    steps = tuple(step for k, step in enumerate(x.strides) if k != dim)
    strides = (*steps[:dim], 0, *steps[dim:]) if kept else steps
    terms = tuple(Term(dropped(term.index, dim, kept), term.stride, term.bound, term.ignored) for term in x.terms)
    return g.copy(View(x.value, index.shape, strides, x.offset, (*terms, Term(index, x.strides[dim], x.shape[dim]))), name="picked")


def dropped(index: View, dim: int, kept: bool) -> View:
    """An index tensor's view without an axis, or with length 1 there."""
    if index.strides[dim]:
        raise Unsupported("an extreme of what was gathered along its axis")
    shape, strides = list(index.shape), list(index.strides)
    if kept:
        shape[dim] = 1
    else:
        del shape[dim], strides[dim]
    return View(index.value, tuple(shape), tuple(strides), index.offset, index.terms)


@lowering("_max_dim_adjoint", "_min_dim_adjoint")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    grad, index, dim, shape = ins[0], st["index"], st["dim"], st["likes"][0].shape
    if not shape:
        return grad
    return put_along(g, shape, None, grad, index, dim, True)


def put_along(g: Graph, shape: Shape, base: View | None, part: View, index: View, dim: int, add: bool) -> View:
    """`base`, or zeros, with a part at places along an axis; the index may lack the axis."""
    steps = contiguous_strides(shape)
    strides = [step for k, step in enumerate(steps) if k != dim]
    if len(index.shape) == len(shape):
        strides.insert(dim, 0)
    part = View(part.value, index.shape, part.strides, part.offset, part.terms)
    return collect(g, shape, base, part, tuple(strides), 0, (Term(index, steps[dim], shape[dim]),), add, "put_along")


@lowering("_order")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    x, dim = comparable(ins[0]), st["dim"]
    if not x.shape:
        return g.number(0, (), LONG)
    return ordered(g, x, dim, x.shape[dim], bool(st["descending"]))


@lowering("_leading")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    x, dim, k = comparable(ins[0]), st["dim"], st["k"]
    if not x.shape:
        return g.number(0, (), LONG)
    if k > 32 and not (k * 8 > x.shape[dim] or x.shape[dim] < 64):
        raise Unsupported("topk of more than 32 elements")
    return ordered(g, x, dim, k, bool(st["largest"]))


def ordered(g: Graph, x: View, dim: int, k: int, descending: bool) -> View:
    """The first places of the order along an axis."""
    if not k or not math.prod(x.shape):
        raise Unsupported("an order of nothing")
    found = by_rows(g, "order_rows", [x], dim, (k, int(descending)), k, LONG, 2 * x.shape[dim])
    g.within(found, 0, x.shape[dim])
    return found


@lowering("_sorted", "_stable_sorted", "_topk")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    x, index, dim = ins[0], ins[1], st["dim"]
    if not x.shape:
        return x
    g.check(index, 0, x.shape[dim], None, misplaced)
    x = g.value_of(x).whole()
    strides = tuple(0 if k == dim else step for k, step in enumerate(x.strides))
    return g.copy(View(x.value, index.shape, strides, 0, (Term(index, x.strides[dim], x.shape[dim]),)), name="ordered")


@lowering("_sorted_adjoint", "_stable_sorted_adjoint", "_topk_adjoint")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    shape = st["likes"][0].shape
    return put_along(g, shape, None, ins[0], st["index"], st["dim"], True) if shape else ins[0]


def misplaced(value: int, position: int) -> Exception:
    """The error for a place that is none."""
    return IndexError(f"index {value} is out of range")


@lowering("_cumsum", "_cumsum_adjoint")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    x = ins[0]
    if x.value.dtype.kind != "f" or st.get("kind") not in (None, x.value.dtype):
        raise Unsupported(f"a running sum of {x.value.dtype}")
    return by_rows(g, "sum_rows", [x], st["dim"], (int("adjoint" in op.name),), x.shape[st["dim"]], x.value.dtype) if x.shape else x


@lowering("_cumprod", "_exclusive_product")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    x = ins[0]
    if x.value.dtype.kind != "f" or st.get("kind") not in (None, x.value.dtype):
        raise Unsupported(f"a running product of {x.value.dtype}")
    exclusive = op.name == "_exclusive_product"
    if not x.shape:
        return g.number(1.0, (), x.value.dtype) if exclusive else x
    return by_rows(g, "product_rows", [x], st["dim"], (int(exclusive), int(st.get("backwards", False))), x.shape[st["dim"]], x.value.dtype)


@lowering("_recurrence")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    factor, x = ins
    if not x.shape or factor.value.dtype != x.value.dtype:
        raise Unsupported("a recurrence of a number")
    return by_rows(g, "recurrence_rows", [factor, x], st["dim"], (int(st["backwards"]),), x.shape[st["dim"]], x.value.dtype)


@lowering("_prod", "_prod_dim")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    x = ins[0]
    if x.value.dtype.kind != "f" or st.get("kind") not in (None, x.value.dtype):
        raise Unsupported(f"a product of {x.value.dtype}")
    dim = st.get("dim", 0)
    if not x.shape:
        return x
    if op.name == "_prod":
        x = reshape(g, x, (math.prod(x.shape),))
    if not x.shape[dim]:
        raise Unsupported("a product of nothing")
    running = by_rows(g, "product_rows", [x], dim, (0, 0), x.shape[dim], x.value.dtype)
    end = View(running.value, tuple(1 if k == dim else n for k, n in enumerate(x.shape)), running.strides,
               running.offset + (x.shape[dim] - 1) * running.strides[dim])  # fmt: skip
    return g.copy(end if st.get("keepdim") else reshape(g, end, tuple(n for k, n in enumerate(x.shape) if k != dim)), name="prod")


@lowering("_any", "_all")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    x = ins[0]
    axes = st.get("dims", st.get("dim"))
    axes = tuple(range(len(x.shape))) if axes is None else (axes,) if isinstance(axes, int) else tuple(axes)
    true = x if x.value.dtype == np.bool_ else g.map("true", var("x") != 0, {"x": x}, x.shape, np.bool_, x.value.dtype)
    found = g.reduce("sum", g.copy(true, LONG), axes, bool(st.get("keepdim", False)), name="count")
    wanted = math.prod(x.shape[k] for k in axes) if op.name == "_all" else 0
    test = var("x") == wanted if op.name == "_all" else var("x") != 0
    return g.map(op.name.strip("_"), test, {"x": found}, found.shape, np.bool_, LONG)


# ---------------------------------------------------------------- moves
def table_of(op: Any, shape: Shape, st: dict[str, Any]) -> Any:
    """Where each element of an op's result comes from: positions from 1 on, 0 for none."""
    positions = np.arange(1, math.prod(shape) + 1, dtype=np.int64).reshape(shape)
    return op.function(positions, *(st[name] for name in op.statics))


def places_of(g: Graph, table: Any) -> View:
    """A table as an index: -1 for none."""
    key = ("table", table.shape, table.tobytes())
    known = g.known(key)
    if known is None:
        held = np.array(table - 1, np.int64, order="C")
        known = g.remember(key, g.value(held.shape, LONG, "places", source=Source("constant", array=held)))
    return known.whole()  # type: ignore[no-any-return]


def taken(g: Graph, x: View, table: Any, name: str) -> View:
    """The elements that a table names, zero where it names none."""
    value = g.value_of(x)
    if not value.numel:
        raise Unsupported(f"{name} of nothing")
    places = places_of(g, table)
    some = not bool((table == 0).any())
    term = Term(places, 1, value.numel, None if some else -1)
    read = View(value, table.shape, (0,) * table.ndim, 0, (term,))
    if some:
        return g.copy(read, name=name)
    return g.map(name, s.where(var("i") < 0, 0.0, var("x")), {"x": read, "i": places}, table.shape, value.dtype, raw=("i",))


def returned(g: Graph, shape: Shape, base: View | None, grad: View, table: Any, name: str) -> View:
    """Zeros (or `base`) with a gradient added where a table says that its elements came from."""
    places = places_of(g, table)
    some = not bool((table == 0).any())
    if not some:
        kept = s.where(var("i") < 0, 0.0, var("g"))
        grad = g.map("kept", kept, {"g": grad, "i": places}, grad.shape, grad.value.dtype, raw=("i",))
    term = Term(places, 1, math.prod(shape), None if some else -1)
    return collect(g, shape, base, grad, (0,) * len(grad.shape), 0, (term,), True, name)


@lowering(*MOVES)
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    return taken(g, ins[0], table_of(op, ins[0].shape, st), op.name.strip("_"))


@lowering(*(f"{name}_adjoint" for name in (*MOVES, *VIEWS)))
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    shape = st["likes"][0].shape
    tables = table_of(op.op, shape, st)
    tables = tables if isinstance(tables, (tuple, list)) else [tables]
    grads, result = iter(ins), None
    for table, given in zip(tables, st["given"] if len(tables) > 1 else (True,), strict=True):
        if given:
            result = returned(g, shape, result, next(grads), table, op.name.strip("_"))
    assert result is not None
    return result


@lowering(*(f"{name}_adjoint" for name in RESHAPES))
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    return reshape(g, ins[0], st["likes"][0].shape)


@lowering("_vector_norm")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    x, order, dims, keep = ins[0], st["order"], tuple(st["dims"]), bool(st["keepdim"])
    if order == 2:
        return unary(g, "norm", s.sqrt, g.reduce("sum", unary(g, "square", s.square, x), dims, keep))
    size = unary(g, "abs", abs, x)
    if order == 1:
        return g.reduce("sum", size, dims, keep, name="norm")
    if order in (math.inf, -math.inf):
        return g.reduce("max" if order > 0 else "min", size, dims, keep, name="norm")
    raise Unsupported(f"a norm of order {order}")
