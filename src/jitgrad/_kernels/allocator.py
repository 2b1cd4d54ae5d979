"""What the C library does with freed memory: keep some of it, so that a step finds its buffers where it left them.

A step allocates its arrays and frees them all again. glibc hands the freed end of its heap back to the system each time, and the next step pays
for every page anew (1.7 us each measured on a virtual machine; 1e6-element arrays: 25 ms a step instead of 4). Up to `KEPT` bytes are kept
instead. Other C libraries are left alone; `JITGRAD_KEEP_MEMORY=0` leaves glibc alone too.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from typing import Final

from .._core.settings import settings

KEPT: Final = 128 << 20  # bytes at the end of the heap that stay with the process
LARGE: Final = 32 << 20  # larger arrays are mapped and unmapped one by one; the most that glibc's own rule would come to
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt(3)


@functools.cache
def keep_freed_memory() -> bool:
    """Ask glibc to keep freed memory, once; returns whether it does."""
    if not sys.platform.startswith("linux") or not settings.keep_memory:
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:  # musl
        return False
    return bool(mallopt(_MMAP_THRESHOLD, LARGE) and mallopt(_TRIM_THRESHOLD, KEPT))
