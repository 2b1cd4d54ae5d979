"""Elementwise functions of several results: one kernel forward, one for the needed gradients backward.

Each result is an expression of its own; the derivative by an input is the sum over the results that a gradient came to. One such
derivative is an ordinary Map over gradients and inputs, so higher derivatives need nothing new.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._engine import modes
from ..._expr import Expr, const, free_variables, var
from ..._ops.derived import Map, Pair, compute, times
from ..._ops.kinds import Dispatch
from ..._ops.maps import Bound
from ..._tensor.base import wrap
from ..._tensor.elementwise import counter_of, recording
from ..._tensor.general import attach_several
from ..._tensor.nodes import Recorded, node_class
from ..._tensor.saved import watch
from ..._tensor.views import edge_of, mark_inference

Array = np.ndarray[Any, Any]


class Together:
    """Maps of the same inputs and params that are computed at once."""

    def __init__(self, name: str, node: str, maps: Sequence[Map]) -> None:
        self.name, self.node, self.maps = name, node, tuple(maps)
        self.inputs, self.params, self.conditions = maps[0].inputs, maps[0].params, maps[0].conditions
        self.differentiable = tuple(place for place, name in enumerate(self.inputs) if name not in self.conditions)

    @functools.cached_property
    def kernels(self) -> Pair:
        """The forward."""
        return Pair(self.name, tuple(one.output for one in self.maps), self.inputs, self.params, self.conditions)

    @functools.cache  # noqa: B019  (as Maps, they live as long as the process)
    def cotangents(self, given: tuple[bool, ...]) -> tuple[Expr, ...]:
        """The derivative by each differentiable input, summed over the results that have a gradient."""
        done = []
        for place in range(len(self.differentiable)):
            total: Expr | None = None
            for index, one in enumerate(self.maps):
                if given[index] and one.differentiable:
                    part = times(var(f"grad_{index}"), one.partials[place], {})
                    if not (part.op == "const" and part.value == 0):
                        total = part if total is None else total + part
            done.append(const(0.0) if total is None else total)
        return tuple(done)

    def incoming(self, given: tuple[bool, ...]) -> tuple[str, ...]:
        """The names of the gradients that came."""
        return tuple(f"grad_{index}" for index, there in enumerate(given) if there)

    @functools.cache  # noqa: B019
    def backward(self, needs: tuple[bool, ...], given: tuple[bool, ...]) -> Pair:
        """One kernel for all needed gradients, over the gradients that came and the inputs."""
        outputs = tuple(part for part, need in zip(self.cotangents(given), needs, strict=True) if need)
        tag = "".join("01"[need] for need in needs) + "_" + "".join("01"[there] for there in given)
        return Pair(
            f"{self.name}_backward_{tag}", outputs, (*self.incoming(given), *self.inputs), self.params, self.conditions
        )

    @functools.cache  # noqa: B019
    def partial(self, place: int, given: tuple[bool, ...]) -> Map:
        """The gradient of one input as a Map over the gradients that came and the inputs it reads."""
        output = self.cotangents(given)[place]
        grads = self.incoming(given)
        read = set(free_variables(output))
        inputs = (*grads, *(name for name in self.inputs if name in read))
        name = (
            f"{self.name}_backward_{self.inputs[self.differentiable[place]]}_{''.join('01'[there] for there in given)}"
        )
        return Map(
            name, self.node + "Backward0", inputs, self.params, output, conditions=self.conditions & read, order=1
        )

    @functools.cached_property
    def read(self) -> frozenset[str]:
        """The inputs that some gradient reads."""
        return frozenset(name for part in self.cotangents((True,) * len(self.maps)) for name in free_variables(part))


class TogetherNode(Recorded):
    """A call of several results. All inputs are saved that some gradient reads; the others' places hold what is broadcast to nothing."""

    __slots__ = ("likes", "needs", "together")
    together: Together
    needs: tuple[bool, ...]
    likes: tuple[Any, ...]

    def arrays(self) -> list[Array]:
        """The inputs, in order."""
        saved = self.saved()
        return [saved[name] for name in self.together.inputs]

    def pull(self, grads: list[Any]) -> Sequence[Any]:
        """One kernel for all needed gradients."""
        given = tuple(grad is not None for grad in grads)
        there = [grad for grad in grads if grad is not None]
        outs = iter(
            compute(
                self.together.backward(self.needs, given),
                (*there, *self.arrays()),
                self.statics,
                there[0].shape,
                [there[0].dtype] * sum(self.needs),
            )
        )
        return [next(outs) if need else None for need in self.needs]

    def pull_recorded(self, grads: list[Any]) -> Sequence[Any]:
        """One recorded Map per needed gradient."""
        given = tuple(grad is not None for grad in grads)
        there = [grad for grad in grads if grad is not None]
        saved = self.saved()
        tensors = {name: self.unpack(name, saved[name], True) for name in self.together.inputs}
        done: list[Any] = [None] * len(self.needs)
        for place, need in enumerate(self.needs):
            if need:
                part = self.together.partial(place, given)
                named = [tensors[name] for name in part.inputs[len(there) :]]
                done[place] = Dispatch.invoke(part, (*there, *named), self.statics)
        return done

    def edge_of_saved(self, name: str) -> Any:
        """The edge of a saved input."""
        place = self.together.inputs.index(name)
        differentiable = self.together.differentiable
        return self._edges[differentiable.index(place)] if place in differentiable else None

    def output_meta(self, index: int) -> Any:
        """The Meta of one result."""
        return self.likes[index]


def call_together(together: Together, bound: Bound) -> tuple[Any, ...]:
    """Compute all results, wrap and record them."""
    kinds = [np.dtype(bool) if one.is_condition else bound.compute for one in together.maps]
    outs = compute(together.kernels, bound.arrays, bound.params, bound.shape, kinds)
    results = [wrap(out) for out in outs]
    if modes.SPECIAL and modes.LOCAL.inference:
        return tuple(mark_inference(result) for result in results)
    if recording():
        record(together, bound, results)
    return tuple(results)


def record(together: Together, bound: Bound, results: list[Any]) -> None:
    """Give the results a node if one of the inputs takes a gradient."""
    edges = tuple(edge_of(bound.tensors[place]) for place in together.differentiable)
    needs = tuple(edge is not None for edge in edges)
    if True not in needs or not any(result.meta.kind.is_floating_point for result in results):
        return
    node: Any = node_class(together.node, TogetherNode, None)()
    node.together, node.needs = together, needs
    node.likes = tuple(result.meta if result.meta.kind.is_floating_point else None for result in results)
    saved, counters = {}, []
    for place, name in enumerate(together.inputs):
        edge = edges[together.differentiable.index(place)] if place in together.differentiable else None
        saved[name] = bound.arrays[place]
        counters.append(counter_of(bound.tensors[place], edge) if name in together.read else None)
    attach_several(node, edges, saved, tuple(counters), bound.params, results)
    if modes.SPECIAL:
        watch(node, dict(zip(together.inputs, bound.tensors, strict=True)))
