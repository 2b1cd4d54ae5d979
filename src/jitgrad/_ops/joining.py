"""Joining tensors along an old axis or a new one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core.dtypes import Category, dtype as Dtype, result_dtype
from .._core.errors import argument_error, bracketed
from .._core.meta import Meta
from .._core.shapes import wrap_dim
from .broadcasting import atleast_1d, atleast_2d, atleast_3d
from .kinds import Array, Arrays, Tensor, composite, linear
from .outputs import into

Shape = tuple[int, ...]


# ---------------------------------------------------------------- ops
@linear(node="CatBackward0", name="_cat")
def cat_op(inputs: Arrays, dim: int, kind: Dtype) -> Array:
    """In dtype `kind`; inputs of shape (0,) count for nothing."""
    parts = [x for x in inputs if x.shape != (0,)] or list(inputs)
    shape = list(parts[0].shape)
    shape[dim] = sum(x.shape[dim] for x in parts)
    return np.concatenate(parts, dim, out=np.empty(shape, kind.numpy), casting="unsafe")


@cat_op.adjoint
def _(grad: Array, like: Sequence[Meta], needs: Sequence[bool], dim: int) -> list[Array | None]:
    start, found = 0, []
    for meta, need in zip(like, needs, strict=True):
        if meta.shape == (0,) != grad.shape:
            found.append(np.zeros(0, grad.dtype) if need else None)
            continue
        stop = start + meta.shape[dim]
        found.append(grad[(slice(None),) * dim + (slice(start, stop),)] if need else None)
        start = stop
    return found


@linear(node="StackBackward0", name="_stack")
def stack_op(inputs: Arrays, dim: int, kind: Dtype) -> Array:
    shape = (*inputs[0].shape[:dim], len(inputs), *inputs[0].shape[dim:])
    return np.stack(inputs, dim, out=np.empty(shape, kind.numpy), casting="unsafe")


@stack_op.adjoint
def _(grad: Array, needs: Sequence[bool], dim: int) -> list[Array | None]:
    return [grad[(slice(None),) * dim + (k, ...)] if need else None for k, need in enumerate(needs)]


@linear(node="BlockDiagBackward0", name="_block_diag")
def block_diag_op(inputs: Arrays, kind: Dtype) -> Array:
    matrices = [np.atleast_2d(x) for x in inputs]
    full = np.zeros((sum(x.shape[0] for x in matrices), sum(x.shape[1] for x in matrices)), kind.numpy)
    row = column = 0
    for x in matrices:
        full[row : row + x.shape[0], column : column + x.shape[1]] = x
        row, column = row + x.shape[0], column + x.shape[1]
    return full


@block_diag_op.adjoint
def _(grad: Array, like: Sequence[Meta], needs: Sequence[bool]) -> list[Array | None]:
    row, column, found = 0, 0, []
    for meta, need in zip(like, needs, strict=True):
        rows, columns = (1, 1, *meta.shape)[-2:]
        found.append(grad[row : row + rows, column : column + columns].reshape(meta.shape) if need else None)
        row, column = row + rows, column + columns
    return found


# ---------------------------------------------------------------- arguments
def tensor_list(function: str, tensors: Any) -> list[Any]:
    """The tensors of a list or tuple. TypeError for anything else."""
    if not isinstance(tensors, (tuple, list)):
        raise argument_error(function, "tensors", 1, "tuple of Tensors", tensors)
    for k, x in enumerate(tensors):
        if not hasattr(x, "meta"):
            raise TypeError(f"expected Tensor as element {k} in argument 0, but got {type(x).__name__}")
    return list(tensors)


def common_dtype(tensors: list[Any]) -> Dtype:
    """The dtype the tensors promote to."""
    kind: Dtype = tensors[0].meta.kind
    if all(x.meta.kind is kind for x in tensors):
        return kind
    return result_dtype([(x.meta.kind, Category.DIM if x.ndim else Category.ZERO_DIM) for x in tensors])


def check_joinable(tensors: list[Any], at: int, first: Any) -> None:
    """RuntimeError unless all shapes but empty ones agree away from the axis."""
    for k, x in enumerate(tensors):
        if x.meta.shape == (0,):
            continue
        if x.ndim != first.ndim:
            raise RuntimeError(f"Tensors must have same number of dimensions: got {first.ndim} and {x.ndim}")
        for axis, (n, m) in enumerate(zip(first.shape, x.shape, strict=True)):
            if n != m and axis != at:
                raise RuntimeError(f"Sizes of tensors must match except in dimension {at}. Expected size {n} but got size {m} for tensor number {k} "
                                   "in the list.")  # fmt: skip


# ---------------------------------------------------------------- faces
@composite(method=False, aliases=("concat", "concatenate"))
def cat(tensors: Any, dim: int = 0, *, axis: int | None = None, out: Any = None) -> Tensor:
    """The tensors one after the other along an axis; dtypes promote. RuntimeError unless the other lengths agree."""
    found = tensor_list("cat", tensors)
    if not found:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    meta = found[0].meta
    if out is None and axis is None and meta.shape and all(x.meta is meta for x in found):
        return cat_op(found, wrap_dim(dim, len(meta.shape)), meta.kind)
    for k, x in enumerate(found):
        if not x.ndim:
            raise RuntimeError(f"zero-dimensional tensor (at position {k}) cannot be concatenated")
    first = next((x for x in found if x.meta.shape != (0,)), found[0])
    at = wrap_dim(dim if axis is None else axis, first.ndim)
    check_joinable(found, at, first)
    return into("cat", out, cat_op(found, at, common_dtype(found)), *found)


@composite(method=False)
def stack(tensors: Any, dim: int = 0, *, out: Any = None) -> Tensor:
    """The tensors along a new axis; dtypes promote. RuntimeError unless the shapes agree."""
    found = tensor_list("stack", tensors)
    if not found:
        raise RuntimeError("stack expects a non-empty TensorList")
    at = wrap_dim(dim, found[0].ndim + 1)
    for k, x in enumerate(found):
        if x.meta.shape != found[0].meta.shape:
            raise RuntimeError(f"stack expects each tensor to be equal size, but got {bracketed(found[0].shape)} at entry 0 and {bracketed(x.shape)} "
                               f"at entry {k}")  # fmt: skip
    return into("stack", out, stack_op(found, at, common_dtype(found)), *found)


def some(function: str, tensors: Any) -> list[Any]:
    """A list of tensors that is not empty."""
    found = tensor_list(function, tensors)
    if not found:
        raise RuntimeError(f"{function} expects a non-empty TensorList")
    return found


@composite(method=False)
def hstack(tensors: Any) -> Tensor:
    """The tensors side by side: along the second axis, or the first of vectors."""
    found = atleast_1d(some("hstack", tensors))
    return cat(found, 0 if found[0].ndim == 1 else 1)


@composite(method=False, aliases=("row_stack",))
def vstack(tensors: Any) -> Tensor:
    """The tensors below each other: along the first axis, vectors as rows."""
    return cat(atleast_2d(some("vstack", tensors)), 0)


@composite(method=False)
def dstack(tensors: Any) -> Tensor:
    """The tensors behind each other: along the third axis."""
    return cat(atleast_3d(some("dstack", tensors)), 2)


@composite(method=False)
def column_stack(tensors: Any) -> Tensor:
    """The tensors side by side, vectors as columns."""
    return cat([x if x.ndim > 1 else x.reshape(x.meta.numel, 1) for x in some("column_stack", tensors)], 1)


@composite(method=False)
def block_diag(*tensors: Any) -> Tensor:
    """The matrices along the diagonal of one that is zero elsewhere."""
    for k, x in enumerate(tensors):
        if x.ndim > 2:
            raise RuntimeError(
                f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {k} has {x.ndim} dimensions"
            )
    return block_diag_op(list(tensors), common_dtype(list(tensors)))


@composite(method=False)
def cartesian_prod(*tensors: Any) -> Tensor:
    """All combinations of one element of each vector, a row each."""
    for x in tensors:
        if x.ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {bracketed(x.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    shape = tuple(x.meta.numel for x in tensors)
    grids = [
        x.view((1,) * k + (-1,) + (1,) * (len(shape) - k - 1)).expand(shape).reshape(-1) for k, x in enumerate(tensors)
    ]
    return stack(grids, 1)
