"""What a node carries only rarely: hooks, retained gradients, the user's metadata, the traceback of anomaly mode.

A node without any has None in its slot `rare`; that identity test is all the common path pays.
"""

from __future__ import annotations

import os
from _thread import RLock
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

from .._core.locks import forking_lock

Hook = Callable[..., Any]
_GUARDING: Final = forking_lock()


class NodeExtras:
    """Hooks and other extras of one node.

    `before` and `after` are hooks of the node; `tensor` holds the hooks put on its outputs, by output number; `retain` what takes the
    final gradient of an output for a tensor that retains it, by output number; `accumulated` is called after a leaf's `.grad`
    changed; `metadata` is the user's; `takes` is the dtype that a leaf's gradient gets: Ellipsis for the leaf's own, None for any.
    """

    __slots__ = ("__weakref__", "_guard", "accumulated", "after", "before", "detached", "duals", "metadata", "origin", "packed", "parent",
                 "retain", "seals", "takes", "tensor", "traceback")  # fmt: skip

    def __init__(self) -> None:
        self.before: OrderedDict[int, Hook] = OrderedDict()
        self.after: OrderedDict[int, Hook] = OrderedDict()
        self.accumulated: OrderedDict[int, Hook] = OrderedDict()
        self.tensor: dict[int, OrderedDict[int, Hook]] = {}
        self.retain: dict[int, list[Callable[[Any], None]]] = {}
        self.metadata: dict[Any, Any] = {}
        self.duals: dict[Any, Any] = {}  # tangents of saved values, in forward mode
        self.packed: dict[str, Any] = {}  # saved values that went through hooks after the op was recorded
        self.traceback: Any = None  # where the op was called, noted in anomaly mode
        self.parent: Any = None  # the node that was running then
        self.seals: dict[str, int] = {}  # checksums of the saved values, taken in anomaly mode
        self.origin: Any = None  # of a twin with unpacked values, the node itself
        self.takes: Any = ...
        self.detached = False  # whether the tensor that this was the history of was cut off in place
        self._guard: tuple[int, Any] = (0, None)

    def guard(self) -> Any:
        """A lock held while a leaf's `.grad` changes and the hooks on that run; a child process gets one of its own."""
        process = os.getpid()
        if self._guard[0] != process:
            with _GUARDING:
                if self._guard[0] != process:
                    self._guard = process, RLock()
        return self._guard[1]


def name_of(hook: Any) -> str:
    """What messages call a hook."""
    return str(getattr(hook, "__name__", "<unknown>"))
