"""`Node`, the abstract base under which programs know the nodes of a graph: `isinstance(y.grad_fn, autograd.graph.Node)`."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

from .._core.hooks import RemovableHandle
from .._engine import node
from ._context import FunctionCtx

__all__ = ["Node"]


class Node(abc.ABC):
    """A node of the graph: one recorded op, whose backward it runs. A virtual base of all of them; none can be made by hand.

    >>> import jitgrad
    >>> y = jitgrad.ones(2, requires_grad=True).exp()
    >>> isinstance(y.grad_fn, jitgrad.autograd.graph.Node), y.grad_fn.name()
    (True, 'ExpBackward0')
    """

    @abc.abstractmethod
    def name(self) -> str:
        """The name of the node's class, with the C++ namespace where torch shows it."""

    @property
    @abc.abstractmethod
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """For each input the node its gradient goes to, or None, and which output of that node it is."""

    @property
    @abc.abstractmethod
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for whatever the user wants to keep with the node."""

    @property
    @abc.abstractmethod
    def _input_metadata(self) -> tuple[Any, ...]: ...

    @abc.abstractmethod
    def _sequence_nr(self) -> int: ...

    @abc.abstractmethod
    def _register_hook_dict(self, tensor: Any) -> None: ...

    @abc.abstractmethod
    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn(grad_inputs, grad_outputs)` after the node was run; a tuple that it returns takes the place of `grad_inputs`."""

    @abc.abstractmethod
    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn(grad_outputs)` before the node is run; a tuple that it returns takes the place of `grad_outputs`."""


Node.register(node.Node)
Node.register(FunctionCtx)  # in torch the context is the node
