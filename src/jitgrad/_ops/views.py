"""Views: ops whose result shares memory with their input. Each is linear; its adjoint puts the gradient back in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core.dtypes import TENSOR_TYPE_NAME
from .._core.meta import Meta
from .._core.shapes import can_view, expand_shape, infer_size, parse_shape, wrap_dim, wrap_dims
from .kinds import Array, Tensor, composite, linear

Shape = tuple[int, ...]


# ---------------------------------------------------------------- one axis at a time
@linear(view=True, node="SelectBackward0", name="_select")
def select_op(input: Array, dim: int, index: int) -> Array:
    return input[(slice(None),) * dim + (index, ...)]


@select_op.adjoint
def _(grad: Array, like: Meta, dim: int, index: int) -> Array:
    full = np.zeros(like.shape, grad.dtype)
    full[(slice(None),) * dim + (index,)] = grad
    return full


@linear(view=True, node="SliceBackward0", name="_slice")
def slice_op(input: Array, dim: int, start: int, stop: int, step: int) -> Array:
    return input[(slice(None),) * dim + (slice(start, stop, step),)]


@slice_op.adjoint
def _(grad: Array, like: Meta, dim: int, start: int, stop: int, step: int) -> Array:
    full = np.zeros(like.shape, grad.dtype)
    full[(slice(None),) * dim + (slice(start, stop, step),)] = grad
    return full


@linear(view=True, node="UnsqueezeBackward0", name="_unsqueeze")
def unsqueeze_op(input: Array, dim: int) -> Array:
    return np.expand_dims(input, dim)


@unsqueeze_op.adjoint
def _(grad: Array, like: Meta) -> Array:
    return grad.reshape(like.shape)


@linear(view=True, node="SqueezeBackward0", name="_squeeze")
def squeeze_op(input: Array) -> Array:
    return input.reshape(tuple(n for n in input.shape if n != 1))


@linear(view=True, node="SqueezeBackward1", name="_squeeze_dim")
def squeeze_dim_op(input: Array, dim: int) -> Array:
    return input.squeeze(dim) if input.ndim and input.shape[dim] == 1 else input.view()


@linear(view=True, node="SqueezeBackward2", name="_squeeze_dims")
def squeeze_dims_op(input: Array, dims: Shape) -> Array:
    return input.squeeze(dims) if dims else input.view()


@linear(view=True, node="ViewBackward0", name="_view")
def view_op(input: Array, shape: Shape) -> Array:
    result = input.view()
    result.shape = shape
    return result


@linear(view=True, node="AliasBackward0", name="_alias")
def alias_op(input: Array) -> Array:
    return input.view()


for _op in (squeeze_op, squeeze_dim_op, squeeze_dims_op, view_op, alias_op):

    @_op.adjoint
    def _(grad: Array, like: Meta) -> Array:
        return grad.reshape(like.shape)


# ---------------------------------------------------------------- the order of axes
@linear(view=True, node="PermuteBackward0", name="_permute")
def permute_op(input: Array, dims: Shape) -> Array:
    return input.transpose(dims)


@permute_op.adjoint
def _(grad: Array, dims: Shape) -> Array:
    return grad.transpose(tuple(np.argsort(dims)))


@linear(view=True, node="TransposeBackward0", name="_transpose")
def transpose_op(input: Array, dim0: int, dim1: int) -> Array:
    return input.swapaxes(dim0, dim1) if input.ndim else input.view()


@transpose_op.adjoint
def _(grad: Array, dim0: int, dim1: int) -> Array:
    return grad.swapaxes(dim0, dim1) if grad.ndim else grad


@linear(view=True, node="TBackward0", name="_t")
def t_op(input: Array) -> Array:
    return input.T


@t_op.adjoint
def _(grad: Array) -> Array:
    return grad.T


# ---------------------------------------------------------------- more elements than memory
@linear(view=True, node="ExpandBackward0", name="_expand")
def expand_op(input: Array, shape: Shape) -> Array:
    return np.lib.stride_tricks.as_strided(input, shape, expanded_strides(input, shape))


def expanded_strides(array: Array, shape: Shape) -> Shape:
    """Strides of an array broadcast to a shape it is known to fit: 0 along new axes and those of length 1."""
    lead = len(shape) - array.ndim
    own = tuple(step if n == m else 0 for n, m, step in zip(array.shape, shape[lead:], array.strides, strict=True))
    return (0,) * lead + own


@expand_op.adjoint
def _(grad: Array, like: Meta) -> Array:
    return unbroadcast(grad, like.shape)


def unbroadcast(grad: Array, shape: Shape) -> Array:
    """Summed over the axes along which `shape` was broadcast to that of `grad`."""
    lead = grad.ndim - len(shape)
    axes = tuple(range(lead)) + tuple(lead + k for k, n in enumerate(shape) if n == 1 != grad.shape[lead + k])
    return grad.sum(axes, keepdims=True).reshape(shape) if axes else grad.reshape(shape)


@linear(view=True, node="DiagonalBackward0", name="_diagonal")
def diagonal_op(input: Array, offset: int, dim1: int, dim2: int) -> Array:
    result = np.diagonal(input, offset, dim1, dim2)
    if input.flags.writeable:
        result.flags.writeable = True
    return result


@diagonal_op.adjoint
def _(grad: Array, like: Meta, offset: int, dim1: int, dim2: int) -> Array:
    full = np.zeros(like.shape, grad.dtype)
    part = np.diagonal(full, offset, dim1, dim2)
    part.flags.writeable = True
    part[...] = grad
    return full


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
    return tuple(array[(slice(None),) * dim + (slice(a, b),)] for a, b in zip(ends, ends[1:], strict=False))


for _op in (split_op, split_with_sizes_op):

    @_op.adjoint
    def _(grads: Sequence[Array | None], like: Meta, sizes: Shape, dim: int) -> Array:
        full = np.zeros(like.shape, like.dtype)
        for piece, grad in zip(pieces(full, sizes, dim), grads, strict=True):
            if grad is not None:
                piece[...] = grad
        return full


# ---------------------------------------------------------------- faces
@composite(inplace="view")
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """A new axis of length 1 at `dim`; a view."""
    return unsqueeze_op(input, wrap_dim(dim, input.ndim + 1))


@composite(inplace="view")
def squeeze(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Without the axes of length 1, or without those of them named by `dim`; a view."""
    if dim is None:
        return squeeze_op(input)
    if isinstance(dim, int):
        return squeeze_dim_op(input, wrap_dim(dim, input.ndim))
    dims = wrap_dims(dim, input.ndim)
    return squeeze_dims_op(input, tuple(k for k in dims if input.ndim and input.shape[k] == 1))


@composite
def permute(input: Tensor, *dims: Any) -> Tensor:
    """The axes in another order; a view. RuntimeError unless `dims` names each axis once."""
    order = wrap_dims(tuple(dims[0]) if len(dims) == 1 and not isinstance(dims[0], int) else dims, input.ndim)
    if len(order) != input.ndim:
        raise RuntimeError(f"permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of "
                           f"dimensions i.e. input.dim() = {input.ndim} is not equal to len(dims) = {len(order)}")  # fmt: skip
    return permute_op(input, order)


@composite(inplace="view", aliases=("swapaxes", "swapdims"))
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Two axes exchanged; a view."""
    return transpose_op(input, wrap_dim(dim0, input.ndim), wrap_dim(dim1, input.ndim))


@composite(inplace="view")
def t(input: Tensor) -> Tensor:
    """The transpose of a matrix; a view. RuntimeError for more than two axes."""
    if input.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input.ndim}D")
    return t_op(input)


@composite(prop=True, public=False)
def T(input: Tensor) -> Tensor:  # noqa: N802
    """All axes in reverse order; a view."""
    return permute_op(input, tuple(range(input.ndim))[::-1]) if input.ndim != 2 else t_op(input)


@composite(prop=True, public=False)
def mT(input: Tensor) -> Tensor:  # noqa: N802
    """The last two axes exchanged; a view. RuntimeError for fewer than two."""
    if input.ndim < 2:
        raise RuntimeError(f"tensor.mT is only supported on matrices or batches of matrices. Got {input.ndim}-D tensor.")
    return transpose_op(input, input.ndim - 2, input.ndim - 1)


@composite(public=False)
def view(input: Tensor, *shape: Any) -> Tensor:
    """The same elements in another shape; a view. One length may be -1. RuntimeError where that needs a copy."""
    if len(shape) == 1 and not isinstance(shape[0], (int, tuple, list)) and not hasattr(shape[0], "__iter__"):
        raise RuntimeError(f"view() with another dtype is not supported, got {shape[0]}")
    return _reshape(input, parse_shape(shape, "view"), copy=False)


@composite
def reshape(input: Tensor, *shape: Any) -> Tensor:
    """The same elements in another shape; a view where the strides allow it, else a copy. One length may be -1."""
    return _reshape(input, parse_shape(shape, "reshape"), copy=True)


def _reshape(input: Tensor, shape: Shape, copy: bool) -> Tensor:
    size = infer_size(shape, input.meta.numel)
    if not input.array.flags.c_contiguous and can_view(input.meta.shape, input.array.strides, size, input.meta.dtype.itemsize) is None:
        if not copy:
            raise RuntimeError("view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous "
                               "subspaces). Use .reshape(...) instead.")  # fmt: skip
        return view_op(input.contiguous(), size)
    return view_op(input, size)


@composite(public=False)
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """`input.view(other.shape)`."""
    return input.view(other.meta.shape)


@composite(public=False)
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """`input.reshape(other.shape)`."""
    return input.reshape(other.meta.shape)


@composite(public=False)
def expand(input: Tensor, *sizes: Any) -> Tensor:
    """Axes of length 1 repeated without copying, and new ones in front; -1 keeps a length. A view."""
    return expand_op(input, expand_shape(input.meta.shape, parse_shape(sizes, "expand"), TENSOR_TYPE_NAME[input.meta.kind]))


@composite(public=False)
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """`input.expand(other.shape)`."""
    return expand_op(input, expand_shape(input.meta.shape, other.meta.shape, TENSOR_TYPE_NAME[input.meta.kind]))


@composite
def broadcast_to(input: Tensor, size: Any) -> Tensor:
    """`input.expand(size)`."""
    return input.expand(size)
