"""Per-thread modes of recording, and the two counts that keep them off the common path.

`NO_GRAD` has an entry per thread that has recording switched off, `SPECIAL` counts those in a mode that every op call must ask about
(inference, saved-tensor hooks, anomaly, trace ...). While there are none an op reads two module attributes (4 ns) and never a
`threading.local` (80-100 ns).
"""

from __future__ import annotations

from _thread import _local, allocate_lock
from typing import Any

NO_GRAD: list[None] = []  # a list, because append and pop are atomic and cost a third of a count under a lock
SPECIAL = 0
RUNNING: list[None] = []  # an entry per full run in progress: the accelerated one then stands back
_GUARD = allocate_lock()


class UserRun:
    """The thread's run while an accelerated one calls code of the user, with recording off; or while a node is called by itself.

    `grad` and `saved_hooks` are the thread's modes before, `after_all` functions to call at the end, None where there is none,
    `keep` whether the graph is kept.
    """

    __slots__ = ("__weakref__", "after_all", "grad", "keep", "saved_hooks")
    needed = None
    current = None

    def __init__(self, grad: bool, saved_hooks: tuple[Any, ...], after_all: list[Any] | None, keep: bool) -> None:
        self.grad, self.saved_hooks, self.after_all, self.keep = grad, saved_hooks, after_all, keep


class _Local(_local):
    """What a thread starts with."""

    grad = True
    inference = False
    multithreading = True
    anomaly: Any = None  # set on the class: one for all threads
    warn_always = False  # likewise; whether to say again what is otherwise said once in a process
    depth = 0  # backwards on this thread's stack
    run: Any = None  # the backward that runs in this thread
    tracer: Any = None  # what records this thread's calls for the compiler
    interceptor: Any = None  # a function that op calls go through
    profile: Any = None  # what notes the calls of this thread and the steps of its backwards
    saved_hooks: tuple[Any, ...] = ()
    saved_hooks_disabled: str | None = None
    level: Any = None  # the innermost level of forward mode, which every op call goes through
    hidden: Any = None  # that level, as long as forward mode is switched off
    without_tangents = False
    view_replay = False
    context: Any = None  # a list for the context of the next call of a custom Function
    before_write: Any = None  # called with a tensor that is about to be written to


LOCAL = _Local()


def grad_enabled() -> bool:
    """Whether ops are recorded in this thread."""
    return LOCAL.grad


def set_grad(on: bool) -> bool:
    """Switch recording in this thread; returns what it was."""
    was = LOCAL.grad
    if was is not on:
        if on:
            NO_GRAD.pop()
        else:
            NO_GRAD.append(None)
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


def set_tangents(on: bool) -> bool:
    """Switch forward mode in this thread; returns what it was."""
    local = LOCAL
    was = not local.without_tangents
    if was is not on:
        local.level, local.hidden = local.hidden, local.level
        local.without_tangents = not on
    return was


def set_view_replay(on: bool) -> bool:
    """Switch the noting of how views are made in this thread; returns what it was."""
    was = LOCAL.view_replay
    if was is not on:
        enter_special(1 if on else -1)
        LOCAL.view_replay = on
    return was


def set_anomaly(settings: Any) -> None:
    """Switch anomaly mode, in all threads as in torch: its settings, or None."""
    enter_special((settings is not None) - (LOCAL.anomaly is not None))
    _Local.anomaly = settings


def set_warn_always(on: bool) -> None:
    """Say always, or once in a process, what needs to be said once; in all threads."""
    _Local.warn_always = on


def set_saved_hooks(hooks: tuple[Any, ...]) -> None:
    """Exchange all pairs of saved-tensor hooks of this thread."""
    enter_special(len(hooks) - len(LOCAL.saved_hooks))
    LOCAL.saved_hooks = hooks


def tracer() -> Any:
    """What records the calls of this thread for the compiler, or None."""
    return LOCAL.tracer if SPECIAL else None


def followed() -> bool:
    """Whether the compiler or forward mode follows this thread's calls op by op, a backward's too."""
    return bool(SPECIAL) and (LOCAL.tracer is not None or LOCAL.level is not None)


State = tuple[bool, bool, tuple[Any, ...], str | None, Any]
FRESH: State = (True, False, (), None, None)


def snapshot() -> State:
    """This thread's modes, for another thread that works on its behalf."""
    local = LOCAL
    return local.grad, local.inference, local.saved_hooks, local.saved_hooks_disabled, local.level


def restore(state: State) -> None:
    """Give this thread the modes of a snapshot."""
    grad, inference, saved_hooks, disabled, level = state
    local = LOCAL
    set_grad(grad)
    set_inference(inference)
    enter_special((level is not None) - (local.level is not None))
    set_saved_hooks(saved_hooks)
    local.saved_hooks_disabled, local.level = disabled, level
