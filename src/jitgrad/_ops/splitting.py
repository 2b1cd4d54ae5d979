"""Pieces: one slice of a tensor, or all of them along an axis. All are views but `unsafe_*` and `narrow_copy`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from .._core.errors import argument_error, bracketed
from .._core.meta import Meta
from .._core.shapes import wrap_dim
from .kinds import Array, Tensor, composite, linear
from .views import diagonal_op, select_op, slice_op

Shape = tuple[int, ...]


# ---------------------------------------------------------------- several results
@linear(view=True, node="UnbindBackward0", name="_unbind", outputs=None)
def unbind_op(input: Array, dim: int) -> tuple[Array, ...]:
    return tuple(input[(slice(None),) * dim + (k, ...)] for k in range(input.shape[dim]))


@unbind_op.adjoint
def _(grads: Sequence[Array | None], like: Meta, dim: int) -> Array:
    full = np.zeros(like.shape, like.dtype)
    for k, grad in enumerate(grads):
        if grad is not None:
            full[(slice(None),) * dim + (k,)] = grad
    return full


@linear(view=True, node="SplitBackward0", name="_split", outputs=None)
def split_op(input: Array, sizes: Shape, dim: int) -> tuple[Array, ...]:
    return pieces(input, sizes, dim)


@linear(view=True, node="SplitWithSizesBackward0", name="_split_with_sizes", outputs=None)
def split_with_sizes_op(input: Array, sizes: Shape, dim: int) -> tuple[Array, ...]:
    return pieces(input, sizes, dim)


def pieces(array: Array, sizes: Shape, dim: int) -> tuple[Array, ...]:
    """Consecutive slices of the given lengths along an axis."""
    ends = np.cumsum([0, *sizes]).tolist()
    return tuple(array[(slice(None),) * dim + (slice(a, b),)] for a, b in pairwise(ends))


@linear(node="UnsafeSplitBackward0", name="_unsafe_split", outputs=None)
def unsafe_split_op(input: Array, sizes: Shape, dim: int) -> tuple[Array, ...]:
    """As `split`, but the pieces are not known as views."""
    return pieces(input, sizes, dim)


@linear(node="UnsafeSplitWithSizesBackward0", name="_unsafe_split_with_sizes", outputs=None)
def unsafe_split_with_sizes_op(input: Array, sizes: Shape, dim: int) -> tuple[Array, ...]:
    return pieces(input, sizes, dim)


for _op in (split_op, split_with_sizes_op, unsafe_split_op, unsafe_split_with_sizes_op):

    @_op.adjoint
    def _(grads: Sequence[Array | None], like: Meta, sizes: Shape, dim: int) -> Array:
        full = np.zeros(like.shape, like.dtype)
        for piece, grad in zip(pieces(full, sizes, dim), grads, strict=True):
            if grad is not None:
                piece[...] = grad
        return full


@linear(node="NarrowCopyBackward0", name="_narrow_copy")
def narrow_copy_op(input: Array, dim: int, start: int, length: int) -> Array:
    return np.array(input[(slice(None),) * dim + (slice(start, start + length),)], order="C", copy=True)


@narrow_copy_op.adjoint
def _(grad: Array, like: Meta, dim: int, start: int, length: int) -> Array:
    full = np.zeros(like.shape, grad.dtype)
    full[(slice(None),) * dim + (slice(start, start + length),)] = grad
    return full


# ---------------------------------------------------------------- one piece
@composite
def select(input: Tensor, dim: int, index: int) -> Tensor:
    """One index along an axis, which goes; a view. IndexError where it is out of range."""
    if not input.ndim:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    at, index = wrap_dim(dim, input.ndim), int(index)
    size = input.shape[at]
    if not -size <= index < size:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {bracketed(input.shape)} at dimension {at}"
        )
    return select_op(input, at, index % size)


@composite
def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """`length` indices from `start` on along an axis; a view. RuntimeError or IndexError where that is out of range."""
    at, first = narrowed("narrow", input, dim, start, length)
    return slice_op(input, at, first, first + length, 1)


@composite
def narrow_copy(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """A copy of `narrow`."""
    if dim >= input.ndim > 0:
        raise RuntimeError(f"narrow_copy(): Expected dim < {input.ndim}, but got {dim}")
    return narrow_copy_op(input, *narrowed("narrow", input, dim, start, length), length)


def narrowed(name: str, input: Tensor, dim: int, start: Any, length: int) -> tuple[int, int]:
    """The axis and the first index, checked."""
    if not input.ndim:
        raise RuntimeError(f"{name}() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise RuntimeError(f"{name}(): length must be non-negative.")
    if hasattr(start, "meta") and (start.ndim or start.meta.kind.kind != "i"):
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    at, first = wrap_dim(dim, input.ndim), int(start)
    size = input.shape[at]
    if not -size <= first <= size:
        raise IndexError(f"start out of range (expected to be in range of [{-size}, {size}], but got {first})")
    first += size if first < 0 else 0
    if first + length > size:
        raise RuntimeError(f"start ({first}) + length ({length}) exceeds dimension size ({size}).")
    return at, first


@composite
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The diagonal of each matrix along two axes, as a new last axis; a view."""
    first, second = wrap_dim(dim1, input.ndim), wrap_dim(dim2, input.ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return diagonal_op(input, offset, first, second)


# ---------------------------------------------------------------- all pieces
@composite
def unbind(input: Tensor, dim: int = 0) -> Any:
    """All slices along an axis, which goes, as a tuple; views that can't be written to while they take gradients."""
    return unbind_op(input, wrap_dim(dim, input.ndim, wrap_scalar=False))


@composite(method=False)
def split(tensor: Tensor, split_size_or_sections: Any, dim: int = 0) -> Any:
    """Pieces of one length (the last may be shorter), or of the lengths listed, as a tuple; views."""
    if isinstance(split_size_or_sections, (tuple, list)):
        return split_with_sizes(tensor, split_size_or_sections, dim)
    sizes, at = even_sizes("split", tensor, split_size_or_sections, dim)
    return split_op(tensor, sizes, at)


@composite(name="split", public=False)
def split_method(input: Tensor, split_size: Any, dim: int = 0) -> Any:
    """Pieces of one length (the last may be shorter), or of the lengths listed, as a tuple; views."""
    return split(input, split_size, dim)


@composite
def unsafe_split(tensor: Tensor, split_size: int, dim: int = 0) -> Any:
    """As `split`, but the pieces may be written to."""
    if not isinstance(split_size, int):
        raise argument_error("unsafe_split", "split_size", 1, "int", split_size)
    sizes, at = even_sizes("split", tensor, split_size, dim)
    return unsafe_split_op(tensor, sizes, at)


def even_sizes(name: str, tensor: Tensor, size: Any, dim: int) -> tuple[Shape, int]:
    """The lengths of pieces of `size`, and the axis. RuntimeError in torch's words."""
    if not tensor.ndim:
        raise RuntimeError(f"{name} expects at least a 1-dimensional tensor")
    size = int(size)
    if size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={size}")
    at = wrap_dim(dim, tensor.ndim)
    length = tensor.shape[at]
    if size == 0:
        if length:
            raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {length}")
        return (0,), at
    count = max(-(-length // size), 1)
    return (*(size,) * (count - 1), length - size * (count - 1)), at


@composite
def split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> Any:
    """Pieces of the given lengths, as a tuple; views."""
    return split_with_sizes_op(input, *checked_sizes(input, split_sizes, dim))


@composite
def unsafe_split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> Any:
    """As `split_with_sizes`, but the pieces may be written to."""
    return unsafe_split_with_sizes_op(input, *checked_sizes(input, split_sizes, dim))


def checked_sizes(input: Tensor, split_sizes: Sequence[int], dim: int) -> tuple[Shape, int]:
    """Lengths that add up to the axis, and the axis. RuntimeError in torch's words."""
    if not input.ndim:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    at, sizes = wrap_dim(dim, input.ndim), tuple(int(n) for n in split_sizes)
    if any(n < 0 for n in sizes):
        raise RuntimeError(
            f"split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={bracketed(sizes)}"
        )
    if sum(sizes) != input.shape[at]:
        raise RuntimeError(f"split_with_sizes expects split_sizes to sum exactly to {input.shape[at]} (input tensor's size at dimension {at}), but "
                           f"got split_sizes={bracketed(sizes)}")  # fmt: skip
    return sizes, at


@composite
def chunk(input: Tensor, chunks: int, dim: int = 0) -> Any:
    """At most `chunks` pieces of one length (the last may be shorter), as a tuple; views."""
    size, at = chunk_size(input, chunks, dim)
    return split_with_sizes(input, (0,) * chunks, at) if size == 0 else split(input, size, at)


@composite
def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> Any:
    """As `chunk`, but the pieces may be written to."""
    size, at = chunk_size(input, chunks, dim)
    return unsafe_split_with_sizes(input, (0,) * chunks, at) if size == 0 else unsafe_split(input, size, at)


def chunk_size(input: Tensor, chunks: int, dim: int) -> tuple[int, int]:
    """The length of a piece, and the axis. RuntimeError in torch's words."""
    if isinstance(chunks, float):
        raise argument_error("chunk", "chunks", 1, "int", chunks)
    if not input.ndim:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    at = wrap_dim(dim, input.ndim)
    return -(-input.shape[at] // chunks), at


@composite
def tensor_split(input: Tensor, indices_or_sections: Any = None, dim: int = 0, **named: Any) -> Any:
    """Pieces of nearly one length, or cut at the indices listed, as a tuple; views.

    The second argument also goes by `sections`, `indices` and `tensor_indices_or_sections`. RuntimeError or TypeError for what cuts nothing.
    """
    if indices_or_sections is None:
        indices_or_sections = cuts_of("tensor_split", (), named)
    if not input.ndim:
        raise RuntimeError(
            f"tensor_split expected at least a 1-dimensional tensor, but got a tensor with {input.ndim} dims"
        )
    at, cuts = wrap_dim(dim, input.ndim), indices_or_sections
    if hasattr(cuts, "meta"):
        if cuts.meta.dtype != np.int64:
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to have dtype of long, but got "
                + cuts.meta.kind.scalar_name
            )
        if cuts.ndim > 1:
            raise RuntimeError("tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but got a "
                               f"tensor with {cuts.ndim} dims")  # fmt: skip
        cuts = cuts.tolist()
    size = input.shape[at]
    if isinstance(cuts, int):
        if cuts <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {cuts}")
        short, longer = divmod(size, cuts)
        cuts = [k * short + min(k, longer) for k in range(1, cuts)]
    bounds = [slice(a, b).indices(size)[:2] for a, b in zip([0, *cuts], [*cuts, size], strict=True)]
    return tuple(slice_op(input, at, start, max(start, stop), 1) for start, stop in bounds)


@composite
def hsplit(input: Tensor, *indices_or_sections: Any, **named: Any) -> Any:
    """`tensor_split` along the second axis (the first of a vector)."""
    if input.ndim < 1:
        raise RuntimeError(
            "torch.hsplit requires a tensor with at least 1 dimension, but got a tensor with 0 dimensions!"
        )
    return evenly_split("hsplit", input, cuts_of("hsplit", indices_or_sections, named), 0 if input.ndim == 1 else 1)


@composite
def vsplit(input: Tensor, *indices_or_sections: Any, **named: Any) -> Any:
    """`tensor_split` along the first axis."""
    if input.ndim < 2:
        raise RuntimeError(
            f"torch.vsplit requires a tensor with at least 2 dimension, but got a tensor with {input.ndim} dimensions!"
        )
    return evenly_split("vsplit", input, cuts_of("vsplit", indices_or_sections, named), 0)


@composite
def dsplit(input: Tensor, *indices_or_sections: Any, **named: Any) -> Any:
    """`tensor_split` along the third axis."""
    if input.ndim < 3:
        raise RuntimeError(
            f"torch.dsplit requires a tensor with at least 3 dimension, but got a tensor with {input.ndim} dimensions!"
        )
    return evenly_split("dsplit", input, cuts_of("dsplit", indices_or_sections, named), 2)


def cuts_of(name: str, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """The cuts, given one by one or as one argument (`sections`, `indices` or ...). TypeError for none, or another name."""
    for key in ("indices_or_sections", "sections", "indices", "tensor_indices_or_sections"):
        if key in named and not given:
            given = (named.pop(key),)
    if named or not given:
        raise TypeError(f"{name}() received an invalid combination of arguments - got ({', '.join(type(x).__name__ for x in given)})")
    return given[0] if len(given) == 1 else given


def evenly_split(name: str, input: Tensor, cuts: Any, dim: int) -> Any:
    """`tensor_split`, where a number must divide the axis."""
    size = input.shape[dim]
    if isinstance(cuts, int) and (cuts <= 0 or size % cuts):
        raise RuntimeError(f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension {size} is not divisible by the "
                           f"split_size {cuts}!")  # fmt: skip
    return tensor_split(input, cuts, dim)
