"""Derivatives of derivatives that would be wrong: each gets a history that refuses to be run, instead of none.

`once_differentiable` refuses by the user's wish. `with_guards` does where a Function keeps an intermediate: what `forward` computed from its inputs
without recording, and put on the context, is a constant to the backward; torch leaves its part out of the second derivative without a word.
Whether a tensor there depends on the inputs is found out once per Function, by another call of `forward`, the first time that it matters.
"""

from __future__ import annotations

import dis
import functools
import itertools
import weakref
from collections.abc import Callable
from typing import Any

from .._engine import modes
from .._tensor.base import TensorBase
from .._tensor.random import get_rng_state, set_rng_state
from .._tensor.refusals import refusing
from .._tensor.views import edge_of
from ._context import OWN, FunctionCtx

__all__ = ["note_inputs", "once_differentiable", "stores_attributes", "with_guards"]


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of a `backward` whose result can't be differentiated again; trying to is an error.

    Its result depends on everything that the Function's arguments and the incoming gradients depend on, so the error comes also where
    `autograd.grad` asks for one of those only (torch's comes through `backward()` alone).
    """

    @functools.wraps(fn)
    def once(ctx: Any, *grads: Any, **named: Any) -> Any:
        was = modes.set_grad(False)
        try:
            outputs = fn(ctx, *grads, **named)
        finally:
            modes.set_grad(was)
        edges = tuple(edge_of(x) for x in grads if isinstance(x, TensorBase) and edge_of(x) is not None) if was else ()
        if not edges:
            return outputs
        node = ctx._node() if getattr(ctx, "_node", None) is not None else None
        if node is not None:
            edges += tuple(node.edges())
        text = f"trying to differentiate twice a function that was marked with @once_differentiable: {ctx.name()}"
        several = isinstance(outputs, tuple)
        given = outputs if several else (outputs,)
        refused = [refusing(x, edges, text, given) if isinstance(x, TensorBase) else x for x in given]
        return tuple(refused) if several else refused[0]

    return once


# ---- intermediates
def stores_attributes(function: Any) -> bool:
    """Whether a function may assign attributes of the context, its first argument: its code does, or hands the context on."""
    code = getattr(function, "__code__", None)
    if code is None or not code.co_argcount or code.co_varnames[0] in code.co_cellvars:
        return True
    steps = [step for step in dis.get_instructions(code) if step.opname not in ("CACHE", "EXTENDED_ARG")]
    for step, after in itertools.pairwise(steps):
        names = step.argval if isinstance(step.argval, tuple) else (step.argval,)
        handed_on = step.opname.startswith("LOAD_FAST") and code.co_varnames[0] in names and not after.opname.startswith(("LOAD_ATTR", "LOAD_METHOD"))
        if step.opname == "STORE_ATTR" or handed_on:
            return True
    return False


def note_inputs(ctx: FunctionCtx, args: tuple[Any, ...]) -> None:
    """If the context holds tensors that may be intermediates, remember what `forward` was called with; tensors weakly."""
    for name, x in ctx.__dict__.items():
        if name not in OWN and is_constant(x) and not any(x is y for y in args):
            ctx._inputs = tuple([weakref.ref(y) if isinstance(y, TensorBase) else y for y in args])
            return


def is_constant(x: Any) -> bool:
    """Whether a backward would take a tensor for a constant."""
    return isinstance(x, TensorBase) and x.meta.kind.is_floating_point and edge_of(x) is None


def with_guards(node: Any, call: Callable[[], Any]) -> Any:
    """Call the user's backward in a run that makes a graph, with guards in place of the intermediates that the context holds."""
    ctx: FunctionCtx = node.ctx
    attributes = ctx.__dict__
    names = [name for name, x in attributes.items() if name not in OWN and is_constant(x)]
    known = node._forward_cls._intermediates
    if any(name not in known for name in names):
        again = recorded_again(node)
        if again is None:
            return call()
        for name in names:
            twin = again.__dict__.get(name)
            known[name] = isinstance(twin, TensorBase) and edge_of(twin) is not None
    edges = tuple(edge for edge in node.edges() if edge is not None)
    before = {name: attributes[name] for name in names if known[name]}
    for name, x in before.items():
        attributes[name] = refusing(x, edges, f"{ctx.name()} can't be differentiated twice: ctx.{name} {_WHY}", (x,))
    try:
        return call()
    finally:
        attributes.update(before)


def recorded_again(node: Any) -> FunctionCtx | None:
    """The context of another call of `forward`, recorded: what depends on the inputs has a history. None where they are gone, or it fails."""
    ctx, function = node.ctx, node._forward_cls
    args = []
    for x, takes_grad in zip(ctx._inputs, ctx.needs_input_grad, strict=True):
        if type(x) is weakref.ref:
            tensor = x()
            if tensor is None:
                return None
            args.append(tensor.detach().requires_grad_(takes_grad))
        else:
            args.append(x)
    again: FunctionCtx = type(ctx)()
    again.needs_input_grad = ctx.needs_input_grad
    state = get_rng_state()
    was = modes.set_grad(True)
    try:
        if function._split:
            function._forward_and_setup(again, tuple(args))
        else:
            function.forward(again, *args)
    except Exception:  # the call proper went well; that this one does not is no news to the user
        return None
    finally:
        modes.set_grad(was)
        set_rng_state(state)
    return again


_WHY = (
    "holds an intermediate that `forward` computed from its inputs, where nothing is recorded, so its part of the second derivative would "
    "be missing. Compute it in `backward` from saved inputs, or return it as an output of `forward`."
)
