"""Transforms by reverse mode: `grad`, `grad_and_value`, `vjp`, `jacrev`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .._engine import modes
from .._ops import joining
from .._tensor import Tensor
from .._tensor.base import wrap
from ..autograd.grad_mode import enable_grad
from ._arguments import Argnums, check_outputs, chosen, replaced, with_aux
from ._tracking import Tracking
from ._trees import Structure, flatten, mapped, unflatten

Function = Callable[..., Any]


def followed(tracking: Tracking, args: tuple[Any, ...], argnums: Any) -> tuple[tuple[Any, ...], list[Any], Structure]:
    """The arguments with views for those that are differentiated; the views, flat, and their structure."""
    places = chosen(args, argnums)
    new = tuple(mapped(tracking.follow, args[place]) for place in places)
    leaves, structure = flatten(new[0] if isinstance(argnums, int) else new)
    return replaced(args, new, places), leaves, structure


def grad_and_value(func: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """A function that returns the gradient of `func`, which returns a tensor without dimensions, and its value.

    The gradient has the structure of the argument at `argnums`, a tuple of such for a tuple of places. With `has_aux` the function returns a
    pair, and the transformed one (gradient, (value, second)). RuntimeError where `func` returns anything else.

    >>> import jitgrad
    >>> jitgrad.func.grad_and_value(lambda x: x**3)(jitgrad.tensor(2.0))
    (tensor(12.), tensor(8.))
    """

    @functools.wraps(func)
    def transformed(*args: Any, **named: Any) -> Any:
        tracking = Tracking()
        aux = None
        with enable_grad():
            given, leaves, structure = followed(tracking, args, argnums)
            output = func(*given, **named)
            if has_aux:
                output, aux = with_aux(output, "grad_and_value(f)(*args)")
            if not isinstance(output, Tensor):
                raise RuntimeError(f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(output)}")
            if output.ndim:
                raise RuntimeError(f"grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with {output.ndim} dims. "
                                   "Maybe you wanted to use the vjp or jacrev APIs instead?")  # fmt: skip
            found = unflatten(tracking.gradients([output], leaves, None), structure)
        output = tracking.release(output)
        return (found, (output, mapped(tracking.release, aux))) if has_aux else (found, output)

    return transformed


def grad(func: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """A function that returns the gradient of `func`, which returns a tensor without dimensions; see `grad_and_value`.

    With `has_aux` it returns (gradient, second of what `func` returns).

    >>> import jitgrad
    >>> jitgrad.func.grad(jitgrad.func.grad(lambda x: x**3))(jitgrad.tensor(2.0))
    tensor(12.)
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def transformed(*args: Any, **named: Any) -> Any:
        found, value = both(*args, **named)
        return (found, value[1]) if has_aux else found

    return transformed


class Pullback:
    """What `vjp` returns: called with cotangents of the outputs it gives those of the inputs, any number of times."""

    def __init__(self, tracking: Tracking, outputs: list[Any], inputs: list[Any], shape: Structure, structure: Structure) -> None:
        self.tracking, self.outputs, self.inputs = tracking, outputs, inputs
        self.shape, self.structure = shape, structure

    def __call__(self, cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        """Cotangents of the structure of the output. RuntimeError for another structure."""
        leaves, shape = flatten(cotangents)
        if shape != self.shape:
            raise RuntimeError("Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function. "
                               f"cotangents: {shape}, primal output: {self.shape}")  # fmt: skip
        self.tracking.keep = modes.grad_enabled()
        found = self.tracking.gradients(self.outputs, self.inputs, leaves, retain_graph, create_graph)
        return unflatten(found, self.structure)


def vjp(func: Function, *primals: Any, has_aux: bool = False) -> Any:
    """The output of `func(*primals)`, and a function from cotangents of it to a tuple of those of the primals.

    With `has_aux`, `func` returns a pair, whose second part is returned third. RuntimeError for outputs that are not floating point.

    >>> import jitgrad
    >>> output, pullback = jitgrad.func.vjp(jitgrad.sin, jitgrad.tensor(0.0))
    >>> pullback(jitgrad.tensor(2.0))
    (tensor(2.),)
    """
    output, pullback, aux = pulled(func, primals, tuple(range(len(primals))), has_aux)
    return (output, pullback, aux) if has_aux else (output, pullback)


def pulled(func: Function, args: tuple[Any, ...], argnums: Any, has_aux: bool) -> tuple[Any, Pullback, Any]:
    """Output, pullback and auxiliary value."""
    tracking = Tracking()
    name, aux = "vjp(f, *primals)", None
    with enable_grad():
        given, leaves, structure = followed(tracking, args, argnums)
        output = func(*given)
        if has_aux:
            output, aux = with_aux(output, name)
        outputs, shape = flatten(output)
        check_outputs(outputs, name)
        for x in outputs:
            if not x.meta.kind.is_floating_point:
                raise RuntimeError(f"vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype {x.dtype}")
    pullback = Pullback(tracking, outputs, leaves, shape, structure)
    return mapped(tracking.release, output), pullback, mapped(tracking.release, aux)


def jacrev(func: Function, argnums: Argnums = 0, *, has_aux: bool = False, chunk_size: int | None = None) -> Function:
    """A function that returns the Jacobian of `func`, computed row by row by reverse mode.

    For an output of shape A and an input of shape B it has shape A + B; it has the structure of the output, and in it that of the argument.
    With `has_aux` it returns (Jacobian, second of what `func` returns). `chunk_size` is accepted as torch does and changes nothing.

    >>> import jitgrad
    >>> jitgrad.func.jacrev(lambda x: x**2)(jitgrad.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def transformed(*args: Any) -> Any:
        _, pullback, aux = pulled(func, args, argnums, has_aux)
        done = []
        for which, output in enumerate(pullback.outputs):
            columns: list[list[Any]] = [[] for _ in pullback.inputs]
            for place in range(output.meta.numel):
                seeds = [wrap(np.zeros(x.meta.shape, x.meta.dtype)) for x in pullback.outputs]
                seeds[which].array.reshape(-1)[place] = 1
                for column, part in zip(columns, flatten(pullback(unflatten(seeds, pullback.shape)))[0], strict=True):
                    column.append(part)
            parts = [joined(column, (*output.meta.shape, *x.meta.shape), x, 0) for column, x in zip(columns, pullback.inputs, strict=True)]
            done.append(unflatten(parts, pullback.structure))
        found = unflatten(done, pullback.shape)
        return (found, aux) if has_aux else found

    return transformed


def joined(parts: list[Any], shape: tuple[int, ...], like: Any, dim: int) -> Any:
    """Rows or columns put together; zeros where there are none."""
    return joining.stack(parts, dim).reshape(shape) if parts else like.new_zeros(shape)
