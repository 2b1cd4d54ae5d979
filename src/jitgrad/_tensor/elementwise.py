"""Calls of elementwise ops other than the ones spelled out in `_methods.py`: operands that are numbers, broadcasting, params, conditions.

`Elementwise.resolve` is the definition of a call. What it finds out depends on the operands' Metas and the numbers' types alone as long
as the op is computed in the tensors' own floating dtype; then it is kept as a `Plan`, and the next such call costs a look-up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from .._core.meta import meta_for
from .._engine import modes, versions
from .._engine.node import Node, next_number
from .._ops.derived import Map, Recipe, compute
from .._ops.maps import Bound, Elementwise
from .base import INFERENCE_LEAVES, ODD, TensorBase, version_of, wrap
from .map_nodes import MapNode
from .nodes import SELF, Recorded, node_class
from .saved import inference_refusal, watch
from .views import edge_of, mark_inference, only_inference

Array = np.ndarray[Any, Any]
empty = np.empty
NUMBER_IS_TENSOR: Final = frozenset(("AddBackward0", "DivBackward0", "MulBackward0", "SubBackward0"))  # a tensor made now, so the call is recorded
_LIMIT: Final = 10_000  # plans of one op; a lost one only sends a call the long way


def recording() -> bool:
    """Whether ops that take gradients are recorded in this thread."""
    return not modes.NO_GRAD or modes.grad_enabled()


class Plan:
    """What is known of a call once its operands' Metas and the numbers' types have been seen.

    `numbers` are the places of the operands that become params; `flat` says that all arrays have the result's shape and are contiguous.
    """

    __slots__ = ("differentiable", "flat", "index", "k", "map", "meta", "numbers", "rare", "same", "tensors")

    def __init__(self, bound: Bound, inputs: tuple[Any, ...]) -> None:
        self.map = bound.map
        self.meta = meta_for(bound.shape, bound.out)
        self.rare = None if self.meta.plain else ODD
        self.flat = all(x.meta.shape == bound.shape and x.array.flags.c_contiguous for x in bound.tensors)
        kernels = bound.map.kernels
        self.index = (kernels.flat if self.flat else kernels.strided).index
        self.k = meta_for(bound.shape, bound.compute).k
        self.tensors = tuple(place for place, x in enumerate(inputs) if isinstance(x, TensorBase))
        given = [place for place in range(len(inputs)) if place not in self.tensors]
        self.numbers = tuple(place for place in given if bound.form[place] == "s")
        self.differentiable = bool(bound.map.differentiable)
        # the gradients of all inputs then have the Meta of the result
        self.same = self.flat and bound.out == bound.compute


def is_plannable(op: Elementwise, bound: Bound) -> bool:
    """Whether a call depends on Metas and types only: nothing is cast, and the numbers' values are not looked at."""
    numeric = [x for x, name in zip(bound.tensors, bound.map.inputs, strict=True) if name not in op.conditions]
    return bool(numeric) and bound.compute.char in "fd" and all(x.meta.dtype == bound.compute for x in numeric)


def call_elementwise(op: Elementwise, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
    if not statics and op.statics:
        statics = tuple(op.defaults[name] for name in op.statics)
    key = key_of(op, inputs, statics)
    plan = op.plans.get(key)
    if plan is None or (modes.SPECIAL and (modes.LOCAL.inference or modes.LOCAL.tracer is not None)):
        return resolve_and_call(op, inputs, statics, key)
    return run_plan(plan, [inputs[place] for place in plan.tensors], params_of(op, plan, inputs, statics))


def key_of(op: Elementwise, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a plan is found by: Metas, the numbers' types, flags."""
    key = tuple([x.meta if isinstance(x, TensorBase) else op.key_of(place, x) for place, x in enumerate(inputs)])
    return key + statics[len(op.params) :] if op.flags else key


def params_of(op: Elementwise, plan: Plan, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> tuple[Any, ...]:
    """The numbers that the kernel is handed."""
    params = statics[: len(op.params)]
    return (*[inputs[place] for place in plan.numbers], *params) if plan.numbers else params


def write_into(op: Elementwise, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> bool:
    """Let a call write its result over its first input, if it is one seen before, of plain tensors, and not recorded; else say no."""
    if not statics and op.statics:
        statics = tuple(op.defaults[name] for name in op.statics)
    plan = op.plans.get(key_of(op, inputs, statics))
    if plan is None or not plan.flat or plan.meta is not inputs[0].meta or modes.SPECIAL:
        return False
    tensors = [inputs[place] for place in plan.tensors]
    record = not modes.NO_GRAD or modes.grad_enabled()
    for x in tensors:
        if (x.rare is not None and x.rare is not ODD) or (record and x.fn is not None):
            return False
    written = inputs[0].array
    plan.k[plan.index](*[x.array for x in tensors], *params_of(op, plan, inputs, statics), written)
    inputs[0]._bump()
    return True


def run_plan(plan: Plan, tensors: Sequence[Any], params: tuple[Any, ...]) -> Any:
    """A call like one that was resolved before."""
    arrays = [x.array for x in tensors]
    result = TensorBase.kind()
    result.array = out = empty(plan.meta.shape, plan.meta.dtype)
    plan.k[plan.index](*arrays, *params, out)
    result.meta = plan.meta
    result.fn = result.vc = None
    result.rare = plan.rare
    if plan.differentiable and (not modes.NO_GRAD or modes.grad_enabled()):
        record_map(plan.map, tensors, arrays, params, result, plan.same)
    return result


def resolve_and_call(op: Elementwise, inputs: tuple[Any, ...], statics: tuple[Any, ...], key: tuple[Any, ...]) -> Any:
    """The call in full; kept as a plan if the next one like it will be the same."""
    bound = op.resolve(inputs, statics)
    if is_plannable(op, bound):
        if len(op.plans) >= _LIMIT:
            op.plans.clear()
        op.plans[key] = Plan(bound, inputs)
    (out,) = compute(bound.map.kernels, bound.arrays, bound.params, bound.shape, [bound.out])
    return finish_map(bound.map, bound.tensors, bound.arrays, bound.params, out)


def call_map(found: Map, inputs: tuple[Any, ...], params: tuple[Any, ...]) -> Any:
    """A Map on tensors that already agree in dtype: a recorded partial derivative."""
    arrays = tuple(x.array for x in inputs)
    shape = arrays[0].shape
    for array in arrays:
        if array.shape != shape:
            shape = np.broadcast_shapes(*(array.shape for array in arrays))
            break
    read = arrays
    if modes.SPECIAL and modes.LOCAL.tracer is not None:  # no kernel for strided operands (0.4 s) for the one run of a trace
        read = tuple(np.ascontiguousarray(np.broadcast_to(array, shape)) for array in arrays)
    (out,) = compute(found.kernels, read, params, shape, [arrays[0].dtype])
    return finish_map(found, inputs, arrays, params, out)


def finish_map(found: Map, tensors: Sequence[Any], arrays: Sequence[Array], params: tuple[Any, ...], out: Array) -> Any:
    """Wrap the result of a Map and record it."""
    result = wrap(out)
    if modes.SPECIAL and modes.LOCAL.inference:
        return mark_inference(result)
    if recording() and found.differentiable:
        record_map(found, tensors, arrays, params, result)
    return result


def record_map(found: Map, tensors: Sequence[Any], arrays: Sequence[Array], params: tuple[Any, ...], result: Any, same: bool = False) -> Node | None:
    """Give the result a node if one of the inputs takes a gradient. `same`: all inputs have the result's Meta (conditions its shape)."""
    ends = [x.fn if x.rare is None else edge_of(x) for x in [tensors[k] for k in found.differentiable]]
    for end in ends:
        if end is not None:
            break
    else:
        return None
    if INFERENCE_LEAVES and only_inference(tensors) and not (len(tensors) == 1 and found.node in NUMBER_IS_TENSOR):
        return None
    recipe = found.recipe(tuple([end is not None for end in ends]))
    edges = tuple(ends) if recipe.slots is None else tuple([None if k < 0 else ends[k] for k in recipe.slots])
    node = recipe.cls() if recipe.cls is not None else first_node(recipe)
    node.recipe, node.same = recipe, same
    saved, counters = {}, []
    for name, place, slot in recipe.saving:
        if place < 0:
            saved[name] = result.array
            counters.append(SELF)
        else:
            saved[name] = arrays[place]
            counters.append(counter_of(tensors[place], None if slot < 0 else edges[slot]))
    attach(node, edges, saved, tuple(counters), params, result)
    if modes.SPECIAL:
        watch(node, {name: result if place < 0 else tensors[place] for name, place, _ in recipe.saving})
    return node


def first_node(recipe: Recipe) -> MapNode:
    """A node by a recipe that has not made one yet."""
    recipe.cls = node_class(recipe.map.node, MapNode, None)
    return recipe.cls()  # type: ignore[no-any-return]


def counter_of(tensor: Any, edge: Node | None) -> Any:
    """Where a node will find out about writes to a tensor it saves."""
    if tensor.rare is not None and tensor.rare.inference:
        raise inference_refusal()
    return tensor.vc or edge or version_of(tensor)


def attach(node: Recorded, edges: tuple[Any, ...], saved: dict[str, Any], counters: tuple[Any, ...], statics: tuple[Any, ...], result: Any) -> None:
    """Fill in a node of one output and make it the result's edge."""
    node._edges, node._saved, node._counters, node.statics = edges, saved, counters, statics
    node.outputs = 1
    node.meta = result.meta
    node.epoch = versions.WRITES
    node.number = next_number()
    node.buf = node.rare = None
    node.vc = result.vc
    result.fn = node
