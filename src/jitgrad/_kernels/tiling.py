"""Which products a compiled step makes in tiles of its own (`tiles.py`) and which by BLAS."""

from __future__ import annotations

import functools
from typing import Any, Final

SMALLEST: Final = 4_000  # multiplications; below that BLAS, or a loop, is as fast
CACHE: Final = 1 << 20  # bytes of the second operand, which is read again and again and must stay in the second-level cache
VECTOR: Final = 64  # bytes


@functools.cache
def _available() -> bool:
    """Whether this machine has 512-bit vectors, and its BLAS is no better: MKL is on Intel's processors (on a Zen 4 a step of the MNIST net takes
    1132 us with it, 955 in tiles).
    """
    import llvmlite.binding as llvm
    import numba

    from . import blas

    if numba.config.CPU_NAME or numba.config.CPU_FEATURES:
        return False
    better = blas.LIBRARY is not None and blas.LIBRARY.name == "MKL" and not llvm.get_host_cpu_name().startswith("znver")
    return bool(llvm.get_host_cpu_features().get("avx512f")) and not better


def in_tiles(m: int, n: int, k: int, dtype: Any, turned: bool) -> bool:
    """Whether [m, k] times [k, n] is made in tiles; `turned`: the second operand lies transposed."""
    lanes = VECTOR // dtype.itemsize
    fits = m % 4 == n % lanes == k % lanes == 0 if turned else 2 * n >= lanes
    return dtype.char in "fd" and fits and m * n * k >= SMALLEST and n * k * dtype.itemsize <= CACHE and _available()
