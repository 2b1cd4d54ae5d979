"""Random numbers in a trace: which words of which stream each draw takes, so that a call takes what eager mode would.

A stream is followed from draw to draw. Where it has been wound back, as checkpointing does to draw the same again, the earlier draw is read; any
other jump means that something sets the generator, which a program would not do again.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from .._expr import scalar as s, var
from .._ops.random import kept_scale
from .graph import Graph
from .lower import lowering
from .operations import Draw, Shape, Unsupported, View

DOUBLE: Final = np.dtype(np.float64)
LONG: Final = np.dtype(np.int64)


def blocks_of(kind: str, count: int, dtype: np.dtype[Any]) -> int:
    """How many blocks of four words a draw takes."""
    if kind == "normal":
        count += count % 2
    return -(-count * (2 if kind in ("uniform", "normal") and dtype == DOUBLE else 1) // 4)


def draw(g: Graph, stream: Any, kind: str, shape: Shape, dtype: Any, low: float = 0.0, span: float = 1.0, taken: bool = False) -> View:
    """A draw: truth values under `low` (kind "mask"), or numbers in `low` + `span` ("uniform", "integers") or about `low` ("normal").

    `taken`: the eager run has already had its numbers.
    """
    dtype = np.dtype(dtype)
    if dtype.char not in "fd?" and kind != "integers":
        raise Unsupported(f"random numbers in {dtype}")
    blocks = blocks_of(kind, math.prod(shape), dtype)
    seed, offset = stream.state
    start = (seed, offset - blocks if taken else offset)
    key = (id(stream), start, kind, tuple(shape), dtype, low, span)
    known = g.known(key)
    if known is not None:
        return known.whole()  # type: ignore[no-any-return]
    if g.streams.setdefault(id(stream), start) != start:
        raise Unsupported("the random number generator is set")
    g.streams[id(stream)] = (seed, start[1] + blocks)
    out = g.remember(key, g.value(tuple(shape), dtype, {"mask": "mask"}.get(kind, kind)))
    op = Draw([out], kind=kind, low=low, span=span, stream=stream, blocks=blocks, number=len(g.draws))
    g.draws.append(op)
    g.add(op)
    return out.whole()  # type: ignore[no-any-return]


@lowering("_dropout")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> list[View]:
    """The mask from the same words of the stream as in eager mode."""
    x, p = ins[0], st["p"]
    mask = draw(g, st["stream"], "mask", x.shape, bool, round((1 - p) * 2**32))
    kept = s.where(var("m"), kept_scale(p), 0.0)
    return [g.map("dropout", var("x") * kept, {"x": x, "m": mask}, x.shape, x.value.dtype), mask]


@lowering("_uniform")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    x = ins[0]
    return draw(g, st["stream"], "uniform", x.shape, x.value.dtype, st["low"], st["high"] - st["low"])


@lowering("_normal")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    x = ins[0]
    return draw(g, st["stream"], "normal", x.shape, x.value.dtype, st["mean"], st["std"])


@lowering("_bernoulli_fill")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    x, p = ins[0], st["p"]
    if not isinstance(p, float):
        raise Unsupported("bernoulli_ with a tensor of probabilities, whose values are looked at (use rand_like(p) < p)")
    unit = draw(g, st["stream"], "uniform", x.shape, DOUBLE)
    below = g.map("below", var("u") < p, {"u": unit}, x.shape, bool, DOUBLE)
    return g.copy(below, x.value.dtype)


@lowering("_bernoulli")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    raise Unsupported("bernoulli, which looks at the probabilities (use rand_like(p) < p)")


@lowering("_bernoulli_adjoint", "_bernoulli_fill_adjoint", "_uniform_adjoint", "_normal_adjoint")
def _(g: Graph, ins: list[View], st: dict[str, Any], op: Any) -> View:
    return g.number(0.0, st["likes"][0].shape, ins[0].value.dtype)


def drawn(g: Graph, kind: str, array: Any, stream: Any, low: float, span: float) -> View:
    """What a function that makes a tensor of random numbers has drawn."""
    if kind == "permutation":
        raise Unsupported("a random permutation")
    if kind == "integers" and not 0 < span <= 1 << 32:
        raise Unsupported("random integers from a range of more than 2**32")
    found = draw(g, stream, kind, array.shape, LONG if kind == "integers" else array.dtype, low, span, taken=True)
    if kind == "integers":
        g.within(found, int(low), int(low + span))
        if array.dtype != LONG:
            raise Unsupported(f"random integers in {array.dtype}")
    return found
