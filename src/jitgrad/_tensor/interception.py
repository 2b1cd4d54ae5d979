"""A function that every op call of a thread goes through: what selective checkpoints are made of.

While one is set the thread counts as being in a special mode, so that no call takes the shortcuts; without one a call asks nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._engine import modes
from .._ops.derived import compute
from .._ops.kinds import General
from .._ops.maps import Elementwise
from .base import TensorBase
from .elementwise import finish_map
from .general import checked_none, several

Interceptor = Callable[[Any, tuple[Any, ...], tuple[Any, ...]], Any]


def intercept(call: Interceptor | None) -> Interceptor | None:
    """Send the op calls of this thread through `call(op, inputs, statics)`, or with None no longer; returns what it was."""
    before, modes.LOCAL.interceptor = modes.LOCAL.interceptor, call
    modes.enter_special((call is not None) - (before is not None))
    return before  # type: ignore[no-any-return]


def is_replayable(op: Any) -> bool:
    """Whether a call can be made up of arrays that are known. A view costs nothing, and shares memory with what it is called on."""
    return isinstance(op, Elementwise) or (isinstance(op, General) and not op.is_view)


def call_and_show(op: Any, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> tuple[Any, Any]:
    """A call of an op that is replayable: its result, and the arrays that it was made of."""
    return _call(op, inputs, statics, None)


def replay(op: Any, inputs: tuple[Any, ...], statics: tuple[Any, ...], outs: Any) -> Any:
    """The result of a call with everything but the computation: it is wrapped, and recorded, around arrays from `call_and_show`."""
    return _call(op, inputs, statics, outs)[0]


def _call(op: Any, inputs: tuple[Any, ...], statics: tuple[Any, ...], outs: Any) -> tuple[Any, Any]:
    statics += tuple(op.defaults[name] for name in op.statics[len(statics) :])
    if isinstance(op, Elementwise):
        bound = op.resolve(inputs, statics)
        if outs is None:
            outs = compute(bound.map.kernels, bound.arrays, bound.params, bound.shape, [bound.out])
        return finish_map(bound.map, bound.tensors, bound.arrays, bound.params, outs[0]), outs
    arrays = [x.array if isinstance(x, TensorBase) else checked_none(op, x) for x in inputs]
    if outs is None:
        outs = op.function(arrays, *statics) if op.variadic else op.function(*arrays, *statics)
    return several(op, inputs, arrays, statics, outs), outs
