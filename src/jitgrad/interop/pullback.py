"""The derivative of a function of tensors as a function of tensors, which bridges export like any other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._tensor.base import TensorBase
from ..autograd import enable_grad, grad

Function = Callable[..., Any]


def as_tuple(result: Any) -> tuple[Any, ...]:
    """The outputs of a function."""
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)


def differentiable(x: Any) -> bool:
    """Whether a gradient can flow to a value."""
    return isinstance(x, TensorBase) and x.meta.kind.is_floating_point


def refuse_mutating(function: Any) -> None:
    """TypeError for an op that writes into its inputs."""
    contract = getattr(function, "_contract", None)
    if contract is not None and contract.mutates:
        raise TypeError(
            f"{function.name} writes into its inputs ({', '.join(contract.names[k] for k in contract.mutates)}); "
            "only ops without side effects can be exported"
        )


def pullback(function: Function, count: int, given: Sequence[bool]) -> Function:
    """A function of `count` arguments and of the gradients of those outputs that `given` names; it returns a gradient per differentiable argument."""

    def back(*args: Any) -> Any:
        with enable_grad():
            inputs = [
                x if not differentiable(x) or x.requires_grad else x.detach().requires_grad_() for x in args[:count]
            ]
            grads = args[count:]
            outs = [out for out, there in zip(as_tuple(function(*inputs)), given, strict=True) if there]
            wanted = [x for x in inputs if differentiable(x)]
            pairs = [(out, grad_out) for out, grad_out in zip(outs, grads, strict=True) if out.requires_grad]
            if not pairs:
                return tuple(x.new_zeros(x.shape) for x in wanted)
            recorded = any(isinstance(x, TensorBase) and x.requires_grad for x in args)
            found = grad(
                [out for out, _ in pairs],
                wanted,
                [one for _, one in pairs],
                create_graph=recorded,
                allow_unused=True,
                materialize_grads=False,
            )
            return tuple(x.new_zeros(x.shape) if one is None else one for one, x in zip(found, wanted, strict=True))

    return back
