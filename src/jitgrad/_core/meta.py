"""What an op must know of a C-contiguous array: shape, dtype and the kernels for that dtype.

A `Meta` is interned, so `x.meta is y.meta` is the whole check that two arrays agree in shape, dtype and layout (0.03 us where
comparing the arrays' attributes costs 0.34; `docs/design/0001-buffers.md`). Its table `k` holds one callable per kernel, in the
order in which kernels were registered; until its first call an entry is the function that compiles the kernel.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from .dtypes import dtype as Dtype, from_numpy
from .locks import forking_lock

Entry = Callable[..., Any]
Factory = Callable[[np.dtype[Any], list[Entry], int], Entry]

_NUMBERING: Final = forking_lock()
_FACTORIES: Final[list[Factory]] = []
_TABLES: Final[dict[np.dtype[Any], list[Entry]]] = {}
_METAS: Final[dict[tuple[tuple[int, ...], np.dtype[Any], bool], Meta]] = {}
_LIMIT: Final = 50_000  # a lost Meta only sends a call down the slow path, so the table may simply be emptied


class Meta:
    """Shape and dtype of an array and whether it is plain: C-contiguous and float32 or float64.

    `shape` is a tuple, `dtype` NumPy's, `kind` jitgrad's dtype, `numel` the number of elements, `k` the dtype's kernels.
    """

    __slots__ = ("dtype", "k", "kind", "numel", "plain", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any], contiguous: bool) -> None:
        self.shape = shape
        self.dtype = dtype
        self.kind: Dtype = from_numpy(dtype)
        self.numel = math.prod(shape)
        self.plain = contiguous and (dtype.char in "fd")
        self.k = table(dtype)

    def __repr__(self) -> str:
        return f"Meta({self.shape}, {self.dtype}, {'plain' if self.plain else 'odd'})"


def table(dtype: np.dtype[Any]) -> list[Entry]:
    """The kernels of one dtype."""
    found = _TABLES.get(dtype)
    if found is None:
        with _NUMBERING:
            found = _TABLES.get(dtype)
            if found is None:
                found = []
                found.extend(factory(dtype, found, index) for index, factory in enumerate(_FACTORIES))
                _TABLES[dtype] = found  # complete, for other threads read it without the lock
    return found


def register(factory: Factory) -> int:
    """Add a kernel to every table; `factory(dtype, table, index)` gives the entry. Returns its number."""
    with _NUMBERING:  # two kernels of one number would be taken for each other
        index = len(_FACTORIES)
        _FACTORIES.append(factory)
        for dtype, entries in _TABLES.items():
            entries.append(factory(dtype, entries, index))
    return index


def meta_for(shape: tuple[int, ...], dtype: np.dtype[Any], contiguous: bool = True) -> Meta:
    """The interned Meta of that shape, dtype and layout."""
    key = shape, dtype, contiguous
    meta = _METAS.get(key)
    if meta is None:
        if len(_METAS) >= _LIMIT:  # oldest half goes; a plain clear() would thrash where many shapes are in use
            for old in list(itertools.islice(_METAS, _LIMIT // 2)):
                _METAS.pop(old, None)
        meta = _METAS.setdefault(key, Meta(shape, dtype, contiguous))
    return meta


def meta_of(array: np.ndarray[Any, Any]) -> Meta:
    """The Meta of an array."""
    key = array.shape, array.dtype, array.flags.c_contiguous
    return _METAS.get(key) or meta_for(*key)


def plain_meta(array: np.ndarray[Any, Any]) -> Meta | None:
    """The Meta of an array that a tensor may use as it is: aligned, writable, C-contiguous, float32 or float64 and met before; else None."""
    if array.flags.carray:
        meta = _METAS.get((array.shape, array.dtype, True))
        if meta is not None and meta.plain and meta.dtype is array.dtype:
            return meta
    return None


def is_dense(array: np.ndarray[Any, Any]) -> bool:
    """Whether an array's elements fill their memory, each in a place of its own, in whatever order of the axes."""
    if array.flags.forc:
        return True
    step = array.itemsize
    for stride, size in sorted(zip(array.strides, array.shape, strict=True)):
        if size != 1:
            if stride != step:
                return False
            step *= size
    return True
