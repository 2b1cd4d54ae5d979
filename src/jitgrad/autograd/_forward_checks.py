"""What `gradcheck` does in forward mode: Jacobians column by column, inputs without tangent, tangents sent together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .._tensor.base import TensorBase, wrap
from . import forward_ad
from ._jacobians import GradcheckError, as_tuple, is_float

Array = np.ndarray[Any, Any]
Inputs = tuple[Any, ...]
Function = Callable[..., Any]
_BATCHED = "gradcheck failed while testing batched gradient computation with forward-mode AD."


def is_target(x: Any) -> bool:
    """Whether gradients with respect to it are checked."""
    return isinstance(x, TensorBase) and x.requires_grad


def zeros(x: Any) -> Any:
    """Zeros of a tensor's shape and dtype."""
    return wrap(np.zeros(x.array.shape, x.array.dtype))


def duals_of(inputs: Inputs) -> tuple[list[Any], list[Any]]:
    """Inside a level: the inputs without history, those that are checked with tangents of zero; and these tangents, to be written to."""
    given = [forward_ad.make_dual(x.detach(), zeros(x)) if is_target(x) else x for x in inputs]
    return given, [forward_ad.unpack_dual(x).tangent for x, old in zip(given, inputs, strict=True) if is_target(old)]


def tangents_of(outputs: Any) -> list[Array]:
    """The tangents of the floating-point outputs, flat, zeros where there is none."""
    found = []
    for x in as_tuple(outputs):
        if is_float(x):
            tangent = forward_ad.unpack_dual(x).tangent
            found.append(np.zeros(x.array.size, x.array.dtype) if tangent is None else tangent.array.reshape(-1).copy())
    return found


def unit_vectors(size: int) -> Iterator[Array]:
    """The rows of the identity."""
    yield from np.eye(size)


def pushed_jacobians(func: Function, inputs: Inputs, outputs: Inputs, directions: Sequence[Array] | None = None) -> list[list[Array]]:
    """For each input that is checked and each floating-point output the Jacobian, a row per element of the input (or one for a direction)."""
    found: list[list[Array]] = []
    with forward_ad.dual_level():
        given, tangents = duals_of(inputs)
        for place, tangent in enumerate(tangents):
            steps = unit_vectors(tangent.array.size) if directions is None else iter([directions[place]])
            rows = []
            for step in steps:
                tangent.array[...] = step.reshape(tangent.array.shape)
                tangent._bump()
                rows.append(tangents_of(func(*given)))
            tangent.array[...] = 0
            tangent._bump()
            floats = [x for x in outputs if is_float(x)]
            found.append([np.stack([row[k] for row in rows]) if rows else np.zeros((0, x.array.size)) for k, x in enumerate(floats)])
    return found


def check_missing(func: Function, inputs: Inputs, directions: Sequence[Array]) -> None:
    """A tangent of zeros must do the same as none."""
    with forward_ad.dual_level():
        given, tangents = duals_of(inputs)
        for tangent, direction in zip(tangents, directions, strict=True):
            tangent.array[...] = direction.reshape(tangent.array.shape)
        for place, x in enumerate(inputs):
            if not is_target(x):
                continue
            held = given[place]
            given[place] = forward_ad.make_dual(x.detach(), zeros(x))
            first = as_tuple(func(*given))
            given[place] = x.detach()
            second = as_tuple(func(*given))
            given[place] = held
            pairs = [(a, b) for a, b in zip(first, second, strict=True) if is_float(a)]
            for index, (a, b) in enumerate(pairs):
                one, two = forward_ad.unpack_dual(a).tangent, forward_ad.unpack_dual(b).tangent
                if one is not None and two is not None and not np.allclose(one.array, two.array):
                    raise GradcheckError("Mismatch in tangent values for output with index: ", index, " when input: ", x,
                                         " has an undefined tangent value. ", " Got: ", one, " but expected: ", two)  # fmt: skip


def check_batched(func: Function, inputs: Inputs) -> None:
    """Tangents sent again must give the same."""
    random = np.random.default_rng(0)
    for place, x in enumerate(inputs):
        if not is_target(x):
            continue

        def push(tangent: Array, place: int = place) -> list[Array]:
            with forward_ad.dual_level():
                given: list[Any] = [y.detach() if hasattr(y, "detach") else y for y in inputs]
                given[place] = forward_ad.make_dual(given[place], wrap(tangent.copy()))
                return tangents_of(func(*given))

        steps = random.standard_normal((2, *x.array.shape)).astype(x.array.dtype)
        alone = [push(step) for step in steps]
        for index, (one, again) in enumerate(zip(alone[-1], push(steps[-1]), strict=True)):
            if not np.allclose(one, again):
                raise GradcheckError(f"For output {index} and input {index}:\n\n{_BATCHED}")


__all__ = ["check_batched", "check_missing", "is_target", "pushed_jacobians"]
