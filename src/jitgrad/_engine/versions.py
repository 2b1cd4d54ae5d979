"""Version counters: how a node learns at backward that a value it saved was written in the meantime.

A counter is made at the first write, or when a value is saved that no edge leads back to; all views of a storage share it. A node
notes `WRITES`, the number of the last write anywhere in the process; as long as that has not moved, nothing was written and no
counter is looked at (saving a counter with every value would cost 155 ns an op). After a write, the counters of the node's
own saved values tell whether they were hit, and their history how often since.
"""

from __future__ import annotations

from _thread import allocate_lock
from collections import deque
from typing import Any, Final

from .._core.locks import forking_lock

WRITES = 0
GUARD: Final = allocate_lock()  # held while a write is counted
MAKING: Final = forking_lock()  # held while a tensor gets its counter
_HISTORY: Final = (
    64  # writes a counter remembers; older ones only make the "expected version" of a message a lower bound
)


class Together:
    """Writes that several storages always get at once, counted in one place: a compiled step writes all its parameters at every call."""

    __slots__ = ("count", "history", "retired")

    def __init__(self) -> None:
        self.count = 0
        self.retired = False  # whether there will be no more
        self.history: deque[int] = deque(maxlen=_HISTORY)


class Version:
    """The number of writes to one storage, and when the latest of them happened."""

    __slots__ = ("computed", "history", "last", "maker", "own", "shared")

    def __init__(self) -> None:
        self.own = 0  # writes but for those made together with others
        self.shared: tuple[tuple[Together, int], ...] = ()  # and since which epoch it takes part
        self.last = 0
        self.computed = False  # the storage belongs to a result, and a tensor without history is over it, too
        self.maker: Any = None  # a weak reference to the edge of the tensor since it was last written to, for messages
        self.history: deque[int] = deque(maxlen=_HISTORY)

    @property
    def count(self) -> int:
        """The number of writes."""
        return self.own + sum([group.count for group, _ in self.shared]) if self.shared else self.own

    def at(self, epoch: int) -> int:
        """The count as it was at an epoch."""
        later = sum(1 for write in self.history if write > epoch)
        return self.count - later - sum(1 for group, since in self.shared for write in group.history if write > max(epoch, since))

    def join(self, group: Together) -> None:
        """Take part in a new group; what groups without a future have counted becomes its own."""
        with GUARD:
            for old, since in self.shared:
                if old.retired:
                    self.own += old.count
                    self.history = deque(sorted([*self.history, *(write for write in old.history if write > since)]), maxlen=_HISTORY)
            self.shared = (*((old, since) for old, since in self.shared if not old.retired), (group, WRITES))

    def state(self) -> tuple[int, int, list[int]]:
        """What `restore` needs."""
        return self.count, self.last, list(self.history)

    def restore(self, state: tuple[int, int, list[int]]) -> None:
        """Forget all writes since `state` was taken."""
        with GUARD:
            self.own, self.last = state[0] - (self.count - self.own), state[1]
            self.history.clear()
            self.history.extend(state[2])

    def set(self, count: int) -> None:
        """Say how many writes there were: the last ones are forgotten, or unknown ones added."""
        while self.count < count:
            bump(self)
        with GUARD:
            for _ in range(min(self.count - count, len(self.history))):
                self.history.pop()
            self.own += count - self.count
            self.last = self.history[-1] if self.history else 0


def bump(version: Version) -> None:
    """Count one write."""
    global WRITES
    with GUARD:
        WRITES = WRITES + 1
        version.own += 1
        version.last = WRITES
        version.history.append(WRITES)


def detach(edge: Any) -> None:
    """Note that a tensor was cut off its history in place: what saved it is not to be used any more. No write, but looked for as one."""
    global WRITES
    edge._extras().detached = True
    with GUARD:
        WRITES = WRITES + 1


def check_attached(edge: Any) -> None:
    """RuntimeError if the tensor that was saved, and had this edge, was cut off it in place."""
    if edge is not None and edge.rare is not None and edge.rare.detached:
        raise RuntimeError("Trying to use a saved tensor that has been detached in-place, i.e. with .detach_()."
                           "This is not supported, please use out-of-place `.detach()` instead")  # fmt: skip


def is_counting() -> bool:
    """Whether a write is being counted right now, by whichever thread."""
    return GUARD.locked()
