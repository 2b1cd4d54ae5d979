"""`to_torch`: an op as a `torch.autograd.Function`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._tensor.creation import from_numpy
from ..autograd import enable_grad, grad
from .pullback import as_tuple, differentiable, pullback, refuse_mutating


def to_torch(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of torch tensors (on the CPU) that calls `function` - a `jit_function`, an elementwise function, any function of jitgrad's
    tensors - on the same memory, and takes part in torch's autograd, to every order that `function` has derivatives of.

    Arguments that are no tensors are handed on. A tensor that is written to between forward and backward raises torch's error. ImportError
    where torch is not installed, TypeError for an op that writes into its inputs.
    """
    refuse_mutating(function)
    bridge = _bridge()

    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        bound = functools.partial(function, **named) if named else function
        outs = bridge.apply(bound, *args)
        return outs[0] if len(outs) == 1 else outs

    return call


@functools.cache
def _bridge() -> Any:
    """The one `torch.autograd.Function` behind all exported ops."""
    import torch

    class JitgradBridge(torch.autograd.Function):
        """Runs a function of jitgrad's tensors; keeps its graph for the backward."""

        @staticmethod
        def forward(ctx: Any, function: Any, *args: Any) -> tuple[Any, ...]:
            return _forward(torch, ctx, function, args)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
            saved = list(ctx.saved_tensors)  # torch checks that nobody wrote to them
            if torch.is_grad_enabled():
                return (None, *_recorded(JitgradBridge, ctx, saved, grads))
            return (None, *_plain(torch, ctx, grads))

    return JitgradBridge


def _forward(torch: Any, ctx: Any, function: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Call the function on jitgrad's tensors over the same memory."""
    tensors = [x for x in args if isinstance(x, torch.Tensor)]
    for x in tensors:
        if x.device.type != "cpu":
            raise TypeError(f"a jitgrad op takes tensors on the CPU, not on {x.device}")
    needs = ctx.needs_input_grad[1:]
    with enable_grad():
        given = [_ours(x, need) if isinstance(x, torch.Tensor) else x for x, need in zip(args, needs, strict=True)]
        outs = as_tuple(function(*given))
    results = tuple(torch.from_numpy(out.detach().numpy()) for out in outs)
    ctx.mark_non_differentiable(*[result for result, out in zip(results, outs, strict=True) if not out.requires_grad])
    ctx.save_for_backward(*tensors, *results)
    ctx.function, ctx.given, ctx.outs = function, given, outs
    ctx.args = [None if isinstance(x, torch.Tensor) else x for x in args]
    ctx.set_materialize_grads(False)
    return results


def _plain(torch: Any, ctx: Any, grads: tuple[Any, ...]) -> list[Any]:
    """The backward by the graph that forward left, without one of its own."""
    needs = ctx.needs_input_grad[1:]
    there = [one is not None and out.requires_grad for out, one in zip(ctx.outs, grads, strict=True)]
    outs = [out for out, take in zip(ctx.outs, there, strict=True) if take]
    given = [_ours(one.contiguous(), False) for one, take in zip(grads, there, strict=True) if take]
    wanted = [x for x, need in zip(ctx.given, needs, strict=True) if need]
    found = grad(outs, wanted, given, retain_graph=True, allow_unused=True) if outs else [None] * len(wanted)
    parts = iter(None if one is None else torch.from_numpy(one.detach().numpy()) for one in found)
    return [next(parts) if need else None for need in needs]


def _recorded(bridge: Any, ctx: Any, saved: list[Any], grads: tuple[Any, ...]) -> list[Any]:
    """The backward as an exported op of its own, so that torch can differentiate it."""
    tensors = iter(saved)
    args = [next(tensors) if x is None and _was_tensor(y) else x for x, y in zip(ctx.args, ctx.given, strict=True)]
    back = pullback(ctx.function, len(args), [one is not None for one in grads])
    parts = iter(bridge.apply(back, *args, *[one.contiguous() for one in grads if one is not None]))
    done = []
    for x, need in zip(ctx.given, ctx.needs_input_grad[1:], strict=True):
        part = next(parts) if differentiable(x) else None
        done.append(part if need else None)
    return done


def _was_tensor(x: Any) -> bool:
    return hasattr(x, "meta")


def _ours(x: Any, need: bool) -> Any:
    """A torch tensor as one of jitgrad's over the same memory."""
    tensor = from_numpy(x.detach().numpy())
    return tensor.requires_grad_() if need else tensor
