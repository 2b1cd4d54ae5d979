"""Index arrays: checked, flattened to places in C-contiguous memory, read and added to by them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._kernels import gather as kernels
from .kinds import Array

Shape = tuple[int, ...]
Key = tuple[Array | None, ...]  # an int64 array, counted from 0, or None per axis
COMPILED = "fd"


# ---------------------------------------------------------------- bounds
def outside(index: Array, length: int) -> int | None:
    """An index that is not in 0 .. length - 1, or None. Seen as unsigned, a negative one is larger than any length."""
    index = np.ascontiguousarray(index, np.int64)
    if index.size == 0 or int(index.view(np.uint64).max()) < length:
        return None
    return int(index[(index < 0) | (index >= length)].flat[0])


def check_again(index: Array, length: int) -> None:
    """A second look before a kernel goes by an index: saved ones lie open to writes through NumPy. IndexError."""
    bad = outside(index, length)
    if bad is not None:
        raise IndexError(f"index {bad} is out of bounds for dimension with size {length}")


# ---------------------------------------------------------------- rows
def as_rows(shape: Shape, dim: int) -> tuple[int, int, int]:
    """(outer, length, inner): how many of what stands before an axis, its length, what stands behind. A 0-d array has one axis."""
    return math.prod(shape[:dim]), shape[dim] if shape else 1, math.prod(shape[dim + 1 :])


def add_rows(out: Array, index: Array, values: Array, dim: int) -> None:
    """out[..., index[k], ...] += values[..., k, ...] along an axis of a C-contiguous array."""
    outer, length, inner = as_rows(out.shape, dim)
    check_again(index, length)
    if values.size == 0:
        return
    if out.dtype.char in COMPILED:
        kernels.add_rows[out.dtype](
            np.ascontiguousarray(values), np.ascontiguousarray(index), out, outer, length, inner
        )
        return
    flat = np.ascontiguousarray(values).reshape(outer, index.size, inner)
    where: Any = (slice(None), index.reshape(-1))
    np.add.at(out.reshape(outer, length, inner), where, flat)


def take_rows(array: Array, index: Array, dim: int) -> Array:
    """array[..., index[k], ...] as a new C-contiguous array; `index` is a vector within bounds."""
    if not array.ndim:
        return np.array(array)
    check_again(index, array.shape[dim])
    if index.size == 0 or array.size == 0:  # mode="clip" refuses to take nothing from nothing
        return np.empty((*array.shape[:dim], index.size, *array.shape[dim + 1 :]), array.dtype)
    return np.ascontiguousarray(np.take(array, index, axis=dim, mode="clip"))


# ---------------------------------------------------------------- single elements
def element_places(index: Array, dim: int, shape: Shape) -> Array:
    """Where the elements that `gather` reads lie in a C-contiguous array of a shape; `index` has its rank and is within bounds."""
    if not shape or index.size == 0:
        return index
    steps = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    places = index * steps[dim]
    for axis, count in enumerate(index.shape):
        if axis != dim and count > 1:
            places = places + (np.arange(count) * steps[axis]).reshape((count,) + (1,) * (len(shape) - axis - 1))
    return np.asarray(places)


def alongside(index: Array, dim: int, shape: Shape) -> tuple[int, int, int, int] | None:
    """(outer, length, count, inner) where the index has the shape of the array but along the axis; None for a smaller index."""
    if len(shape) != index.ndim or any(
        n != m for axis, (n, m) in enumerate(zip(index.shape, shape, strict=True)) if axis != dim
    ):
        return None
    outer, length, inner = as_rows(shape, dim)
    return outer, length, index.shape[dim] if shape else 1, inner


def take_along(array: Array, index: Array, dim: int) -> Array:
    """out[i, j] = array[index[i, j], j] for dim 0, and so on; the index is within bounds, and maybe smaller than the array."""
    sizes = alongside(index, dim, array.shape) if array.dtype.char in COMPILED else None
    if sizes is None or index.size == 0:
        return take_at(array, element_places(index, dim, array.shape))
    check_again(index, sizes[1])
    out = np.empty(index.shape, array.dtype)
    kernels.take_along[array.dtype](np.ascontiguousarray(array), np.ascontiguousarray(index), out, *sizes)
    return out


def add_along(out: Array, index: Array, dim: int, values: Array) -> None:
    """out[index[i, j], j] += values[i, j] for dim 0, and so on, for a C-contiguous array."""
    sizes = alongside(index, dim, out.shape) if out.dtype.char in COMPILED else None
    if sizes is None or index.size == 0:
        add_at(out, element_places(index, dim, out.shape), values)
        return
    check_again(index, sizes[1])
    kernels.add_along[out.dtype](np.ascontiguousarray(values), np.ascontiguousarray(index), out, *sizes)


def take_at(array: Array, places: Array) -> Array:
    """The elements at flat places, in the shape of `places`."""
    flat = np.ascontiguousarray(array).reshape(-1)
    check_again(places, flat.size)
    return np.asarray(flat[places])


def add_at(out: Array, places: Array, values: Array) -> None:
    """Add values to a C-contiguous array at flat places; both have one shape."""
    flat = out.reshape(-1)
    check_again(places, flat.size)
    if out.dtype.char in COMPILED:
        kernels.add_at[out.dtype](np.ascontiguousarray(values), np.ascontiguousarray(places), out)
    else:
        np.add.at(flat, places.reshape(-1), np.ascontiguousarray(values).reshape(-1))


# ---------------------------------------------------------------- what stands in brackets
def numpy_key(key: Key) -> tuple[Any, ...]:
    """NumPy's index for a key."""
    return tuple([slice(None) if entry is None else entry for entry in key])


def key_shape(shape: Shape, key: Key) -> Shape:
    """The shape of what a key takes from an array of a shape: index axes stay in place if they are neighbours, else come first."""
    dims = [axis for axis, entry in enumerate(key) if entry is not None]
    gathered = np.broadcast_shapes(*[entry.shape for entry in key if entry is not None])
    kept = tuple(n for axis, n in enumerate(shape) if axis not in dims)
    place = dims[0] if dims[-1] - dims[0] + 1 == len(dims) else 0
    return (*kept[:place], *gathered, *kept[place:])


def add_by_key(out: Array, key: Key, values: Array) -> None:
    """`out[key] += values`, repeated indices adding up, for a C-contiguous array. Values broadcast."""
    dims = [axis for axis, entry in enumerate(key) if entry is not None]
    first, last = dims[0], dims[-1]
    if last - first + 1 != len(dims):
        np.add.at(out, numpy_key(key), values)
        return
    used = [entry for entry in key if entry is not None]
    flat, length = used[0], out.shape[first]
    for entry, n in zip(used[1:], out.shape[first + 1 : last + 1], strict=True):
        flat, length = flat * n + entry, length * n
    gathered = flat.shape
    values = np.broadcast_to(values, (*out.shape[:first], *gathered, *out.shape[last + 1 :]))
    rows = out.reshape((*out.shape[:first], length, *out.shape[last + 1 :]))
    add_rows(rows, flat.reshape(-1), values.reshape((*out.shape[:first], flat.size, *out.shape[last + 1 :])), first)
