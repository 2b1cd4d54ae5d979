"""`torch._C._functions`: nodes by the names of their classes, and the histories that tests put into a graph by hand."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Any

from .._engine import versions
from .._engine.node import Node, Undefined, next_number
from .._tensor.base import AccumulateGrad, TensorBase
from .._tensor.refusals import Error
from .._tensor.views import edge_of
from ..autograd._abstract import Node as AnyNode

__all__ = ["AccumulateGrad", "DelayedError", "Error", "UndefinedGrad", "UndefinedGradBackward"]


class UndefinedGradBackward(Node):
    """Has no gradient for its input."""

    __slots__ = ("e0",)
    arity = 1
    e0: Any

    def name(self) -> str:
        return "torch::autograd::UndefinedGradBackward"

    def edges(self) -> tuple[Any]:
        return (self.e0,)

    def apply(self, grad: Any, keep: bool) -> Any:
        raise Undefined([None])

    def call(self, grads: tuple[Any, ...], keep: bool, create_graph: bool) -> Sequence[Any]:
        return (None,)


def _linked(tensor: Any, node: Any) -> Any:
    """A copy of a tensor with a node for its history."""
    result = tensor.detach().clone()
    node.meta, node.epoch, node.number = result.meta, versions.WRITES, next_number()
    node.buf = node.vc = node.rare = None
    result.fn = node
    return result


def _checked(tensors: Sequence[Any]) -> None:
    for place, x in enumerate(tensors):
        if not isinstance(x, TensorBase):
            raise TypeError(f"argument {place} is not a Variable")


class UndefinedGrad:
    """`UndefinedGrad()(x)` has the elements of `x`, which no gradient comes back to. TypeError for anything but one tensor."""

    def __call__(self, *tensors: Any) -> Any:
        if len(tensors) != 1:
            raise TypeError(f"expected 1 arguments, got {len(tensors)} instead")
        _checked(tensors)
        node = UndefinedGradBackward()
        node.e0 = edge_of(tensors[0])
        return tensors[0].detach().clone() if node.e0 is None else _linked(tensors[0], node)


class DelayedError:
    """`DelayedError(text, n)(*tensors)` has the elements of its n arguments; the backward raises RuntimeError with the text."""

    def __init__(self, *arguments: Any) -> None:
        if len(arguments) != 2:
            raise RuntimeError(f"Requires two arguments, got {len(arguments)}")
        self.text, self.count = arguments

    def __call__(self, *tensors: Any) -> Any:
        if len(tensors) != self.count:
            raise TypeError(f"expected {self.count} arguments, got {len(tensors)} instead")
        _checked(tensors)
        edges = tuple(edge_of(x) for x in tensors)
        results = []
        for x in tensors:
            node = Error()
            node._edges, node.given, node.text = edges, None, self.text
            results.append(_linked(x, node))
        return results[0] if len(results) == 1 else tuple(results)


AnyNode.register(UndefinedGrad)
AnyNode.register(DelayedError)


class _OfName(type):
    """Nodes whose class has a certain name are instances."""

    def __instancecheck__(cls, other: Any) -> bool:
        return isinstance(other, Node) and type(other).__name__ == cls.__name__


@functools.cache
def _of_name(name: str) -> type[Any]:
    return _OfName(name, (), {"__module__": __name__})


def __getattr__(name: str) -> Any:
    """A class that the nodes of some op are instances of."""
    if re.fullmatch(r"[A-Z]\w*Backward\d*|CopySlices|CopyBackwards|NotImplemented", name):
        return _of_name(name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
