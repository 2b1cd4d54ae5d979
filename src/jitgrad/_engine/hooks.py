"""Hooks on nodes and tensors, and the count that keeps them off the common path."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from .._core.hooks import RemovableHandle
from .node import Node

HOOKED = 0  # nodes alive that have extras; 0 = the accelerated run may be taken
_GUARD = threading.Lock()
Hook = Callable[..., Any]


def _count(step: int) -> None:
    global HOOKED
    with _GUARD:
        HOOKED += step


class NodeExtras:
    """What a node carries only rarely.

    `before` and `after` are hooks of the node; `tensor` holds the hooks put on its outputs, by output number; `retain` the tensors
    whose `.grad` gets the final gradient of an output, as (output number, weak reference); `metadata` is the user's.
    """

    __slots__ = ("__weakref__", "accumulated", "after", "before", "metadata", "retain", "tensor", "traceback")

    def __init__(self) -> None:
        self.before: OrderedDict[int, Hook] = OrderedDict()
        self.after: OrderedDict[int, Hook] = OrderedDict()
        self.accumulated: OrderedDict[int, Hook] = OrderedDict()
        self.tensor: dict[int, OrderedDict[int, Hook]] = {}
        self.retain: dict[int, Any] = {}
        self.metadata: dict[Any, Any] = {}
        self.traceback: Any = None
        _count(1)

    def __del__(self) -> None:
        _count(-1)


def extras(node: Node) -> NodeExtras:
    """The node's extras, made when there are none yet."""
    if node.rare is None:
        node.rare = NodeExtras()
    return node.rare


def add(hooks: OrderedDict[int, Hook], hook: Hook) -> RemovableHandle:
    """Append a hook; the handle takes it out again."""
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def on_tensor(node: Node, index: int, hook: Hook) -> RemovableHandle:
    """Call `hook(grad)` when the gradient of an output is complete."""
    return add(extras(node).tensor.setdefault(index, OrderedDict()), hook)
