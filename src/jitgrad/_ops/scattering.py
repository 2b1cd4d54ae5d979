"""Reading and writing single elements along an axis by an index of the input's rank, and writing whole pieces."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core.errors import bracketed
from .._core.shapes import broadcast_shapes, wrap_dim
from .indexing import copied, counted_op, is_index, need_tensor
from .kinds import Array, Index, Tensor, composite, general, linear
from .outputs import into
from .places import add_along, element_places, outside, take_along, take_at
from .shaping import strided_start, strided_window
from .views import places as strided_places

Shape = tuple[int, ...]
LONG = np.dtype(np.int64)


# ---------------------------------------------------------------- ops
@linear(node="GatherBackward0", name="_gather")
def gather_op(input: Array, index: Index, dim: int) -> Array:
    return take_along(input, index, dim)


@gather_op.adjoint
def _(grad: Array, index: Array, like: Any, dim: int) -> Array:
    full = np.zeros(like[0].shape, grad.dtype)
    add_along(full, index, dim, grad)
    return full


def box(array: Array, index: Array) -> Array:
    """The part of `src` that an index of its rank, but maybe smaller, speaks of."""
    return array[tuple([slice(n) for n in index.shape])] if array.ndim else array.reshape(index.shape)


def written(array: Array, places: Array, values: Any) -> Array:
    """A copy with other values at flat places."""
    result = copied(array)
    result.reshape(-1)[places.reshape(-1)] = values.reshape(-1) if isinstance(values, np.ndarray) else values
    return result


def padded(values: Array, shape: Shape) -> Array:
    """Zeros of a shape with values in the corner."""
    if values.shape == shape:
        return values
    full = np.zeros(shape, values.dtype)
    full[tuple([slice(n) for n in values.shape][: full.ndim])] = values.reshape(values.shape if full.ndim else ())
    return full


@linear(node="ScatterBackward0", name="_scatter")
def scatter_op(input: Array, src: Array, index: Index, dim: int) -> Array:
    return written(input, element_places(index, dim, input.shape), np.ascontiguousarray(box(src, index)))


@scatter_op.adjoint
def _(grad: Array, needs: tuple[bool, bool], index: Array, like: Any, dim: int) -> tuple[Array | None, Array | None]:
    places = element_places(index, dim, grad.shape)
    return written(grad, places, 0) if needs[0] else None, padded(take_at(grad, places), like[1].shape) if needs[
        1
    ] else None


@general(node="ScatterBackward1", name="_scatter_value", saves=("index",))
def scatter_value_op(input: Array, index: Index, dim: int, value: Any) -> Array:
    return written(input, element_places(index, dim, input.shape), value)


@scatter_value_op.rule
def _(grad: Tensor, index: Tensor, dim: int) -> Tensor:
    return grad.scatter(dim, index, 0)


@linear(node="ScatterAddBackward0", name="_scatter_add")
def scatter_add_op(input: Array, src: Array, index: Index, dim: int) -> Array:
    result = copied(input)
    add_along(result, index, dim, box(src, index))
    return result


@scatter_add_op.adjoint
def _(grad: Array, needs: tuple[bool, bool], index: Array, like: Any, dim: int) -> tuple[Array | None, Array | None]:
    taken = padded(take_along(grad, index, dim), like[1].shape) if needs[1] else None
    return grad if needs[0] else None, taken


scatter_add_op.saves = (("index", (1,)),)  # only the gradient of `src` reads it


# ---------------------------------------------------------------- pieces
@linear(node="SelectScatterBackward0", name="_select_scatter")
def select_scatter_op(input: Array, src: Array, key: tuple[Any, ...]) -> Array:
    return with_piece(input, key, src)


@linear(node="SliceScatterBackward0", name="_slice_scatter")
def slice_scatter_op(input: Array, src: Array, key: tuple[Any, ...]) -> Array:
    return with_piece(input, key, src)


def with_piece(array: Array, key: tuple[Any, ...], value: Any) -> Array:
    """A copy with another value at a basic index."""
    result = copied(array)
    result[key] = value
    return result


for _op in (select_scatter_op, slice_scatter_op):

    @_op.adjoint
    def _(grad: Array, needs: tuple[bool, bool], key: tuple[Any, ...]) -> tuple[Array | None, Array | None]:
        return with_piece(grad, key, 0) if needs[0] else None, copied(grad[key]) if needs[1] else None


@linear(node="DiagonalScatterBackward0", name="_diagonal_scatter")
def diagonal_scatter_op(input: Array, src: Array, offset: int, dim1: int, dim2: int) -> Array:
    return with_diagonal(input, offset, dim1, dim2, src)


@diagonal_scatter_op.adjoint
def _(grad: Array, needs: tuple[bool, bool], offset: int, dim1: int, dim2: int) -> tuple[Array | None, Array | None]:
    kept = with_diagonal(grad, offset, dim1, dim2, 0) if needs[0] else None
    return kept, copied(np.diagonal(grad, offset, dim1, dim2)) if needs[1] else None


def with_diagonal(array: Array, offset: int, dim1: int, dim2: int, value: Any) -> Array:
    """A copy with another diagonal."""
    result = copied(array)
    part = np.diagonal(result, offset, dim1, dim2)
    part.flags.writeable = True
    part[...] = value
    return result


@linear(node="AsStridedScatterBackward0", name="_as_strided_scatter")
def as_strided_scatter_op(
    input: Array, src: Array, target: tuple[Any, ...], source: tuple[Any, ...], memory: int
) -> Array:
    """`target`, `source`: shape, strides and start of the two in a memory of so many elements."""
    return with_window(input, src, target, source, memory)


@as_strided_scatter_op.adjoint
def _(
    grad: Array, needs: tuple[bool, bool], target: tuple[Any, ...], source: tuple[Any, ...], memory: int
) -> tuple[Array | None, Array | None]:
    kept = with_window(grad, 0, target, source, memory) if needs[0] else None
    flat = np.zeros(memory, grad.dtype)
    flat[strided_places(*target)] = grad
    return kept, flat[strided_places(*source)] if needs[1] else None


def with_window(array: Array, value: Any, target: tuple[Any, ...], source: tuple[Any, ...], memory: int) -> Array:
    """A copy with another value at a strided window of its memory."""
    flat = np.zeros(memory, array.dtype)
    flat[strided_places(*target)] = array
    flat[strided_places(*source)] = value
    return np.ascontiguousarray(flat[strided_places(*target)]).reshape(array.shape)


# ---------------------------------------------------------------- faces
def element_index(function: str, input: Tensor, dim: int, index: Tensor) -> tuple[Tensor, int]:
    """An int64 index of the input's rank and within bounds, and the axis. Raises as torch."""
    need_tensor(function, "index", 2, index)
    at = wrap_dim(dim, input.ndim)
    if index.meta.numel == 0:
        return index if index.meta.dtype == LONG else index.long(), at
    if not is_index(index):
        raise RuntimeError(f"{function}(): Expected dtype int32/int64 for index")
    if max(index.ndim, 1) != max(input.ndim, 1):
        raise RuntimeError(
            f"Index tensor must have the same number of dimensions as {'input' if function == 'gather' else 'self'} tensor"
        )
    bad = outside(index.array, input.shape[at] if input.ndim else 1)
    if bad is not None:
        raise RuntimeError(
            f"index {bad} is out of bounds for dimension {at} with size {input.shape[at] if input.ndim else 1}"
        )
    return index if index.meta.dtype == LONG else index.long(), at


@composite
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False, out: Any = None) -> Tensor:
    """out[i, j] = input[index[i, j], j] for dim 0, and so on. RuntimeError where an index is out of range."""
    index, at = element_index("gather", input, dim, index)
    if index.meta.numel:
        for k, (n, m) in enumerate(zip(index.shape, input.shape, strict=False)):
            if k != at and n > m:
                raise RuntimeError(f"Size does not match at dimension {k} expected index {bracketed(index.shape)} to be no larger than self "
                                   f"{bracketed(input.shape)} apart from dimension {at}")  # fmt: skip
    return into("gather", out, gather_op(input, index, at), input, index)


def check_scatter(input: Tensor, at: int, index: Tensor, src: Tensor | None) -> None:
    """RuntimeError unless the index fits into the input (but along the axis) and into `src`."""
    if index.meta.numel == 0:
        return
    if src is not None and max(index.ndim, 1) != max(src.ndim, 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    fits = all(k == at or n <= m for k, (n, m) in enumerate(zip(index.shape, input.shape, strict=False)))
    if not fits or (src is not None and any(n > m for n, m in zip(index.shape, src.shape, strict=False))):
        tail = f" and to be no larger size than src {bracketed(src.shape)}" if src is not None else ""
        raise RuntimeError(
            f"Expected index {bracketed(index.shape)} to be no larger than self {bracketed(input.shape)} apart from dimension {at}{tail}"
        )


def check_src(input: Tensor, src: Tensor) -> None:
    """RuntimeError unless the dtypes agree."""
    if src.meta.dtype != input.meta.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")


@composite(inplace="write")
def scatter(
    input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Tensor:
    """`input` with out[index[i, j], j] = src[i, j] for dim 0, and so on; `src` is a tensor or a number.

    RuntimeError where an index is out of range. `reduce` is 'add' or 'multiply' and takes no gradient, as in torch.
    """
    src = value if src is None else src
    if reduce is not None:
        return scatter_reducing(input, dim, index, src, reduce)
    index, at = element_index("scatter", input, dim, index)
    if not hasattr(src, "meta"):
        check_scatter(input, at, index, None)
        return scatter_value_op(input, index, at, src) if index.meta.numel else input.clone()
    check_src(input, src)
    check_scatter(input, at, index, src)
    return scatter_op(input, src, index, at) if index.meta.numel else input.clone()


@composite(inplace="write")
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """`input` with out[index[i, j], j] += src[i, j] for dim 0, and so on; repeated indices add up."""
    need_tensor("scatter_add", "src", 3, src)
    index, at = element_index("scatter", input, dim, index)
    check_src(input, src)
    check_scatter(input, at, index, src)
    return scatter_add_op(input, src, index, at) if index.meta.numel else input.clone()


def scatter_reducing(input: Tensor, dim: int, index: Tensor, src: Any, reduce: str) -> Tensor:
    """torch's old `scatter(reduce=...)`: values only."""
    if reduce not in ("add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    if hasattr(src, "meta"):
        warnings.warn("The reduce argument of torch.scatter with Tensor src is deprecated and will be removed in a future PyTorch release. Use "
                      "torch.scatter_reduce instead for more reduction options.", UserWarning, stacklevel=4)  # fmt: skip
        check_src(input, src)
    index, at = element_index("scatter", input, dim, index)
    check_scatter(input, at, index, src if hasattr(src, "meta") else None)
    return (
        scatter_values_op(input, src, index, at, reduce)
        if hasattr(src, "meta")
        else scatter_number_op(input, index, at, src, reduce)
    )


@general(node="NotImplemented", name="scatter.reduce")
def scatter_values_op(input: Array, src: Array, index: Index, dim: int, reduce: str) -> Array:
    return combined(input, index, dim, np.ascontiguousarray(box(src, index)).reshape(-1), reduce)


@general(node="NotImplemented", name="scatter.value_reduce")
def scatter_number_op(input: Array, index: Index, dim: int, value: Any, reduce: str) -> Array:
    return combined(input, index, dim, np.asarray(value).astype(input.dtype), reduce)


def combined(array: Array, index: Array, dim: int, values: Array, reduce: str) -> Array:
    """A copy with values added to, or multiplied into, the elements at an index."""
    result = copied(array)
    (np.add if reduce == "add" else np.multiply).at(
        result.reshape(-1), element_places(index, dim, array.shape).reshape(-1), values
    )
    return result


@composite
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """`gather` where input and indices broadcast against each other and indices may count from the end; all elements without `dim`."""
    need_tensor("take_along_dim", "indices", 2, indices)
    if indices.meta.dtype != LONG:
        raise RuntimeError(
            f"torch.take_along_dim(): dtype of indices should be Long but got {indices.meta.kind.scalar_name}"
        )
    if dim is None:
        return input.view(-1).gather(0, counted_op(indices.view(-1), input.meta.numel))
    if indices.ndim != input.ndim:
        raise RuntimeError(f"torch.take_along_dim(): input and indices should have the same number of dimensions, but got {input.ndim} dimensions "
                           f"for input, and {indices.ndim} dimensions for indices")  # fmt: skip
    at = wrap_dim(dim, input.ndim)
    counted = counted_op(indices, input.shape[at] if input.ndim else 1)
    common = (
        broadcast_shapes(*[(*x.meta.shape[:at], 1, *x.meta.shape[at + 1 :]) for x in (input, indices)])
        if input.ndim
        else ()
    )
    own, other = (
        (*common[:at], n, *common[at + 1 :]) if common else ()
        for n in (input.shape[at] if common else 1, indices.shape[at] if common else 1)
    )
    return input.broadcast_to(own).gather(at, counted.broadcast_to(other))


def check_piece(src: Tensor, shape: Sequence[int]) -> None:
    """RuntimeError unless `src` has the shape of the piece it replaces."""
    if src.meta.shape != tuple(shape):
        raise RuntimeError(f"expected src to have a size equal to the slice of self. src size = {bracketed(src.shape)}, slice size = "
                           f"{bracketed(tuple(shape))}")  # fmt: skip


@composite
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy of `input` with `src` in place of `input.select(dim, index)`."""
    at, piece = wrap_dim(dim, input.ndim), input.detach().select(dim, index)
    check_piece(src, piece.shape)
    return select_scatter_op(input, src, (*(slice(None),) * at, index % input.shape[at]))


@composite
def slice_scatter(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """A copy of `input` with `src` in place of a slice along an axis."""
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    at = wrap_dim(dim, input.ndim, wrap_scalar=False)
    first, last, by = slice(start, end, step).indices(input.shape[at])
    check_piece(src, (*input.shape[:at], len(range(first, last, by)), *input.shape[at + 1 :]))
    return slice_scatter_op(input, src, (*(slice(None),) * at, slice(first, max(first, last), by)))


@composite
def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A copy of `input` with `src` in place of a diagonal."""
    check_piece(src, input.detach().diagonal(offset, dim1, dim2).shape)
    return diagonal_scatter_op(input, src, offset, wrap_dim(dim1, input.ndim), wrap_dim(dim2, input.ndim))


@composite
def as_strided_scatter(
    input: Tensor, src: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """A copy of `input` with `src` in place of `input.as_strided(size, stride, storage_offset)`."""
    window, memory = strided_window("as_strided_scatter", input, size, stride, storage_offset)
    check_piece(src, window[0])
    own = (input.meta.shape, input.stride(), strided_start(input))
    return as_strided_scatter_op(input, src, own, window, memory)
