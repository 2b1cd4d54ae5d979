"""The nodes of `jit_function`s: one class per function and number of edges, `ScanBackward` for `scan`.

`values` is the tuple that backward is called with after the gradients: inputs, then results. A value that backward never reads is not kept;
an empty array of its type stands in for it. Anything but a tuple in `values` is unusual: released, or packed by saved-tensor hooks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..._core.meta import Meta
from ..._engine import modes, versions
from ..._engine.node import LEAF, RELEASED, TOKEN, Node, Port, Undefined, target
from ..._engine.versions import Version
from ..._tensor.base import own_rare, wrap
from ..._tensor.nodes import contiguous, modified, second_time
from ..._tensor.saved import Packed
from .refusing import refuse_twice

if TYPE_CHECKING:
    from .plan import Plan

Array = np.ndarray[Any, Any]


class KernelNode(Node):
    """What the nodes of all arities share. `counters` holds version counters of saved tensors that no edge leads to, by position."""

    __slots__ = ("counters", "plan", "values")
    values: Any
    plan: Plan
    counters: dict[int, Version] | None
    label: ClassVar[str]

    # ---- saved values
    def unusual(self, values: Any) -> tuple[Any, ...]:
        """The values where they are not a plain tuple."""
        if values is RELEASED:
            second_time()
        return tuple([value.unpack().array if type(value) is Packed else value for value in values])

    def check(self) -> None:
        """Something was written since the call; was it one of the saved tensors?"""
        values = self.values
        for place, edge in self.saved_places():
            held = values[place]
            if type(held) is Packed:
                continue
            counter = edge.vc if edge is not None else None if self.counters is None else self.counters.get(place)
            if counter is not None and counter.last > self.epoch:
                raise modified(self.epoch, counter, held, None if edge is None or edge.number == LEAF else target(edge))

    def saved_places(self) -> list[tuple[int, Any]]:
        """Position and edge (None where there is none) of each tensor among the saved values."""
        plan, edges = self.plan, self.edges()
        found: list[tuple[int, Any]] = []
        for place in plan.saved_inputs:
            index = plan.diff.index(place) if place in plan.diff else -1
            found.append((place, edges[index] if index >= 0 else None))
        alone = self.outputs == 1 and not plan.contract.mutates
        return found + [(place, self if alone else None) for place in plan.saved_outputs]

    def check_saved(self) -> None:
        """RuntimeError where a saved value was written to."""
        if self.epoch != versions.WRITES and self.values is not RELEASED:
            self.check()

    def release(self) -> None:
        """Let the saved values go."""
        self.values = RELEASED

    def kept_values(self) -> list[tuple[str, Any, Node | None]]:
        """Inputs by the names of forward's parameters, results by their number."""
        if self.values is RELEASED:
            return [("values", RELEASED, None)]
        names, edges = self.plan.contract.names, dict(self.saved_places())
        found = [
            (names[k] if k < len(names) else f"result{k - len(names)}", value, edges.get(k))
            for k, value in enumerate(self.values)
        ]
        return [
            (name, value, edge)
            for name, value, edge in found
            if type(value) is Packed or (isinstance(value, np.ndarray) and value.size)
        ]

    def ready(self) -> tuple[Any, ...]:
        """The saved values, after the check."""
        values = self.values
        if type(values) is not tuple:
            values = self.unusual(values)
        if self.epoch != versions.WRITES:
            self.check()
        return values

    # ---- the run
    def needs(self) -> tuple[bool, ...]:
        """Whether each differentiable input takes a gradient."""
        return tuple([edge is not None for edge in self.edges()])

    def collect(self, grad: Any) -> list[Any]:
        """The gradients of all results."""
        return [grad]

    def pull(self, grads: list[Any], values: tuple[Any, ...]) -> list[Array | None]:
        """Arrays to arrays: the checked call of the backward kernel."""
        return self.plan.pull(self, grads, values)

    def results_of(self, grad: Any, keep: bool) -> list[Array | None]:
        """The gradients of the inputs. Raises `Undefined` where one that is needed is missing."""
        values, plan = self.ready(), self.plan
        straight = plan.straight
        if straight is not None and grad is not TOKEN and grad.flags.c_contiguous:
            edges = self.edges()
            needs = (self.needs(),) if plan.contract.wants_needs else ()
            parts = plan.fitting(straight(grad, *values, *needs), edges)
        else:
            edges = self.edges()
            parts = self.pull(self.collect(grad), values)
        if not keep:
            self.values = RELEASED
        if straight is None and any(edge is not None and part is None for edge, part in zip(edges, parts, strict=True)):
            raise Undefined(parts)
        return parts

    def call(self, grads: tuple[Any, ...], keep: bool, create_graph: bool) -> Sequence[Any]:
        """Tensors to tensors; recorded where a graph of the backward is wanted."""
        if all(grad is None for grad in grads):
            return (None,) * len(self.edges())
        values = self.ready()
        level = modes.LOCAL.level if modes.SPECIAL else None
        if (create_graph or level is not None) and self.plan.contract.rule is not None:
            results = self.plan.contract.rule(*self.given(grads), *self.tensors(values))
            return self.spread(results)
        if level is not None and any(grad is not None and level.of(grad) is not None for grad in grads):
            raise NotImplementedError(self.plan.contract.refusal_forward())
        arrays = [None if grad is None else contiguous(grad.array) for grad in grads]
        parts = [None if part is None else wrap(part) for part in self.pull(arrays, values)]
        if modes.SPECIAL and modes.LOCAL.tracer is not None:
            modes.LOCAL.tracer.kernel_pulled(self, grads, values, parts)
        if create_graph:
            refuse_twice(self, grads, parts)
        return parts

    def spread(self, results: Any) -> list[Any]:
        """What a rule returned, per differentiable input."""
        parts = list(results) if isinstance(results, (tuple, list)) else [results]
        if len(parts) != len(self.edges()):
            raise RuntimeError(
                f"the double_backward of {self.plan.contract.name} returned {len(parts)} gradients, but there are {len(self.edges())} inputs that "
                "take one"
            )
        return parts

    def given(self, grads: Sequence[Any]) -> list[Any]:
        """Gradients as tensors, zeros where none came."""
        metas = self.metas()
        return [
            wrap(np.zeros(meta.shape, meta.dtype)) if grad is None else grad
            for grad, meta in zip(grads, metas, strict=True)
            if meta is not None
        ]

    def metas(self) -> tuple[Meta | None, ...]:
        """The Meta of each result that takes a gradient."""
        return (self.meta,)

    def tensors(self, values: tuple[Any, ...]) -> list[Any]:
        """Inputs and outputs as a rule sees them: tensors with their edges; scratch is left out."""
        edges = dict(self.saved_places())
        plan = self.plan
        done: list[Any] = []
        for place, value in enumerate(values[: plan.count + plan.kept_outputs]):
            if not isinstance(value, np.ndarray) and place < plan.count:
                done.append(value)
                continue
            tensor = wrap(
                value if isinstance(value, np.ndarray) else np.array(value, plan.result_dtype(place - plan.count))
            )
            tensor.fn = edges.get(place)
            if place >= plan.count and tensor.fn is None and tensor.meta.kind.is_floating_point:
                index = len(plan.contract.mutates) + place - plan.count
                tensor.fn = self if self.outputs == 1 else Port(self, index, tensor.meta)
            if tensor.fn is not None:
                tensor.vc = tensor.fn.vc
            if self.rare is not None and place in self.rare.duals:
                own_rare(tensor).dual = self.rare.duals[place]
            done.append(tensor)
        return done


class OneEdge(KernelNode):
    """One differentiable input."""

    __slots__ = ("e0",)
    arity = 1
    e0: Any

    def edges(self) -> tuple[Node | None, ...]:
        """An edge per differentiable input."""
        return (self.e0,)

    def set_edges(self, edges: Sequence[Any]) -> None:
        """Take the edges, one per differentiable input."""
        (self.e0,) = edges

    def apply(self, grad: Any, keep: bool) -> Any:
        """Arrays to arrays."""
        back = self.plan.back
        if back is None or grad is TOKEN or not grad.flags.c_contiguous:
            return self.results_of(grad, keep)[0]
        values = self.values
        if type(values) is not tuple:
            values = self.unusual(values)
        if self.epoch != versions.WRITES:
            self.check()
        result = back(grad, *values)
        if result.shape != self.e0.meta.shape:
            self.plan.wrong_shape(0, result, self.e0.meta)
        if not keep:
            self.values = RELEASED
        return result


class TwoEdges(KernelNode):
    """Two differentiable inputs."""

    __slots__ = ("e0", "e1")
    arity = 2
    e0: Any
    e1: Any

    def edges(self) -> tuple[Node | None, ...]:
        """An edge per differentiable input."""
        return (self.e0, self.e1)

    def set_edges(self, edges: Sequence[Any]) -> None:
        """Take the edges, one per differentiable input."""
        self.e0, self.e1 = edges

    def apply(self, grad: Any, keep: bool) -> Any:
        """Arrays to arrays."""
        back = self.plan.back
        if back is None or grad is TOKEN or not grad.flags.c_contiguous:
            return self.results_of(grad, keep)
        values = self.values
        if type(values) is not tuple:
            values = self.unusual(values)
        if self.epoch != versions.WRITES:
            self.check()
        first, second = back(grad, *values)
        if self.e0 is None:
            first = None
        elif first.shape != self.e0.meta.shape:
            self.plan.wrong_shape(0, first, self.e0.meta)
        if self.e1 is None:
            second = None
        elif second.shape != self.e1.meta.shape:
            self.plan.wrong_shape(1, second, self.e1.meta)
        elif first is not None and first.base.data == second.base.data:  # two views of one allocation
            second = second.copy()
        if not keep:
            self.values = RELEASED
        return first, second


class ThreeEdges(KernelNode):
    """Three differentiable inputs."""

    __slots__ = ("e0", "e1", "e2")
    arity = 3
    e0: Any
    e1: Any
    e2: Any

    def edges(self) -> tuple[Node | None, ...]:
        """An edge per differentiable input."""
        return (self.e0, self.e1, self.e2)

    def set_edges(self, edges: Sequence[Any]) -> None:
        """Take the edges, one per differentiable input."""
        self.e0, self.e1, self.e2 = edges

    def apply(self, grad: Any, keep: bool) -> Any:
        """Arrays to arrays."""
        return self.results_of(grad, keep)


class ManyEdges(KernelNode):
    """Any number of differentiable inputs, and nodes of several outputs."""

    __slots__ = ("_edges", "gathered", "likes", "outputs")
    _edges: tuple[Any, ...]
    gathered: list[Any]
    likes: tuple[Meta | None, ...]

    def edges(self) -> tuple[Node | None, ...]:
        """An edge per differentiable input."""
        return self._edges

    def set_edges(self, edges: Sequence[Any]) -> None:
        """Take the edges, one per differentiable input."""
        self._edges = tuple(edges)
        self.outputs, self.likes = 1, ()

    def set_outputs(self, likes: tuple[Meta | None, ...]) -> None:
        """Say what the outputs are: the Meta of each, None for one that takes no gradient."""
        self.outputs, self.likes, self.gathered = len(likes), likes, [None] * len(likes)

    def apply(self, grad: Any, keep: bool) -> Any:
        """Arrays to arrays."""
        return self.results_of(grad, keep)

    def metas(self) -> tuple[Meta | None, ...]:
        """The Meta of each result that takes a gradient."""
        return self.likes or (self.meta,)

    def output_meta(self, index: int) -> Meta | None:
        """The Meta of one result."""
        return self.metas()[index]

    def collect(self, grad: Any) -> list[Any]:
        """The gradients of all results."""
        if grad is not TOKEN:
            return [grad]
        grads, self.gathered = self.gathered, [None] * self.outputs
        return grads

    def forget(self) -> None:
        """Drop what an interrupted run left here."""
        self.buf = None
        self.gathered = [None] * self.outputs


BY_ARITY = {1: OneEdge, 2: TwoEdges, 3: ThreeEdges}


def make_class(label: str, base: type[KernelNode]) -> type[Any]:
    """The node class of a function."""
    return type(label, (base,), {"__slots__": (), "label": label, "__module__": "jitgrad.autograd"})


__all__ = ["BY_ARITY", "KernelNode", "ManyEdges", "make_class"]
