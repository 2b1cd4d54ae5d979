"""The names below `torch._C` that programs and test suites reach for; each stands here for something that has a home elsewhere.

>>> import jitgrad as torch
>>> torch._C.is_grad_enabled()
True
>>> x = torch.ones(2, requires_grad=True)
>>> torch._C._functions.UndefinedGrad()(x).grad_fn.name()
'torch::autograd::UndefinedGradBackward'
"""

from __future__ import annotations

import itertools
import weakref
from typing import Any, Final

from .._engine import current, modes
from .._engine.modes import (
    grad_enabled as is_grad_enabled,
    set_grad as _set_grad_enabled,
    set_tangents as _set_fwd_grad_enabled,
    set_view_replay as _set_view_replay_enabled,
)
from .._engine.node import LEAF, Node
from .._tensor.base import TensorBase
from ..autograd.forward_ad import _is_fwd_grad_enabled
from ..autograd.grad_mode import is_view_replay_enabled as _is_view_replay_enabled
from . import _autograd, _functions

__all__ = [
    "TensorBase",
    "_WeakTensorRef",
    "_autograd",
    "_current_autograd_node",
    "_current_graph_task_execution_order",
    "_current_graph_task_id",
    "_functions",
    "_is_fwd_grad_enabled",
    "_is_view_replay_enabled",
    "_set_fwd_grad_enabled",
    "_set_grad_enabled",
    "_set_view_replay_enabled",
    "_will_engine_execute_node",
    "has_lapack",
    "is_grad_enabled",
]

has_lapack = True
_next_task: Final = itertools.count().__next__
_tasks: Final[weakref.WeakKeyDictionary[Any, int]] = weakref.WeakKeyDictionary()


class _WeakTensorRef:
    """Tells whether a tensor is still there, without keeping it."""

    def __init__(self, tensor: Any) -> None:
        self._tensor = weakref.ref(tensor)

    def expired(self) -> bool:
        """Whether it is gone."""
        return self._tensor() is None


def _current_autograd_node() -> Node | None:
    """The node whose hooks or backward run in this thread, None outside a backward."""
    return current.current_node()


def _current_graph_task_id() -> int:
    """A number for the backward that runs in this thread, -1 outside one. Numbers are given to those that ask, one after the other."""
    run = current.current_run()
    if run is None:
        return -1
    return _tasks[run] if run in _tasks else _tasks.setdefault(run, _next_task())


def _current_graph_task_execution_order() -> list[Node]:
    """The nodes of the backward that runs in this thread in the order of their execution. RuntimeError outside one, or without
    `set_multithreading_enabled(False)`.
    """
    if current.current_run() is None:
        raise RuntimeError("_current_graph_task_execution_order should only be called during the backward pass")
    if modes.LOCAL.multithreading:
        raise RuntimeError("_current_graph_task_execution_order expects the current backward to be executed with multithreading disabled, e.g. by "
                           "running:\n\n>>> with torch.autograd.set_multithreading_enabled(False):\n...     torch.autograd.grad(...)\n")  # fmt: skip
    return current.order()


def _will_engine_execute_node(node: Any) -> bool:
    """Whether the backward that runs in this thread has anything to do at a node. RuntimeError outside one, for what is no node, and for
    a leaf in `autograd.grad`.
    """
    if not isinstance(node, Node):
        raise RuntimeError(f"_will_engine_execute_node expects an grad_fn, but got {type(node).__name__}")
    run = current.current_run()
    if run is None:
        raise RuntimeError("_get_should_execute_nodes should only be called during the backward pass")
    if run.needed is not None and node.number == LEAF and node in run.wanted:
        raise RuntimeError("A leaf node was passed to _will_engine_execute_node but we are currently running autograd.grad(). This is "
                           "currently not supported.")  # fmt: skip
    return current.executes(node)
