"""What stays behind after many calls."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from ..._core.settings import settings
from ..._kernels import memory


def growth(call: Callable[[], Any], count: int) -> tuple[int, int]:
    """Objects, and arrays of compiled code, that `count` calls leave behind.

    Objects are those that the collector knows and has not freed, being off, or blocks of memory that are there after it has run, whichever are more.
    """
    for _ in range(3):
        call()
    watch = memory.counting() if settings.jit else nullcontext(lambda: 0)
    gc.collect()
    gc.disable()
    try:
        with watch as live:
            call()
            gc.collect()  # empties the free lists, whose blocks count too
            objects, blocks, arrays = len(gc.get_objects()), sys.getallocatedblocks(), live()
            for _ in range(count):
                call()
            objects, arrays = len(gc.get_objects()) - objects, live() - arrays
            gc.collect()
            return max(objects, sys.getallocatedblocks() - blocks), arrays
    finally:
        gc.enable()
