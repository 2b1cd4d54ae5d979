"""Views: ops whose result shares memory with their input. Each is linear; its adjoint puts the gradient back in place."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.meta import Meta
from .._core.shapes import can_view
from .kinds import Array, general, linear

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
    """The new axis has the stride of a tensor without gaps, where NumPy says 0."""
    shape = (*input.shape[:dim], 1, *input.shape[dim:])
    if input.flags.c_contiguous and input.size:
        return input.reshape(shape)
    steps = input.strides
    return strided(
        input,
        shape,
        (*steps[:dim], input.shape[dim] * steps[dim] if dim < input.ndim else input.itemsize, *steps[dim:]),
    )


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
    return input.reshape(shape) if input.flags.c_contiguous else reshaped(input, shape)


@linear(view=True, node="AliasBackward0", name="_alias")
def alias_op(input: Array) -> Array:
    return input.view()


@linear(view=True, node="ReshapeAliasBackward0", name="_reshape_alias")
def reshape_alias_op(input: Array, shape: Shape) -> Array:
    return reshaped(input, shape)


@linear(node="UnsafeViewBackward0", name="_unsafe_view")
def unsafe_view_op(input: Array, shape: Shape) -> Array:
    """For an input that nobody else will see."""
    return reshaped(input, shape)


def reshaped(array: Array, shape: Shape) -> Array:
    """The same memory in another shape that is known to need no copy."""
    strides = can_view(array.shape, array.strides, shape, array.itemsize)
    assert strides is not None
    return strided(array, shape, strides)


for _op in (squeeze_op, squeeze_dim_op, squeeze_dims_op, view_op, reshape_alias_op, unsafe_view_op, alias_op):

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
    return strided(input, shape, expanded_strides(input, shape))


def strided(array: Array, shape: Shape, strides: Shape) -> Array:
    """The memory of an array, from its first element on, under another shape and strides that stay within it."""
    if array.flags.c_contiguous and array.size and 0 not in shape:  # 0.5 us, where as_strided takes 3
        return np.ndarray(shape, array.dtype, array, 0, strides)
    return np.lib.stride_tricks.as_strided(array, shape, strides)


def expanded_strides(array: Array, shape: Shape) -> Shape:
    """Strides of an array broadcast to a shape it is known to fit: 0 along the axes that repeat."""
    lead = len(shape) - array.ndim
    steps = [step if n == m else 0 for n, m, step in zip(array.shape, shape[lead:], array.strides, strict=True)]
    for axis in range(lead - 1, -1, -1):  # a new axis of length 1 has the stride of a tensor without gaps
        within = shape[axis + 1] * steps[0] if steps else array.itemsize
        steps.insert(0, within if shape[axis] == 1 else 0)
    return tuple(steps)


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


# ---------------------------------------------------------------- windows and bytes
@linear(view=True, node="UnfoldBackward0", name="_unfold")
def unfold_op(input: Array, dim: int, size: int, step: int) -> Array:
    if not input.ndim:
        return strided(input, (size,), (input.itemsize,))
    shape, steps = list(input.shape), list(input.strides)
    shape[dim] = (input.shape[dim] - size) // step + 1
    steps[dim] = input.strides[dim] * step
    return strided(input, (*shape, size), (*steps, input.strides[dim]))


@unfold_op.adjoint
def _(grad: Array, like: Meta, dim: int, size: int, step: int) -> Array:
    full = np.zeros(like.shape, grad.dtype)
    if not full.ndim:
        full += grad.sum()
        return full
    count = grad.shape[dim]
    for k in range(size):  # the k-th elements of all windows are different places
        full[(slice(None),) * dim + (slice(k, k + step * (count - 1) + 1, step),)] += grad[..., k]
    return full


@general(node="ViewBackward1", name="_view_dtype", differentiable=())
def view_dtype_op(input: Array, kind: Any) -> Array:
    return input.view(kind.numpy)


view_dtype_op.is_view = True


class Window:
    """Memory seen through given strides: what `as_strided` hands to NumPy. `base` keeps the memory alive."""

    def __init__(self, base: Array, start: int, shape: Shape, strides: Shape) -> None:
        interface = base.__array_interface__
        address, read_only = interface["data"]
        self.base = base
        self.__array_interface__ = {
            **interface,
            "data": (address + start, read_only),
            "shape": shape,
            "strides": strides,
        }


def memory_of(array: Array) -> Array:
    """The array that all views of some memory lead back to."""
    root, owner = array, array.base
    while owner is not None:
        if isinstance(owner, np.ndarray):
            root = owner
        owner = getattr(owner, "base", None)
    return root


def flat_memory(array: Array, kind: Any) -> Array:
    """The whole memory that an array lies in, as a row of elements of a dtype."""
    root = memory_of(array)
    count = root.nbytes // root.itemsize
    whole = np.asarray(Window(root, 0, (count,), (root.itemsize,))).view(np.uint8)
    return whole[: root.nbytes // kind.itemsize * kind.itemsize].view(kind.numpy)


def window(memory: Array, kind: Any, start: int, shape: Shape, steps: Shape) -> Array:
    """An array of some dtype over the memory of another. RuntimeError for places outside of it."""
    flat, unit = flat_memory(memory, kind), kind.itemsize
    needed = 0 if 0 in shape else start + 1 + sum((n - 1) * step for n, step in zip(shape, steps, strict=True))
    if needed > flat.size:
        raise RuntimeError(f"setStorage: sizes {list(shape)}, strides {list(steps)}, storage offset {start}, and itemsize {unit} requiring a storage "
                           f"size of {needed * unit} are out of bounds for storage of size {flat.nbytes}")  # fmt: skip
    return np.asarray(Window(flat, start * unit, shape, tuple(step * unit for step in steps)))


@general(node="AsStridedBackward0", name="_as_strided")
def as_strided_op(input: Array, size: Shape, steps: Shape, start: int, own: int, layout: Shape, memory: int) -> Array:
    """`start`, `own`: offsets of the result and of the input in their memory of `memory` elements; `layout`: the input's strides."""
    unit = input.itemsize
    return np.asarray(Window(input, (start - own) * unit, size, tuple(step * unit for step in steps)))


as_strided_op.is_view = True


@as_strided_op.rule
def _(grad: Any, like: Meta, size: Shape, steps: Shape, start: int, own: int, layout: Shape, memory: int) -> Any:
    return restride_op(grad, (size, steps, start), (like.shape, layout, own), memory)


@linear(node="AsStridedBackward0", name="_restride")
def restride_op(input: Array, source: tuple[Any, ...], target: tuple[Any, ...], memory: int) -> Array:
    """Elements that lay at `source` (shape, strides, start) of a memory, added up there, then read at `target`.

    Where several elements of the target lie on one place each gets its share.
    """
    flat = np.zeros(memory, np.float64 if input.dtype.char in "ef" else input.dtype)
    np.add.at(flat, places(*source), input)
    found = places(*target)
    shares = np.bincount(found.ravel(), minlength=memory)[found] if found.size else np.ones(found.shape)
    return np.asarray(flat[found] / np.maximum(shares, 1)).astype(input.dtype)


@restride_op.adjoint
def _(grad: Array, source: tuple[Any, ...], target: tuple[Any, ...], memory: int) -> Array:
    found = places(*target)
    shares = np.bincount(found.ravel(), minlength=memory)[found] if found.size else np.ones(found.shape)
    flat = np.zeros(memory, grad.dtype)
    np.add.at(flat, found, grad / np.maximum(shares, 1).astype(grad.dtype))
    return np.asarray(flat[places(*source)])


def places(shape: Shape, steps: Shape, start: int) -> Array:
    """Where in memory, in elements, each element of a strided layout lies."""
    found = np.full((1,) * len(shape), start, np.int64)
    for axis, (n, step) in enumerate(zip(shape, steps, strict=True)):
        found = found + (np.arange(n) * step).reshape((n,) + (1,) * (len(shape) - axis - 1))
    return np.broadcast_to(found, shape)
