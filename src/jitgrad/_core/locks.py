"""Locks that survive a fork. They come from `_thread`, as here and elsewhere in what `import jitgrad` loads: `threading` takes 0.6 ms."""

from __future__ import annotations

import os
from _thread import RLock
from typing import Any, Final


def forking_lock() -> Any:
    """A reentrant lock; a fork waits until no other thread holds it, so that a child never finds it locked for good."""
    lock = RLock()
    hold_at_forks(lock)
    return lock


def hold_at_forks(lock: Any) -> None:
    """Let forks wait for a lock. It is waited for before the locks that were registered earlier, such as those of libraries imported before."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)


BUILDING: Final = forking_lock()  # one thread compiles at a time; another that needs the same kernel waits for it
