"""What becomes of the outputs of a custom Function's `forward`: each gets its history, or loses one.

The rare cases stand here - inputs returned as they are, written inputs, views, outputs without gradient; `Function.apply` itself
does the common one.
"""

from __future__ import annotations

import warnings
from typing import Any

from .._engine.node import LEAF, Port
from .._tensor.base import TensorBase
from .._tensor.inplace import adopt
from .._tensor.views import edge_of, wrap_view
from ._context import FunctionCtx

__all__ = ["link_all", "unlink_all"]


def tensors_of(given: Any, name: str) -> tuple[Any, ...]:
    """The tensors that were marked."""
    if given is None:
        return ()
    for place, one in enumerate(given):
        if not isinstance(one, TensorBase):
            raise RuntimeError(f"{name} can only accept variables, but argument {place} is of type {type(one).__name__}")
    return tuple(given)


def among(tensor: Any, tensors: Any) -> bool:
    """Whether it is one of them, itself."""
    for other in tensors:  # noqa: SIM110  (`in` compares elements, `any` takes three times as long)
        if other is tensor:
            return True
    return False


def as_view(tensor: Any, creation: str | None) -> Any:
    """A view of the whole tensor, without history."""
    view = wrap_view(tensor, tensor.array)
    view.rare.creation = creation
    return view


def without_gradient(tensor: Any, is_input: bool, is_dirty: bool) -> Any:
    """An output that takes no gradient. An input keeps its own history: what is returned is another tensor."""
    if edge_of(tensor) is None:
        return as_view(tensor, tensor.rare.creation if tensor.rare else None) if is_input and not is_dirty else tensor
    if is_input:
        return tensor.detach()
    if not tensor._is_view():
        tensor.fn = None
    return tensor


def unlink_all(ctx: FunctionCtx, inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> list[Any]:
    """The outputs of a call that is not recorded."""
    dirty = tensors_of(ctx.dirty_tensors, "mark_dirty")
    check_returned(dirty, outputs)
    bump(dirty)
    return [without_gradient(x, among(x, inputs), among(x, dirty)) if isinstance(x, TensorBase) else x for x in outputs]


def bump(dirty: tuple[Any, ...]) -> None:
    """Count the writes of `forward`, which may have gone past the library."""
    for tensor in dirty:
        if tensor.rare is None or not tensor.rare.inference:
            tensor._bump()


def check_returned(dirty: tuple[Any, ...], outputs: tuple[Any, ...]) -> None:
    """What was written to must be returned, or its old history would stay in use."""
    if not all(among(tensor, outputs) for tensor in dirty):
        raise RuntimeError("Some elements marked as dirty during the forward method were not returned as output. The inputs that are modified "
                           "inplace must all be outputs of the Function.")  # fmt: skip


def link_all(node: Any, ctx: FunctionCtx, inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> list[Any]:
    """Make `node` the history of the outputs that take a gradient.

    RuntimeError where an output can't have one: a written leaf, a written view next to other outputs.
    """
    dirty: tuple[Any, ...] = ()
    constant: tuple[Any, ...] = ()
    if ctx.dirty_tensors is not None:
        dirty = tensors_of(ctx.dirty_tensors, "mark_dirty")
        ctx.dirty_tensors = None  # a written input becomes an output, which would keep its own node alive
        bump(dirty)
        check_returned(dirty, outputs)
    if ctx.non_differentiable is not None:
        constant = tensors_of(ctx.non_differentiable, "mark_non_differentiable")
    count = len(outputs)
    node.outputs = count
    node.gathered = [None] * count
    node.likes = [x.meta if isinstance(x, TensorBase) else None for x in outputs]
    done: list[Any] = []
    linked = 0
    for index, x in enumerate(outputs):
        if not isinstance(x, TensorBase):
            done.append(x)
            continue
        is_input, is_dirty = among(x, inputs), bool(dirty) and among(x, dirty)
        if (constant and among(x, constant)) or not (x.meta.plain or x.meta.kind.is_floating_point):
            done.append(without_gradient(x, is_input, is_dirty))
            continue
        linked += 1
        edge = node if count == 1 else Port(node, index, x.meta)
        if is_dirty:
            done.append(rewrite(x, edge, is_input, count))
            continue
        if is_input:
            check_not_saved(node._forward_cls._split, ctx, x)
            x = as_view(x, None)
        if x.rare is None:
            x.fn = edge
            edge.vc = x.vc
            done.append(x)
        else:
            done.append(give_history(x, edge))
    if linked > 1:
        for x in done:
            if isinstance(x, TensorBase) and x.rare is not None and x.rare.base is not None:
                x.rare.creation = "multi"
    return done


def give_history(x: Any, edge: Any) -> Any:
    """Make an edge the history of an output; a view may then not be written to."""
    x.fn = edge
    edge.meta = x.meta
    edge.vc = x.vc
    if x.rare is not None and x.rare.base is not None:
        x.rare.creation = "function"
        x.rare.seen = x.vc.count
    return x


def check_not_saved(split: bool, ctx: FunctionCtx, x: Any) -> None:
    """With `setup_context` an input that is returned can't be saved as well."""
    if split and ctx.to_save and among(x, ctx.to_save):
        raise RuntimeError("An input that has been returned as-is as output is being saved for backward. This is not supported if you override "
                           "setup_context. You should return and save a view of the input instead, e.g. with x.view_as(x) or setup ctx inside the "
                           "forward function itself.")  # fmt: skip


def rewrite(x: Any, edge: Any, is_input: bool, count: int) -> Any:
    """The history of an input that was written to goes on from here."""
    fn = edge_of(x)
    if fn is not None and fn.number == LEAF:
        raise RuntimeError("a leaf Variable that requires grad has been used in an in-place operation.")
    if not is_input:
        warnings.warn("ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been mutated should be passed to "
                      "ctx.mark_dirty().", UserWarning, stacklevel=4)  # fmt: skip
    if x._is_view() and count > 1:
        raise RuntimeError("If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return more than "
                           "one Tensor. This is not supported by the current autograd engine. You should either make sure the input is not a view "
                           "(using .clone() for example) or make your Function only return one Tensor (potentially splitting it into two Functions: "
                           "one doing the inplace that returns a single Tensor and a second one that does the other operations). You can ask on the "
                           "forum https://discuss.pytorch.org/ if you need help to do this change.")  # fmt: skip
    edge.meta = x.meta
    adopt(x, edge)
    return x
