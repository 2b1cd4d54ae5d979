"""Derivatives of a compiled function: its results get a node whose backward is a program too.

That program computes the forward again and then the gradients, so nothing but the inputs is kept. A derivative of the derivative runs the
function eagerly and differentiates that, to any order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._engine import modes
from .._tensor import backward as runs
from .._tensor.base import TensorBase, version_of, wrap
from .._tensor.general import attach_several
from .._tensor.nodes import Recorded
from .._tensor.views import edge_of
from .operations import Source, View
from .program import Program
from .trace import Tracer


def live_tensors(result: Any, is_done: Callable[[Any], bool]) -> list[Any]:
    """The tensors in a result, in order, whose graph has not been run."""
    if isinstance(result, TensorBase):
        return [result] if result.fn is not None and result.fn.number != 0 and not is_done(result.fn) else []
    items = result.values() if isinstance(result, dict) else result if isinstance(result, (list, tuple)) else ()
    found = [tensor for item in items for tensor in live_tensors(item, is_done)]
    return list({id(tensor): tensor for tensor in found}.values())


class Derivative:
    """The gradients of live results by the inputs, traced right after the function itself.

    `places` says which argument an input is, -1 where it is a captured tensor.
    """

    def __init__(
        self, tracer: Tracer, function: Callable[..., Any], arguments: Sequence[Any], live: Sequence[Any]
    ) -> None:
        self.function = function
        self.count = len(arguments)
        sources = [
            value.source
            for value in tracer.graph.sources
            if value.source is not None and value.source.kind == "captured"
        ]
        self.inputs: list[tuple[int, Any]] = [(k, None) for k, x in enumerate(arguments) if x.fn is not None]
        self.inputs += [(-1, source.tensor) for source in sources if source.tensor.fn is not None]
        tensors = [arguments[k] if k >= 0 else tensor for k, tensor in self.inputs]
        self.seeds = [wrap(np.ones(x.array.shape, x.array.dtype)) for x in live]
        for k, seed in enumerate(self.seeds):
            tracer.source(seed, Source("arg", self.count + k, seed), f"seed{k}")
        self.grads = list(runs.grad(tuple(live), tensors, tuple(self.seeds), retain_graph=True, allow_unused=True))

    def finish(self, tracer: Tracer, name: str) -> None:
        """Write the program."""
        views: list[View] = [tracer.view(grad) for grad in self.grads if grad is not None]
        self.program = Program(tracer, views, [], changes=False)
        self.text = self.program.write(name)
        self.name = name
        self.handed = [value.source.position for value in self.program.arguments() if value.source is not None]
        self.captured = [source for kind, source in self.program.table.entries if kind == "captured"]
        self.shapes = [(value.shape, value.dtype) for value in self.program.returned]

    def compile(self, build: Callable[[str, str, str], Any]) -> None:
        """Compile the program, or load it from the store."""
        self.kernel = build(self.name, self.text, self.program.spec())

    def attach(self, arguments: Sequence[Any], results: Sequence[Any], draws: Sequence[Any]) -> None:
        """Give results the node that runs the program."""
        tensors = [*arguments, *(source.tensor for source in self.captured)]
        node = CompiledBackward()
        node.derivative, node.arguments, node.draws = self, tuple(arguments), tuple(draws)
        edges = tuple(edge_of(arguments[k] if k >= 0 else tensor) for k, tensor in self.inputs)
        saved = {f"input{k}": tensor.array for k, tensor in enumerate(tensors)}
        attach_several(node, edges, saved, tuple(version_of(tensor) for tensor in tensors), (), list(results))

    def run(self, arrays: Sequence[Any], seeds: Sequence[Any], draws: Sequence[Any]) -> list[Any]:
        """The gradients of the inputs as arrays, None for those that get none."""
        table = np.zeros(max(len(self.program.table.entries), 1), np.int64)
        arena = np.empty(self.program.arena + 64, np.uint8)
        captured = iter(arrays[self.count :])
        for k, (kind, what) in enumerate(self.program.table.entries):
            if kind == "size":
                table[k] = what
            else:
                array = arena if kind == "arena" else next(captured) if kind == "captured" else what.array
                at = array.__array_interface__["data"][0]
                table[k] = (at + 63) // 64 * 64 if kind == "arena" else at
        for (place, _, _), (seed, start) in zip(self.program.drawn, draws, strict=True):
            table[place : place + 2] = np.array([seed, start], np.uint64).view(np.int64)
        outs = [np.empty(shape, dtype) for shape, dtype in self.shapes]
        given = [*arrays[: self.count], *seeds]
        status = self.kernel(table, np.zeros(1), *(given[k] for k in self.handed), *outs)
        if status >= 0:
            raise RuntimeError("an index that was right in the forward is out of range in the backward")
        found = iter(outs)
        return [None if grad is None else next(found) for grad in self.grads]


class CompiledBackward(Recorded):
    """The node of a compiled function's results."""

    __slots__ = ("arguments", "derivative", "draws")
    derivative: Derivative
    arguments: tuple[Any, ...]
    draws: tuple[Any, ...]

    def pull(self, grads: list[Any]) -> Sequence[Any]:
        """The gradients by the compiled program."""
        arrays = list(self.saved().values())
        seeds = [np.zeros(x.array.shape, x.array.dtype) if grad is None else np.ascontiguousarray(grad)
                 for grad, x in zip(grads, self.derivative.seeds, strict=True)]  # fmt: skip
        return self.derivative.run(arrays, seeds, self.draws)

    def pull_recorded(self, grads: list[Any]) -> Sequence[Any]:
        """The gradients by the function itself, recorded."""
        self.saved()
        was = modes.set_grad(True)
        try:
            live = live_tensors(self.derivative.function(*self.arguments), lambda fn: False)
            inputs = [self.arguments[k] if k >= 0 else tensor for k, tensor in self.derivative.inputs]
            pairs = [(out, grad) for out, grad in zip(live, grads, strict=True) if grad is not None]
            return list(
                runs.grad(
                    [out for out, _ in pairs], inputs, [grad for _, grad in pairs], create_graph=True, allow_unused=True
                )
            )
        finally:
            modes.set_grad(was)
