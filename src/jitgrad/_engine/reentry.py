"""Backwards inside backwards: every so many levels one goes on in a thread of its own, whose stack is empty.

A node may run a backward itself (checkpointing does), to any depth; each level takes a dozen Python frames, and the interpreter allows
a thread about a thousand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from .._core.late import LateModule
from . import modes

if TYPE_CHECKING:
    import threading
else:
    threading = LateModule("threading")

LEVELS: Final = 16


def run_at_depth(run: Callable[[], Any]) -> Any:
    """Call `run`, in another thread where this one has `LEVELS` backwards on its stack already. Raises what `run` raises."""
    local = modes.LOCAL
    if local.depth < LEVELS:
        local.depth += 1
        try:
            return run()
        finally:
            local.depth -= 1
    done: list[Any] = []
    failed: list[BaseException] = []
    state = modes.snapshot()

    def body() -> None:
        modes.restore(state)
        try:
            done.append(run())
        except BaseException as error:  # handed to the thread that waits
            failed.append(error)
        finally:
            modes.restore(modes.FRESH)

    thread = threading.Thread(target=body, name="jitgrad-backward")
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return done[0]
