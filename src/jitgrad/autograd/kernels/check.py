"""`f.check()`: the derivatives of an elementwise function against finite differences, at the points where derivatives go wrong."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from ..._engine import modes
from ..._tensor.backward import grad
from ..._tensor.base import TensorBase, wrap

Array = np.ndarray[Any, Any]
POINTS: Final = (-1000.0, -30.0, -2.0, -1.0, -0.5, -1e-3, 0.0, 1e-3, 0.5, 1.0, 2.0, 3.5, 30.0, 1000.0)
_MOST: Final = 4000  # points in all


def grid(count: int, points: Sequence[float] | None) -> list[Array]:
    """Edge values of so many operands in all combinations, ties among them; a sample where there are too many."""
    values = POINTS if points is None else tuple(points)
    if len(values) ** count <= _MOST:
        rows = list(itertools.product(values, repeat=count))
    else:
        rng = random.Random(0)
        rows = [tuple(rng.choice(values) for _ in range(count)) for _ in range(_MOST)]
        rows += [(value,) * count for value in values]
    return [np.array(column) for column in zip(*rows, strict=True)]


def check_edges(function: Any, ops: Sequence[Any], statics: tuple[Any, ...], points: Sequence[float] | None) -> bool:
    """Compare first and second derivatives with slopes. AssertionError with the point, the operand and the figures."""
    operands = [name for name in ops[0].inputs if name not in ops[0].conditions]
    conditions = [name in ops[0].conditions for name in ops[0].inputs]
    columns = grid(len(ops[0].inputs), points)
    arrays = [column > 0 if condition else column for column, condition in zip(columns, conditions, strict=True)]
    places = [place for place, condition in enumerate(conditions) if not condition]
    was = modes.set_grad(True)
    try:
        for op in ops:
            if op.map("t" * len(op.inputs), (), statics[len(op.params) :]).is_condition:
                continue

            def value(inputs: list[Any], op: Any = op) -> Any:
                return op(*inputs, **dict(zip(op.statics, statics, strict=True)))

            for place, name in zip(places, operands, strict=True):
                first = derivative(value, place)
                compare(f"{function.name}: d/d{name}", value, first, arrays, place, ops[0].inputs)
                for other, second in zip(places, operands, strict=True):
                    compare(
                        f"{function.name}: d/d{second} of d/d{name}",
                        first,
                        derivative(first, other),
                        arrays,
                        other,
                        ops[0].inputs,
                    )
    finally:
        modes.set_grad(was)
    return True


def derivative(function: Callable[[list[Any]], Any], place: int) -> Callable[[list[Any]], Any]:
    """The gradient of the sum by one operand, recorded."""

    def derived(inputs: list[Any]) -> Any:
        result = function(inputs)
        zero = wrap(np.zeros(inputs[place].meta.shape, inputs[place].meta.dtype))
        if result.fn is None:
            return zero
        (found,) = grad(result.sum(), inputs[place], create_graph=True, allow_unused=True)
        return zero if found is None else found

    return derived


def run(function: Callable[[list[Any]], Any], arrays: Sequence[Array], kind: Any = np.float64) -> Array:
    """Values on fresh leaves of a dtype."""
    tensors = [wrap(array.copy() if array.dtype == np.bool_ else array.astype(kind)) for array in arrays]
    for tensor in tensors:
        if tensor.meta.kind.is_floating_point:
            tensor.requires_grad_()
    result: TensorBase = function(tensors)
    return np.array(result.array, np.float64)


def compare(
    label: str,
    function: Callable[[list[Any]], Any],
    derived: Callable[[list[Any]], Any],
    arrays: list[Array],
    place: int,
    names: Sequence[str],
) -> None:
    """Derivative and slopes to both sides. Where the slopes disagree there is a kink, and anything between them will do; where the function
    jumps or is not finite nothing is asked.
    """
    with np.errstate(all="ignore"):
        here, found = run(function, arrays), run(derived, arrays)
        step = 1e-6 * np.maximum(1.0, np.abs(arrays[place]))
        left, right = slopes(function, arrays, place, here, step)
        low, high = np.minimum(left, right), np.maximum(left, right)
        size = np.maximum(np.abs(low), np.abs(high))
        slack = 1e-4 * size + 1e-5 + 16 * np.finfo(float).eps * np.abs(here) / step
        wrong = (
            np.isfinite(low)
            & np.isfinite(high)
            & np.isfinite(here)
            & ~((found >= low - slack) & (found <= high + slack))
        )
        if wrong.any():  # at a jump slopes grow as the step gets smaller
            wrong &= np.max(np.abs(slopes(function, arrays, place, here, step / 16)), 0) < 4 * size + 1.0
        single = run(derived, arrays, np.float32)
        small = np.isfinite(found) & (np.abs(found) < 1e30) & (np.abs(here) < 1e30)
    report(
        label,
        wrong,
        arrays,
        names,
        lambda k: f"is {found[k]:.6g}, but the slopes to the left and right are {left[k]:.6g} and {right[k]:.6g}",
    )
    report(
        label, small & np.isnan(single), arrays, names, lambda k: f"is nan in float32, but {found[k]:.6g} in float64"
    )


def slopes(
    function: Callable[[list[Any]], Any], arrays: list[Array], place: int, here: Array, step: Array
) -> list[Array]:
    """The slopes to the left and to the right, by one operand."""
    at = arrays[place]
    sides = [run(function, [*arrays[:place], at + way * step, *arrays[place + 1 :]]) for way in (-1.0, 1.0)]
    return [(here - sides[0]) / step, (sides[1] - here) / step]


def report(label: str, wrong: Array, arrays: list[Array], names: Sequence[str], words: Callable[[int], str]) -> None:
    """Raise for the first point where something is wrong."""
    if wrong.any():
        k = int(np.argmax(wrong))
        point = ", ".join(f"{name}={array[k].item()!r}" for name, array in zip(names, arrays, strict=True))
        raise AssertionError(f"{label} at {point} {words(k)}")
