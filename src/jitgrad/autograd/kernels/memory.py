"""What stays behind after many calls."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from ..._core.settings import settings
from ..._kernels import memory


def growth(call: Callable[[], Any], count: int) -> tuple[int, int]:
    """Objects that the collector knows, and arrays of compiled code, that `count` calls leave behind with the collector off."""
    for _ in range(3):
        call()
    watch = memory.counting() if settings.jit else nullcontext(lambda: 0)
    gc.collect()
    gc.disable()
    try:
        with watch as live:
            call()
            objects, arrays = len(gc.get_objects()), live()
            for _ in range(count):
                call()
            return len(gc.get_objects()) - objects, live() - arrays
    finally:
        gc.enable()
