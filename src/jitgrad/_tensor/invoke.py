"""`invoke`: the one path of an op call. Resolve, compute, wrap, record.

The common case of elementwise ops is spelled out per op in `_methods.py` (generated) and comes here for everything unusual. A new
concern enters as a mode (`modes.SPECIAL` sends the call through `interceptors`), never as a branch in an op.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._engine import modes, versions
from .._engine.node import Node, Port, next_number
from .._ops.kinds import Adjoint, Dispatch, General, Linear, Op
from .._ops.maps import Elementwise, Map, compute
from .base import TensorBase, version_of, wrap
from .nodes import RESULT, SELF, AdjointCall, AdjointNode, LinearNode, MapNode, OpNode, Recorded, node_class
from .saved import inference_refusal
from .views import edge_of, mark_inference, wrap_view

Array = np.ndarray[Any, Any]


def invoke(op: Any, inputs: tuple[Any, ...], statics: tuple[Any, ...] = ()) -> Any:
    """Call an op on tensors. `inputs` has an entry, or None, per input of the op; `statics` its other arguments."""
    return CALLS[type(op)](op, inputs, statics)


Dispatch.invoke = staticmethod(invoke)


def recording() -> bool:
    """Whether ops that take gradients are recorded in this thread."""
    return not modes.NO_GRAD or modes.grad_enabled()


# ---- elementwise
def call_elementwise(op: Elementwise, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
    bound = op.resolve(inputs, statics or tuple(op.defaults[name] for name in op.statics))
    (out,) = compute(bound.map.kernels, bound.arrays, bound.params, bound.shape, [bound.out])
    return finish_map(bound.map, bound.tensors, bound.arrays, bound.params, out)


def call_map(found: Map, inputs: tuple[Any, ...], params: tuple[Any, ...]) -> Any:
    """A Map on tensors that already agree in dtype: a recorded partial derivative."""
    arrays = tuple(x.array for x in inputs)
    shape = np.broadcast_shapes(*(array.shape for array in arrays))
    (out,) = compute(found.kernels, arrays, params, shape, [arrays[0].dtype])
    return finish_map(found, inputs, arrays, params, out)


def finish_map(found: Map, tensors: Sequence[Any], arrays: Sequence[Array], params: tuple[Any, ...], out: Array) -> Any:
    """Wrap the result of a Map and record it."""
    result = wrap(out)
    if modes.SPECIAL and modes.LOCAL.inference:
        return mark_inference(result)
    if recording() and found.differentiable:
        record_map(found, tensors, arrays, params, result)
    return result


def record_map(found: Map, tensors: Sequence[Any], arrays: Sequence[Array], params: tuple[Any, ...], result: Any) -> Node | None:
    """Give the result a node if one of the inputs takes a gradient."""
    ends = [edge_of(tensors[k]) for k in found.differentiable]
    needs = tuple([end is not None for end in ends])
    if True not in needs:
        return None
    if len(ends) == found.width:
        edges = tuple(ends)
    else:
        slots = dict(zip((found.slots[k] for k in found.differentiable), ends, strict=True))
        edges = tuple([slots.get(slot) for slot in range(found.width)])
    node = node_class(found.node, MapNode, None)()
    node.map, node.needs = found, needs
    saved, counters = {}, []
    for name in found.saved(needs):
        if name == RESULT:
            saved[name] = result.array
            counters.append(SELF)
        else:
            place = found.inputs.index(name)
            saved[name] = arrays[place]
            slot = found.slots[place]
            counters.append(counter_of(tensors[place], None if slot < 0 else edges[slot]))
    attach(node, edges, saved, tuple(counters), params, result)
    return node


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


# ---- general and linear
def call_general(op: General, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
    for x in inputs:
        if x is not None and not isinstance(x, TensorBase):
            raise TypeError(f"{op.name}(): argument '{op.inputs[0]}' must be Tensor, not {type(x).__name__}")
    if len(statics) < len(op.statics):
        statics += tuple(op.defaults[name] for name in op.statics[len(statics) :])
    arrays = tuple(None if x is None else x.array for x in inputs)
    outs = op.forward(arrays, statics)
    several = isinstance(outs, (tuple, list))
    count = op.outputs if op.outputs is not None else len(outs)
    outs = list(outs) if several else [outs]
    extras = outs[count:]
    results = wrap_results(op, inputs, outs[:count])
    if modes.SPECIAL and modes.LOCAL.inference:
        for result in results:
            if not op.is_view:  # a view of a normal tensor is one too, that of an inference tensor is marked already
                mark_inference(result)
    elif recording():
        record_general(op, inputs, arrays, statics, results, extras)
    return tuple(results) if several and (op.outputs is None or op.outputs > 1) else results[0]


def wrap_results(op: General, inputs: tuple[Any, ...], outs: list[Array]) -> list[Any]:
    """Tensors around the results; a view of the first input is tied to it."""
    if not op.is_view:
        return [wrap(out if isinstance(out, np.ndarray) else np.asarray(out)) for out in outs]
    return [wrap_view(inputs[0], out, several=op.outputs is None) for out in outs]


def record_general(op: General, inputs: tuple[Any, ...], arrays: tuple[Any, ...], statics: tuple[Any, ...], results: list[Any], extras: list[Array]) -> Node | None:
    """Give the results a node if one of the differentiable inputs takes a gradient."""
    places = tuple(range(len(inputs))) if op.variadic else op.differentiable
    edges = tuple([None if inputs[k] is None else edge_of(inputs[k]) for k in places])
    needs = tuple([edge is not None for edge in edges])
    if True not in needs:
        return None
    if not any(result.meta.kind.is_floating_point for result in results):  # a cast to integers, say, takes no gradient
        return None
    node = node_class(op.node, LinearNode if isinstance(op, Linear) else OpNode, op)()
    node.needs = needs
    node.likes = tuple(None if x is None else x.meta for x in inputs)
    named = dict(zip(op.extras, extras, strict=True)) if extras else {}
    saved, counters = {}, []
    for name, readers in op.saves:
        if readers is not None and not any(needs[k] for k in readers):
            saved[name] = None
            counters.append(None)
        elif name in named:
            saved[name] = named[name]
            counters.append(None)
        elif name.startswith(RESULT):
            saved[name] = results[int(name[len(RESULT) :] or 0)].array
            counters.append(SELF if len(results) == 1 else None)
        else:
            place = op.inputs.index(name)
            saved[name] = arrays[place]
            edge = edges[places.index(place)] if place in places else None
            counters.append(None if inputs[place] is None else counter_of(inputs[place], edge))
    if len(results) == 1 and op.outputs == 1:
        attach(node, edges, saved, tuple(counters), statics, results[0])
    else:
        attach_several(node, edges, saved, tuple(counters), statics, results)
    return node


def attach_several(node: Recorded, edges: tuple[Any, ...], saved: dict[str, Any], counters: tuple[Any, ...], statics: tuple[Any, ...], results: list[Any]) -> None:
    """Fill in a node of several outputs; each floating-point result gets a port of it."""
    attach(node, edges, saved, counters, statics, results[0])
    node.outputs = len(results)
    node.gathered = [None] * len(results)
    for index, result in enumerate(results):
        result.fn = Port(node, index, result.meta) if result.meta.kind.is_floating_point else None
        if result.fn is not None:
            result.fn.vc = result.vc


def call_adjoint(op: Adjoint, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
    call: AdjointCall = statics[0]
    results = [wrap(out) for out in call.forward([x.array for x in inputs])]
    if recording():
        edges = tuple(edge_of(x) for x in inputs)
        if any(edge is not None for edge in edges):
            node = node_class(op.node, AdjointNode, op)()
            node.call_of = call
            attach_several(node, edges, {}, (), (), results)
    return tuple(results)


CALLS: dict[type[Any], Callable[[Any, tuple[Any, ...], tuple[Any, ...]], Any]] = {
    Elementwise: call_elementwise,
    Map: call_map,
    General: call_general,
    Linear: call_general,
    Adjoint: call_adjoint,
}


def register_kind(kind: type[Op], call: Callable[[Any, tuple[Any, ...], tuple[Any, ...]], Any]) -> None:
    """Teach `invoke` a kind of op defined elsewhere."""
    CALLS[kind] = call
