"""How many arrays allocated by compiled code are alive: Numba counts them on request."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from numba.core.runtime import _nrt_python, rtsys


def live_arrays() -> int:
    """Allocations of compiled code that were not freed yet; meaningful inside `counting` only."""
    found = rtsys.get_allocation_stats()
    return int(found.mi_alloc - found.mi_free)


@contextmanager
def counting() -> Iterator[None]:
    """Let Numba count for a while."""
    was = _nrt_python.memsys_stats_enabled()
    _nrt_python.memsys_enable_stats()
    try:
        yield
    finally:
        if not was:
            _nrt_python.memsys_disable_stats()
