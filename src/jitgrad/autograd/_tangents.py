"""A custom Function in forward mode: its `forward` runs without tangents, then its `jvp` gives those of the outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._engine import modes, versions
from .._tensor.base import TensorBase, wrap
from .._tensor.dual import Level, check_size, inherit
from ._context import FunctionCtx

_NOT_IN_PLACE = (
    "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is modifying an input inplace, then the jvp "
    "function must modify the corresponding gradient inplace."
)
_NOT_AS_IS = (
    "An inplace custom Function is not returning the forward mode gradients as-is. If the forward is modifying an input inplace, then the jvp "
    "function must modify the gradient inplace and return it as-is."
)
_NOT_A_VIEW = "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view."


def apply_dual(function: Any, args: tuple[Any, ...]) -> Any:
    """`function.apply(*args)` inside a level of forward mode."""
    local = modes.LOCAL
    innermost = local.level
    made: list[FunctionCtx] = []
    local.context = made  # `apply` leaves its context there
    modes.set_tangents(False)
    try:
        output = function.apply(*args)
    finally:
        local.context = None
        modes.set_tangents(True)
    outputs = output if type(output) is tuple else (output,)
    for level in innermost.outwards():
        tangents = [level.of(x) if isinstance(x, TensorBase) else None for x in args]
        if any(tangent is not None for tangent in tangents):
            counts = [0 if tangent is None else tangent._version for tangent in tangents]
            found = called(function, made[0], args, tangents, len(outputs))
            for place, out in enumerate(outputs):
                if not is_differentiable(made[0], place, out, found[place]):
                    continue
                source = next((k for k, x in enumerate(args) if x is out), None)
                if source is None:
                    give(level, out, found[place], args, tangents)
                elif tangents[source] is None:
                    give(level, out, found[place], (), (), True)
                else:
                    check_written(found[place], tangents[source], counts[source])
    return output


def fresh_context(kind: type[FunctionCtx]) -> FunctionCtx:
    """A context for the next call, which `apply_dual` may want to see."""
    made, modes.LOCAL.context = modes.LOCAL.context, None
    ctx = kind()
    if made is not None:
        made.append(ctx)
    return ctx


def called(function: Any, ctx: FunctionCtx, args: tuple[Any, ...], tangents: list[Any], count: int) -> tuple[Any, ...]:
    """What `jvp` returns, checked: a tensor or None per output. It finds in `saved_tensors` what `save_for_forward` was given."""
    if ctx.materialize_grads:
        tangents = [wrap(np.zeros(x.meta.shape, x.meta.dtype)) if tangent is None and isinstance(x, TensorBase) and x.meta.kind.is_floating_point
                    else tangent for x, tangent in zip(args, tangents, strict=True)]  # fmt: skip
    kept = ctx._kept, ctx._plain, ctx._epoch, ctx._clears
    ctx._kept, ctx._plain, ctx._epoch, ctx._clears = ctx.saved_for_forward, True, versions.WRITES, False
    try:
        found = function.jvp(ctx, *tangents)
    finally:
        ctx._kept, ctx._plain, ctx._epoch, ctx._clears = kept
    found = found if type(found) is tuple else (found,)
    for place, part in enumerate(found):
        if part is not None and not isinstance(part, TensorBase):
            raise RuntimeError(f"expected Variable or None (got {type(part).__name__}) for grad output {place}.")
    if len(found) != count:
        raise RuntimeError(f"Function's jvp returned an invalid number of forward gradients (expected {count} but got {len(found)})")
    return found


def is_differentiable(ctx: FunctionCtx, place: int, out: Any, tangent: Any) -> bool:
    """Whether an output may have a tangent. RuntimeError where it has one all the same."""
    if isinstance(out, TensorBase) and out.meta.kind.is_floating_point and not any(out is x for x in ctx.non_differentiable or ()):
        return True
    if tangent is not None:
        raise RuntimeError(f"Function's jvp returned a gradient at position {place}, but  the corresponding forward output is not a differentiable "
                           "Tensor.You should return None at that position instead.")  # fmt: skip
    return False


def give(level: Level, out: Any, tangent: Any, args: Sequence[Any], tangents: Sequence[Any], written: bool = False) -> None:
    """Let an output have its tangent. RuntimeError for another shape, or where a view's is no view."""
    if tangent is None:
        return
    check_size(out, tangent)
    if out._is_view():
        source = next((k for k, x in enumerate(args) if isinstance(x, TensorBase) and root(x) is root(out)), None)
        if source is not None:
            inherit((out,), args[source])
            written = tangents[source] is None
            if not written:
                check_view(tangents[source], tangent)
    level.give(out, tangent, written)


def check_written(tangent: Any, held: Any, count: int) -> None:
    """RuntimeError where the tangent of an input that was written to was not written to as well."""
    if tangent is None or tangent._version == count:
        raise RuntimeError(_NOT_IN_PLACE)
    if tangent is not held:
        raise RuntimeError(_NOT_AS_IS)


def root(tensor: Any) -> Any:
    """The tensor whose memory it is."""
    return tensor if tensor._base is None else tensor._base


def check_view(held: Any, tangent: Any) -> None:
    """RuntimeError where the tangent of a view is not a view of the tangent."""
    if not tangent._is_view():
        raise RuntimeError(_NOT_A_VIEW)
    if root(tangent) is not root(held):
        raise RuntimeError("A custom Function is returning a view but the jvp is not returning a view of "
                           + ("the same base as the given grad input." if held._is_view() else "the given grad input."))  # fmt: skip


__all__: Sequence[str] = ["apply_dual", "fresh_context"]
