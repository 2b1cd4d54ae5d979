"""Matrix products from inside kernels, by the BLAS that NumPy itself uses, or Intel's MKL where it is installed.

`gemm` in a kernel calls an external symbol that this module binds to an address at import (`llvmlite.binding.add_symbol`), so a
kernel loaded from the cache in another process finds its BLAS again. Beyond llvmlite's public API nothing is used. NumPy's BLAS
is found through the handle of NumPy's own extension module, whose dependencies the loader searches too; where that fails, the
wheel's library folder is searched. Before a library is trusted a 2x3 product is computed with it, which also settles the width of its
integers. Without any, `gemm` is a plain loop.
"""

from __future__ import annotations

import ctypes
import glob
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import llvmlite.binding
import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from . import threads

ROW_MAJOR, NORMAL, TRANSPOSED = 101, 111, 112
_SYMBOLS: Final = {"f": "jitgrad_cblas_sgemm", "d": "jitgrad_cblas_dgemm"}


@dataclass(frozen=True)
class Library:
    """A BLAS: where it came from, its gemm addresses, the C type of its integers, how its thread count is set."""

    name: str
    path: str
    handle: Any
    addresses: dict[str, int]
    wide: bool
    threads: tuple[str, str] | None

    @property
    def integer(self) -> type[Any]:
        return ctypes.c_int64 if self.wide else ctypes.c_int32


def _open(path: str) -> Any:
    try:
        return ctypes.CDLL(path)
    except OSError:
        return None


def _handles() -> Iterator[tuple[str, str, Any]]:
    if os.environ.get("JITGRAD_BLAS", "mkl") == "mkl":
        roots = [os.path.join(sys.prefix, "lib"), os.path.join(sys.prefix, "Library", "bin")]
        for path in (p for root in roots for p in sorted(glob.glob(os.path.join(root, "*mkl_rt*")))):
            yield "MKL", path, _open(path)
    extension = sys.modules["numpy._core._multiarray_umath"].__file__ or ""
    yield "NumPy's BLAS", extension, _open(extension)
    base = os.path.dirname(np.__file__)
    for folder in (os.path.join(os.path.dirname(base), "numpy.libs"), os.path.join(base, ".dylibs")):
        for path in sorted(glob.glob(os.path.join(folder, "*openblas*"))):
            yield "OpenBLAS", path, _open(path)


# (prefix and suffix of cblas_sgemm, whether integers have 64 bits, prefix and suffix of OpenBLAS's thread functions)
_SPELLINGS: Final = (
    ("scipy_cblas_", "gemm64_", True), ("cblas_", "gemm64_", True), ("cblas_", "gemm$NEWLAPACK$ILP64", True),
    ("scipy_cblas_", "gemm", False), ("cblas_", "gemm", False), ("cblas_", "gemm$NEWLAPACK", False),
)  # fmt: skip
_THREADS: Final = (
    ("MKL_Set_Num_Threads", "MKL_Get_Max_Threads"),
    ("scipy_openblas_set_num_threads64_", "scipy_openblas_get_num_threads64_"),
    ("openblas_set_num_threads64_", "openblas_get_num_threads64_"),
    ("scipy_openblas_set_num_threads", "scipy_openblas_get_num_threads"),
    ("openblas_set_num_threads", "openblas_get_num_threads"),
)


def _found(name: str, path: str, handle: Any) -> Library | None:
    for prefix, suffix, wide in _SPELLINGS:
        symbols = {char: f"{prefix}{letter}{suffix}" for char, letter in (("f", "s"), ("d", "d"))}
        if all(hasattr(handle, symbol) for symbol in symbols.values()):
            addresses = {
                char: ctypes.cast(getattr(handle, symbol), ctypes.c_void_p).value or 0
                for char, symbol in symbols.items()
            }
            threads = next((pair for pair in _THREADS if hasattr(handle, pair[0])), None)
            return Library(name, path, handle, addresses, wide, threads)
    return None


def _works(library: Library) -> bool:
    """A product with distinct sizes; a wrong width of the integers shows in it."""
    integer, pointer = library.integer, ctypes.POINTER(ctypes.c_double)
    a, b, c = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4), np.zeros((2, 4))
    enum = ctypes.c_int
    kinds: list[Any] = [
        enum,
        enum,
        enum,
        integer,
        integer,
        integer,
        ctypes.c_double,
        pointer,
        integer,
        pointer,
        integer,
        ctypes.c_double,
        pointer,
        integer,
    ]
    call = ctypes.CFUNCTYPE(None, *kinds)(library.addresses["d"])
    flat = [array.ctypes.data_as(pointer) for array in (a, b, c)]
    call(ROW_MAJOR, NORMAL, NORMAL, 2, 4, 3, 1.0, flat[0], 3, flat[1], 4, 0.0, flat[2], 4)
    return bool(np.array_equal(c, [[20, 23, 26, 29], [56, 68, 80, 92]]))


def _choose() -> Library | None:
    for name, path, handle in _handles():
        library = _found(name, path, handle) if handle is not None else None
        if library is not None and _works(library):
            return library
    return None


LIBRARY: Final = _choose()
if LIBRARY is not None:
    for _char, _symbol in _SYMBOLS.items():
        llvmlite.binding.add_symbol(_symbol, LIBRARY.addresses[_char])


def describe() -> dict[str, str]:
    """Name, file and threads of the BLAS in use."""
    if LIBRARY is None:
        return {"name": "none (plain loops)", "path": "", "threads": "1", "integers": ""}
    return {
        "name": LIBRARY.name,
        "path": LIBRARY.path,
        "threads": str(get_threads()),
        "integers": "64 bit" if LIBRARY.wide else "32 bit",
    }


def set_threads(count: int) -> None:
    """Set the library's number of threads (shared with NumPy's own products where it is the same library)."""
    if LIBRARY is not None and LIBRARY.threads is not None:
        getattr(LIBRARY.handle, LIBRARY.threads[0])(ctypes.c_int(count))


def get_threads() -> int:
    """The library's number of threads; 1 where it can't be asked."""
    if LIBRARY is None or LIBRARY.threads is None:
        return 1
    return int(getattr(LIBRARY.handle, LIBRARY.threads[1])())


_VOID, _ENUM, _I64 = ir.VoidType(), ir.IntType(32), ir.IntType(64)


def _call_library(builder: Any, real: ir.Type, letter: str, arguments: list[Any]) -> None:
    assert LIBRARY is not None
    integer = _I64 if LIBRARY.wide else _ENUM
    pointer = real.as_pointer()
    kinds = [_ENUM] * 3 + [integer] * 3 + [real, pointer, integer, pointer, integer, real, pointer, integer]
    symbol = _SYMBOLS[letter]
    function = builder.module.globals.get(symbol) or ir.Function(builder.module, ir.FunctionType(_VOID, kinds), symbol)
    if not LIBRARY.wide:
        arguments = [
            builder.trunc(a, integer) if kind is integer and a.type == _I64 else a
            for a, kind in zip(arguments, kinds, strict=True)
        ]
    builder.call(function, arguments)


@intrinsic
def _gemm_by_library(
    typing: Any,
    transpose_a: Any,
    transpose_b: Any,
    m: Any,
    n: Any,
    k: Any,
    alpha: Any,
    a: Any,
    lda: Any,
    b: Any,
    ldb: Any,
    beta: Any,
    c: Any,
    ldc: Any,
) -> Any:
    """c[m, n] = alpha * op(a)[m, k] @ op(b)[k, n] + beta * c, row-major; op transposes where its flag is 1.

    `a, b, c` are data pointers, `lda, ldb, ldc` the lengths of their rows. Sizes may be 0 (then nothing or only `beta * c` happens).
    """
    real = c.dtype
    letter = "f" if real == types.float32 else "d"
    index = types.intp
    signature = types.void(index, index, index, index, index, real, c, index, c, index, real, c, index)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        flag_a, flag_b, *rest = arguments
        zero = ir.Constant(_I64, 0)
        pick = [
            builder.select(
                builder.icmp_signed("!=", f, zero), ir.Constant(_ENUM, TRANSPOSED), ir.Constant(_ENUM, NORMAL)
            )
            for f in (flag_a, flag_b)
        ]
        _call_library(builder, context.get_value_type(real), letter, [ir.Constant(_ENUM, ROW_MAJOR), *pick, *rest])
        return context.get_dummy_value()

    return signature, generate


@numba.njit(error_model="numpy")
def _gemm_by_loops(
    transpose_a: Any,
    transpose_b: Any,
    m: Any,
    n: Any,
    k: Any,
    alpha: Any,
    a: Any,
    lda: Any,
    b: Any,
    ldb: Any,
    beta: Any,
    c: Any,
    ldc: Any,
) -> None:
    for i in range(m):
        for j in range(n):
            total = 0.0
            for p in range(k):
                total += a[p * lda + i if transpose_a else i * lda + p] * b[j * ldb + p if transpose_b else p * ldb + j]
            c[i * ldc + j] = alpha * total + (beta * c[i * ldc + j] if beta != 0 else 0.0)


gemm: Final = _gemm_by_loops if LIBRARY is None else _gemm_by_library
set_threads(threads.get_num_threads())
