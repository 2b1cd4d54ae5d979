"""Elements by their number in row-major order."""

from __future__ import annotations

from typing import Any

import numpy as np

from .indexing import LONG, copied, counted
from .kinds import Array, Index, Tensor, composite, linear
from .outputs import into
from .places import add_at, take_at


@linear(node="TakeBackward0", name="_take")
def take_op(input: Array, index: Index) -> Array:
    return take_at(input, counted(index, input.size))


@take_op.adjoint
def _(grad: Array, index: Array, like: Any) -> Array:
    full = np.zeros(like[0].shape, grad.dtype)
    add_at(full, counted(index, full.size), grad)
    return full


@linear(node="PutBackward0", name="_put")
def put_op(input: Array, source: Array, index: Index, accumulate: bool) -> Array:
    result = copied(input)
    places = counted(index, result.size)
    if accumulate:
        add_at(result, places, source.reshape(index.shape))
    else:
        result.reshape(-1)[places.reshape(-1)] = source.reshape(-1)
    return result


@put_op.adjoint
def _(
    grad: Array, needs: tuple[bool, bool], index: Array, like: Any, accumulate: bool
) -> tuple[Array | None, Array | None]:
    places, kept = counted(index, grad.size), grad if needs[0] else None
    if needs[0] and not accumulate:
        kept = copied(grad)
        kept.reshape(-1)[places.reshape(-1)] = 0
    return kept, take_at(grad, places).reshape(like[1].shape) if needs[1] else None


# ---------------------------------------------------------------- faces
@composite
def take(input: Tensor, index: Tensor, *, out: Any = None) -> Tensor:
    """Elements by their number in row-major order; negative ones count from the end. IndexError out of range."""
    check_flat("take", input, index)
    return into("take", out, take_op(input, index), input, index)


@composite(inplace="write")
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """`input` with the elements of `source` at numbers in row-major order, or added there."""
    if input.meta.dtype != source.meta.dtype:
        raise RuntimeError(f"put_(): self and source expected to have the same dtype, but got self.dtype = {input.meta.kind.scalar_name} and "
                           f"source.dtype = {source.meta.kind.scalar_name}")  # fmt: skip
    if index.meta.numel != source.meta.numel:
        raise IndexError(f"put_(): Expected source and index to have the same number of elements, but got source.numel() = {source.meta.numel}, "
                         f"index.numel() = {index.meta.numel}")  # fmt: skip
    check_flat("put_", input, index)
    return put_op(input, source, index, accumulate)


def check_flat(function: str, input: Tensor, index: Tensor) -> None:
    """RuntimeError unless `index` is int64, IndexError unless within the elements of `input`, from either end."""
    if index.meta.dtype != LONG:
        raise RuntimeError(f"{function}(): Expected a long tensor for index, but got {index.meta.kind.scalar_name}")
    length, array = input.meta.numel, index.array
    if length == 0 and array.size:
        raise IndexError(f"{function}(): tried to take from an empty tensor")
    bad = array[(array < -length) | (array >= length)]
    if bad.size:
        raise IndexError(f"out of range: tried to access index {int(bad.flat[0])} on a tensor of {length} elements.")
