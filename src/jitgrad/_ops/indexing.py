"""Gather and scatter: reading and writing by index arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.meta import Meta
from .._core.shapes import check_broadcastable
from .kinds import Array, Tensor, linear

Indices = tuple[Array | None, ...]


def key_of(indices: Indices) -> tuple[Any, ...]:
    """NumPy's index for a tuple that has an index array or None per axis."""
    return tuple(slice(None) if entry is None else entry for entry in indices)


@linear(node="IndexBackward0", name="_index")
def index_op(input: Array, indices: Indices) -> Array:
    return np.ascontiguousarray(input[key_of(indices)])


@index_op.adjoint
def _(grad: Array, like: Meta, indices: Indices) -> Array:
    full = np.zeros(like.shape, grad.dtype)
    np.add.at(full, key_of(indices), grad)
    return full


@linear(node="IndexPutBackward0", name="_index_put")
def index_put_op(input: Array, values: Array, indices: Indices, accumulate: bool = False) -> Array:
    result = np.array(input, order="C", copy=True)
    if accumulate:
        np.add.at(result, key_of(indices), values)
    else:
        result[key_of(indices)] = values
    return result


@index_put_op.adjoint
def _(grad: Array, needs: tuple[bool, bool], like: tuple[Meta, Meta], indices: Indices, accumulate: bool) -> tuple[Array | None, Array | None]:
    kept = None
    if needs[0]:
        kept = grad if accumulate else np.array(grad, order="C", copy=True)
        if not accumulate:
            kept[key_of(indices)] = 0
    return kept, grad[key_of(indices)] if needs[1] else None


def put(input: Tensor, indices: Indices, values: Tensor, accumulate: bool = False) -> Tensor:
    """A copy of `input` with `values` at the given places. Values broadcast and are cast to the input's dtype."""
    where = np.broadcast_shapes(*(entry.shape for entry in indices if entry is not None))
    del where
    check_broadcastable(np.empty(input.meta.shape, bool)[key_of(indices)].shape, values.meta.shape)
    return index_put_op(input, values.to(input.meta.kind), indices, accumulate)
