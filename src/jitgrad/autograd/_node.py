"""`BackwardCFunction`: the node of a custom Function.

It keeps the context, an edge per tensor argument and the Meta of each output; the user's `backward` runs on tensors in both engines.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, ClassVar, NoReturn

import numpy as np

from .._core.meta import Meta
from .._engine import fast, modes, versions
from .._engine.node import LEAF, RELEASED, TOKEN, Node, Undefined
from .._tensor.base import TensorBase, around, wrap
from .._tensor.nodes import contiguous, fit_array
from ._context import FunctionCtx
from ._refusals import with_guards

__all__ = ["BackwardCFunction"]


class BackwardCFunction(Node):
    """What `grad_fn` is for the output of a custom Function `F`; its class is called `FBackward`.

    To the user it also shows what the context has: `y.grad_fn.saved_tensors`, and attributes of the user's own.
    """

    __slots__ = ("__dict__", "_edges", "all_tensors", "arity", "ctx", "e0", "e1", "gathered", "likes", "outputs", "tensors")
    _forward_cls: ClassVar[Any]
    ctx: FunctionCtx
    arity: int  # type: ignore[misc]  # 1 or 2 where that is the number of tensor arguments; `e0`, `e1` are set then
    e0: Node | None
    e1: Node | None
    gathered: list[Any]
    likes: Sequence[Meta | None]  # of each output; None where it is not a tensor
    tensors: Sequence[bool]  # which arguments were tensors
    all_tensors: bool  # whether all of them were
    _edges: Sequence[Node | None]  # one per tensor argument

    def edges(self) -> Sequence[Node | None]:
        return self._edges

    __repr__ = object.__repr__

    def shown(self) -> BackwardCFunction:
        """Before the user sees it: with the attributes that `forward` gave the context."""
        kind = type(self)
        self.__dict__.update({name: value for name, value in self.ctx.__dict__.items() if not hasattr(kind, name)})
        return self

    def output_meta(self, index: int) -> Meta | None:
        return self.likes[index]

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What `save_for_backward` was given."""
        return self.ctx.saved_tensors

    @property
    def _raw_saved_tensors(self) -> tuple[Any, ...]:
        return self.ctx._raw_saved_tensors

    @property
    def needs_input_grad(self) -> tuple[bool, ...]:
        """Which arguments take a gradient."""
        return self.ctx.needs_input_grad

    def release(self) -> None:
        self.ctx._kept = RELEASED

    def check_saved(self) -> None:
        kept = self.ctx._kept
        if kept is not None and kept is not RELEASED and self.ctx._epoch != versions.WRITES:
            self.ctx._check(kept)

    def kept_values(self) -> list[tuple[str, Any, Node | None]]:
        return self.ctx._all_kept()

    def forget(self) -> None:
        self.buf = None
        self.gathered = [None] * self.outputs

    # ---- the two ways in
    def apply(self, grad: Any, keep: Any = None, *more: Any) -> Any:
        """Arrays in, arrays out; called by the accelerated run, which does not switch recording off.

        `grad_fn.apply(*grads)` with tensors calls the user's `backward`.
        """
        if keep is not True and keep is not False:
            return self._forward_cls.backward(self.ctx, grad, *(() if keep is None else (keep, *more)))
        if grad is TOKEN:
            grads, self.gathered = self.gathered, [None] * self.outputs
            for place, like in enumerate(self.likes):
                if like is not None and grads[place] is not None:
                    grads[place] = around(grads[place], like) if like.plain else wrap(grads[place])
        elif self.meta.plain:
            t = TensorBase.kind()  # `around`, spelled out
            t.array = grad
            t.meta = self.meta
            t.fn = t.vc = t.rare = None
            grads = [t]
            t = None
        else:
            grads = [wrap(grad)]
        grad = None
        if modes.LOCAL.run is None:
            fast.enter(keep)
        results = self.backward(grads)
        if not keep:
            self.ctx._kept = RELEASED
        done: list[Any] = []
        missing = False
        for edge, part in zip(self._edges, results, strict=True):
            if edge is None:
                done.append(None)
            elif part is None:
                done.append(None)
                missing = missing or edge.number != LEAF or edge.rare is not None
            elif edge.rare is not None and edge.rare.takes is not ...:  # a leaf that chose a dtype: the full run casts
                done.append(part.array)
                missing = True
            else:
                array = part.array
                done.append(array if part.meta is edge.meta and array.base is None else fit_array(array, edge.meta, self, len(done)))
        if missing:
            raise Undefined(done)
        return done if self.arity != 1 else done[0]

    def __call__(self, *grads: Any) -> Any:
        raise TypeError(f"'{type(self).__name__}' object is not callable")

    def call(self, grads: tuple[Any, ...], keep: bool, create_graph: bool) -> Sequence[Any]:
        """Tensors in, tensors out; the engine has set the mode."""
        if create_graph and self.ctx._node is None:
            self.ctx._node = weakref.ref(self)  # for `once_differentiable`
        given = [g if g is None or g.meta.plain or create_graph else wrap(contiguous(g.array)) for g in grads]
        if create_graph and self.ctx._inputs is not None:
            return with_guards(self, lambda: self.backward(given))  # type: ignore[no-any-return]
        return self.backward(given)

    # ---- the user's part
    def backward(self, grads: list[Any]) -> Sequence[Any]:
        """Call the user's `backward` and check what it returns: an entry per tensor argument."""
        ctx, forward = self.ctx, self._forward_cls
        for grad in grads:
            if grad is None and ctx.materialize_grads:
                self.fill(grads)
                break
        if forward._ordinary:
            results = forward.backward(ctx, *grads)
        else:
            ctx._clears = forward.clear_saved_tensors_on_access
            user = forward._only_vjp() if forward._gives_vjp else forward.backward
            results = user(ctx, grads) if forward.boxed_grads_call else user(ctx, *grads)
        grads.clear()
        if type(results) is not tuple:
            results = (results,)
        if len(results) != len(self.tensors) or not self.all_tensors:
            return self.chosen(results)
        for part in results:
            if part is not None and not isinstance(part, TensorBase):
                self.refuse(part)
        return results  # type: ignore[no-any-return]

    def fill(self, grads: list[Any]) -> None:
        """Zeros where no gradient came to an output that is a tensor."""
        for place, like in enumerate(self.likes):
            if grads[place] is None and like is not None:
                zeros = np.zeros(like.shape, like.dtype)
                grads[place] = around(zeros, like) if like.plain else wrap(zeros)

    def chosen(self, results: tuple[Any, ...]) -> list[Any]:
        """The results of the tensor arguments; RuntimeError where they are not what `forward` took."""
        count = len(self.tensors)
        if len(results) > count and all(extra is None for extra in results[count:]):
            results = results[:count]
        if len(results) != count:
            raise RuntimeError(f"function {type(self).__name__} returned an incorrect number of gradients (expected {count}, got {len(results)})")
        done = []
        for place, (part, is_tensor) in enumerate(zip(results, self.tensors, strict=True)):
            if not is_tensor:
                if part is not None:
                    raise RuntimeError(f"function {type(self).__name__} returned a gradient different than None at position {place + 1}, "
                                       "but the corresponding forward input was not a Variable")  # fmt: skip
            else:
                if part is not None and not isinstance(part, TensorBase):
                    self.refuse(part)
                done.append(part)
        return done

    def refuse(self, part: Any) -> NoReturn:
        """RuntimeError for something returned that is no gradient."""
        raise RuntimeError(f"expected Variable or None (got {type(part).__name__})")
