"""The number of threads of matrix products: one, unless the user or the environment says otherwise.

A BLAS that takes all cores makes a small step slower, and far slower where another process owns one of them (a demo step took 32 ms
instead of 0.2 with two OpenBLAS threads beside a busy process: the idle one spins). The number is the library's, so NumPy's own
products in the same process follow it.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Final

VARIABLES: Final = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


def _from_environment() -> int:
    for variable in VARIABLES:
        value = os.environ.get(variable, "")
        if value.isdigit() and int(value) > 0:
            return int(value)
    return 1


_count = _from_environment()


def _library() -> Any:
    """The module that holds the BLAS, once a kernel has needed it."""
    return sys.modules.get(f"{__package__}.blas")


def set_num_threads(num_threads: int) -> None:
    """Let matrix products use that many threads.

    NumPy's own products follow where they use the same library. TypeError unless an int is given, RuntimeError unless it is positive.

    >>> import jitgrad
    >>> jitgrad.set_num_threads(1)
    >>> jitgrad.get_num_threads()
    1
    """
    global _count
    if not isinstance(num_threads, int) or isinstance(num_threads, bool):
        raise TypeError(f"set_num_threads expects an int, but got {type(num_threads).__name__}")
    if num_threads <= 0:
        raise RuntimeError("set_num_threads expects a positive integer")
    _count = num_threads
    blas = _library()
    if blas is not None:
        blas.set_threads(num_threads)


def get_num_threads() -> int:
    """The number of threads that matrix products may use."""
    return _count
