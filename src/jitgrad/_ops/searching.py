"""Finding: which elements are not zero, where values lie among sorted ones, which of them are there."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from .joining import stack
from .kinds import Array, Tensor, composite, general

LONG = np.dtype(np.int64)


# ---------------------------------------------------------------- ops
@general(name="_nonzero", differentiable=())
def nonzero_op(input: Array) -> Array:
    return np.argwhere(input) if input.ndim else np.zeros((int(bool(input)), 0), LONG)


@general(name="_nonzero_static", differentiable=())
def nonzero_static_op(input: Array, size: int, fill_value: int) -> Array:
    found = nonzero_op.function(input)[:size]
    full = np.full((size, input.ndim), fill_value, LONG)
    full[: len(found)] = found
    return full


@general(name="_searchsorted", differentiable=())
def searchsorted_op(boundaries: Array, values: Array, right: bool, narrow: bool) -> Array:
    side: Literal["left", "right"] = "right" if right else "left"
    if boundaries.ndim == 1:
        found = np.searchsorted(boundaries, values, side)
    else:
        count = math.prod(boundaries.shape[:-1])
        rows = zip(
            boundaries.reshape(count, boundaries.shape[-1]), values.reshape(count, values.shape[-1]), strict=True
        )
        found = np.array([np.searchsorted(row, wanted, side) for row, wanted in rows]).reshape(values.shape)
    return np.asarray(found, np.int32 if narrow else LONG)


@general(name="_isin", differentiable=())
def isin_op(elements: Array, test_elements: Array, invert: bool) -> Array:
    return np.asarray(np.isin(elements, test_elements, invert=invert))


@general(name="_unravel_index", differentiable=(), outputs=None)
def unravel_index_op(indices: Array, shape: tuple[int, ...]) -> tuple[Array, ...]:
    return tuple(np.asarray(found, LONG) for found in np.unravel_index(indices, shape))


# ---------------------------------------------------------------- faces
@composite
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """The indices of the elements that are not zero: a row each, or with `as_tuple` a vector per axis."""
    found = nonzero_op(input)
    return found if not as_tuple else (found if input.ndim else nonzero_op(input.view(1))).unbind(1)


@composite
def argwhere(input: Tensor) -> Tensor:
    """The indices of the elements that are not zero, a row each."""
    return nonzero_op(input)


@composite
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """`nonzero` cut, or filled up, to a number of rows."""
    if size < 0:
        raise RuntimeError(f"nonzero_static: 'size' must be an non-negative integer, got {size}")
    return nonzero_static_op(input, size, fill_value)


@composite(method=False)
def searchsorted(
    sorted_sequence: Tensor,
    input: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Any = None,
) -> Tensor:
    """Where in the last axis of a sorted tensor the values would go: before equal ones, or behind them with `right`."""
    if side not in (None, "left", "right"):
        raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True"
        )
    number = not hasattr(input, "meta")
    values = sorted_sequence.new_tensor(input) if number else input
    check_searchable(sorted_sequence, values, number)
    if sorter is not None:
        sorted_sequence = sorted_sequence.gather(-1, sorter)
    return searchsorted_op(sorted_sequence, values, right or side == "right", out_int32)


def check_searchable(bounds: Tensor, values: Tensor, number: bool) -> None:
    """RuntimeError in torch's words unless the shapes and dtypes go together."""
    if number and bounds.ndim != 1:
        raise RuntimeError("torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got boundaries "
                           f"tensor dim({bounds.ndim}) and input value's dim(0) numel(1)")  # fmt: skip
    if bounds.ndim == 0:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension"
        )
    if bounds.meta.kind is not values.meta.kind:
        raise RuntimeError("torch.searchsorted(): boundary tensor and input value tensor should have same dtype, but got boundary tensor dtype "
                           f"{bounds.meta.kind.scalar_name} and input value tensor dtype {values.meta.kind.scalar_name}")  # fmt: skip
    if bounds.ndim > 1 and bounds.shape[:-1] != values.shape[:-1]:
        raise RuntimeError("torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input "
                           f"value tensor must match, but we got boundaries tensor {list(bounds.shape)} and input value tensor "
                           f"{list(values.shape)}")  # fmt: skip


@composite(method=False)
def bucketize(input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """The bucket between sorted boundaries that each value falls into."""
    if boundaries.ndim != 1:
        raise RuntimeError(f"bucketize(): boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    values = input if hasattr(input, "meta") else boundaries.new_tensor(input)
    return searchsorted_op(boundaries, values, right, out_int32)


@composite(method=False)
def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Whether each element is among the test elements. One of the two may be a number."""
    if not hasattr(elements, "meta"):
        elements = test_elements.new_tensor(elements)
    if not hasattr(test_elements, "meta"):
        test_elements = elements.new_tensor(test_elements)
    return isin_op(elements, test_elements, invert)


@composite(method=False)
def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> Any:
    """Row-major element numbers as an index per axis, in a tuple. TypeError or ValueError for what is no such number or shape."""
    if indices.meta.kind.kind != "i":
        raise TypeError(f"expected 'indices' to be integer dtype, but got torch.{indices.meta.kind.name}")
    if not isinstance(shape, (int, Sequence)):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    for n in sizes:
        if not isinstance(n, int):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(n)}")
    if any(n < 0 for n in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    array = indices.array
    if array.size and (int(array.min()) < 0 or int(array.max()) >= int(np.prod(sizes, dtype=np.int64))):
        raise ValueError(f"indices are out of range for a tensor of shape {sizes}")
    return unravel_index_op(indices, sizes)


@composite(method=False)
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of r elements of a vector, a row each."""
    if input.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return input.new_empty(0)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    places = list(choose(range(input.meta.numel), r))
    columns = [input[[row[k] for row in places]] if places else input[:0] for k in range(r)]
    return stack(columns, 1)
