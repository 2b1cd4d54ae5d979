"""What `opcheck` does with a function: run it, take gradients, compare with slopes, shrink its arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..._tensor.backward import grad
from ..._tensor.base import TensorBase, wrap

Array = np.ndarray[Any, Any]


class Failure(Exception):
    """A property does not hold; the words say how."""


class Refusal(Exception):
    """The function refuses, in words of its own, what a property asks about."""


class Case:
    """A function with arguments: `args` hold NumPy arrays in place of tensors, `places` says which; `floating` which take gradients."""

    def __init__(self, function: Callable[..., Any], args: Sequence[Any]) -> None:
        self.function = function
        self.places = tuple(place for place, x in enumerate(args) if isinstance(x, TensorBase))
        self.args = [np.array(x.array, order="C") if isinstance(x, TensorBase) else x for x in args]
        wanted = [place for place in self.places if args[place].requires_grad]
        self.floating = tuple(wanted or (place for place in self.places if args[place].meta.kind.is_floating_point))

    def having(self, args: Sequence[Any]) -> Case:
        """The same function with other arrays."""
        other = Case.__new__(Case)
        other.function, other.places, other.floating, other.args = self.function, self.places, self.floating, list(args)
        return other

    def cast(self, kind: Any) -> Case:
        """With floating arrays of another dtype."""
        return self.having(
            [x.astype(kind) if place in self.places and x.dtype.kind == "f" else x for place, x in enumerate(self.args)]
        )

    @property
    def whole(self) -> bool:
        """Whether there is an integer array among the arguments: its values may be positions in the others."""
        return any(isinstance(x, np.ndarray) and x.dtype.kind in "iu" for x in self.args)

    @property
    def size(self) -> int:
        """Elements of all tensors."""
        return sum(self.args[place].size for place in self.places)

    def __str__(self) -> str:
        return ", ".join(f"{describe(x)}" for x in self.args)

    # ---- runs
    def tensors(self, arrays: Sequence[Any] | None = None, leaves: bool = True) -> list[Any]:
        """Arguments for a call: tensors around the arrays as they are laid out."""
        given = list(self.args if arrays is None else arrays)
        for place in self.places:
            given[place] = wrap(given[place])
            if leaves and place in self.floating:
                given[place].requires_grad_()
        return given

    def outputs(self, given: Sequence[Any]) -> list[Any]:
        """The tensors that a call returns."""
        result = self.function(*given)
        return [x for x in (result if isinstance(result, (tuple, list)) else (result,)) if isinstance(x, TensorBase)]

    def values(self, arrays: Sequence[Any] | None = None) -> list[Array]:
        """Copies of the outputs."""
        return [np.array(x.array) for x in self.outputs(self.tensors(arrays))]

    def gradients(
        self, arrays: Sequence[Any] | None = None, shape: Callable[[Any, Any], Any] | None = None, **options: Any
    ) -> list[Array]:
        """Copies of the gradients of a weighted sum of the outputs. `shape` makes a number of an output and its weights."""
        given = self.tensors(arrays)
        found = self.take(self.loss(self.outputs(given), shape), given, **options)
        return [np.array(x.array) for x in found]

    def loss(self, outs: Sequence[Any], shape: Callable[[Any, Any], Any] | None = None) -> Any:
        """A weighted sum of the floating outputs that have a history; None where there is none."""
        total = None
        for index, out in enumerate(outs):
            if out.meta.kind.is_floating_point and out.requires_grad:
                weights = wrap(weights_for(out.meta.shape, index).astype(out.meta.dtype))
                part = (out * weights).sum() if shape is None else shape(out, weights)
                total = part if total is None else total + part
        return total

    def take(self, loss: Any, given: Sequence[Any], **options: Any) -> list[Any]:
        """Gradients by the floating arguments; zeros where there is none."""
        leaves = [given[place] for place in self.floating]
        zeros = [wrap(np.zeros(x.meta.shape, x.meta.dtype)) for x in leaves]
        if loss is None:
            return zeros
        found = grad(loss, leaves, allow_unused=True, **options)
        return [zero if one is None else one for one, zero in zip(found, zeros, strict=True)]


def describe(x: Any) -> str:
    """An argument in a report."""
    if isinstance(x, np.ndarray):
        text = np.array2string(x, precision=4, separator=", ").replace("\n", "")
        return f"{x.dtype}{list(x.shape)}" + (f" {text}" if x.size <= 8 else "")
    return repr(x)


def weights_for(shape: tuple[int, ...], index: int) -> Array:
    """Numbers between 0.5 and 1.5, none like the other, the same every time."""
    count = int(np.prod(shape))
    found: Array = 0.5 + np.modf((np.arange(1, count + 1) + 7 * index) * 0.6180339887498949)[0]
    return found.reshape(shape)


def close(found: Sequence[Array], wanted: Sequence[Array], rtol: float = 1e-9) -> bool:
    """Whether arrays agree, NaN with NaN."""
    return len(found) == len(wanted) and all(
        a.shape == b.shape
        and np.allclose(np.asarray(a, float), np.asarray(b, float), rtol=rtol, atol=rtol, equal_nan=True)
        for a, b in zip(found, wanted, strict=True)
    )


def difference(found: Sequence[Array], wanted: Sequence[Array]) -> str:
    """Where two lists of arrays differ first."""
    for a, b in zip(found, wanted, strict=False):
        if a.shape != b.shape:
            return f"shape {list(a.shape)} instead of {list(b.shape)}"
        if not np.allclose(np.asarray(a, float), np.asarray(b, float), rtol=1e-9, atol=1e-9, equal_nan=True):
            return f"{np.array2string(a.ravel()[:6], precision=6)} instead of {np.array2string(b.ravel()[:6], precision=6)}"
    return f"{len(found)} arrays instead of {len(wanted)}"


def slopes(function: Callable[[Array], float], at: Array, limit: int = 64) -> Iterator[tuple[int, float, float]]:
    """For elements of an array (a sample of a large one) the slopes of a number to the left and to the right."""
    count = at.size
    picked = range(count) if count <= limit else np.unique(np.linspace(0, count - 1, limit).astype(int))
    here = function(at)
    for k in picked:
        yield int(k), *two_slopes(function, at, int(k), here, 1e-6)


def two_slopes(function: Callable[[Array], float], at: Array, k: int, here: float, step: float) -> tuple[float, float]:
    """The slopes of a number to the left and to the right, by one element."""
    moved = at.copy()
    step *= max(1.0, abs(float(at.flat[k])))
    moved.flat[k] = at.flat[k] + step
    right = (function(moved) - here) / step
    moved.flat[k] = at.flat[k] - step
    return (here - function(moved)) / step, right


def jumps(function: Callable[[Array], float], at: Array, k: int, slope: float) -> bool:
    """Whether a number jumps, so that its slopes, which were up to `slope`, grow as the step gets smaller."""
    return max(map(abs, two_slopes(function, at, k, function(at), 1e-6 / 16))) >= 4 * slope + 1.0


def smaller(case: Case) -> Iterator[Case]:
    """Cases with shorter axes, the smallest first: every axis of one length is cut alike."""
    lengths = sorted({n for place in case.places for n in case.args[place].shape if n > 1})
    for size in (1, 2, 3, 4, 6, 8):
        for length in lengths:
            if size < length:
                args = [cut(x, length, size) if place in case.places else x for place, x in enumerate(case.args)]
                yield case.having(args)


def cut(array: Array, length: int, size: int) -> Array:
    """The leading part of all axes of a length."""
    return np.ascontiguousarray(array[tuple(slice(size) if n == length else slice(None) for n in array.shape)]).reshape(
        tuple(size if n == length else n for n in array.shape)
    )
