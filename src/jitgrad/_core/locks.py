"""Locks that survive a fork."""

from __future__ import annotations

import os
import threading
from typing import Any


def forking_lock() -> Any:
    """A reentrant lock; a fork waits until no other thread holds it, so that a child never finds it locked for good."""
    lock = threading.RLock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
    return lock
