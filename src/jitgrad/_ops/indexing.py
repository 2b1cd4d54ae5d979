"""Reading and writing along one axis, by mask, or by what stands in brackets. Repeated indices add up in every gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.errors import argument_error, bracketed
from .._core.meta import Meta
from .._core.shapes import broadcast_shapes, wrap_dim
from .kinds import Array, Index, Tensor, composite, general, linear
from .outputs import into
from .places import Key, add_by_key, add_rows, key_shape, numpy_key, outside, take_rows

LONG = np.dtype(np.int64)


def need_tensor(function: str, argument: str, position: int, value: Any) -> None:
    """TypeError unless `value` is a tensor."""
    if not hasattr(value, "meta"):
        raise argument_error(function, argument, position, "Tensor", value)


def copied(array: Array) -> Array:
    """A C-contiguous copy."""
    return np.array(array, order="C", copy=True)


# ---------------------------------------------------------------- brackets
@linear(node="IndexBackward0", name="_index")
def index_op(input: Array, key: Key) -> Array:
    return np.ascontiguousarray(input[numpy_key(key)])


@index_op.adjoint
def _(grad: Array, like: Meta, key: Key) -> Array:
    full = np.zeros(like.shape, grad.dtype)
    add_by_key(full, key, grad)
    return full


@linear(node="IndexPutBackward0", name="_index_put")
def index_put_op(input: Array, values: Array, key: Key, accumulate: bool = False) -> Array:
    result = copied(input)
    if accumulate:
        add_by_key(result, key, values)
    else:
        result[numpy_key(key)] = values
    return result


@index_put_op.adjoint
def _(grad: Array, needs: tuple[bool, bool], key: Key, accumulate: bool) -> tuple[Array | None, Array | None]:
    kept = None
    if needs[0]:
        kept = grad if accumulate else copied(grad)
        if not accumulate:
            kept[numpy_key(key)] = 0
    return kept, np.ascontiguousarray(grad[numpy_key(key)]) if needs[1] else None


for _op in (index_op, index_put_op):
    _op.saves = (("indices", ()),)  # torch counts them among the saved values: a second backward raises


def put_by_key(input: Tensor, key: Key, values: Tensor, accumulate: bool = False) -> Tensor:
    """`input` with `values`, of its dtype, at the places of a key. RuntimeError unless they broadcast to these."""
    shape = fitting_shape(input.meta.shape, key, values.meta.shape)
    return index_put_op(input, values if shape == values.meta.shape else values.reshape(shape), key, accumulate)


def fitting_shape(input: tuple[int, ...], key: Key, values: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of values, without ones in front that are too many. RuntimeError unless they broadcast to what a key takes."""
    target, shape = key_shape(input, key), values
    while len(shape) > len(target) and shape[0] == 1:
        shape = shape[1:]
    if len(shape) > len(target) or any(
        n not in (1, m) for n, m in zip(reversed(shape), reversed(target), strict=False)
    ):
        raise RuntimeError(f"shape mismatch: value tensor of shape {bracketed(values)} cannot be broadcast to indexing result of shape "
                           f"{bracketed(target)}")  # fmt: skip
    return shape


# ---------------------------------------------------------------- along one axis
@linear(node="IndexSelectBackward0", name="_index_select")
def index_select_op(input: Array, index: Index, dim: int) -> Array:
    return take_rows(input, index, dim)


@index_select_op.adjoint
def _(grad: Array, index: Array, like: Any, dim: int) -> Array:
    full = np.zeros(like[0].shape, grad.dtype)
    add_rows(full, index, grad, dim)
    return full


@linear(node="IndexAddBackward0", name="_index_add")
def index_add_op(input: Array, source: Array, index: Index, dim: int, alpha: Any) -> Array:
    result = copied(input)
    add_rows(result, index, scaled(source, alpha), dim)
    return result


def scaled(array: Array, alpha: Any) -> Array:
    """alpha times an array, in its dtype."""
    return array if alpha == 1 else np.asarray(array * np.asarray(alpha).astype(array.dtype))


@index_add_op.adjoint
def _(grad: Array, needs: tuple[bool, bool], index: Array, dim: int, alpha: Any) -> tuple[Array | None, Array | None]:
    return grad if needs[0] else None, scaled(take_rows(grad, index, dim), alpha) if needs[1] else None


index_add_op.saves = (("index", (1,)),)  # only the gradient of `source` reads it


@linear(node="IndexCopyBackward0", name="_index_copy")
def index_copy_op(input: Array, source: Array, index: Index, dim: int) -> Array:
    return replaced(input, index, dim, source)


@index_copy_op.adjoint
def _(grad: Array, needs: tuple[bool, bool], index: Array, dim: int) -> tuple[Array | None, Array | None]:
    return replaced(grad, index, dim, 0) if needs[0] else None, take_rows(grad, index, dim) if needs[1] else None


def replaced(array: Array, index: Array, dim: int, value: Any) -> Array:
    """A copy with other values at the indices along an axis."""
    result = copied(array)
    if result.ndim:
        result[(slice(None),) * dim + (index,)] = value
    elif index.size:
        result[...] = value
    return result


@general(node="IndexFillBackward0", name="_index_fill", saves=("index",))
def index_fill_op(input: Array, index: Index, dim: int, value: Any) -> Array:
    return replaced(input, index, dim, np.asarray(value).astype(input.dtype))


@index_fill_op.rule
def _(grad: Tensor, index: Tensor, dim: int) -> Tensor:
    return grad.index_fill(dim, index, 0)


@general(node="IndexFillBackward1", name="_index_fill_by", saves=("index",))
def index_fill_by_op(input: Array, value: Array, index: Index, dim: int) -> Array:
    return replaced(input, index, dim, value.astype(input.dtype))


@index_fill_by_op.rule
def _(grad: Tensor, needs: tuple[bool, bool], index: Tensor, dim: int) -> tuple[Tensor | None, Tensor | None]:
    return grad.index_fill(dim, index, 0) if needs[0] else None, grad.index_select(dim, index.unique()).sum() if needs[
        1
    ] else None


# ---------------------------------------------------------------- by mask
@linear(node="MaskedSelectBackward0", name="_masked_select")
def masked_select_op(input: Array, mask: Index) -> Array:
    shape = np.broadcast_shapes(input.shape, mask.shape)
    return np.asarray(np.broadcast_to(input, shape)[np.broadcast_to(mask, shape)])


@masked_select_op.adjoint
def _(grad: Array, mask: Array, like: Any) -> Array:
    full = np.zeros(np.broadcast_shapes(like[0].shape, mask.shape), grad.dtype)
    full[np.broadcast_to(mask, full.shape)] = grad
    return full


@linear(node="MaskedScatterBackward0", name="_masked_scatter")
def masked_scatter_op(input: Array, source: Array, mask: Index) -> Array:
    result = copied(input)
    where = np.broadcast_to(mask, result.shape)
    result[where] = source.reshape(-1)[: np.count_nonzero(where)]
    return result


@masked_scatter_op.adjoint
def _(grad: Array, needs: tuple[bool, bool], mask: Array, like: Any) -> tuple[Array | None, Array | None]:
    where = np.broadcast_to(mask, grad.shape)
    kept = spread = None
    if needs[0]:
        kept = copied(grad)
        kept[where] = 0
    if needs[1]:
        spread = np.zeros(like[1].shape, grad.dtype)
        taken = grad[where]
        spread.reshape(-1)[: taken.size] = taken
    return kept, spread


def counted(index: Array, length: int) -> Array:
    """Indices counted from 0."""
    return np.where(index < 0, index + length, index) if index.size else index


@general(name="_counted", differentiable=())
def counted_op(input: Array, length: int) -> Array:
    return counted(input, length)


# ---------------------------------------------------------------- faces
def vector_index(function: str, input: Tensor, dim: int, index: Tensor, kind: type[Exception]) -> tuple[Tensor, int]:
    """An int64 vector within bounds and the axis, counted from 0."""
    at = wrap_dim(dim, input.ndim)
    if index.meta.dtype != LONG:
        index = index.long()
    if not index.ndim:
        index = index.view(1)
    length = input.shape[at] if input.ndim else 1
    bad = outside(index.array, length)
    if bad is not None:
        message = (
            "index out of range in self"
            if function == "index_select"
            else f"index {bad} is out of bounds for dimension {at} with size {length}"
        )
        raise kind(f"{function}_(): {message}" if function == "index_copy" else message)
    return index, at


def is_index(index: Tensor) -> bool:
    """Whether a tensor is of int64 or int32."""
    return index.meta.kind.name in ("int64", "int32")


@composite
def index_select(input: Tensor, dim: int, index: Tensor, *, out: Any = None) -> Tensor:
    """The slices at the indices of a vector along an axis, as a copy. IndexError where one is out of range."""
    need_tensor("index_select", "index", 2, index)
    wrap_dim(dim, input.ndim)
    if index.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if not is_index(index):
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    if not input.ndim and index.meta.numel != 1:
        raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {index.meta.numel} value(s)")
    index, at = vector_index("index_select", input, dim, index, IndexError)
    return into("index_select", out, index_select_op(input, index, at), input, index)


@composite(inplace="write")
def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    """`input` with `alpha` times the slices of `source` added at the indices of a vector along an axis."""
    at = wrap_dim(dim, input.ndim)
    if index.ndim > 1:
        kind = index.meta.kind.scalar_name
        raise IndexError(
            f"index_add_(): Index is supposed to be a vector, but got dim: {index.ndim} with type: {kind} and size: {bracketed(index.shape)}"
        )
    if not is_index(index):
        raise RuntimeError(f"index_add_(): Expected dtype int32/int64 for index but got: {index.meta.kind.scalar_name}")
    if input.meta.dtype != source.meta.dtype:
        raise RuntimeError(
            f"index_add_(): self ({input.meta.kind.scalar_name}) and source ({source.meta.kind.scalar_name}) must have the same scalar type"
        )
    count = source.shape[at] if source.ndim > at else 1
    if index.meta.numel != count:
        raise RuntimeError(
            f"index_add_(): Number of indices ({index.meta.numel}) should be equal to source.size(dim): ({count}), for dim: {at}"
        )
    if source.ndim != input.ndim or any(
        a != b for k, (a, b) in enumerate(zip(input.shape, source.shape, strict=True)) if k != at
    ):
        raise RuntimeError("source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
                           f"{bracketed(input.shape)} source.shape = {bracketed(source.shape)}")  # fmt: skip
    if isinstance(alpha, float) and not input.meta.kind.is_floating_point:
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    index, at = vector_index("index_add", input, dim, index, RuntimeError)
    return index_add_op(input, source, index, at, alpha)


@composite(inplace="write")
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """`input` with the slices of `source` in place of those at the indices of a vector along an axis."""
    at = wrap_dim(dim, input.ndim)
    if index.ndim > 1:
        raise IndexError(f"index_copy_(): Index should have dimension 1 or 0 (got {index.ndim})")
    if input.ndim != source.ndim and input.ndim and source.ndim:
        raise IndexError(f"index_copy_(): When source and destination are not scalars, their dimensionality must match. Source dimensionality "
                         f"({source.ndim}), destination dimensionality ({input.ndim})")  # fmt: skip
    if index.meta.dtype != LONG:
        raise RuntimeError(f"index_copy_(): Expected a long tensor for index, but got {index.meta.kind.scalar_name}")
    if input.meta.dtype != source.meta.dtype:
        raise RuntimeError(f"index_copy_(): self and source expected to have the same dtype, but got (self) {input.meta.kind.scalar_name} and "
                           f"(source) {source.meta.kind.scalar_name}")  # fmt: skip
    slices = [bracketed((*x.shape[:at], *x.shape[at + 1 :]))[1:-1] for x in (input, source)]
    if slices[0] != slices[1]:
        raise RuntimeError(f"index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: {slices[0]} at dimension "
                           f"{at} and source slice shape: {slices[1]} at dimension 0.")  # fmt: skip
    if source.ndim and index.meta.numel != source.shape[at]:
        raise IndexError(
            f"index_copy_(): Number of indices ({index.meta.numel}) should be equal to source.size(dim) ({source.shape[at]})"
        )
    index, at = vector_index("index_copy", input, dim, index, IndexError)
    return index_copy_op(input, source, index, at)


@composite(inplace="write")
def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """`input` with one value at the indices of a vector along an axis; negative ones count from the end."""
    at = wrap_dim(dim, input.ndim)
    if isinstance(value, complex):
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    if index.meta.dtype != LONG:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if index.ndim > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    length = input.shape[at] if input.ndim else 1
    low = index.array[index.array < -length]
    if low.size:
        raise IndexError(f"index {int(low[0])} is out of bounds for dimension {at} with size {length}")
    index, at = vector_index("index_fill", input, dim, counted_op(index, length), IndexError)
    if not hasattr(value, "meta"):
        return index_fill_op(input, index, at, value)
    if value.ndim:
        raise RuntimeError(
            f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
        )
    return index_fill_by_op(input, value, index, at)


@composite
def masked_select(input: Tensor, mask: Tensor, *, out: Any = None) -> Tensor:
    """The elements where `mask` is True, as a vector; the two broadcast."""
    need_tensor("masked_select", "mask", 1, mask)
    if mask.meta.dtype != np.bool_:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    broadcast_shapes(mask.meta.shape, input.meta.shape)
    return into("masked_select", out, masked_select_op(input, mask), input, mask)


@composite(inplace="write")
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """`input` with the elements of `source`, in order, where `mask` is True; the first two broadcast."""
    if mask.meta.dtype != np.bool_:
        raise RuntimeError(
            f"masked_scatter_ only supports boolean masks, but got mask with dtype {mask.meta.kind.scalar_name}"
        )
    if input.meta.dtype != source.meta.dtype:
        raise RuntimeError(f"masked_scatter: expected self and source to have same dtypes but got{input.meta.kind.scalar_name} and "
                           f"{source.meta.kind.scalar_name}")  # fmt: skip
    shape = broadcast_shapes(mask.meta.shape, input.meta.shape)
    if np.count_nonzero(np.broadcast_to(mask.array, shape)) > source.meta.numel:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    return masked_scatter_op(input if input.meta.shape == shape else input.expand(shape), source, mask)
