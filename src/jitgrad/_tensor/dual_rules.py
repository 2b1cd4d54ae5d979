"""The tangents of an op's results, by the op's kind.

Elementwise ops have the expression of their tangent; linear ones are applied to the tangents themselves; for all others the tangent is the
transpose of the transpose: the rule of the backward is linear in the gradient, and its own backward, sent the tangents, is the product
wanted. Everything here runs one level further out than the level it works for (`dual.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from .._core.dtypes import from_numpy
from .._engine import modes
from .._engine.node import Node, target
from .._engine.run import validate
from .._ops.derived import Map
from .._ops.kinds import Adjoint, General, Linear
from .._ops.maps import Elementwise
from .backward import grad
from .base import AccumulateGrad, TensorBase, own_rare, version_of, wrap
from .dual import Dual, Level, zeros_like
from .edges import leads_elsewhere
from .invoke import invoke
from .views import edge_of, mark_inference

Tensors = Sequence[Any]
MULTILINEAR: Final = frozenset(("_mm", "_bmm", "_mv", "_dot"))  # linear in each input: a term for each tangent


def layer(op: Any, inputs: Sequence[Any], statics: Any, tangents: Sequence[Any], result: Any) -> Any:
    """Of a linear layer: linear in the input and in the weight, and the bias is added."""
    (_, x, w), (tb, tx, tw) = inputs, tangents
    terms = [invoke(op, (None, tx, w), ()) if tx is not None else None, invoke(op, (None, x, tw), ()) if tw is not None else None]
    terms.append(tb if tb is None or tb.meta.shape == result.meta.shape else tb.expand(result.meta.shape).clone())
    there = [term for term in terms if term is not None]
    return sum(there[1:], there[0])


def normalized(op: Any, inputs: Sequence[Any], statics: tuple[Any, ...], tangents: Sequence[Any], result: Any) -> Any:
    """Of softmax and its logarithm: the tangent less its mean under the probabilities."""
    (t,) = tangents
    if op.name == "_log_softmax":
        return t - (result.exp() * t).sum(statics[0], keepdim=True)
    return result * (t - (result * t).sum(statics[0], keepdim=True))


# what the general way would do, in a tenth of the time; held to reverse mode by the same test
WRITTEN: Final = {"_linear": layer, "_softmax": normalized, "_log_softmax": normalized}
UNSUPPORTED: Final = (
    "Trying to use forward AD with {} that does not support it because it has not been implemented yet.\nPlease file an issue: its derivative is "
    "not declared."
)


def call(op: Any, inputs: tuple[Any, ...], statics: tuple[Any, ...], tangents: list[Any]) -> tuple[Any, Tensors]:
    """The results of an op call and a tangent, or None, for each."""
    if all(tangent is None for tangent in tangents):
        return invoke(op, inputs, statics), ()
    tangents = [t if t is None else cast(t, x.meta.dtype) for x, t in zip(inputs, tangents, strict=True)]  # kernels rely on it
    if isinstance(op, Elementwise):
        return elementwise(op, inputs, statics, tangents)
    if isinstance(op, Map):
        result = invoke(op, inputs, statics)
        return result, (pushed(op, inputs, statics, tangents, result),)
    if isinstance(op, (Linear, Adjoint)) or op.is_view:
        return linear(op, inputs, statics, tangents)
    return general(op, inputs, statics, tangents)


class StandIn(AccumulateGrad):
    """A leaf that exists for the time of a rule: nobody is interested in its gradient."""

    __slots__ = ()
    transient = True


def level(number: int) -> Level:
    """A new level, to be entered."""
    return Level(call, number)


# ---- elementwise
def elementwise(op: Elementwise, inputs: tuple[Any, ...], statics: tuple[Any, ...], tangents: list[Any]) -> tuple[Any, Tensors]:
    """By the Map for these operands, cast as the op casts them."""
    result = invoke(op, inputs, statics)
    if not result.meta.kind.is_floating_point:
        return result, ()
    if not statics and op.statics:
        statics = tuple(op.defaults[name] for name in op.statics)
    bound = op.resolve(inputs, statics)
    pairs = [(x, tangent) for x, tangent in zip(inputs, tangents, strict=True) if isinstance(x, TensorBase)]
    operands = [cast(x, bound.compute) if name not in bound.map.conditions else x for (x, _), name in zip(pairs, bound.map.inputs, strict=True)]
    given = [None if tangent is None else cast(tangent, bound.compute) for _, tangent in pairs]
    return result, (pushed(bound.map, operands, bound.params, given, result),)


def cast(tensor: Any, kind: np.dtype[Any]) -> Any:
    """The tensor in the dtype an op is computed in."""
    return tensor if tensor.meta.dtype == kind else tensor.to(from_numpy(kind))


def pushed(found: Map, inputs: Tensors, params: tuple[Any, ...], tangents: Sequence[Any], result: Any) -> Any:
    """The tangent of a Map's result, or None where it depends on nothing that has one."""
    needs = tuple(tangents[place] is not None for place in found.differentiable)
    if True not in needs:
        return None
    try:
        push = found.push(needs)
    except RuntimeError as error:  # a derivative that is declared missing
        raise NotImplementedError(f"Trying to use forward AD with aten::{found.refuses} that does not support it.") from error
    named = dict(zip(found.inputs, inputs, strict=True)) | {"result": result}
    given = [tangents[place] for place, need in zip(found.differentiable, needs, strict=True) if need]
    tangent = invoke(push, (*given, *[named[name] for name in found.saved(needs)]), params)
    return tangent if tangent.meta.shape == result.meta.shape else tangent.expand(result.meta.shape).clone()


# ---- linear
def linear(op: Any, inputs: tuple[Any, ...], statics: tuple[Any, ...], tangents: list[Any]) -> tuple[Any, Tensors]:
    """The op itself on the tangents, zeros where there is none; of a view a view."""
    results = invoke(op, inputs, statics)
    outs = results if isinstance(results, (tuple, list)) else (results,)
    if not any(out.meta.kind.is_floating_point for out in outs):
        return results, ()
    if "stream" in getattr(op, "statics", ()):  # random numbers that depend on nothing
        return results, [zeros_like(out) for out in outs]
    everywhere = op.variadic
    given = tuple(
        zeros_like(x) if tangent is None and x is not None and (everywhere or place in op.differentiable) else x if tangent is None else tangent
        for place, (x, tangent) in enumerate(zip(inputs, tangents, strict=True))
    )
    found = invoke(op, given, statics)
    return results, found if isinstance(found, (tuple, list)) else (found,)


# ---- general
def general(op: General, inputs: tuple[Any, ...], statics: tuple[Any, ...], tangents: list[Any]) -> tuple[Any, Tensors]:
    """By the op's terms where it is linear in each input, by what is written for it, else by transposing its backward."""
    if op.name in MULTILINEAR:
        result = invoke(op, inputs, statics)
        terms = [invoke(op, (*inputs[:place], tangent, *inputs[place + 1 :]), statics)
                 for place, tangent in enumerate(tangents) if tangent is not None]  # fmt: skip
        return result, (sum(terms[1:], terms[0]),)
    written = WRITTEN.get(op.name)
    if written is not None:
        result = invoke(op, inputs, statics)
        return result, (written(op, inputs, statics, tangents, result),)
    places = range(len(inputs)) if op.variadic else op.differentiable
    if op.backward is None or all(tangents[place] is None for place in places):
        results = invoke(op, inputs, statics)
        outs = results if isinstance(results, (tuple, list)) else (results,)
        if op.backward is None and places and any(out.meta.kind.is_floating_point for out in outs):
            raise NotImplementedError(UNSUPPORTED.format(op.name))
        return results, ()
    try:
        return transposed(lambda given: invoke(op, given, statics), inputs, tangents, lambda node: places, axes_of(op, statics))
    except NotImplementedError as error:  # a derivative that is declared missing
        raise NotImplementedError(UNSUPPORTED.format(op.name.lstrip("_"))) from error


def axes_of(op: General, statics: tuple[Any, ...]) -> Any:
    """The axes that a reduction of one input takes away, and whether they stay with length 1; None for other ops."""
    if "keepdim" not in op.statics or op.outputs != 1 or len(op.inputs) > 1:
        return None
    named = dict(zip(op.statics, statics, strict=False))
    return named["dims" if "dims" in named else "dim"], named["keepdim"]


def transposed(run: Callable[[tuple[Any, ...]], Any], inputs: tuple[Any, ...], tangents: list[Any],
               places: Callable[[Any], Sequence[int]], axes: Any = None) -> tuple[Any, Tensors]:  # fmt: skip
    """Results and tangents of a call that records one node; `places` says of it which inputs its edges lead to, `axes` what `pulled_once` sums.

    Inputs that have a tangent, but no history, take part as leaves, which the node forgets again.
    """
    inference, recording = modes.set_inference(False), modes.set_grad(True)
    try:
        wanted = recording and any(takes_gradient(x) and type(edge_of(x)) is not StandIn for x in (*inputs, *tangents))
        given, leaves = with_leaves(inputs, tangents if not inference else list(inputs))
        results = run(given)
        outs = results if isinstance(results, (tuple, list)) else (results,)
        edge = next((out.fn for out in outs if isinstance(out, TensorBase) and out.fn is not None), None)
        if len(outs) == 1 and isinstance(outs[0], TensorBase) and outs[0].meta.shape == ():
            axes = ((), False)  # all of them
        if edge is None:
            found: Tensors = ()
        elif axes is not None:
            found = [pulled_once(target(edge)[0], outs[0], tangents, places(target(edge)[0]), wanted, *axes)]
        else:
            found = pulled_twice(target(edge)[0], outs, tangents, places(target(edge)[0]), wanted)
    finally:
        modes.set_grad(recording)
        modes.set_inference(inference)
    if edge is not None:
        forget(target(edge)[0], outs, leaves, recording and not inference)
    if inference:
        for out in (*outs, *found):
            if isinstance(out, TensorBase):
                mark_inference(out)
    shared = [tangent for tangent in tangents if tangent is not None]
    return results, [x.clone() if x is not None and any(np.may_share_memory(x.array, t.array) for t in shared) else x for x in found]


def with_leaves(inputs: tuple[Any, ...], tangents: list[Any]) -> tuple[tuple[Any, ...], set[Node]]:
    """The inputs, with leaves over the same memory for those that have a tangent and no history; and the leaves' nodes."""
    given: list[Any] = []
    leaves: set[Node] = set()
    for x, tangent in zip(inputs, tangents, strict=True):
        if not isinstance(x, TensorBase) or tangent is None or edge_of(x) is not None or not x.meta.kind.is_floating_point:
            given.append(x)
            continue
        leaf = wrap(x.array)
        leaf.vc = None if x.rare is not None and x.rare.inference else version_of(x)
        leaf.fn = StandIn(leaf)
        leaves.add(leaf.fn)
        if x.rare is not None and x.rare.dual is not None:
            own_rare(leaf).dual = Dual()
            for outer, held in x.rare.dual.tangents.items():
                outer.hold(leaf, held)
        given.append(leaf)
    return tuple(given), leaves


def pulled_once(node: Node, out: Any, tangents: list[Any], places: Sequence[int], wanted: bool, dims: Any, keepdim: bool) -> Any:
    """The same where each element of an input has a part in one element of the result only: the gradient by ones is then all of the Jacobian."""
    recording = modes.set_grad(wanted)
    try:
        ones = wrap(np.ones(out.meta.shape, out.meta.dtype))
        parts = validate(node, node.call((ones,), True, wanted))
        terms = []
        for part, edge, place in zip(parts, node.edges(), places, strict=True):
            tangent = tangents[place]
            if edge is not None and part is not None and tangent is not None:
                terms.append((finite(part, tangent) * tangent).sum(dims, keepdim=keepdim) if part.ndim else finite(part, tangent) * tangent)
        return sum(terms[1:], terms[0]) if terms else zeros_like(out)
    finally:
        modes.set_grad(recording)


def finite(part: Any, tangent: Any) -> Any:
    """Zero in place of an infinite or undefined derivative in a direction that is zero."""
    if modes.tracer() is None and np.isfinite(part.array).all():
        return part
    return part.masked_fill((tangent == 0) & ~part.isfinite(), 0)


def pulled_twice(node: Node, outs: Sequence[Any], tangents: list[Any], places: Sequence[int], wanted: bool) -> list[Any]:
    """The product of the Jacobian of a recorded node with tangents: the gradient of its backward by the gradients it is given."""
    edges = node.edges()
    seeds = [with_stand_in(wrap(np.ones(out.meta.shape, out.meta.dtype))) if takes_gradient(out) else None for out in outs]
    parts = validate(node, node.call(tuple(seeds), True, True))
    pairs = [(part, tangents[place]) for part, edge, place in zip(parts, edges, places, strict=True)
             if edge is not None and part is not None and part.requires_grad and tangents[place] is not None]  # fmt: skip
    real = [seed for seed in seeds if seed is not None]
    if pairs:
        rows = iter(grad([part for part, _ in pairs], real, [t for _, t in pairs], create_graph=wanted, allow_unused=True))
    else:
        rows = iter([None] * len(real))
    found = [None if seed is None else next(rows) for seed in seeds]
    return [zeros_like(out) if row is None and seed is not None else row for out, seed, row in zip(outs, seeds, found, strict=True)]


def takes_gradient(x: Any) -> bool:
    """Whether it is a tensor with a history."""
    return isinstance(x, TensorBase) and edge_of(x) is not None


def with_stand_in(tensor: Any) -> Any:
    """Make a fresh tensor a leaf for the time of a rule."""
    tensor.fn = StandIn(tensor)
    return tensor


def forget(node: Any, outs: Sequence[Any], leaves: set[Node], recording: bool) -> None:
    """Take the leaves away from a node; results whose node then leads nowhere, or that were not to be recorded, lose their history."""
    edges = [None if edge in leaves else edge for edge in node.edges()]
    if not recording or not any(edge is not None for edge in edges):
        for out in outs:
            if isinstance(out, TensorBase):
                out.fn = None
    elif leaves:
        node.set_edges(edges)
    for out in outs:  # the tangents of levels further out were recorded as well
        if isinstance(out, TensorBase) and out.rare is not None and out.rare.dual is not None:
            for tangent in out.rare.dual.tangents.values():
                if tangent.fn is not None and not leads_elsewhere(tangent.fn, lambda leaf: type(leaf) is StandIn):
                    tangent.fn = None


__all__ = ["call", "level", "transposed"]
