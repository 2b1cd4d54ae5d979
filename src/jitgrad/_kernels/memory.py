"""Arrays of compiled code that are alive, counted without importing Numba before it is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def counting() -> Iterator[Callable[[], int]]:
    """Let Numba count its allocations for a while; gives the function that tells how many were not freed."""
    from .jit_memory import counting as start, live_arrays

    with start():
        yield live_arrays
