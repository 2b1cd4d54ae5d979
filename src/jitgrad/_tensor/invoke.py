"""`invoke`: the one path of an op call. Resolve, compute, wrap, record.

The common case of elementwise ops is spelled out per op in `_methods.py` (generated) and comes here for everything unusual. A new
concern enters as a mode (`modes.SPECIAL` sends the call through `interceptors`), never as a branch in an op.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .._core.late import LateModule
from .._engine import modes
from .._ops.derived import Map
from .._ops.kinds import Adjoint, Dispatch, General, Linear, Op
from .._ops.maps import Elementwise
from .base import wrap
from .elementwise import call_elementwise, call_map, recording
from .general import attach_several, call_general
from .nodes import AdjointCall, AdjointNode, node_class
from .views import edge_of

if TYPE_CHECKING:
    from . import refusals
else:
    refusals = LateModule("jitgrad._tensor.refusals")


def invoke(op: Any, inputs: tuple[Any, ...], statics: tuple[Any, ...] = ()) -> Any:
    """Call an op on tensors. `inputs` has an entry, or None, per input of the op; `statics` its other arguments."""
    if modes.SPECIAL:
        if modes.LOCAL.level is not None:
            return modes.LOCAL.level.call(op, inputs, statics)
        if modes.LOCAL.tracer is not None:
            return modes.LOCAL.tracer.call(CALLS[type(op)], op, inputs, statics)
        if modes.LOCAL.interceptor is not None:
            return modes.LOCAL.interceptor(op, inputs, statics)
    return CALLS[type(op)](op, inputs, statics)


def run_op(op: Any, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
    """A call that nobody intercepts."""
    return CALLS[type(op)](op, inputs, statics)


def refuse(tensor: Any, text: str) -> Any:
    """The tensor with a history that refuses to be run."""
    return refusals.refuse(tensor, text)


Dispatch.invoke = staticmethod(invoke)
Dispatch.refuse = staticmethod(refuse)


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
