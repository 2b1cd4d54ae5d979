"""Order: sort, topk, kthvalue, unique, searching. NaN counts as the largest. Equal elements keep their order."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.shapes import wrap_dim
from .._kernels import order as kernels
from .kinds import Array, Index, Tensor, composite, general, linear
from .outputs import into
from .places import COMPILED, add_along, take_along
from .results import KthValueResult, SortResult, TopkResult

LONG = np.dtype(np.int64)


# ---------------------------------------------------------------- ops
@general(name="_order", differentiable=())
def order_op(input: Array, dim: int, descending: bool) -> Array:
    """The indices that sort along an axis; stable in both directions."""
    if not input.ndim:
        return np.zeros((), LONG)
    if not descending:
        return np.ascontiguousarray(np.argsort(input, dim, kind="stable"))
    found = np.argsort(np.flip(input, dim), dim, kind="stable")
    return np.ascontiguousarray(input.shape[dim] - 1 - np.flip(found, dim))


@general(name="_leading", differentiable=())
def leading_op(input: Array, dim: int, k: int, largest: bool) -> Array:
    """The indices of the k largest (or smallest) elements along an axis, in order."""
    if not input.ndim:
        return np.zeros((), LONG)
    n = input.shape[dim]
    if input.dtype.char in COMPILED and k <= 32 and input.size:
        rows = np.ascontiguousarray(np.moveaxis(input, dim, -1))
        out = np.empty((*rows.shape[:-1], k), LONG)
        kernels.leading[rows.dtype](rows, rows.size // n, n, k, 1.0 if largest else -1.0, out)
        return np.ascontiguousarray(np.moveaxis(out, -1, dim))
    if k * 8 > n or n < 64:
        return np.ascontiguousarray(np.take(order_op.function(input, dim, largest), range(k), dim))
    part = np.argpartition(input, n - k if largest else k, dim)
    part = np.take(part, range(n - k, n) if largest else range(k), dim)
    ranks = order_op.function(np.take_along_axis(input, part, dim), dim, largest)
    return np.ascontiguousarray(np.take_along_axis(part, ranks, dim))


def at_index(node: str, name: str) -> Any:
    """A linear op that takes elements along an axis by an index, under torch's name for its node."""

    @linear(node=node, name=name)
    def op(input: Array, index: Index, dim: int) -> Array:
        return take_along(input, index, dim)

    @op.adjoint
    def _(grad: Array, index: Array, like: Any, dim: int) -> Array:
        full = np.zeros(like[0].shape, grad.dtype)
        add_along(full, index, dim, grad)
        return full

    return op


sorted_op = at_index("SortBackward0", "_sorted")
stable_sorted_op = at_index("SortBackward1", "_stable_sorted")
topk_op = at_index("TopkBackward0", "_topk")


@linear(node="KthvalueBackward0", name="_kthvalue")
def kthvalue_op(input: Array, index: Index, dim: int, keepdim: bool) -> Array:
    """`index` has the shape of the result."""
    if keepdim or not input.ndim:
        return take_along(input, index, dim)
    return take_along(input, np.expand_dims(index, dim), dim).reshape(index.shape)


@kthvalue_op.adjoint
def _(grad: Array, index: Array, like: Any, dim: int, keepdim: bool) -> Array:
    full = np.zeros(like[0].shape, grad.dtype)
    if not keepdim and full.ndim:
        grad, index = np.expand_dims(grad, dim), np.expand_dims(index, dim)
    add_along(full, index, dim, grad)
    return full


@general(node="Unique2Backward0", name="_unique2", outputs=3)
def unique_op(input: Array) -> tuple[Array, Array, Array]:
    values, inverse, counts = np.unique(input, return_inverse=True, return_counts=True, equal_nan=False)
    return values, inverse.reshape(input.shape).astype(LONG), counts.astype(LONG)


@general(node="UniqueDimBackward0", name="unique_dim", outputs=3)
def unique_dim_op(input: Array, dim: int) -> tuple[Array, Array, Array]:
    values, inverse, counts = np.unique(input, return_inverse=True, return_counts=True, axis=dim, equal_nan=False)
    return np.ascontiguousarray(values), inverse.reshape(-1).astype(LONG), counts.astype(LONG)


@general(node="UniqueConsecutiveBackward0", name="unique_consecutive", outputs=3)
def unique_consecutive_op(input: Array, dim: int | None) -> tuple[Array, Array, Array]:
    count = input.size if dim is None else input.shape[dim]
    rows = (
        input.reshape(-1, 1) if dim is None else np.moveaxis(input, dim, 0).reshape(count, input.size // max(count, 1))
    )
    new = np.ones(len(rows), bool)
    new[1:] = (rows[1:] != rows[:-1]).any(1)
    starts = np.flatnonzero(new)
    inverse = (np.cumsum(new) - 1).astype(LONG)
    values = input.reshape(-1)[starts] if dim is None else np.ascontiguousarray(np.take(input, starts, dim))
    return (
        values,
        inverse.reshape(input.shape) if dim is None else inverse,
        np.diff(starts, append=len(rows)).astype(LONG),
    )


# ---------------------------------------------------------------- faces
@composite
def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool | None = None) -> Any:
    """The elements in order along an axis, and where each of them was."""
    at = wrap_dim(dim, input.ndim)
    indices = order_op(input, at, bool(descending))
    return SortResult((sorted_op if stable is None else stable_sorted_op)(input, indices, at), indices)


@composite
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """The indices that put the elements in order along an axis."""
    return order_op(input, wrap_dim(dim, input.ndim), bool(descending))


@composite
def msort(input: Tensor) -> Tensor:
    """The elements in order along the first axis."""
    return sort(input, 0)[0]


@composite
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """The k largest (or smallest) elements along an axis, in order, and where each of them was."""
    at = wrap_dim(dim, input.ndim)
    if not 0 <= k <= (input.shape[at] if input.ndim else 1):
        raise RuntimeError("selected index k out of range")
    indices = leading_op(input, at, k, bool(largest))
    return TopkResult(topk_op(input, indices, at), indices)


@composite
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False, *, out: Any = None) -> Any:
    """The k-th smallest element along an axis (counted from 1), and where it was."""
    at = wrap_dim(dim, input.ndim)
    length = input.shape[at] if input.ndim else 1
    if input.ndim and length == 0:
        raise IndexError(f"kthvalue(): Expected reduction dim {at} to have non-zero size.")
    if not 1 <= k <= length:
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {at}")
    order = order_op(input, at, False)
    index = order.narrow(at, k - 1, 1).contiguous() if input.ndim else order
    place = index if keepdim or not input.ndim else index.squeeze(at).clone()
    value = kthvalue_op(input, place, at, keepdim)
    values, places = (None, None) if out is None else out
    return KthValueResult(into("kthvalue", values, value, input), into("kthvalue", places, place, input))


@composite
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The different elements in order, or the different slices along an axis; with `return_inverse` and `return_counts` a tuple."""
    found = unique_op(input) if dim is None else unique_dim_op(input, wrap_dim(dim, input.ndim))
    return chosen(found, return_inverse, return_counts)


@composite
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The elements without those equal to the one before, or slices along an axis."""
    return chosen(
        unique_consecutive_op(input, None if dim is None else wrap_dim(dim, input.ndim)), return_inverse, return_counts
    )


def chosen(found: Any, inverse: bool, counts: bool) -> Any:
    """The values, with the inverse and the counts where wanted."""
    wanted = (found[0], *((found[1],) if inverse else ()), *((found[2],) if counts else ()))
    return wanted if len(wanted) > 1 else wanted[0]
