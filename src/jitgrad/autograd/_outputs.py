"""What becomes of the outputs of a custom Function's `forward`: each gets its history, or loses one.

The rare cases stand here - inputs returned as they are, written inputs, views, outputs without gradient; `Function.apply` itself
does the common one.
"""

from __future__ import annotations

import warnings
from typing import Any, Final

from .._engine import modes
from .._engine.node import LEAF, Nowhere, Port
from .._tensor.base import TensorBase
from .._tensor.inplace import adopt
from .._tensor.views import creation_refusal, edge_of, wrap_view
from ._context import FunctionCtx

__all__ = ["link_all", "link_new", "unlink_all"]


def tensors_of(given: Any, refusal: str) -> tuple[Any, ...]:
    """The tensors that were marked; RuntimeError where one is none."""
    if given is None:
        return ()
    for place, one in enumerate(given):
        if not isinstance(one, TensorBase):
            raise RuntimeError(refusal.format(place=place, kind=type(one).__name__))
    return tuple(given)


_DIRTY: Final = "mark_dirty can only accept variables, but argument {place} is of type {kind}"
_CONSTANT: Final = "mark_non_differentiable only accepts variable arguments, but got {kind}"


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
    dirty = tensors_of(ctx.dirty_tensors, _DIRTY)
    if modes.grad_enabled() and any(x.requires_grad for x in dirty):  # a view made under no_grad of what takes a gradient
        raise RuntimeError(_LEAF)
    check_returned(dirty, outputs)
    bump(dirty)
    pure = ctx._is_pure_view
    if pure:
        check_pure(inputs, outputs)
    done = []
    for x in outputs:
        if isinstance(x, TensorBase):
            x = without_gradient(x, among(x, inputs), among(x, dirty))
            if x.rare is not None and x.rare.base is not None and not pure and not among(x, dirty):
                x.rare.creation = "function"
        done.append(x)
    return done


def check_pure(inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> None:
    """RuntimeError for a pure view of several tensors, or several of one."""
    if sum(isinstance(x, TensorBase) for x in inputs) != 1 or sum(isinstance(x, TensorBase) for x in outputs) != 1:
        raise RuntimeError("Pure view custom Function can only have one input Tensor and one output Tensor. "
                           "Open an issue if you need to support more.")  # fmt: skip


def bump(dirty: tuple[Any, ...]) -> None:
    """Count the writes of `forward`, which may have gone past the library."""
    for tensor in dirty:
        if tensor.rare is None or not tensor.rare.inference:
            tensor._bump()
            if tensor.rare is not None and tensor.rare.base is not None:
                tensor.rare.seen = tensor.vc.count


def check_returned(dirty: tuple[Any, ...], outputs: tuple[Any, ...]) -> None:
    """What was written to must be returned, or its old history would stay in use."""
    if not all(among(tensor, outputs) for tensor in dirty):
        raise RuntimeError("Some elements marked as dirty during the forward method were not returned as output. The inputs that are modified "
                           "inplace must all be outputs of the Function.")  # fmt: skip


def link_new(node: Any, inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> bool:
    """Make `node` the history of outputs that are all new float32 or float64 tensors; where one is not, leave it to `link_all`, and say so."""
    likes = []
    for x in outputs:
        if not isinstance(x, TensorBase) or x.rare is not None or x.fn is not None:
            return False
        for other in inputs:
            if other is x:
                return False
        likes.append(x.meta)
    count = node.outputs = len(outputs)
    node.gathered = [None] * count
    node.likes = likes
    node.meta = likes[0] if likes else None
    for index, x in enumerate(outputs):
        x.fn = edge = node if count == 1 else Port(node, index, x.meta)
        edge.vc = x.vc
    return True


def link_all(node: Any, ctx: FunctionCtx, inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> list[Any]:
    """Make `node` the history of the outputs that take a gradient.

    RuntimeError where an output can't have one: a written leaf, a written view next to other outputs.
    """
    dirty: tuple[Any, ...] = ()
    constant: tuple[Any, ...] = ()
    if ctx.dirty_tensors is not None:
        dirty = tensors_of(ctx.dirty_tensors, _DIRTY)
        check_dirty(dirty)
        settle_views(node, inputs, dirty)
        ctx.dirty_tensors = None  # a written input becomes an output, which would keep its own node alive
        bump(dirty)
        check_returned(dirty, outputs)
    if ctx.non_differentiable is not None:
        constant = tensors_of(ctx.non_differentiable, _CONSTANT)
    pure = ctx._is_pure_view
    if pure:
        check_pure(inputs, outputs)
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
            if not ctx._materialize_non_diff_grads:
                node.likes[index] = None
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
            done.append(give_history(x, edge, inputs if pure else None))
    if linked > 1:
        for x in done:
            if isinstance(x, TensorBase) and x.rare is not None and x.rare.base is not None:
                x.rare.creation = "multi"
    return done


def give_history(x: Any, edge: Any, viewed: tuple[Any, ...] | None) -> Any:
    """Make an edge the history of an output; a view may then not be written to, but for one that is nothing but a view of what is `viewed`."""
    x.fn = edge
    edge.meta = x.meta
    edge.vc = x.vc
    if x.rare is not None and x.rare.base is not None:
        x.rare.creation = "function" if viewed is None else None
        x.rare.seen = x.vc.count
        base = x.rare.base
        if viewed is not None and not any(base is v or (isinstance(v, TensorBase) and v._base is base) for v in viewed):
            base.requires_grad_()  # a view of something made in `forward`: refused like one of a leaf
    return x


def settle_views(node: Any, inputs: tuple[Any, ...], dirty: tuple[Any, ...]) -> None:
    """The writes of `forward` itself don't outdate the history with which a written view came in."""
    edges = iter(node.edges())
    for x in inputs:
        if isinstance(x, TensorBase):
            edge = next(edges)
            if x.rare is not None and x.rare.base is not None and among(x, dirty):
                x.fn = edge


def check_dirty(dirty: tuple[Any, ...]) -> None:
    """RuntimeError for a view that was written to and whose history can't follow."""
    for x in dirty:
        if x.rare is not None and x.rare.base is not None and (x.rare.base.fn is not None or x.fn is not None):
            if x.fn is None or type(x.fn) is Nowhere:  # to torch a view made under no_grad is a leaf
                raise RuntimeError(_LEAF)
            if x.rare.creation is not None:
                raise creation_refusal(x, "is being")
            if x.rare.base.fn is None or x.rare.base.fn.number == LEAF:
                raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")


def check_not_saved(split: bool, ctx: FunctionCtx, x: Any) -> None:
    """With `setup_context` an input that is returned can't be saved as well."""
    if split and ctx.to_save and among(x, ctx.to_save):
        raise RuntimeError("An input that has been returned as-is as output is being saved for backward. This is not supported if you override "
                           "setup_context. You should return and save a view of the input instead, e.g. with x.view_as(x) or setup ctx inside the "
                           "forward function itself.")  # fmt: skip


_LEAF: Final = "a leaf Variable that requires grad has been used in an in-place operation."
_NO_INPUT: Final = (
    "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been mutated should be passed to ctx.mark_dirty()."
)


def rewrite(x: Any, edge: Any, is_input: bool, count: int) -> Any:
    """The history of an input that was written to goes on from here."""
    rare = x.rare
    is_view = rare is not None and rare.base is not None
    if is_view and is_input:
        rare.seen = x.vc.count  # the node has its edge from before `forward`, which recorded nothing
    fn = edge_of(x)
    if fn is not None and fn.number == LEAF:
        raise RuntimeError(_LEAF)
    if not is_input:
        if x._is_view():
            raise RuntimeError(_NO_INPUT)
        warnings.warn(_NO_INPUT, UserWarning, stacklevel=4)
    if x._is_view() and count > 1:
        raise RuntimeError("If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return more than "
                           "one Tensor. This is not supported by the current autograd engine. You should either make sure the input is not a view "
                           "(using .clone() for example) or make your Function only return one Tensor (potentially splitting it into two Functions: "
                           "one doing the inplace that returns a single Tensor and a second one that does the other operations). You can ask on the "
                           "forum https://discuss.pytorch.org/ if you need help to do this change.")  # fmt: skip
    edge.meta = x.meta
    adopt(x, edge)
    return x
