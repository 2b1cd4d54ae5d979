"""`out=`: the result of an elementwise function written into a tensor that is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._engine import modes
from ..._ops.maps import Elementwise
from ..._tensor.base import TensorBase
from ..._tensor.inplace import check_overlap, check_writable, store
from ..._tensor.views import edge_of


def write_out(name: str, ops: Sequence[Elementwise], args: tuple[Any, ...], compute: Any, out: Any) -> Any:
    """Compute without recording and write; returns `out`, a tensor, or a tuple of one per result.

    TypeError where it is none, RuntimeError for a shape or dtype that does not fit, and where a gradient would be lost.
    """
    outs = out if isinstance(out, (tuple, list)) else (out,)
    if len(outs) != len(ops) or not all(isinstance(one, TensorBase) for one in outs):
        raise TypeError(
            f"{name}(): argument 'out' must be {'a Tensor' if len(ops) == 1 else f'a tuple of {len(ops)} Tensors'}, not {type(out).__name__}"
        )
    tensors = [x for x in (*args, *outs) if isinstance(x, TensorBase)]
    if modes.grad_enabled() and any(edge_of(x) is not None for x in tensors):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad."
        )
    for one in outs:
        check_writable(one, name)
        for x in tensors:
            check_overlap(one, x)
    was = modes.set_grad(False)
    try:
        results = compute()
        for one, result in zip(outs, results if isinstance(results, tuple) else (results,), strict=True):
            store(one, result)
    finally:
        modes.set_grad(was)
    return out
