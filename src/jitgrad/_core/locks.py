"""Locks that survive a fork. They come from `_thread`, as here and elsewhere in what `import jitgrad` loads: `threading` takes 0.6 ms.

A fork takes them all, so it waits until no other thread holds one, and a child never finds one locked for good. It takes them in the order in
which threads do: `OUTER` ones may be held by a thread that goes on to compile or import, `BUILDING` by one that goes on to take an inner one.
"""

from __future__ import annotations

import os
from _thread import RLock
from typing import Any, Final

OUTER: Final[list[Any]] = []
BUILDING: Final = RLock()  # one thread at a time compiles, or imports what is late; another that needs the same waits for it
INNER: Final[list[Any]] = []
_HELD: Final[list[tuple[Any, ...]]] = []


def forking_lock(outer: bool = False) -> Any:
    """A reentrant lock that forks wait for; `outer` if its holder may compile a kernel or import a module."""
    lock = RLock()
    (OUTER if outer else INNER).append(lock)
    return lock


def _hold() -> None:
    locks = (*OUTER, BUILDING, *INNER)
    for lock in locks:
        lock.acquire()
    _HELD.append(locks)


def _release() -> None:
    for lock in reversed(_HELD.pop()):
        lock.release()


def hold_at_forks() -> None:
    """Let forks take the locks, before those of libraries that registered theirs earlier; may be called again."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_hold, after_in_parent=_release, after_in_child=_release)


hold_at_forks()
