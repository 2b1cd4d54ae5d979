"""Backward hooks of modules: identity nodes put around a call, at which the gradients are met."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from .._tensor import Tensor
from .function import Function

Gradients = tuple[Any, ...]


class BackwardHookFunction(Function):
    """Hands its tensors through, so that one node stands for all of a module's inputs or outputs."""

    @staticmethod
    def forward(ctx: Any, *args: Tensor) -> tuple[Tensor, ...]:
        ctx.mark_non_differentiable(*[arg for arg in args if not arg.requires_grad])
        return args

    @staticmethod
    def backward(ctx: Any, *args: Tensor) -> tuple[Tensor, ...]:
        return args


class BackwardHook:
    """Runs the user's hooks of one call of a module once the gradients of its outputs and of its inputs are known.

    Gradients of arguments that are no tensors, or ask for none, are None.
    """

    def __init__(
        self, module: Any, user_hooks: Sequence[Callable[..., Any]], user_pre_hooks: Sequence[Callable[..., Any]]
    ) -> None:
        self.module = module
        self.user_hooks = user_hooks
        self.user_pre_hooks = user_pre_hooks
        self.grad_outputs: Gradients | None = None
        self.input_tensors_index: list[int] | None = None
        self.n_inputs = -1
        self.output_tensors_index: list[int] | None = None
        self.n_outputs = -1

    def setup_input_hook(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Positional arguments, the tensors among them replaced by the outputs of the identity node; called before `setup_output_hook`."""
        self.n_inputs = len(args)
        args, self.input_tensors_index = self._through_node(args, self._at_inputs)
        return args

    def setup_output_hook(self, result: Any) -> Any:
        """The result of the module's forward, replaced likewise; only a tensor or a tuple can be watched."""
        results = result if isinstance(result, tuple) else (result,)
        self.n_outputs = len(results)
        watched, self.output_tensors_index = self._through_node(results, self._at_outputs)
        return watched if isinstance(result, tuple) else watched[0]

    def _through_node(
        self, values: tuple[Any, ...], at: Callable[[Gradients, Gradients], Gradients | None]
    ) -> tuple[tuple[Any, ...], list[int] | None]:
        places = [k for k, value in enumerate(values) if isinstance(value, Tensor)]
        if not any(values[k].requires_grad for k in places):
            return values, None
        fresh = BackwardHookFunction.apply(*[values[k] for k in places])
        node = next((t.grad_fn for t in fresh if t.grad_fn is not None), None)
        if node is None:  # recording is off
            return values, None

        def hook(grad_input: Gradients, grad_output: Gradients) -> Gradients | None:  # torch's messages call it so
            return at(grad_input, grad_output)

        node.register_hook(hook)
        replaced = list(values)
        for k, tensor in zip(places, fresh, strict=True):
            replaced[k] = tensor
        if hasattr(values, "_fields"):  # a named tuple stays one
            return type(values)(*replaced), places
        return type(values)(replaced), places

    def _at_outputs(self, _: Gradients, grad_output: Gradients) -> Gradients | None:
        """Runs behind the node of the outputs: keeps their gradients, as the pre-hooks leave them."""
        assert self.output_tensors_index is not None
        grads = _spread(self.output_tensors_index, grad_output, self.n_outputs)
        for hook in self.user_pre_hooks:
            grads = _replaced(hook(self.module, grads), grads, "grad_output", self.n_outputs)
        self.grad_outputs = grads
        if self.input_tensors_index is None:  # no input asks for a gradient: nothing will run at the inputs
            self._without_inputs(grads)
        return tuple(grads[k] for k in self.output_tensors_index)

    def _without_inputs(self, grads: Gradients) -> None:
        warnings.warn(
            "Full backward hook is firing when gradients are computed with respect to module outputs since no inputs "
            "require gradients. See https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module."
            "register_full_backward_hook for more details.",
            stacklevel=2,
        )
        nothing = (None,) * self.n_inputs
        for hook in self.user_hooks:
            answer = hook(self.module, nothing, grads)
            if answer is not None and not (isinstance(answer, tuple) and all(a is None for a in answer)):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or None for "
                    "all gradients."
                )
        self.grad_outputs = None

    def _at_inputs(self, grad_input: Gradients, _: Gradients) -> Gradients | None:
        """Runs behind the node of the inputs: everything the user's hooks want is known."""
        if self.grad_outputs is None:  # the outputs were not part of this run
            return None
        assert self.input_tensors_index is not None
        grads = _spread(self.input_tensors_index, grad_input, self.n_inputs)
        for hook in self.user_hooks:
            grads = _replaced(hook(self.module, grads, self.grad_outputs), grads, "grad_input", self.n_inputs)
        self.grad_outputs = None
        return tuple(grads[k] for k in self.input_tensors_index)


def _spread(places: list[int], values: Gradients, count: int) -> Gradients:
    spread = [None] * count
    for k, value in zip(places, values, strict=True):
        spread[k] = value
    return tuple(spread)


def _replaced(answer: Any, grads: Gradients, name: str, count: int) -> Gradients:
    """What a hook's answer makes of the gradients: None leaves them, a tensor or a tuple takes their place."""
    if answer is None:
        return grads
    found = (answer,) if isinstance(answer, Tensor) else answer
    if len(found) != count:
        raise RuntimeError(
            f"Backward {'hook' if name == 'grad_input' else 'pre hook'} returned an invalid number of {name}, "
            f"got {len(found)}, but expected {count}"
        )
    return tuple(found)
