"""The words a kernel may use, in plain Python: what `JITGRAD_JIT=0` runs and a debugger steps through.

The compiled twins live in `buffers.py` (arrays), `vector_math.py` (scalar functions) and `blas.py`; a generated kernel module
imports those under the same names. `WORDS` says where each one comes from.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from . import scalar_fallback

Array = np.ndarray[Any, Any]
PHILOX_MULTIPLIERS: Final = (0xD2511F53, 0xCD9E8D57)
PHILOX_KEYS: Final = (0x9E3779B9, 0xBB67AE85)
PHILOX_ROUNDS: Final = 10
WORDS: Final[dict[str, str]] = {
    **dict.fromkeys(("data", "size", "ndim", "dim", "stride", "offset", "release", "restore"), "buffers"),
    **dict.fromkeys(scalar_fallback.NAMES, "vector_math"),
    "gemm": "blas",
    "words": "philox",
    **dict.fromkeys((f"tile_{rows}_{columns}" for rows in (8, 4, 2, 1) for columns in (2, 1, 0)), "tiles"),
    **dict.fromkeys(("tile_across", "turn_block"), "tiles"),
    **dict.fromkeys(("order_rows", "extreme_rows", "sum_rows", "product_rows", "recurrence_rows"), "program_rows"),
}  # fmt: skip


def data(x: Array) -> Array:
    """The elements as a flat view; assigning to it writes into `x`, which must be C-contiguous."""
    return x.reshape(-1)


def size(x: Array) -> int:
    """Number of elements."""
    return x.size


def ndim(x: Array) -> int:
    """Rank."""
    return x.ndim


def dim(x: Array, axis: int) -> int:
    """Length of an axis."""
    return int(x.shape[axis])


def stride(x: Array, axis: int) -> int:
    """Stride of an axis in elements."""
    return int(x.strides[axis]) // x.itemsize


def offset(pointer: Array, count: int) -> Array:
    """The pointer to the element `count` places further on."""
    return pointer[count:]


def release(count: int) -> int:
    """Stands for letting the GIL go; does nothing here."""
    return 0


def restore(token: int) -> None:
    """Stands for taking the GIL back; does nothing here."""


def real(value: Any) -> Any:
    """A number in the kernel's dtype; the registry puts NumPy's scalar type in its place."""
    return value


def gemm(
    transpose_a: int,
    transpose_b: int,
    m: int,
    n: int,
    k: int,
    alpha: float,
    a: Array,
    lda: int,
    b: Array,
    ldb: int,
    beta: float,
    c: Array,
    ldc: int,
) -> None:
    """c[m, n] = alpha * op(a) @ op(b) + beta * c on flat row-major arrays; see `blas.gemm`."""
    left = _matrix(a, lda, k, m).T if transpose_a else _matrix(a, lda, m, k)
    right = _matrix(b, ldb, n, k).T if transpose_b else _matrix(b, ldb, k, n)
    result = _matrix(c, ldc, m, n)
    product = alpha * (left @ right)
    result[...] = product if beta == 0 else product + beta * result


def _matrix(flat: Array, row: int, count: int, width: int) -> Array:
    return np.lib.stride_tricks.as_strided(flat, (count, width), (row * flat.itemsize, flat.itemsize))


def words(target: Array, start: Any, seed: Any, blocks: int) -> None:
    """Write the words of `blocks` Philox blocks from number `start` on to a flat uint64 array; see `philox.words`."""
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    with np.errstate(over="ignore"):
        numbers = np.arange(blocks, dtype=np.uint64) + np.uint64(start)
        c = [numbers & low, numbers >> half, np.zeros_like(numbers), np.zeros_like(numbers)]
        k = [np.uint64(seed) & low, np.uint64(seed) >> half]
        for _ in range(PHILOX_ROUNDS):
            a, b = np.uint64(PHILOX_MULTIPLIERS[0]) * c[0], np.uint64(PHILOX_MULTIPLIERS[1]) * c[2]
            c = [(b >> half) ^ c[1] ^ k[0], b & low, (a >> half) ^ c[3] ^ k[1], a & low]
            k = [(key + np.uint64(step)) & low for key, step in zip(k, PHILOX_KEYS, strict=True)]
    target[: 4 * blocks] = np.stack(c, axis=1).reshape(-1)
