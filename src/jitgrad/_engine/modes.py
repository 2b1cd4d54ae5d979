"""Per-thread modes of recording, and the two counts that keep them off the common path.

`NO_GRAD` counts the threads that have recording switched off, `SPECIAL` those in a mode that every op call must ask about
(inference, saved-tensor hooks, anomaly, trace ...). While both are 0 an op reads two module attributes (4 ns) and never a
`threading.local` (80-100 ns).
"""

from __future__ import annotations

import threading
from typing import Any

NO_GRAD = 0
SPECIAL = 0
_GUARD = threading.Lock()


class _Local(threading.local):
    """What a thread starts with."""

    grad = True
    inference = False
    multithreading = True
    anomaly: Any = None
    saved_hooks: tuple[Any, ...] = ()
    saved_hooks_disabled: str | None = None


LOCAL = _Local()


def grad_enabled() -> bool:
    """Whether ops are recorded in this thread."""
    return LOCAL.grad


def set_grad(on: bool) -> bool:
    """Switch recording in this thread; returns what it was."""
    global NO_GRAD
    was = LOCAL.grad
    if was is not on:
        with _GUARD:
            NO_GRAD += -1 if on else 1
        LOCAL.grad = on
    return was


def enter_special(step: int) -> None:
    """Count a thread into (1) or out of (-1) the special modes."""
    global SPECIAL
    with _GUARD:
        SPECIAL += step


def set_inference(on: bool) -> bool:
    """Switch inference mode in this thread; returns what it was."""
    was = LOCAL.inference
    if was is not on:
        enter_special(1 if on else -1)
        LOCAL.inference = on
    return was
