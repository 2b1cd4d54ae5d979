"""Calls of general and linear ops: arrays, the op's function, tensors around its results, a node.

What a node saves depends on the op and on which inputs take a gradient; a `Recipe` knows it, so that the call of an op with one result is
straight-line code (a softmax of 4 us where building everything anew took 10).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.late import LateModule
from .._core.meta import meta_of
from .._engine import modes, versions
from .._engine.node import Node, Port, next_number
from .._ops.casts import clone_op, copy_op, to_copy_op
from .._ops.kinds import General, Linear
from .base import INFERENCE_LEAVES, ODD, TensorBase, wrap
from .elementwise import attach, counter_of, recording
from .nodes import RESULT, SELF, LinearNode, OpNode, Recorded, node_class
from .saved import watch
from .views import edge_of, mark_inference, only_inference, wrap_view

if TYPE_CHECKING:
    from . import replay
else:
    replay = LateModule("jitgrad._tensor.replay")

Array = np.ndarray[Any, Any]
COPIES = (clone_op, to_copy_op)  # to torch a new tensor that is written to, which is recorded for an inference tensor, too
UNREAD, EXTRA, OUTPUT, INPUT = range(4)  # where a saved value comes from


class Unread(dict[str, Any]):
    """Saved values none of which is there, so that there is nothing to release."""

    def __bool__(self) -> bool:
        return False


class Recipe:
    """What a node of an op saves when some of its inputs take a gradient: for each value its name, where from, which, and which edge leads to it."""

    __slots__ = ("cls", "saving", "values")

    def __init__(self, op: General, needs: tuple[bool, ...]) -> None:
        self.cls = node_class(op.node, LinearNode if isinstance(op, Linear) else OpNode, op)
        places = tuple(range(len(needs))) if op.variadic else op.differentiable
        saving = []
        for name, readers in op.saves:
            if readers is not None and not any(needs[k] for k in readers):
                saving.append((name, UNREAD, 0, -1))
            elif name in op.extras:
                saving.append((name, EXTRA, op.extras.index(name), -1))
            elif name.startswith(RESULT):
                saving.append((name, OUTPUT, int(name[len(RESULT) :] or 0), -1))
            else:
                place = op.inputs.index(name)
                saving.append((name, INPUT, place, places.index(place) if place in places else -1))
        self.saving = tuple(saving)
        counted = any(readers == () for _, readers in op.saves)  # read by none, and yet saved in torch
        self.values: type[dict[str, Any]] = dict if counted or any(source != UNREAD for _, source, _, _ in saving) else Unread

    def fill(self, inputs: Sequence[Any], arrays: Sequence[Any], results: Sequence[Any], extras: Sequence[Any],
             edges: Sequence[Any]) -> tuple[Any, Any]:  # fmt: skip
        """The saved arrays by name, and where a node will find out about writes to them."""
        saved = self.values()
        counters: list[Any] = []
        for name, source, place, slot in self.saving:
            counter: Any = None
            if source == INPUT:
                saved[name] = arrays[place]
                if inputs[place] is not None:
                    counter = counter_of(inputs[place], edges[slot] if slot >= 0 else None)
            elif source == OUTPUT:
                saved[name] = results[place].array
                counter = SELF if len(results) == 1 else None
            else:
                saved[name] = extras[place] if source == EXTRA else None
            counters.append(counter)
        return saved, tuple(counters)


def recipe_of(op: General, needs: tuple[bool, ...]) -> Recipe:
    """The recipe for a call of an op."""
    found: Recipe | None = op.recipes.get(needs)
    if found is None:
        found = op.recipes[needs] = Recipe(op, needs)
    return found


def call_general(op: General, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
    """Call an op on tensors."""
    if len(statics) < len(op.statics):
        statics += tuple(op.defaults[name] for name in op.statics[len(statics) :])
    arrays = []
    for x in inputs:  # loops, not comprehensions: those are calls of their own up to Python 3.11
        arrays.append(x.array if isinstance(x, TensorBase) else checked_none(op, x))
    outs = op.function(arrays, *statics) if op.variadic else op.function(*arrays, *statics)
    if op.outputs != 1 or modes.SPECIAL:
        return several(op, inputs, arrays, statics, outs)
    extras: Any = ()
    if type(outs) is tuple:
        outs, *extras = outs
    if not isinstance(outs, np.ndarray):
        outs = np.asarray(outs)
    if op.is_view:
        result = wrap_view(inputs[0], outs)
    else:
        result = TensorBase.kind()
        result.array = outs
        result.meta = m = meta_of(outs)
        result.fn = result.vc = None
        result.rare = None if m.plain else ODD
    if modes.NO_GRAD and not modes.grad_enabled():
        return result
    edges: list[Any] = []
    taken = False
    for x in inputs if op.whole else [inputs[k] for k in op.differentiable]:
        edge = None if x is None else x.fn if x.rare is None else edge_of(x)
        edges.append(edge)
        taken = taken or edge is not None
    if taken and result.meta.kind.is_floating_point:  # a cast to integers, say, takes no gradient
        if INFERENCE_LEAVES and only_inference(inputs):
            return call_general(copy_op, (result, *inputs), ()) if op in COPIES else result
        record(op, inputs, arrays, statics, result, extras, edges)
    return result


def checked_none(op: General, x: Any) -> Any:
    """None for an input that is left out; TypeError for anything else."""
    if x is not None:
        raise TypeError(f"{op.name}(): argument '{op.inputs[0]}' must be Tensor, not {type(x).__name__}")


def record(op: General, inputs: Sequence[Any], arrays: Sequence[Any], statics: tuple[Any, ...], result: Any, extras: Sequence[Any],
           edges: Sequence[Any]) -> None:  # fmt: skip
    """Give the one result of a call a node."""
    needs = (True,) if len(edges) == 1 else tuple([edge is not None for edge in edges])
    recipe = op.recipes.get(needs) or recipe_of(op, needs)
    node = recipe.cls()
    node._saved, node._counters = recipe.fill(inputs, arrays, (result,), extras, edges) if recipe.saving else ({}, ())
    node._edges = tuple(edges)
    node.needs = needs
    node.likes = tuple([None if x is None else x.meta for x in inputs])
    node.statics = statics
    node.outputs = 1
    node.meta = result.meta
    node.epoch = versions.WRITES
    node.number = next_number()
    node.buf = node.rare = None
    node.vc = result.vc
    result.fn = node


def several(op: General, inputs: tuple[Any, ...], arrays: Sequence[Any], statics: tuple[Any, ...], outs: Any) -> Any:
    """The rest of a call of an op with several results, or in a special mode."""
    many = isinstance(outs, (tuple, list))
    count = op.outputs if op.outputs is not None else len(outs)
    outs = list(outs) if many else [outs]
    extras = outs[count:]
    results = wrap_results(op, inputs, outs[:count])
    if modes.SPECIAL and op.is_view and modes.LOCAL.view_replay:
        replay.note(op, statics, inputs[0], results)
    if modes.SPECIAL and modes.LOCAL.inference:
        for result in results:
            if not op.is_view:  # a view of a normal tensor is one too, that of an inference tensor is marked already
                mark_inference(result)
    elif recording():
        record_several(op, inputs, arrays, statics, results, extras)
    return tuple(results) if many and (op.outputs is None or op.outputs > 1) else results[0]


def wrap_results(op: General, inputs: tuple[Any, ...], outs: list[Array]) -> list[Any]:
    """Tensors around the results; a view of the first input is tied to it."""
    if not op.is_view:
        return [wrap(out if isinstance(out, np.ndarray) else np.asarray(out)) for out in outs]
    return [wrap_view(inputs[0], out, several=op.outputs is None) for out in outs]


def record_several(op: General, inputs: tuple[Any, ...], arrays: Sequence[Any], statics: tuple[Any, ...], results: list[Any],
                   extras: list[Array]) -> Node | None:  # fmt: skip
    """Give the results a node if one of the differentiable inputs takes a gradient."""
    places = tuple(range(len(inputs))) if op.variadic else op.differentiable
    edges = tuple([None if inputs[k] is None else edge_of(inputs[k]) for k in places])
    needs = tuple([edge is not None for edge in edges])
    if True not in needs or not any(result.meta.kind.is_floating_point for result in results):
        return None
    if INFERENCE_LEAVES and only_inference(inputs):
        return None
    recipe = recipe_of(op, needs)
    node = recipe.cls()
    node.needs = needs
    node.likes = tuple([None if x is None else x.meta for x in inputs])
    saved, counters = recipe.fill(inputs, arrays, results, extras, edges)
    if len(results) == 1 and op.outputs == 1:
        attach(node, edges, saved, counters, statics, results[0])
    else:
        attach_several(node, edges, saved, counters, statics, results)
    if modes.SPECIAL:
        named_inputs = {} if op.variadic else dict(zip(op.inputs, inputs, strict=True))
        watch(node, {**named_inputs, **{RESULT + str(index) * (len(results) > 1): x for index, x in enumerate(results)}})
    return node  # type: ignore[no-any-return]


def attach_several(node: Recorded, edges: tuple[Any, ...], saved: dict[str, Any], counters: tuple[Any, ...], statics: tuple[Any, ...],
                   results: list[Any]) -> None:  # fmt: skip
    """Fill in a node of several outputs; each floating-point result gets a port of it."""
    attach(node, edges, saved, counters, statics, results[0])
    node.outputs = len(results)
    node.metas = tuple([result.meta for result in results])
    node.gathered = [None] * len(results)
    for index, result in enumerate(results):
        result.fn = Port(node, index, result.meta) if result.meta.kind.is_floating_point else None
        if result.fn is not None:
            result.fn.vc = result.vc
