"""Derivatives of functions: `vjp`, `jvp`, `jacobian`, `hessian`, `vhp`, `hvp`.

All take a function of tensors and its inputs (a tensor or a tuple of them). `create_graph=True` makes the results differentiable;
`strict=True` refuses outputs that do not depend on the inputs, for which otherwise zeros are returned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._engine import modes
from .._ops import joining
from .._tensor.base import wrap
from . import forward_ad
from ._functional_checks import (
    Tensors,
    as_tensors,
    check_depends,
    filled,
    fresh_inputs,
    gradients,
    unpacked,
    vector_for,
    without_history,
    zeros_like,
)
from .grad_mode import enable_grad, set_grad_enabled

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Function = Callable[..., Any]
_OUTPUTS = "outputs of the user-provided function"
_ONE_OUTPUT = "The vector v can only be None if the user-provided function returns a single Tensor with a single element."
_ONE_INPUT = "The vector v can only be None if the input to the user-provided function is a single Tensor with a single element."


def vjp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """The outputs of `func(*inputs)` and the product of the vector `v`, shaped like them, with the Jacobian.

    `v` may be left out for an output of one element. Returns (outputs, product shaped like the inputs).

    >>> import jitgrad
    >>> jitgrad.autograd.functional.vjp(lambda x: x * x, jitgrad.tensor([1.0, 2.0]), jitgrad.tensor([1.0, 10.0]))
    (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    with enable_grad():
        several_in, given = as_tensors(inputs, "inputs", "vjp")
        given = fresh_inputs(given, create_graph, True)
        several_out, outputs = as_tensors(func(*given), _OUTPUTS, "vjp")
        check_depends(outputs, "outputs", strict)
        vector = vector_for(v, "vjp", outputs, several_out, create_graph, _ONE_OUTPUT)
    with set_grad_enabled(create_graph or modes.grad_enabled()):
        product = filled(gradients(outputs, given, vector, create_graph), given, strict, create_graph, "back")
    return unpacked(without_history(outputs, create_graph), several_out), unpacked(without_history(product, create_graph), several_in)


def jvp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """The outputs of `func(*inputs)` and the product of the Jacobian with the vector `v`, shaped like the inputs.

    It is computed by two backwards: the gradient is linear in the gradients of the outputs, and its transpose is the product.
    Returns (outputs, product shaped like them).
    """
    with enable_grad():
        several_in, given = as_tensors(inputs, "inputs", "jvp")
        given = fresh_inputs(given, create_graph, True)
        vector = vector_for(v, "jvp", given, several_in, create_graph, _ONE_INPUT)
        several_out, outputs = as_tensors(func(*given), _OUTPUTS, "jvp")
        check_depends(outputs, "outputs", strict)
        seeds = tuple(zeros_like(x, True) for x in outputs)  # their value does not matter
        pulled = gradients(outputs, given, seeds, True)
        check_depends(pulled, "grad_inputs", strict)
    with set_grad_enabled(create_graph or modes.grad_enabled()):
        product = filled(gradients(pulled, seeds, vector, create_graph), outputs, strict, create_graph, "back_trick")
    return unpacked(without_history(outputs, create_graph), several_out), unpacked(without_history(product, create_graph), several_out)


def check_strategy(strategy: str, create_graph: bool, strict: bool) -> None:
    """What `jacobian` does not combine."""
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs than '
                             'inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".')  # fmt: skip
    if strategy == "forward-mode":
        if create_graph:
            raise NotImplementedError('torch.autograd.functional.jacobian: `create_graph=True` and `strategy="forward-mode"` are not supported '
                                      'together (yet). Please either set `create_graph=False` or `strategy="reverse-mode"`.')  # fmt: skip
        if strict:
            raise RuntimeError('torch.autograd.functional.jacobian: `strict=True` and `strategy="forward-mode"` are not supported together (yet). '
                               'Please either set `strict=False` or `strategy="reverse-mode"`.')  # fmt: skip


def forward_jacobian(func: Function, inputs: Any, vectorize: bool) -> Any:
    """The Jacobian column by column, by forward mode: `func` is called once for each element of the inputs."""
    several_in, given = as_tensors(inputs, "inputs", "jacobian")
    if not vectorize:
        raise NotImplementedError("Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly implemented for `vectorize=True`.")
    several_out = False
    found: list[Tensors] = []  # for each input the Jacobians of all outputs
    for which, x in enumerate(given):
        columns: list[Tensors] = []
        primals: Tensors = ()
        for place in range(x.numel()):
            with forward_ad.dual_level():
                tangents = [zeros_like(y) for y in given]
                tangents[which].array.reshape(-1)[place] = 1
                several_out, outputs = as_tensors(func(*map(forward_ad.make_dual, given, tangents)), "outputs", "None")
                pairs = [forward_ad.unpack_dual(y) for y in outputs]
                primals = tuple(primal for primal, _ in pairs)
                columns.append(tuple(zeros_like(primal) if tangent is None else tangent for primal, tangent in pairs))
        if not columns:
            several_out, primals = as_tensors(func(*given), "outputs", "None")
        found.append(tuple(joining.stack([column[k] for column in columns], -1).reshape((*y.meta.shape, *x.meta.shape)) if columns
                           else y.new_zeros((*y.meta.shape, *x.meta.shape)) for k, y in enumerate(primals)))  # fmt: skip
    return unpacked(tuple(unpacked(row, several_in) for row in zip(*found, strict=True)), several_out)


def jacobian(func: Function, inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
             strategy: str = "reverse-mode") -> Any:  # fmt: skip
    """The Jacobian of `func`: for an output of shape A and an input of shape B a tensor of shape A + B.

    For several inputs a tuple with one per input, for several outputs a tuple of those. It is computed row by row;
    `vectorize` lets each row start from all outputs, with zeros for all but one. With `strategy="forward-mode"`, which needs
    `vectorize=True`, it is computed column by column, by forward mode.

    >>> import jitgrad
    >>> jitgrad.autograd.functional.jacobian(lambda x: x * x, jitgrad.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    check_strategy(strategy, create_graph, strict)
    if strategy == "forward-mode":
        return forward_jacobian(func, inputs, vectorize)
    with enable_grad():
        several_in, given = as_tensors(inputs, "inputs", "jacobian")
        given = fresh_inputs(given, create_graph, True)
        several_out, outputs = as_tensors(func(*given), _OUTPUTS, "jacobian")
        check_depends(outputs, "outputs", strict)
        if vectorize and strict:
            raise RuntimeError("torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. Please either "
                               "set `strict=False` or `vectorize=False`.")  # fmt: skip
        together = outputs if vectorize else None
        result = tuple(rows_of(x, index, given, create_graph, strict, together) for index, x in enumerate(outputs))
    result = without_history(result, create_graph)
    return unpacked(tuple(unpacked(row, several_in) for row in result), several_out)


def rows_of(output: Any, index: int, inputs: Tensors, create_graph: bool, strict: bool, together: Tensors | None) -> Tensors:
    """The Jacobians of one output with respect to each input."""
    columns: list[list[Any]] = [[] for _ in inputs]
    starts = (output,) if together is None else together
    for place in range(output.numel()):
        seeds = [zeros_like(x) for x in starts]
        seeds[0 if together is None else index].array.reshape(-1)[place] = 1
        row = gradients(starts, inputs, seeds, create_graph, True)
        for which, (part, x) in enumerate(zip(row, inputs, strict=True)):
            if part is None and strict:
                raise RuntimeError(f"Output {index} of the user-provided function is independent of input {which}. "
                                   "This is not allowed in strict mode.")  # fmt: skip
            if part is not None and strict and create_graph and not part.requires_grad:
                raise RuntimeError(f"The jacobian of the user-provided function is independent of input {index}. This is not allowed in strict mode "
                                   "when create_graph=True.")  # fmt: skip
            columns[which].append(zeros_like(x) if part is None else part)
    shapes = [(*output.meta.shape, *x.meta.shape) for x in inputs]
    return tuple(joining.stack(column).reshape(shape) if column else x.new_zeros(shape)
                 for column, shape, x in zip(columns, shapes, inputs, strict=True))  # fmt: skip


def single_output(value: Any, name: str, strict: bool) -> Any:
    """The output of a function that must return one tensor of one element."""
    several, outputs = as_tensors(value, _OUTPUTS, name)
    check_depends(outputs, "outputs", strict)
    if several:
        raise RuntimeError(f"The function given to {name} should return a single Tensor")
    if outputs[0].numel() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {name} should contain a single element")
    return outputs[0]


def hessian(func: Function, inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
            outer_jacobian_strategy: str = "reverse-mode") -> Any:  # fmt: skip
    """The second derivatives of a function that returns one element: for an input of shape A a tensor of shape A + A.

    For several inputs a tuple of tuples: entry [i][j] by input i and input j.
    """
    several, given = as_tensors(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def gradient(*args: Any) -> Tensors:
        if outer_jacobian_strategy == "forward-mode":
            args = tuple(x.requires_grad_() for x in args)
        found: Tensors = jacobian(lambda *xs: single_output(func(*xs), "hessian", strict).squeeze(), args, create_graph=True)
        check_depends(found, "jacobian", strict)
        return found

    result = jacobian(gradient, given, create_graph=create_graph, strict=strict, vectorize=vectorize, strategy=outer_jacobian_strategy)
    return unpacked(tuple(unpacked(row, several) for row in result), several)


def vhp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """The output of a function that returns one element, and the product of the vector `v`, shaped like the inputs, with its Hessian."""
    with enable_grad():
        several, given = as_tensors(inputs, "inputs", "vhp")
        given = fresh_inputs(given, create_graph, True)
        vector = vector_for(v, "vhp", given, several, create_graph, _ONE_INPUT)
        output = single_output(func(*given), "vhp", strict)
        first = gradients((output,), given, create_graph=True)
        check_depends(first, "jacobian", strict)
    with set_grad_enabled(create_graph or modes.grad_enabled()):
        product = filled(gradients(first, given, vector, create_graph), given, strict, create_graph, "double_back")
    return without_history(output, create_graph), unpacked(without_history(product, create_graph), several)


def hvp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """The output of a function that returns one element, and the product of its Hessian with the vector `v`, shaped like the inputs.

    Equal to `vhp`, which is faster, where the second derivatives are continuous.
    """
    with enable_grad():
        several, given = as_tensors(inputs, "inputs", "hvp")
        given = fresh_inputs(given, create_graph, True)
        vector = vector_for(v, "hvp", given, several, create_graph, _ONE_INPUT)
        output = single_output(func(*given), "hvp", strict)
        first = gradients((output,), given, create_graph=True)
        check_depends(first, "jacobian", strict)
        seeds = tuple(zeros_like(x, True) for x in given)  # their value does not matter
        second = gradients(first, given, seeds, True)
        check_depends(first, "hessian", strict)
    with set_grad_enabled(create_graph or modes.grad_enabled()):
        product = filled(gradients(second, seeds, vector, create_graph), given, strict, create_graph, "double_back_trick")
    return without_history(output, create_graph), unpacked(without_history(product, create_graph), several)


def _construct_standard_basis_for(tensors: Sequence[Any], tensor_numels: Sequence[int]) -> tuple[Any, ...]:
    """The rows of an identity matrix of as many rows as all tensors have elements, cut along the columns into a matrix for each.

    `tensor_numels`: the numbers of elements. AssertionError where the two are not as many, or none.
    """
    if len(tensors) != len(tensor_numels):
        raise AssertionError(f"Expected tensors and tensor_numels to have the same length, but got {len(tensors)} and {len(tensor_numels)}")
    if not tensors:
        raise AssertionError("Expected at least one tensor")
    rows, found, start = sum(tensor_numels), [], 0
    for tensor, count in zip(tensors, tensor_numels, strict=True):
        chunk = np.zeros((rows, count), tensor.array.dtype)
        chunk[start : start + count] = np.eye(count)
        found.append(wrap(chunk))
        start += count
    return tuple(found)
