"""Jacobians by finite differences and by backward, for `gradcheck`.

A Jacobian has a row per element of the input and a column per element of the output, as in torch's reports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from .._tensor.backward import grad
from .._tensor.base import TensorBase, wrap

Array = np.ndarray[Any, Any]
Function = Callable[..., Any]


class GradcheckError(RuntimeError):
    """Raised by `gradcheck` and `gradgradcheck` when gradients are wrong."""


_NONDETERMINISTIC = (
    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives different values, although analytical "
    "gradient matches numerical gradient.The tolerance for nondeterminism was {}.\n\nNOTE: If the op is not deterministic by design, call "
    "gradcheck or gradgradcheck with `nondet_tol=<tol>` as a keyword argument.\n"
)


def as_tuple(value: Any) -> tuple[Any, ...]:
    """A list or a single value as a tuple."""
    return value if isinstance(value, tuple) else tuple(value) if isinstance(value, list) else (value,)


def tensors_in(values: Any, differentiable: bool = False) -> Iterator[Any]:
    """The tensors in nested sequences, on request only those that take a gradient."""
    if isinstance(values, TensorBase):
        if values.requires_grad or not differentiable:
            yield values
    elif isinstance(values, Iterable) and not isinstance(values, str):
        for value in values:
            yield from tensors_in(value, differentiable)


def is_float(value: Any) -> bool:
    """Whether it is a tensor of a floating-point dtype."""
    return isinstance(value, TensorBase) and value.dtype.is_floating_point


# ---- finite differences
def check_same(before: Any, after: Any, where: str) -> None:
    """AssertionError where the shape or dtype of an output depends on the values of the inputs."""
    for what in ("shape", "dtype"):
        one, two = getattr(before, what), getattr(after, what)
        if one != two:
            raise AssertionError(f"Expected `func` to return outputs with the same {what} when inputs are perturbed {where}, but got:"
                                 f" {what}s {one} and {two}.")  # fmt: skip


def difference(function: Function, array: Array, step: Array, length: float, where: str) -> list[Array]:
    """Central differences of all outputs while `array` moves by `step` (an array or a number), which has length `length`."""
    held = array.copy()
    try:
        array[...] = held - step
        below = [(x, x.array.copy()) for x in as_tuple(function())]  # copies, for an output may share the input's memory
        array[...] = held + step
        above = [(x, x.array.copy()) for x in as_tuple(function())]
    finally:
        array[...] = held
    done = []
    for (x, a), (y, b) in zip(below, above, strict=True):
        check_same(x, y, where)
        done.append(((b - a) / (2 * length)).reshape(-1) if is_float(x) else np.zeros(a.size))
    return done


def numerical_jacobian(function: Function, inputs: Sequence[Any], target: Any, outputs: Sequence[Any], eps: float) -> tuple[Any, ...]:
    """The Jacobians of the floating-point outputs with respect to one tensor, which is perturbed in place, element by element."""
    assert target.requires_grad, "Expected input to have requires_grad=True"
    places = [k for k, x in enumerate(outputs) if is_float(x)]
    found = [np.zeros((target.array.size, outputs[k].array.size), outputs[k].array.dtype) for k in places]
    for row, index in enumerate(np.ndindex(target.array.shape)):
        entry = target.array[(*index, None)]  # an array of one element over the same memory
        columns = difference(lambda: function(*inputs), entry, np.asarray(eps, entry.dtype), eps, f"on index {index} by {eps}")
        for jacobian, k in zip(found, places, strict=True):
            jacobian[row] = columns[k]
    return tuple(wrap(jacobian) for jacobian in found)


def numerical_jacobians(function: Function, inputs: Sequence[Any], outputs: Sequence[Any], target: Any = None,
                        eps: float = 1e-3) -> list[tuple[Any, ...]]:  # fmt: skip
    """For each differentiable target (by default input) the Jacobians of all floating-point outputs."""
    return [numerical_jacobian(function, inputs, x, outputs, eps) for x in tensors_in(inputs if target is None else target, True)]


def directional(function: Function, inputs: Sequence[Any], target: Any, direction: Array, eps: float) -> list[Array]:
    """The derivative of all outputs as one input moves along a direction."""
    step = (direction * eps).reshape(target.array.shape).astype(target.array.dtype)
    return difference(lambda: function(*inputs), target.array, step, eps, f"by {eps}")


# ---- backward
def pull(output: Any, inputs: Sequence[Any], seed: Array) -> tuple[Any, ...]:
    """The gradients of an output from a given one; None for inputs that it does not depend on."""
    found: tuple[Any, ...] = grad(output, inputs, wrap(seed), retain_graph=True, allow_unused=True)
    return found


def unit_seeds(output: Any) -> Iterator[Array]:
    """Gradients that are 1 in one place."""
    for place in range(output.array.size):
        seed = np.zeros(output.array.shape, output.array.dtype)
        seed.reshape(-1)[place] = 1
        yield seed


def rows(output: Any, inputs: Sequence[Any], seeds: Iterable[Array]) -> tuple[list[Array], bool, bool]:
    """The gradients for each seed as columns, and whether all had the inputs' shapes and dtypes."""
    columns: list[list[Array]] = [[] for _ in inputs]
    sizes_ok = types_ok = True
    for seed in seeds:
        for x, part, column in zip(inputs, pull(output, inputs, seed), columns, strict=True):
            if part is None:
                column.append(np.zeros(x.array.size, x.array.dtype))
                continue
            if part.shape != x.shape:
                sizes_ok = False
            elif part.dtype != x.dtype:
                types_ok = False
            column.append(part.array.reshape(-1).copy())
    found = [np.stack(column, 1) if column else np.zeros((x.array.size, 0), x.array.dtype) for x, column in zip(inputs, columns, strict=True)]
    return found, sizes_ok, types_ok


def analytical_jacobians(inputs: Any, output: Any, nondet_tol: float, check_dtypes: bool, seed: Array | None = None) -> list[Any]:
    """The Jacobians of an output with respect to all differentiable inputs, or their product with one seed.

    Everything is computed twice. GradcheckError where the two differ, or a gradient has the wrong shape or dtype.
    """
    found, reentrant, sizes_ok, types_ok = analyse(inputs, output, nondet_tol, seed)
    if not types_ok and check_dtypes:
        raise GradcheckError("Gradient has dtype mismatch")
    if not sizes_ok:
        raise GradcheckError("Analytical gradient has incorrect size")
    if not reentrant:
        raise GradcheckError(_NONDETERMINISTIC.format(nondet_tol))
    return found


def analyse(inputs: Any, output: Any, nondet_tol: float, seed: Array | None = None) -> tuple[list[Any], bool, bool, bool]:
    """The same with the verdicts: Jacobians, the same both times, right shapes, right dtypes."""
    targets = list(tensors_in(inputs, True))
    first, sizes_ok, types_ok = rows(output, targets, unit_seeds(output) if seed is None else [seed])
    second, _, _ = rows(output, targets, unit_seeds(output) if seed is None else [seed])
    reentrant = all(a.size == 0 or not np.abs(a - b).max() > nondet_tol for a, b in zip(first, second, strict=True))
    return [wrap(jacobian) for jacobian in first], reentrant, sizes_ok, types_ok


def differentiable(outputs: Any) -> tuple[Any, ...]:
    """The outputs that take a gradient."""
    return tuple(x for x in as_tuple(outputs) if x.requires_grad)
