"""Copies in another arrangement: repeated, reversed, rolled; triangles and diagonals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core.devices import contiguous_format
from .._core.errors import bracketed
from .._core.meta import Meta
from .._core.shapes import wrap_dim, wrap_dims
from .kinds import Array, Index, Tensor, composite, general, linear
from .shaping import given

Shape = tuple[int, ...]


# ---------------------------------------------------------------- ops
@linear(node="RepeatBackward0", name="_repeat")
def repeat_op(input: Array, repeats: Shape) -> Array:
    return np.ascontiguousarray(np.tile(input, repeats)).reshape(repeated(input.shape, repeats))


def repeated(shape: Shape, repeats: Shape) -> Shape:
    """The shape after repeating; `repeats` has at least as many entries."""
    full = (1,) * (len(repeats) - len(shape)) + tuple(shape)
    return tuple(n * k for n, k in zip(full, repeats, strict=True))


@repeat_op.adjoint
def _(grad: Array, like: Meta, repeats: Shape) -> Array:
    lead = len(repeats) - len(like.shape)
    split = tuple(n for pair in zip(repeats, (*(1,) * lead, *like.shape), strict=True) for n in pair)
    return np.asarray(grad.reshape(split).sum(tuple(range(0, len(split), 2)))).reshape(like.shape)


@linear(node="FlipBackward0", name="_flip")
def flip_op(input: Array, dims: Shape) -> Array:
    return np.array(np.flip(input, dims), order="C", copy=True)


@flip_op.adjoint
def _(grad: Array, dims: Shape) -> Array:
    return np.flip(grad, dims)


@linear(node="RollBackward0", name="_roll")
def roll_op(input: Array, shifts: Shape, dims: Shape) -> Array:
    return rolled(input, shifts, dims)


@roll_op.adjoint
def _(grad: Array, shifts: Shape, dims: Shape) -> Array:
    return rolled(grad, tuple(-shift for shift in shifts), dims)


def rolled(array: Array, shifts: Shape, dims: Shape) -> Array:
    """Rolled along some axes, or, with none, along all elements as one axis."""
    result = np.roll(array, shifts, dims) if dims else np.roll(array.reshape(-1), shifts[0]).reshape(array.shape)
    return np.ascontiguousarray(result).reshape(array.shape)


@linear(node="Rot90Backward0", name="_rot90")
def rot90_op(input: Array, k: int, dims: Shape) -> Array:
    return np.ascontiguousarray(np.rot90(input, k, (dims[0], dims[1])))


@rot90_op.adjoint
def _(grad: Array, k: int, dims: Shape) -> Array:
    return np.rot90(grad, -k, (dims[0], dims[1]))


@linear(node="TrilBackward0", name="_tril")
def tril_op(input: Array, diagonal: int) -> Array:
    return np.ascontiguousarray(np.tril(input, diagonal))


@tril_op.adjoint
def _(grad: Array, diagonal: int) -> Array:
    return np.tril(grad, diagonal)


@linear(node="TriuBackward0", name="_triu")
def triu_op(input: Array, diagonal: int) -> Array:
    return np.ascontiguousarray(np.triu(input, diagonal))


@triu_op.adjoint
def _(grad: Array, diagonal: int) -> Array:
    return np.triu(grad, diagonal)


@linear(node="DiagonalBackward0_copy", name="_diagonal_copy")
def diagonal_copy_op(input: Array, offset: int) -> Array:
    return np.array(np.diagonal(input, offset), order="C", copy=True)


@diagonal_copy_op.adjoint
def _(grad: Array, like: Meta, offset: int) -> Array:
    full = np.zeros(like.shape, grad.dtype)
    writable_diagonal(full, offset, 0, 1)[...] = grad
    return full


@linear(node="DiagEmbedBackward0", name="_diag_embed")
def diag_embed_op(input: Array, offset: int, dim1: int, dim2: int) -> Array:
    size = input.shape[-1] + abs(offset)
    shape = list(input.shape[:-1])
    for dim in sorted((dim1, dim2)):
        shape.insert(dim, size)
    full = np.zeros(shape, input.dtype)
    writable_diagonal(full, offset, dim1, dim2)[...] = input
    return full


@diag_embed_op.adjoint
def _(grad: Array, offset: int, dim1: int, dim2: int) -> Array:
    return np.diagonal(grad, offset, dim1, dim2)


def writable_diagonal(array: Array, offset: int, dim1: int, dim2: int) -> Array:
    """The diagonal as a view that may be written to."""
    part = np.diagonal(array, offset, dim1, dim2)
    part.flags.writeable = True
    return part


@general(name="_counts_to_index", differentiable=())
def counts_to_index_op(repeats: Index) -> Array:
    return np.repeat(np.arange(repeats.size), repeats.reshape(-1))


# ---------------------------------------------------------------- faces
@composite(public=False)
def repeat(input: Tensor, *repeats: Any, **named: Any) -> Tensor:
    """Copies of the tensor beside each other: `repeats` times along each axis, new axes first."""
    counts = given("repeat", "repeats", repeats, named)
    if len(counts) < input.ndim:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    shape = repeated(input.meta.shape, counts)
    if any(n < 0 for n in shape):
        bad = next(n for n in shape if n < 0)
        raise RuntimeError(f"Trying to create tensor with negative dimension {bad}: {bracketed(shape)}")
    return repeat_op(input, counts)


@composite
def tile(input: Tensor, *dims: Any, **named: Any) -> Tensor:
    """As `repeat`, where axes that `dims` has too few entries for are not repeated."""
    counts = given("tile", "dims", dims, named)
    return repeat(input, (1,) * (input.ndim - len(counts)) + counts)


@composite
def flip(input: Tensor, *dims: Any, **named: Any) -> Tensor:
    """A copy with some axes reversed."""
    return flip_op(input, wrap_dims(given("flip", "dims", dims, named), input.ndim) if input.ndim else ())


@composite
def fliplr(input: Tensor) -> Tensor:
    """A copy with the second axis reversed."""
    if input.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip_op(input, (1,))


@composite
def flipud(input: Tensor) -> Tensor:
    """A copy with the first axis reversed."""
    if input.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return flip_op(input, (0,))


@composite
def roll(input: Tensor, shifts: int | Sequence[int], dims: int | Sequence[int] = ()) -> Tensor:
    """A copy rolled along some axes, or along all elements as one axis."""
    steps = (shifts,) if isinstance(shifts, int) else tuple(shifts)
    axes = (dims,) if isinstance(dims, int) else tuple(dims)
    if not steps:
        raise RuntimeError("`shifts` required")
    if len(steps) != len(axes) and not (len(steps) == 1 and not axes):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(steps)}, dims:{len(axes)}")
    return roll_op(
        input, steps if input.ndim else (0,), tuple(wrap_dim(dim, input.ndim, wrap_scalar=False) for dim in axes)
    )


@composite
def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """A copy turned by k quarters in the plane of two axes."""
    axes = tuple(dims)
    if len(axes) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(axes)}")
    if input.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {input.ndim}")
    if wrap_dim(axes[0], input.ndim) == wrap_dim(axes[1], input.ndim):
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {axes[0]} and dim1 = {axes[1]}")
    return rot90_op(input, k, axes)


@composite
def repeat_interleave(
    input: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Each slice along an axis (each element without one) `repeats` times; one number, or one per slice."""
    if repeats is None:
        check_counts(input)
        return counts_to_index_op(input)
    if dim is None:
        input, dim = input.flatten(), 0
    at = wrap_dim(dim, input.ndim)
    input = input if input.ndim else input.view(1)
    if isinstance(repeats, int):
        if repeats < 0:
            raise RuntimeError("Repeats must be non-negative")
        shape = input.meta.shape
        spread = input.unsqueeze(at + 1).expand((*shape[: at + 1], repeats, *shape[at + 1 :]))
        return spread.clone(memory_format=contiguous_format).flatten(at, at + 1)
    counts = repeats if hasattr(repeats, "meta") else input.new_tensor(repeats, dtype=None)
    check_counts(counts)
    if counts.meta.numel == 1:
        counts = counts.reshape(1).expand(input.shape[at])
    if counts.meta.numel != input.shape[at]:
        raise RuntimeError(f"repeats must have the same size as input along dim, but got repeats.size(0) = {counts.meta.numel} and input.size({at}) "
                           f"= {input.shape[at]}")  # fmt: skip
    return input.index_select(at, counts_to_index_op(counts))


def check_counts(repeats: Tensor) -> None:
    """RuntimeError unless a vector of int32 or int64, none of them negative."""
    if repeats.ndim > 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    if repeats.meta.kind.name not in ("int64", "int32"):
        raise RuntimeError("repeats has to be Long or Int tensor")
    if repeats.meta.numel and int(repeats.array.min()) < 0:
        raise RuntimeError("repeats can not be negative")


@composite(inplace="write")
def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """The lower triangle of each matrix, zero elsewhere."""
    if input.ndim < 2:
        raise RuntimeError("tril: input tensor must have at least 2 dimensions")
    return tril_op(input, diagonal)


@composite(inplace="write")
def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """The upper triangle of each matrix, zero elsewhere."""
    if input.ndim < 2:
        raise RuntimeError("triu: input tensor must have at least 2 dimensions")
    return triu_op(input, diagonal)


@composite
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """A vector as the diagonal of a matrix, or the diagonal of a matrix as a copy."""
    if input.ndim not in (1, 2):
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input.ndim}D")
    return diag_embed(input, diagonal) if input.ndim == 1 else diagonal_copy_op(input, diagonal)


@composite
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The last axis as the diagonal of matrices along two new axes."""
    first, second = wrap_dim(dim1, input.ndim + 1), wrap_dim(dim2, input.ndim + 1)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return diag_embed_op(input, offset, first, second)


@composite
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """All elements as the diagonal of a matrix."""
    return diag_embed(input.contiguous().view(-1), offset)
