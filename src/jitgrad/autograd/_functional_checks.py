"""Arguments and results of `autograd.functional`: tuples and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._tensor.backward import grad
from .._tensor.base import TensorBase, wrap

Tensors = tuple[Any, ...]


def as_tensors(value: Any, what: str, name: str) -> tuple[bool, Tensors]:
    """Whether a tuple was given, and the tensors as a tuple. TypeError for anything else."""
    several = isinstance(value, tuple)
    found = value if several else (value,)
    for index, one in enumerate(found):
        if not isinstance(one, TensorBase):
            which = f"value at index {index}" if several else f"given {what}"
            raise TypeError(f"The {what} given to {name} must be either a Tensor or a tuple of Tensors but the {which} has type {type(one)}.")
    return several, found


def fresh_inputs(inputs: Tensors, create_graph: bool, need_graph: bool) -> Tensors:
    """Tensors of their own for the function to work on, so that an input it has captured by itself is not taken for the argument."""
    return tuple(x.view_as(x) if create_graph and x.requires_grad else x.detach().requires_grad_(need_graph) for x in inputs)


def without_history(results: Any, create_graph: bool) -> Any:
    """Nested tuples of results, cut off the graph unless it was asked for."""
    if create_graph:
        return results
    return tuple(without_history(one, create_graph) for one in results) if isinstance(results, tuple) else results.detach()


def check_vector(v: Tensors, like: Tensors, several: bool) -> None:
    """RuntimeError for a vector that has not the shapes of what it is multiplied with."""
    if len(like) != len(v):
        if several:
            raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(v)}.")
        raise RuntimeError("The given v should contain a single Tensor.")
    for index, (one, other) in enumerate(zip(v, like, strict=True)):
        if one.shape != other.shape:
            where = f"Entry {index} in " if several else ""
            raise RuntimeError(f"{where}v has invalid size: should be {other.shape} but got {one.shape}.")


def vector_for(v: Any, name: str, like: Tensors, several: bool, create_graph: bool, refusal: str) -> Tensors | None:
    """The checked vector; None where it may be left out, because what it is multiplied with is a single number."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(refusal)
        return None
    found = fresh_inputs(as_tensors(v, "v", name)[1], create_graph, False)
    check_vector(found, like, several)
    return found


_INDEPENDENT = {
    "outputs": "Output {} of the user-provided function does not require gradients. The outputs must be computed in a differentiable manner from the "
    "input when running in strict mode.",
    "grad_inputs": "The gradient with respect to input {} is independent of the inputs of the user-provided function. This is not allowed in strict "
    "mode.",
    "jacobian": "While computing the hessian, found that the jacobian of the user-provided function with respect to input {} is independent of the "
    "input. This is not allowed in strict mode. You should ensure that your function is twice differentiable and that the jacobian depends on the "
    "inputs (this would be violated by a linear function for example).",
    "hessian": "The hessian of the user-provided function with respect to input {} is independent of the input. This is not allowed in strict mode. "
    "You should ensure that your function is thrice differentiable and that the hessian depends on the inputs.",
}


def check_depends(tensors: Sequence[Any], what: str, strict: bool) -> None:
    """In strict mode all of them must have a history."""
    for index, x in enumerate(tensors if strict else ()):
        if x is None:
            raise RuntimeError(f"The output of the user-provided function is independent of input {index}. This is not allowed in strict mode.")
        if not x.requires_grad:
            raise RuntimeError(_INDEPENDENT[what].format(index))


_NO_GRADIENT = {
    "back": "The output of the user-provided function is independent of input {}. This is not allowed in strict mode.",
    "back_trick": "The gradient with respect to the input is independent of entry {} in the grad_outputs when using the double backward trick to "
    "compute forward mode gradients. This is not allowed in strict mode.",
    "double_back": "The jacobian of the user-provided function is independent of input {}. This is not allowed in strict mode.",
    "double_back_trick": "The hessian of the user-provided function is independent of entry {} in the grad_jacobian. This is not allowed in strict "
    "mode as it prevents from using the double backward trick to replace forward mode AD.",
}


def filled(grads: Sequence[Any], like: Tensors, strict: bool, create_graph: bool, stage: str) -> Tensors:
    """Zeros for gradients that there are none of; in strict mode those are refused, as is one without history where it is asked for."""
    done = []
    for index, (one, other) in enumerate(zip(grads, like, strict=True)):
        if one is None:
            if strict:
                raise RuntimeError(_NO_GRADIENT[stage].format(index))
            done.append(zeros_like(other))
        elif strict and create_graph and not one.requires_grad:
            what = "hessian" if "double" in stage else "jacobian"
            raise RuntimeError(f"The {what} of the user-provided function is independent of input {index}. This is not allowed in strict mode when "
                               "create_graph=True.")  # fmt: skip
        else:
            done.append(one)
    return tuple(done)


def zeros_like(tensor: Any, requires_grad: bool = False) -> Any:
    """Zeros of the same shape and dtype, a leaf."""
    if requires_grad and not tensor.meta.kind.is_floating_point:
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    return wrap(np.zeros(tensor.meta.shape, tensor.meta.dtype)).requires_grad_(requires_grad)


def gradients(outputs: Sequence[Any], inputs: Tensors, grad_outputs: Sequence[Any] | None = None, create_graph: bool = False,
              retain_graph: bool | None = None) -> Tensors:  # fmt: skip
    """`autograd.grad` over the outputs that take a gradient; None for all inputs where there are none."""
    given = grad_outputs if grad_outputs is not None else (None,) * len(outputs)
    pairs = [(x, g) for x, g in zip(outputs, given, strict=True) if x is not None and x.requires_grad]
    if not pairs:
        return (None,) * len(inputs)
    found: Tensors = grad([x for x, _ in pairs], inputs, [g for _, g in pairs], retain_graph, create_graph, allow_unused=True)
    return found


def unpacked(results: Any, several: bool) -> Any:
    """A tuple, or its only element."""
    return results if several else results[0]
