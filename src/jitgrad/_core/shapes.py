"""Shapes: `Size`, broadcasting, dimension numbers, reshaping without a copy, and torch's words where they do not fit.

Shapes are tuples of Python ints. Strides carry whatever unit the caller uses (elements, or bytes as NumPy does).
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, Final, Self, SupportsIndex, overload

from .errors import argument_error, bracketed

Shape = tuple[int, ...]

VIEW_ERROR: Final = (
    "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
    "contiguous subspaces). Use .reshape(...) instead."
)


class Size(tuple[int, ...]):
    """A shape: a tuple of ints that stays a `Size` under slicing, `+` and `*`. TypeError for an item that is no int."""

    __slots__ = ()

    def __new__(cls, items: Iterable[SupportsIndex] = ()) -> Self:
        checked = tuple(items)
        for position, item in enumerate(checked):
            if type(item) is not int and not hasattr(item, "__index__"):
                kind = type(item).__name__
                raise TypeError(f"torch.Size() takes an iterable of 'int' (item {position} is '{kind}')")
        return tuple.__new__(cls, map(operator.index, checked))

    def __repr__(self) -> str:
        return f"torch.Size({bracketed(self)})"

    def numel(self) -> int:
        """How many elements a tensor of this shape has."""
        return prod(self)

    @overload
    def __getitem__(self, key: SupportsIndex, /) -> int: ...
    @overload
    def __getitem__(self, key: slice, /) -> Size: ...
    def __getitem__(self, key: Any, /) -> Any:
        result = tuple.__getitem__(self, key)
        return size_of(result) if isinstance(key, slice) else result

    def __add__(self, other: Any, /) -> Size:
        if not isinstance(other, tuple):
            raise TypeError(f"can only concatenate tuple (not {type(other).__name__}) to torch.Size")
        return size_of(tuple.__add__(self, other))

    def __radd__(self, other: tuple[int, ...], /) -> Size:
        if not isinstance(other, tuple):
            return NotImplemented
        return size_of(other + tuple(self))

    def __mul__(self, count: SupportsIndex, /) -> Size:
        return size_of(tuple.__mul__(self, count))

    __rmul__ = __mul__

    def __getnewargs__(self) -> tuple[tuple[int, ...]]:
        return (tuple(self),)


def size_of(shape: Shape) -> Size:
    """A `Size` of a tuple that is known to hold ints (no check; for `array.shape`)."""
    return tuple.__new__(Size, shape)


def contiguous_strides(shape: Sequence[int], unit: int = 1) -> Shape:
    """Row-major strides, in elements or, with `unit=itemsize`, in bytes; an empty dimension counts as one."""
    strides = [unit] * len(shape)
    for k in range(len(shape) - 2, -1, -1):
        strides[k] = strides[k + 1] * max(shape[k + 1], 1)
    return tuple(strides)


# ---------------------------------------------------------------------------------------------------- dimension numbers


def wrap_dim(dim: SupportsIndex, ndim: int, wrap_scalar: bool = True) -> int:
    """`dim` counted from 0. A 0-dim tensor is treated as having one dimension if `wrap_scalar`.

    IndexError in torch's words if `dim` is out of range, TypeError if it is no int.
    """
    dim = operator.index(dim)
    if 0 <= dim < ndim:
        return dim
    if -ndim <= dim < 0:
        return dim + ndim
    if ndim == 0:
        if not wrap_scalar:
            raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
        if dim in (0, -1):
            return 0
    high = max(ndim, 1) - 1
    raise IndexError(f"Dimension out of range (expected to be in range of [{-high - 1}, {high}], but got {dim})")


def wrap_dims(dims: SupportsIndex | Iterable[SupportsIndex] | None, ndim: int) -> Shape:
    """Distinct dimensions counted from 0, in the order given; None means all, an int means one.

    An empty list stays empty (whether that means all of them is the op's business).
    IndexError as `wrap_dim`; RuntimeError if a dimension appears twice.
    """
    if dims is None:
        return tuple(range(ndim))
    if not isinstance(dims, Iterable):
        return (wrap_dim(dims, ndim),)
    wrapped: list[int] = []
    for dim in dims:
        k = wrap_dim(dim, ndim)
        if k in wrapped:
            raise RuntimeError(f"dim {k} appears multiple times in the list of dims")
        wrapped.append(k)
    return tuple(wrapped)


# ------------------------------------------------------------------------------------------------- shapes as arguments


def _as_size(item: Any) -> int | None:
    """An int of a shape argument (NumPy integers and integer tensors count), None for anything else."""
    if type(item) is int:
        return item
    if isinstance(item, (bool, float)) or not hasattr(item, "__index__"):
        return None
    try:
        return operator.index(item)
    except TypeError:
        return None


def parse_shape(args: Sequence[Any], function: str = "size", argument: str = "size") -> Shape:
    """The shape in `f(2, 3)` or `f((2, 3))`, where `args` is what `f` was called with. -1 and the like are let through.

    TypeError in torch's words, naming `function` and `argument`, if there is no shape or an entry is no int.
    """
    if not args:
        raise TypeError(f'{function}() missing 1 required positional arguments: "{argument}"')
    first = args[0]
    nested = isinstance(first, (tuple, list))
    if nested and len(args) > 1:
        raise TypeError(f"{function}() takes 1 positional argument but {len(args)} were given")
    items = tuple(first) if nested else tuple(args)
    shape: list[int] = []
    for position, item in enumerate(items):
        size = _as_size(item)
        if size is None:
            if position == 0:
                raise argument_error(function, argument, 1, "tuple of ints", first)
            kind = type(item).__name__
            raise TypeError(
                f"{function}(): argument '{argument}' failed to unpack the object at pos {position + 1} with error "
                f'"type must be tuple of ints,but got {kind}"'
            )
        shape.append(size)
    return tuple(shape)


def check_sizes(shape: Shape) -> None:
    """RuntimeError in torch's words if a tensor of that shape can't be made because a size is negative."""
    for size in shape:
        if size < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {size}: {bracketed(shape)}")


def infer_size(shape: Sequence[int], numel: int) -> Shape:
    """`shape` with its one -1 replaced so that it holds `numel` elements. RuntimeError in torch's words."""
    known, unknown = 1, -1
    for k, size in enumerate(shape):
        if size == -1:
            if unknown >= 0:
                raise RuntimeError("only one dimension can be inferred")
            unknown = k
        elif size < 0:
            raise RuntimeError(f"invalid shape dimension {size} at index {k} of shape {bracketed(tuple(shape))}")
        else:
            known *= size
    if unknown < 0:
        if known == numel:
            return tuple(shape)
    elif known > 0 and numel % known == 0:
        return (*shape[:unknown], numel // known, *shape[unknown + 1 :])
    elif known == 0 and numel == 0:
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {bracketed(tuple(shape))} because the unspecified "
            "dimension size -1 can be any value and is ambiguous"
        )
    raise RuntimeError(f"shape '{bracketed(tuple(shape))}' is invalid for input of size {numel}")


# --------------------------------------------------------------------------------------------------------- broadcasting


def _broadcast_two(a: Shape, b: Shape) -> Shape:
    ndim = max(len(a), len(b))
    result = [0] * ndim
    for k in range(-1, -ndim - 1, -1):
        size_a = a[k] if -k <= len(a) else 1
        size_b = b[k] if -k <= len(b) else 1
        if size_b != 1 and size_a not in (size_b, 1):
            raise RuntimeError(
                f"The size of tensor a ({size_a}) must match the size of tensor b ({size_b}) at non-singleton "
                f"dimension {ndim + k}"
            )
        result[k] = size_b if size_a == 1 else size_a
    return tuple(result)


def broadcast_shapes(*shapes: Shape) -> Shape:
    """The shape that all shapes broadcast to. RuntimeError in torch's words if there is none."""
    result: Shape = ()
    for k, shape in enumerate(shapes):
        result = shape if k == 0 or result == shape else _broadcast_two(result, shape)
    return tuple(result)


def check_broadcastable(target: Shape, *others: Shape) -> None:
    """RuntimeError if the result of an in-place op on `target` with `others` would not fit it."""
    whole = broadcast_shapes(target, *others)
    if whole != tuple(target):
        raise RuntimeError(
            f"output with shape {bracketed(target)} doesn't match the broadcast shape {bracketed(whole)}"
        )


def expand_shape(shape: Shape, sizes: Shape, type_name: str = "torch.FloatTensor") -> Shape:
    """The shape of `x.expand(sizes)` for x of shape `shape`: -1 keeps a size. RuntimeError in torch's words.

    type_name: the tensor's type string, which one of the messages shows.
    """
    lead = len(sizes) - len(shape)
    if lead < 0:
        raise RuntimeError(
            f"expand({type_name}{{{bracketed(shape)}}}, size={bracketed(sizes)}): the number of sizes provided "
            f"({len(sizes)}) must be greater or equal to the number of dimensions in the tensor ({len(shape)})"
        )
    result = list(sizes)
    for k in range(len(sizes) - 1, -1, -1):
        size = sizes[k]
        if k < lead:
            if size == -1 and shape:
                raise RuntimeError(
                    f"The expanded size of the tensor ({size}) isn't allowed in a leading, non-existing dimension {k}"
                )
            continue
        old = shape[k - lead]
        if size == -1:
            result[k] = old
        elif old not in (size, 1):
            raise RuntimeError(
                f"The expanded size of the tensor ({size}) must match the existing size ({old}) at non-singleton "
                f"dimension {k}.  Target sizes: {bracketed(sizes)}.  Tensor sizes: {bracketed(shape)}"
            )
    if any(size < 0 for size in result):
        raise RuntimeError("numel: integer multiplication overflow")  # what torch says to expand(-2)
    return tuple(result)


# ------------------------------------------------------------------------------------------------- reshape without copy


def can_view(shape: Shape, strides: Shape, new: Shape, unit: int = 1) -> Shape | None:
    """Strides under which memory laid out as (shape, strides) reads as shape `new`, or None if it takes a copy.

    `new` holds as many elements as `shape`. unit: 1 if strides count elements, the itemsize if they count bytes.
    """
    numel = prod(shape)
    if numel == 0:
        return tuple(strides) if tuple(shape) == tuple(new) else contiguous_strides(new, unit)
    if not shape:
        return (unit,) * len(new)
    result = [0] * len(new)
    at = len(new) - 1
    base = strides[-1]  # stride of the innermost element of the chunk of dimensions that are laid out evenly
    chunk = done = 1
    for k in range(len(shape) - 1, -1, -1):
        chunk *= shape[k]
        if k and (shape[k - 1] == 1 or strides[k - 1] == chunk * base):
            continue
        while at >= 0 and (done < chunk or new[at] == 1):
            result[at] = done * base
            done *= new[at]
            at -= 1
        if done != chunk:
            return None
        if k:
            base = strides[k - 1]
            chunk = done = 1
    return tuple(result) if at == -1 else None


# --------------------------------------------------------------------------------------------------------------- matmul


def _by(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape))


def check_mm(a: Shape, b: Shape) -> None:
    """RuntimeError in torch's words unless an (n, k) and a (k, m) matrix are given."""
    if len(a) != 2:
        raise RuntimeError("self must be a matrix")
    if len(b) != 2:
        raise RuntimeError("mat2 must be a matrix")
    if a[1] != b[0]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({_by(a)} and {_by(b)})")


def check_mv(a: Shape, v: Shape) -> None:
    """RuntimeError in torch's words unless an (n, k) matrix and a (k,) vector are given."""
    if len(a) != 2 or len(v) != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {len(a)}, {len(v)}")
    if a[1] != v[0]:
        raise RuntimeError(f"size mismatch, got input ({a[0]}), mat ({_by(a)}), vec ({v[0]})")


def check_dot(a: Shape, b: Shape) -> None:
    """RuntimeError in torch's words unless two vectors of one length are given."""
    if len(a) != 1 or len(b) != 1:
        raise RuntimeError(f"1D tensors expected, but got {len(a)}D and {len(b)}D tensors")
    if a != b:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor {bracketed(a)} and src {bracketed(b)} to have the same number "
            f"of elements, but got {a[0]} and {b[0]} elements respectively"
        )


def check_bmm(a: Shape, b: Shape) -> None:
    """RuntimeError in torch's words unless (b, n, k) and (b, k, m) stacks of matrices are given."""
    for number, shape in ((1, a), (2, b)):
        if len(shape) != 3:
            raise RuntimeError(f"batch{number} must be a 3D tensor")
    if a[0] != b[0] or a[2] != b[1]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{a[0]}, {a[2]}] "
            f"but got: [{b[0]}, {b[1]}]."
        )


def matmul_shape(a: Shape, b: Shape) -> Shape:
    """The shape of `a @ b` for any ranks. RuntimeError in torch's words if they do not fit."""
    if not a or not b:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {len(a)}D and {len(b)}D")
    if len(b) == 1:
        if len(a) == 1:
            check_dot(a, b)
        else:
            check_mv((prod(a[:-1]), a[-1]), b)
        return tuple(a[:-1])
    if len(b) == 2:
        check_mm((prod(a[:-1]), a[-1]), b)
        return (*a[:-1], b[1])
    rows = a[-2] if len(a) > 1 else 1
    batch = broadcast_shapes(a[:-2], b[:-2])
    many = prod(batch)
    check_bmm((many, rows, a[-1]), (many, b[-2], b[-1]))
    return (*batch, *(a[-2:-1] if len(a) > 1 else ()), b[-1])
