"""Shape: views that keep all elements, and reshaping with a copy where it must be."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core.errors import bracketed, combination_error
from .._core.shapes import VIEW_ERROR, can_view, expand_shape, infer_size, parse_shape, wrap_dim, wrap_dims
from .kinds import Tensor, composite
from .views import (
    alias_op,
    as_strided_op,
    expand_op,
    memory_of,
    permute_op,
    reshape_alias_op,
    squeeze_dim_op,
    squeeze_dims_op,
    squeeze_op,
    t_op,
    transpose_op,
    unfold_op,
    unsafe_view_op,
    unsqueeze_op,
    view_dtype_op,
    view_op,
)

Shape = tuple[int, ...]


def given(function: str, argument: str, values: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """The ints of `f(1, 2)`, `f((1, 2))` or `f(argument=(1, 2))`. TypeError in torch's words."""
    if not values and argument in named:
        values = (named.pop(argument),)
    if named:
        raise TypeError(f"{function}() got an unexpected keyword argument '{next(iter(named))}'")
    return parse_shape(values, function, argument)


# ---------------------------------------------------------------- axes of length 1
@composite(inplace="view")
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """A new axis of length 1 at `dim`; a view."""
    return unsqueeze_op(input, wrap_dim(dim, input.ndim + 1))


@composite(inplace="view")
def squeeze(input: Tensor, *dims: Any, dim: Any = None) -> Tensor:
    """Without the axes of length 1, or without those of them named by `dim`; a view."""
    named = dim if not dims else dims[0] if len(dims) == 1 else dims
    if named is None:
        return squeeze_op(input)
    if isinstance(named, int):
        return squeeze_dim_op(input, wrap_dim(named, input.ndim))
    return squeeze_dims_op(input, tuple(k for k in wrap_dims(named, input.ndim) if input.ndim and input.shape[k] == 1))


# ---------------------------------------------------------------- order of axes
@composite
def permute(input: Tensor, *dims: Any, **named: Any) -> Tensor:
    """The axes in another order; a view. RuntimeError unless `dims` names each axis once."""
    order = given("permute", "dims", dims, named)
    if len(order) != input.ndim:
        raise RuntimeError(f"permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of "
                           f"dimensions i.e. input.dim() = {input.ndim} is not equal to len(dims) = {len(order)}")  # fmt: skip
    wrapped = tuple(wrap_dim(dim, input.ndim) for dim in order)
    if len(set(wrapped)) != len(wrapped):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return permute_op(input, wrapped)


@composite(inplace="view", aliases=("swapdims",))
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Two axes exchanged; a view."""
    return transpose_op(input, wrap_dim(dim0, input.ndim), wrap_dim(dim1, input.ndim))


@composite(inplace="view")
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """Two axes exchanged; a view."""
    return transpose(input, axis0, axis1)


@composite(inplace="view")
def t(input: Tensor) -> Tensor:
    """The transpose of a matrix; a view. RuntimeError for more than two axes."""
    if input.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input.ndim}D")
    return t_op(input)


@composite(prop=True, public=False)
def T(input: Tensor) -> Tensor:
    """All axes in reverse order; a view."""
    if input.ndim == 0:
        warn_scalar("T")
    elif input.ndim != 2:
        warnings.warn("The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it will throw an error in "
                      "a future release. Consider `x.mT` to transpose batches of matrices or `x.permute(*torch.arange(x.ndim - 1, -1, -1))` to "
                      "reverse the dimensions of a tensor.", UserWarning, stacklevel=3)  # fmt: skip
    return permute_op(input, tuple(range(input.ndim))[::-1])


@composite(prop=True, public=False)
def mT(input: Tensor) -> Tensor:
    """The last two axes exchanged; a view. RuntimeError for fewer than two."""
    return last_two(input, "mT")


@composite(prop=True, public=False)
def mH(input: Tensor) -> Tensor:
    """The last two axes exchanged (and conjugated, which changes nothing here); a view."""
    return last_two(input, "mH")


@composite(prop=True, public=False)
def H(input: Tensor) -> Tensor:
    """The transpose of a matrix; a view. RuntimeError for other ranks."""
    if input.ndim not in (0, 2):
        hint = " For batches of matrices, consider using tensor.mH" if input.ndim > 2 else ""
        raise RuntimeError(f"tensor.H is only supported on matrices (2-D tensors). Got {input.ndim}-D tensor.{hint}")
    return last_two(input, "H")


@composite
def adjoint(input: Tensor) -> Tensor:
    """`input.mH`."""
    return last_two(input, "adjoint()")


def last_two(input: Tensor, name: str) -> Tensor:
    """The last two axes exchanged; a tensor without axes itself, with a warning. RuntimeError for one axis."""
    if not input.ndim:
        warn_scalar(name)
        return input
    if input.ndim < 2:
        raise RuntimeError(
            f"tensor.{name} is only supported on matrices or batches of matrices. Got {input.ndim}-D tensor."
        )
    return transpose_op(input, input.ndim - 2, input.ndim - 1)


def warn_scalar(name: str) -> None:
    """That a tensor without axes is asked for its transpose, by the name of the property or method."""
    instead = "This function is the identity in these cases." if name.endswith("T") else "Consider using x.conj()."
    named = name if name.endswith(")") else f"Tensor.{name}"
    warnings.warn(f"{named} is deprecated on 0-D tensors. {instead}", UserWarning, stacklevel=5)


@composite(aliases=("moveaxis",))
def movedim(input: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Axes moved to other places, the rest in their order; a view."""
    sides = [[side] if isinstance(side, int) else list(side) for side in (source, destination)]
    if len(sides[0]) != len(sides[1]):
        raise RuntimeError(f"movedim: Invalid source or destination dims: source ({sides[0]} dims) should contain the same number of dims as "
                           f"destination ({sides[1]} dims)")  # fmt: skip
    wrapped = [[wrap_dim(dim, input.ndim) for dim in side] for side in sides]
    for name, side, raw in zip(("source", "destination"), wrapped, sides, strict=True):
        if len(set(side)) != len(side):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({raw})")
    if not input.ndim:
        return alias_op(input)
    order: list[int] = [-1] * input.ndim
    for start, end in zip(*wrapped, strict=True):
        order[end] = start
    rest = iter(dim for dim in range(input.ndim) if dim not in wrapped[0])
    return permute_op(input, tuple(next(rest) if dim < 0 else dim for dim in order))


# ---------------------------------------------------------------- the same elements in another shape
@composite(public=False)
def view(input: Tensor, *shape: Any, **named: Any) -> Tensor:
    """The same elements in another shape, or their bytes as another dtype; a view. One length may be -1.

    RuntimeError where the strides don't allow that.
    """
    kind = named.pop("dtype", shape[0] if len(shape) == 1 else None)
    if hasattr(kind, "numpy") and hasattr(kind, "itemsize"):
        return view_dtype(input, kind)
    try:
        size = infer_size(given("view", "size", shape, named), input.meta.numel)
    except TypeError:
        if isinstance(shape[0] if shape else named.get("size"), (str, float, type(None))):
            raise combination_error("view", shape, named, " * (torch.dtype dtype)\n * (tuple of ints size)\n") from None
        raise
    if not input.array.flags.c_contiguous and fits(input, size) is None:
        raise RuntimeError(VIEW_ERROR)
    return view_op(input, size)


def fits(input: Tensor, size: Shape) -> Shape | None:
    """Strides under which the tensor's memory has another shape, or None."""
    return can_view(input.meta.shape, input.array.strides, size, input.meta.dtype.itemsize)


def view_dtype(input: Tensor, kind: Any) -> Tensor:
    """The bytes as another dtype. RuntimeError where the last axis can't be cut or joined that way."""
    old, new = input.meta.dtype.itemsize, kind.numpy.itemsize
    if old != new and input.ndim == 0:
        raise RuntimeError(
            f"self.dim() cannot be 0 to view {input.meta.kind.scalar_name} as {kind.scalar_name} (different element sizes)"
        )
    if old != new and input.stride(-1) != 1:
        raise RuntimeError(f"self.stride(-1) must be 1 to view {input.meta.kind.scalar_name} as {kind.scalar_name} (different element sizes), but "
                           f"got {input.stride(-1)}")  # fmt: skip
    if new > old and input.shape[-1] * old % new:
        raise RuntimeError(f"self.size(-1) must be divisible by {new // old} to view {input.meta.kind.scalar_name} as {kind.scalar_name} (different "
                           f"element sizes), but got {input.shape[-1]}")  # fmt: skip
    if new > old:
        steps, start = input.stride(), input.storage_offset()
        if start % (new // old):
            raise RuntimeError(f"self.storage_offset() must be divisible by {new // old} to view {input.meta.kind.scalar_name} as {kind.scalar_name} "
                               f"(different element sizes), but got {start}")  # fmt: skip
        for axis, step in enumerate(steps[:-1]):
            if step % (new // old):
                raise RuntimeError(f"self.stride({axis}) must be divisible by {new // old} to view {input.meta.kind.scalar_name} as "
                                   f"{kind.scalar_name} (different element sizes), but got {step}")  # fmt: skip
    return view_dtype_op(input, kind)._made_now()  # for autograd it is no view: it takes no gradient


@composite
def reshape(input: Tensor, *shape: Any, **named: Any) -> Tensor:
    """The same elements in another shape; a view where the strides allow it, else a copy. One length may be -1."""
    size = infer_size(given("reshape", "shape", shape, named), input.meta.numel)
    if input.array.flags.c_contiguous:
        return view_op(input, size)
    if fits(input, size) is not None:
        return reshape_alias_op(input, size)
    return unsafe_view_op(input.contiguous(), size)


@composite(public=False)
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """`input.view(other.shape)`."""
    return input.view(other.meta.shape)


@composite(public=False)
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """`input.reshape(other.shape)`."""
    return input.reshape(other.meta.shape)


@composite
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The axes from `start_dim` to `end_dim` as one; a view where the strides allow it."""
    start, end = wrap_dim(start_dim, input.ndim), wrap_dim(end_dim, input.ndim)
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if input.ndim and start == end:
        return input
    shape = input.meta.shape
    return input.reshape((*shape[:start], int(np.prod(shape[start : end + 1], dtype=np.int64)), *shape[end + 1 :]))


@composite
def unflatten(input: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """One axis as several; a view. One length may be -1."""
    if len(sizes) == 0:
        raise RuntimeError("unflatten: sizes must be non-empty")
    at = wrap_dim(dim, input.ndim, wrap_scalar=False)
    try:
        split = infer_size(tuple(sizes), input.shape[at])
    except RuntimeError as error:
        if "only one" in str(error):
            raise
        raise RuntimeError(f"unflatten: Provided sizes {bracketed(tuple(sizes))} don't multiply up to the size of dim {at} ({input.shape[at]}) in "
                           "the input tensor") from None  # fmt: skip
    return input.view((*input.meta.shape[:at], *split, *input.meta.shape[at + 1 :]))


@composite
def ravel(input: Tensor) -> Tensor:
    """All elements along one axis; a view where the tensor is contiguous."""
    return input.contiguous().view(-1)


# ---------------------------------------------------------------- more elements than memory
@composite(public=False)
def expand(input: Tensor, *sizes: Any, implicit: bool = False, **named: Any) -> Tensor:
    """Axes of length 1 repeated without copying, and new ones in front; -1 keeps a length. A view."""
    return expand_op(input, expand_shape(input.meta.shape, given("expand", "size", sizes, named), input.type()))


@composite(public=False)
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """`input.expand(other.shape)`."""
    return expand_op(input, expand_shape(input.meta.shape, other.meta.shape, input.type()))


@composite(public=False)
def unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """All windows of `size` elements along an axis, `step` apart, with the window as a new last axis; a view."""
    dim = wrap_dim(dimension, input.ndim)
    length = input.shape[dim] if input.ndim else 1
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > length:
        raise RuntimeError(f"maximum size for tensor at dimension {dim} is {length} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    return unfold_op(input, dim, size, step)


@composite(inplace="view")
def as_strided(input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """The tensor's memory seen with a given shape, strides and start (in elements); a view.

    RuntimeError for negative strides and for places outside of the memory.
    """
    window, memory = strided_window("as_strided", input, size, stride, storage_offset)
    return as_strided_op(input, *window, strided_start(input), input.stride(), memory)


def strided_window(
    function: str, input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None
) -> tuple[tuple[Shape, Shape, int], int]:
    """Shape, strides and start of a window of the tensor's memory, checked, and how many elements that memory has."""
    shape, steps, unit = tuple(size), tuple(stride), input.meta.dtype.itemsize
    if len(shape) != len(steps):
        raise RuntimeError("mismatch in length of strides and shape")
    if any(step < 0 for step in steps):
        raise RuntimeError(
            f"{function}: Negative strides are not supported at the moment, got strides: {bracketed(steps)}"
        )
    start = strided_start(input) if storage_offset is None else int(storage_offset)
    if start < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {start}")
    memory, needed = memory_of(input.array).nbytes // unit, _extent(shape, steps)
    if needed and start + needed > memory:
        raise RuntimeError(f"setStorage: sizes {bracketed(shape)}, strides {bracketed(steps)}, storage offset {start}, and itemsize {unit} requiring "
                           f"a storage size of {(start + needed) * unit} are out of bounds for storage of size {memory * unit}")  # fmt: skip
    return (shape, steps, start), memory


def strided_start(input: Tensor) -> int:
    """Where the tensor's first element lies in its memory."""
    first: int = memory_of(input.array).__array_interface__["data"][0]
    return int((input.data_ptr() - first) // input.meta.dtype.itemsize)


def _extent(shape: Shape, steps: Shape) -> int:
    """How many elements of memory a layout spans."""
    return 0 if 0 in shape else 1 + sum((n - 1) * step for n, step in zip(shape, steps, strict=True))
