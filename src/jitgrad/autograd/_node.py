"""`BackwardCFunction`: the node of a custom Function.

It keeps the context, an edge per tensor argument and the Meta of each output; the user's `backward` runs on tensors in both engines.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from .._core.meta import Meta
from .._engine import modes
from .._engine.node import RELEASED, TOKEN, Node
from .._tensor.base import TensorBase, wrap
from .._tensor.nodes import contiguous, fit_array
from ._context import FunctionCtx

__all__ = ["BackwardCFunction"]


class BackwardCFunction(Node):
    """What `grad_fn` is for the output of a custom Function `F`; its class is called `FBackward`.

    Names that it does not have itself are looked up in the context: `y.grad_fn.saved_tensors`, and the user's own.
    """

    __slots__ = ("_edges", "ctx", "gathered", "likes", "outputs", "tensors")
    _forward_cls: ClassVar[Any]
    ctx: FunctionCtx
    gathered: list[Any]
    likes: tuple[Meta | None, ...]  # of each output; None where it is not a tensor
    tensors: tuple[bool, ...]  # which arguments were tensors
    _edges: tuple[Node | None, ...]  # one per tensor argument

    def edges(self) -> tuple[Node | None, ...]:
        return self._edges

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in BackwardCFunction.__slots__:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return getattr(self.ctx, name)

    __repr__ = object.__repr__

    @property
    def clears(self) -> bool:
        """Whether the saved tensors are let go when they are first asked for."""
        return bool(self._forward_cls.clear_saved_tensors_on_access)

    def release(self) -> None:
        self.ctx._kept = RELEASED

    def forget(self) -> None:
        self.buf = None
        self.gathered = [None] * self.outputs

    # ---- the two ways in
    def apply(self, grad: Any, keep: bool) -> list[Any]:
        """Arrays in, arrays out; None for a gradient that `backward` did not give, on a live edge too."""
        if grad is TOKEN:
            grads = [None if array is None else wrap(array) for array in self.gathered]
            self.gathered = [None] * self.outputs
        else:
            grads = [wrap(grad)]
        grad = None
        was = modes.set_grad(False)
        try:
            results = self.backward(grads)
        finally:
            modes.set_grad(was)
        if not keep:
            self.ctx._kept = RELEASED
        done = []
        for index, (edge, part) in enumerate(zip(self._edges, results, strict=True)):
            if part is None or edge is None:
                done.append(None)
                continue
            array = part.array
            plain = part.meta is edge.meta and array.base is None
            done.append(array if plain else fit_array(array, edge.meta, self, index))
        return done

    def call(self, grads: tuple[Any, ...], keep: bool, create_graph: bool) -> Sequence[Any]:
        """Tensors in, tensors out; the engine has set the mode."""
        if create_graph and self.ctx._node is None:
            self.ctx._node = weakref.ref(self)  # for `once_differentiable`
        given = [g if g is None or g.meta.plain or create_graph else wrap(contiguous(g.array)) for g in grads]
        return self.backward(given)

    # ---- the user's part
    def backward(self, grads: list[Any]) -> list[Any]:
        """Call the user's `backward` and check what it returns: an entry per tensor argument."""
        ctx = self.ctx
        if ctx.materialize_grads:
            for place, grad in enumerate(grads):
                if grad is None:
                    like = self.likes[place]
                    if like is not None:
                        grads[place] = wrap(np.zeros(like.shape, like.dtype))
        forward = self._forward_cls
        results = forward._backward(ctx, grads) if forward.boxed_grads_call else forward._backward(ctx, *grads)
        grads.clear()
        return self.checked(results if type(results) is tuple else (results,))

    def checked(self, results: tuple[Any, ...]) -> list[Any]:
        """The results of the tensor arguments; RuntimeError where they are not what `forward` took."""
        count = len(self.tensors)
        if len(results) > count and all(extra is None for extra in results[count:]):
            results = results[:count]
        if len(results) != count:
            raise RuntimeError(f"function {self.name()} returned an incorrect number of gradients (expected {count}, got {len(results)})")
        done = []
        for place, (part, is_tensor) in enumerate(zip(results, self.tensors, strict=True)):
            if not is_tensor:
                if part is not None:
                    raise RuntimeError(f"function {self.name()} returned a gradient different than None at position {place + 1}, "
                                       "but the corresponding forward input was not a Variable")  # fmt: skip
            elif part is not None and not isinstance(part, TensorBase):
                raise RuntimeError(f"expected Variable or None (got {type(part).__name__})")
            else:
                done.append(part)
        return done
