"""The reentrant variant: a custom Function whose forward is not recorded, and whose backward runs the function again, and a backward in it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

from ..._engine import modes
from ..._tensor import Tensor
from ..._tensor.random import get_rng_state
from ...autograd import backward, enable_grad
from ...autograd.function import Function
from .settings import rewound


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Tensors without their history, taking a gradient where they did; other values as they are. RuntimeError unless it is a tuple."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    return tuple(x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs)


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn if no tensor among the inputs takes a gradient."""
    if not any(x.requires_grad for x in inputs if isinstance(x, Tensor)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


class CheckpointFunction(Function):
    """The reentrant variant; called by `checkpoint`."""

    @staticmethod
    def forward(ctx: Any, run_function: Callable[..., Any], preserve_rng_state: bool, *args: Any) -> Any:
        """Run without recording; keep the arguments and the generator's state."""
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.rng_state = get_rng_state() if preserve_rng_state else None
        ctx.inputs = [None if isinstance(x, Tensor) else x for x in args]
        ctx.tensor_indices = [place for place, x in enumerate(args) if isinstance(x, Tensor)]
        ctx.save_for_backward(*[x for x in args if isinstance(x, Tensor)])
        return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Run again with recording, and send the gradients through that."""
        run = modes.LOCAL.run  # None in the accelerated run, which is always one of the whole graph
        if run is not None and run.needed is not None:
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` parameter to .backward()."
                " To resolve this error, you can either set use_reentrant=False, or call .backward() without passing the `inputs` argument."
            )
        inputs = list(ctx.inputs)
        for place, x in zip(ctx.tensor_indices, ctx.saved_tensors, strict=True):
            inputs[place] = x
        with rewound(ctx.rng_state), enable_grad():
            detached = detach_variable(tuple(inputs))
            outputs = ctx.run_function(*detached)
        if isinstance(outputs, Tensor):
            outputs = (outputs,)
        pairs = [(x, grad) for x, grad in zip(outputs, grads, strict=True) if isinstance(x, Tensor) and x.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        backward([x for x, _ in pairs], [grad for _, grad in pairs])
        return (None, None, *[x.grad if isinstance(x, Tensor) else None for x in detached])
