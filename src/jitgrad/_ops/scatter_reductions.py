"""`scatter_reduce` and `index_reduce`: sums, products, means and extremes by index. Tied extremes share a gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.shapes import wrap_dim
from .indexing import copied
from .kinds import Array, Dispatch, Index, Tensor, composite, general
from .places import element_places
from .scattering import box, check_scatter, check_src, element_index

SEVERAL_ZEROS = (  # the derivative is 0 there, but where there are two its own is not
    "scatter_reduce(): Double backward is unsupported for src when >1 zeros in src are scattered to the same position in self"
)
REDUCTIONS = {"sum": np.add, "prod": np.multiply, "mean": np.add, "amax": np.maximum, "amin": np.minimum}


def combine(input: Array, src: Array, index: Array, dim: int, reduce: str, include_self: bool) -> Array:
    """What `scatter_reduce` returns."""
    result, places = copied(input), element_places(index, dim, input.shape).reshape(-1)
    flat, values = result.reshape(-1), box(src, index).reshape(-1)
    if not include_self:
        flat[places] = neutral(reduce, result.dtype)
    with np.errstate(all="ignore"):
        REDUCTIONS[reduce].at(flat, places, values)
        if reduce == "mean":
            counts = np.bincount(places, minlength=flat.size) + bool(include_self)
            counts[counts == 0] = 1
            flat[...] = flat / counts if result.dtype.kind == "f" else flat // counts.astype(result.dtype)
    return result


def neutral(reduce: str, dtype: np.dtype[Any]) -> Any:
    """The value that a reduction starts from."""
    if reduce in ("amax", "amin"):
        if dtype.kind == "f":
            return -np.inf if reduce == "amax" else np.inf
        if dtype.kind == "b":
            return reduce == "amin"
        return np.iinfo(dtype).min if reduce == "amax" else np.iinfo(dtype).max
    return 1 if reduce == "prod" else 0


@general(node="ScatterReduceBackward0", name="scatter_reduce", saves=("input", "src", "index", "result"))
def scatter_reduce_op(input: Array, src: Array, index: Index, dim: int, reduce: str, include_self: bool) -> Array:
    return combine(input, src, index, dim, reduce, include_self)


@general(node="IndexReduceBackward0", name="index_reduce", saves=("input", "src", "index", "result"))
def index_reduce_op(input: Array, src: Array, index: Index, dim: int, reduce: str, include_self: bool) -> Array:
    """`index` is expanded to the shape of `src`."""
    return combine(input, src, index, dim, reduce, include_self)


for _op in (scatter_reduce_op, index_reduce_op):

    @_op.rule
    def _(
        grad: Tensor,
        input: Tensor,
        src: Tensor,
        index: Tensor,
        result: Tensor,
        dim: int,
        reduce: str,
        include_self: bool,
    ) -> tuple[Tensor, Tensor]:
        rule = {"sum": sum_rule, "mean": mean_rule, "prod": prod_rule}.get(reduce, extreme_rule)
        own, other = rule(grad, input, src, index, result, dim, include_self)
        return own if include_self else own.scatter(dim, index, 0), other


def sum_rule(
    grad: Tensor, input: Tensor, src: Tensor, index: Tensor, result: Tensor, dim: int, include_self: bool
) -> tuple[Tensor, Tensor]:
    return grad, fitted(grad.gather(dim, index), src)


def mean_rule(
    grad: Tensor, input: Tensor, src: Tensor, index: Tensor, result: Tensor, dim: int, include_self: bool
) -> tuple[Tensor, Tensor]:
    counts = grad.new_full(grad.meta.shape, 1 if include_self else 0)
    counts = counts.scatter_add(dim, index, grad.new_ones(index.meta.shape))
    counts = counts.masked_fill(counts == 0, 1)
    return grad / counts, fitted((grad / counts).gather(dim, index), src)


def prod_rule(
    grad: Tensor, input: Tensor, src: Tensor, index: Tensor, result: Tensor, dim: int, include_self: bool
) -> tuple[Tensor, Tensor]:
    """Products of all others: a single zero among them keeps its gradient."""
    part = fitted(src, index)
    safe = input.masked_fill(input == 0, 1)
    own = grad * safe.scatter_reduce(dim, index, part, "prod", include_self=include_self) / safe
    zero = part == 0
    zeros = grad.new_zeros(grad.meta.shape).scatter_add(dim, index, zero.to(grad.dtype)).gather(dim, index)
    single = zero & (zeros == 1)
    filled = part.masked_fill(single, 1)
    others = input.scatter_reduce(dim, index, filled, "prod", include_self=include_self)
    rest = (grad * result).gather(dim, index) / part.masked_fill(zero, 1)
    other = fitted((grad * others).gather(dim, index).where(single, rest), src)
    return own, Dispatch.refuse(other, SEVERAL_ZEROS) if other.requires_grad and bool((zeros > 1).any()) else other


def extreme_rule(
    grad: Tensor, input: Tensor, src: Tensor, index: Tensor, result: Tensor, dim: int, include_self: bool
) -> tuple[Tensor, Tensor]:
    chosen = (fitted(src, index) == result.gather(dim, index)).to(grad.dtype)
    own = (input == result).to(grad.dtype)
    counts = own.scatter(dim, index, 0) if not include_self else own
    counts = counts.scatter_add(dim, index, chosen)
    shared = grad / counts.masked_fill(counts == 0, 1)
    return own * shared, fitted(chosen * shared.gather(dim, index), src)


def fitted(tensor: Tensor, like: Tensor) -> Tensor:
    """Cut, or padded with zeros, to the shape of another tensor."""
    for axis, (n, m) in enumerate(zip(tensor.meta.shape, like.meta.shape, strict=False)):
        if n > m:
            tensor = tensor.narrow(axis, 0, m)
        elif n < m:
            shape = list(tensor.meta.shape)
            shape[axis] = m
            tensor = tensor.new_zeros(shape).slice_scatter(tensor, axis, 0, n)
    return tensor


def check_reduce(function: str, reduce: str) -> None:
    """RuntimeError for a word that names no reduction."""
    if reduce not in REDUCTIONS or (function == "index_reduce" and reduce == "sum"):
        if function == "index_reduce":
            raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")


@composite(inplace="write")
def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """`input` reduced with the elements of `src` that an index sends there: 'sum', 'prod', 'mean', 'amax' or 'amin'."""
    check_reduce("scatter_reduce", reduce)
    index, at = element_index("scatter", input, dim, index)
    check_src(input, src)
    check_scatter(input, at, index, src)
    return scatter_reduce_op(input, src, index, at, reduce, include_self) if index.meta.numel else input.clone()


@composite(inplace="write")
def index_reduce(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """`input` reduced with the slices of `source` that the indices of a vector send there: 'prod', 'mean', 'amax' or 'amin'."""
    at = wrap_dim(dim, input.ndim)
    check_reduce("index_reduce", reduce)
    check_src(input, source)
    if input.ndim:
        index = index.view((-1,) + (1,) * (input.ndim - at - 1)).expand(source.meta.shape)
    index, at = element_index("index_reduce", input, dim, index)
    return index_reduce_op(input, source, index, at, reduce, include_self) if index.meta.numel else input.clone()
