"""What a node carries only rarely: hooks, retained gradients, the user's metadata, the traceback of anomaly mode.

A node without any has None in its slot `rare`; that identity test is all the common path pays.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

Hook = Callable[..., Any]


class NodeExtras:
    """Hooks and other extras of one node.

    `before` and `after` are hooks of the node; `tensor` holds the hooks put on its outputs, by output number; `retain` what takes the
    final gradient of an output for a tensor that retains it, by output number; `accumulated` is called after a leaf's `.grad`
    changed; `metadata` is the user's.
    """

    __slots__ = ("__weakref__", "accumulated", "after", "before", "metadata", "packed", "parent", "retain", "tensor", "traceback")

    def __init__(self) -> None:
        self.before: OrderedDict[int, Hook] = OrderedDict()
        self.after: OrderedDict[int, Hook] = OrderedDict()
        self.accumulated: OrderedDict[int, Hook] = OrderedDict()
        self.tensor: dict[int, OrderedDict[int, Hook]] = {}
        self.retain: dict[int, list[Callable[[Any], None]]] = {}
        self.metadata: dict[Any, Any] = {}
        self.packed: dict[str, Any] = {}  # saved values that went through hooks after the op was recorded
        self.traceback: Any = None  # where the op was called, noted in anomaly mode
        self.parent: Any = None  # the node that was running then


def name_of(hook: Any) -> str:
    """What messages call a hook."""
    return str(getattr(hook, "__name__", "<unknown>"))
