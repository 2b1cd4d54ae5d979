"""`torch._C._functions`: the histories that tests put into a graph by hand."""

from __future__ import annotations

from typing import Any

from .._tensor.base import AccumulateGrad, TensorBase
from .._tensor.views import edge_of
from ..autograd._abstract import Node
from ..autograd._refusals import Error, refusing
from ..autograd.function import Function

__all__ = ["AccumulateGrad", "DelayedError", "Error", "UndefinedGrad"]


def _forward(ctx: Any, x: Any) -> Any:
    return x.detach()


def _backward(ctx: Any, grad: Any) -> None:
    return None


_Undefined: Any = type("UndefinedGrad", (Function,), {"forward": staticmethod(_forward), "backward": staticmethod(_backward)})


class UndefinedGrad:
    """`UndefinedGrad()(x)` is x with a history that hands no gradient on, not even zeros."""

    def __call__(self, tensor: Any) -> Any:
        """The same values."""
        return _Undefined.apply(tensor)


class DelayedError:
    """`DelayedError(message, inputs)(*tensors)` are the tensors with a history that raises RuntimeError when a backward comes to it."""

    def __init__(self, msg: str, num_inputs: int) -> None:
        self._text, self._inputs = msg, num_inputs

    def __call__(self, *tensors: Any) -> Any:
        """The same values; a single one not in a tuple. TypeError for what is no tensor, RuntimeError for another number of them than announced."""
        if not all(isinstance(x, TensorBase) for x in tensors):
            raise TypeError("only tensors can be given a history")
        if len(tensors) != self._inputs:
            raise RuntimeError(f"expected {self._inputs} inputs, got {len(tensors)}")
        edges = tuple(edge_of(x) for x in tensors)
        if all(edge is None for edge in edges):
            results = tuple(x.detach() for x in tensors)
        else:
            results = tuple(refusing(x, edges, self._text, None) for x in tensors)
        return results[0] if len(results) == 1 else results


Node.register(UndefinedGrad)
Node.register(DelayedError)
