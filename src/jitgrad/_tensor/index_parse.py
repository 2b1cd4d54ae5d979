"""From `x[index]` to a plan on plain arrays: a view by basic indices first, then one gather by index arrays.

Order of work: `as_tuple` (what counts as several indices), `as_item` (each one to an int, slice, None, `...`, bool or
array), `_Walk` (dimension by dimension: the view and its steps), `_resolve` (masks to positions, bounds, broadcasting).

Integers are applied as views before index arrays are looked at, so an integer between two arrays does not keep them
apart, as in torch and unlike NumPy.
"""

from __future__ import annotations

import operator
from typing import Any, Final, NamedTuple

import numpy as np

from .._core.errors import bracketed
from .._core.shapes import broadcast_shapes
from .index_items import Array, as_item, as_tuple, tensor_array

Shape = tuple[int, ...]

# torch's names of the nodes that record each kind of step.
NODE_NAMES: Final = {
    "select": "SelectBackward0",
    "slice": "SliceBackward0",
    "unsqueeze": "UnsqueezeBackward0",
    "alias": "AliasBackward0",
    "index": "IndexBackward0",
}
_FULL: Final = slice(None)
_LONG_MAX: Final = 2**63 - 1


class Step(NamedTuple):
    """One view op of the chain an index stands for.

    kind: 'select' (start is the index), 'slice' (start, stop and step as used, 0 <= start <= stop <= size),
    'unsqueeze' or 'alias'. dim: the dimension of the tensor this step is applied to.
    """

    kind: str
    dim: int
    start: int = 0
    stop: int = 0
    step: int = 1


class Plan(NamedTuple):
    """How to read or write `x[index]`.

    view: basic NumPy indices; `array[view]` is a view, an array even if 0-dim, of shape `view_shape`.
    steps: the same view as a chain of torch's ops; one 'alias' if it changes nothing and nothing is gathered.
    advanced: one entry for each dimension of the view: None, or an int64 array within bounds; () if nothing is
        gathered. An array may be the caller's own: copy it to keep it.
    shape: of the whole result.
    """

    view: tuple[Any, ...]
    steps: tuple[Step, ...]
    view_shape: Shape
    advanced: tuple[Array | None, ...]
    shape: Shape

    @property
    def key(self) -> tuple[Any, ...]:
        """The NumPy index that gathers from, or scatters to, the view."""
        return tuple(_FULL if entry is None else entry for entry in self.advanced)

    @property
    def node_names(self) -> tuple[str, ...]:
        """Names of the nodes that torch records for index, in the order of the calls."""
        names = [NODE_NAMES[step.kind] for step in self.steps]
        return (*names, NODE_NAMES["index"]) if self.advanced else tuple(names)


def parse_index(shape: Shape, index: Any) -> Plan:
    """The plan of `x[index]` for x of the given shape.

    index: an int, bool, None, Ellipsis, slice, list, range, array, tensor (an object whose `array` is an ndarray), or a
    tuple of these. Raises IndexError, TypeError and ValueError in torch's words; UserWarning where torch warns.
    """
    if type(index) is int and shape:
        at = _position(index, 0, shape[0])
        return Plan((at, ...), (Step("select", 0, at),), shape[1:], (), shape[1:])
    if type(index) is slice and shape:
        start, stop, step, length = _bounds(index, shape[0])
        out = (length, *shape[1:])
        # Alone, a slice of everything is recorded as a slice; in a tuple it is left out.
        return Plan((slice(start, stop, step), ...), (Step("slice", 0, start, stop, step),), out, (), out)
    if not isinstance(index, tuple):
        array = tensor_array(index)
        if array is not None and array.dtype == np.int64 and array.ndim and shape:  # a batch of rows: halves the cost
            entries = (_within(array, 0, shape[0]), *(None,) * (len(shape) - 1))
            return Plan((...,), (), shape, entries, (*array.shape, *shape[1:]))
        if not shape:
            _check_zero_dim(index)
    walk = _Walk(shape, [as_item(entry) for entry in as_tuple(index)])
    return walk.plan()


def _check_zero_dim(index: Any) -> None:
    """What torch says to an int or a slice of a 0-dim tensor, where it is not in a tuple."""
    if isinstance(index, slice):
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    if isinstance(index, (int, np.integer)) and not isinstance(index, bool):
        raise IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a "
            "0-dim tensor to a number"
        )


# ------------------------------------------------------------------------------------------------------- basic indices


def _position(index: int, entry: int, size: int) -> int:
    """An integer index counted from 0; entry: its place in the index, which torch's message calls the dimension."""
    if 0 <= index < size:
        return index
    if -size <= index < 0:
        return index + size
    if not ~_LONG_MAX <= index <= _LONG_MAX:
        raise ValueError("Overflow when unpacking long long")
    raise IndexError(f"index {index} is out of bounds for dimension {entry} with size {size}")


def _slice_part(part: Any, default: int) -> int:
    """A bound of a slice: None, an integer or an integer tensor of one element."""
    if part is None:
        return default
    array = tensor_array(part)
    if array is not None:
        if array.size != 1 or array.dtype.kind not in "iub":
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(array.item())
    if not hasattr(part, "__index__"):
        raise TypeError("slice indices must be integers or None or have an __index__ method")
    return operator.index(part)


def _bounds(entry: slice, size: int) -> tuple[int, int, int, int]:
    """(start, stop, step, length) of a slice of `size` items, with 0 <= start <= stop <= size."""
    step = _slice_part(entry.step, 1)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    if step < 0:
        raise ValueError("step must be greater than zero")
    start, stop, _ = slice(_slice_part(entry.start, 0), _slice_part(entry.stop, size)).indices(size)
    stop = max(start, stop)
    return start, stop, step, -(-(stop - start) // step)


class _Walk:
    """Goes through the indices and the dimensions of the tensor together."""

    def __init__(self, shape: Shape, items: list[Any]) -> None:
        """items: what `as_item` returns. IndexError if they take more dimensions than there are."""
        self.shape = shape
        self.at = 0  # the next dimension of the tensor
        self.view: list[Any] = []
        self.steps: list[Step] = []
        self.out: list[int] = []  # the shape of the view so far
        self.arrays: list[tuple[int, Array]] = []  # (dimension of the view, index array or mask)
        taken = sum(_taken(item) for item in items)
        if taken > len(shape):
            raise IndexError(f"too many indices for tensor of dimension {len(shape)}")
        self.rest = len(shape) - taken  # how many dimensions `...` stands for; a second one stands for none
        for entry, item in enumerate(items):
            self._add(entry, item)
        self._pass(len(shape) - self.at)

    def _add(self, entry: int, item: Any) -> None:
        if isinstance(item, bool):
            # True and False gather from a new dimension of size one: all of it, or nothing.
            self._gather(np.zeros(1 if item else 0, np.int64))
            self._unsqueeze()
        elif item is None:
            self._unsqueeze()
        elif item is Ellipsis:
            self._pass(self.rest)
            self.rest = 0
        elif isinstance(item, int):
            position = _position(item, entry, self.shape[self.at])
            self.view.append(position)
            self.steps.append(Step("select", len(self.out), position))
            self.at += 1
        elif isinstance(item, slice):
            self._slice(item)
        else:
            self._gather(item)
            self._pass(_taken(item))

    def _pass(self, count: int) -> None:
        """Keep `count` dimensions whole."""
        self.view += [_FULL] * count
        self.out += self.shape[self.at : self.at + count]
        self.at += count

    def _unsqueeze(self) -> None:
        self.view.append(None)
        self.steps.append(Step("unsqueeze", len(self.out)))
        self.out.append(1)

    def _slice(self, item: slice) -> None:
        size = self.shape[self.at]
        start, stop, step, length = _bounds(item, size)
        # torch looks at the start as written: -size is recorded as a slice, though it keeps everything.
        if stop - start == size and step == 1 and _slice_part(item.start, 0) == 0:
            self._pass(1)
            return
        self.view.append(slice(start, stop, step))
        self.steps.append(Step("slice", len(self.out), start, stop, step))
        self.out.append(length)
        self.at += 1

    def _gather(self, array: Array) -> None:
        self.arrays.append((len(self.out), array))

    def plan(self) -> Plan:
        view_shape = tuple(self.out)
        view = (*self.view, ...)
        if self.arrays:
            advanced, shape = _resolve(view_shape, self.arrays)
            return Plan(view, tuple(self.steps), view_shape, advanced, shape)
        return Plan(view, tuple(self.steps) or (Step("alias", 0),), view_shape, (), view_shape)


def _taken(item: Any) -> int:
    """How many dimensions of the tensor an index takes up."""
    if item is None or item is Ellipsis or isinstance(item, bool):
        return 0
    if isinstance(item, np.ndarray) and item.dtype.kind == "b":
        return item.ndim
    return 1


# -------------------------------------------------------------------------------------------------------- index arrays


def _positions(mask: Array, dim: int, shape: Shape) -> tuple[Array, ...]:
    """The positions of True, one array per dimension; the mask stands at dimension `dim` of the view."""
    for k, size in enumerate(mask.shape):
        if size != shape[dim + k]:
            raise IndexError(
                f"The shape of the mask {bracketed(mask.shape)} at index {k} does not match the shape of the indexed "
                f"tensor {bracketed(shape)} at index {dim + k}"
            )
    return mask.nonzero()


def _within(array: Array, number: int, size: int) -> Array:
    """The int64 array counted from 0. number: which of the index arrays it is, torch's 'dimension' in the message.

    One reduction covers both ends: seen as unsigned, a negative index is larger than any size.
    """
    if array.size == 0 or int(array.view(np.uint64).max()) < size:
        return array
    if size == 0:
        raise IndexError("index is out of bounds for dimension with size 0")
    bad = (array < -size) | (array >= size)
    if bad.any():
        raise IndexError(f"index {int(array[bad][0])} is out of bounds for dimension {number} with size {size}")
    return np.where(array < 0, array + size, array)


def _resolve(shape: Shape, arrays: list[tuple[int, Array]]) -> tuple[tuple[Array | None, ...], Shape]:
    """One entry per dimension of the view, and the shape of the result.

    The gathered dimensions land in place if they are neighbours, in front otherwise.
    """
    advanced: list[Array | None] = [None] * len(shape)
    for dim, array in arrays:
        parts = _positions(array, dim, shape) if array.dtype.kind == "b" else (array,)
        advanced[dim : dim + len(parts)] = parts
    dims = [k for k, entry in enumerate(advanced) if entry is not None]
    used = [entry for entry in advanced if entry is not None]
    try:
        gathered = broadcast_shapes(*(entry.shape for entry in used))
    except RuntimeError:
        shapes = ", ".join(bracketed(entry.shape) for entry in used)
        raise IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}"
        ) from None
    for number, dim in enumerate(dims):
        advanced[dim] = _within(used[number], number, shape[dim])
    first, last = dims[0], dims[-1]
    kept = tuple(size for k, size in enumerate(shape) if k not in dims)
    place = first if last - first + 1 == len(dims) else 0
    return tuple(advanced), (*kept[:place], *gathered, *kept[place:])
