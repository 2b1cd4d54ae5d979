"""`trace_backward`: a backward, and what each of its steps did.

The run is the engine's own (`_engine/run.py`, the definition): its stages `push`, `step`, `scatter` and `run_leaf` are overridden
by ones that take notes and then do what they always do.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np

from ..._engine.node import LEAF, Node, target
from ..._engine.run import Run
from ..._tensor import backward as runs
from ..._tensor.base import wrap
from .tables import ROWS, html_table, shortened, text_table
from .walk import Names, held_by

__all__ = ["BackwardTrace", "Step", "trace_backward"]

Key = tuple[int, int]  # the order of the queue: the node's number, then who came first


class _Queue:
    """What became ready in which step; the ready set of a step is made anew when it is asked for, since all of them together may be large."""

    def __init__(self) -> None:
        self.pushed: list[list[tuple[Key, Node]]] = [[]]  # before each step
        self.count = 0

    def push(self, node: Node) -> None:
        """A node became ready."""
        number = node.number if node.number != LEAF else -(1 << 62)
        self.pushed[-1].append(((number, self.count), node))
        self.count += 1

    def sets(self, wanted: set[int]) -> dict[int, tuple[Node, ...]]:
        """The ready sets of some steps, the node that runs first in front."""
        waiting: list[tuple[Key, Node]] = []
        found = {}
        for k in range(max(wanted) + 1):
            for entry in self.pushed[k]:
                heapq.heappush(waiting, entry)
            if k in wanted:
                found[k] = tuple([node for _, node in sorted(waiting)])
            heapq.heappop(waiting)
        return found


class Step:
    """One step of a backward.

    `node` ran; `gradients_in` has what had arrived, a tensor or None per output of the node, before any hook saw it; `gradients_out`
    what it handed on, a tensor or None per edge of `node.next_functions`, after the hooks. A leaf's node hands nothing on:
    `accumulated` is then its `.grad` after the step. `released` names the saved values that were let go. `ready` is the set of
    nodes that could have run, in the order of their turns: the leaves' nodes, whose sequence number is the largest there is,
    then the newest.
    """

    __slots__ = ("_queue", "accumulated", "gradients_in", "gradients_out", "index", "node", "released", "sequence_nr")

    def __init__(self, index: int, node: Node, gradients_in: tuple[Any, ...], queue: _Queue) -> None:
        self.index, self.node, self.gradients_in = index, node.shown(), gradients_in
        self.sequence_nr = node._sequence_nr()
        self.gradients_out: tuple[Any, ...] = ()
        self.accumulated: Any = None
        self.released: tuple[str, ...] = ()
        self._queue = queue

    @property
    def ready(self) -> tuple[Node, ...]:
        """The nodes that were ready, the one that ran first."""
        return tuple([node.shown() for node in self._queue.sets({self.index})[self.index]])

    @property
    def name(self) -> str:
        """The name of the node."""
        return self.node.name()

    def __repr__(self) -> str:
        return f"<step {self.index}: {self.name}>"


class TracedRun(Run):
    """The engine's run, taking notes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.steps: list[Step] = []
        self.queue = _Queue()

    def push(self, node: Node) -> None:
        self.queue.push(node)
        super().push(node)

    def step(self, node: Node) -> None:
        noted = Step(len(self.steps), node, tuple(copy_of(grad) for grad in self.gathered[node]), self.queue)
        self.steps.append(noted)
        self.queue.pushed.append([])
        before = [held.name for held in held_by(node)]
        super().step(node)
        if before:
            still = {held.name for held in held_by(node)}
            noted.released = tuple(name for name in before if name not in still)

    def run_leaf(self, node: Any, grads: tuple[Any, ...]) -> Sequence[Any]:
        done = super().run_leaf(node, grads)
        self.steps[-1].accumulated = copy_of(node.grad)
        return done

    def scatter(self, node: Node, results: Sequence[Any]) -> None:
        self.steps[-1].gradients_out = tuple(copy_of(grad) for grad in results)
        super().scatter(node, results)


def copy_of(grad: Any) -> Any:
    """A tensor of the same values that nothing else refers to; None of None."""
    return None if grad is None else wrap(np.array(grad.array, order="C", copy=True))


class BackwardTrace(Sequence[Step]):
    """The steps of a backward that has run: a sequence of `Step`; prints as a table."""

    def __init__(self, steps: list[Step], names: Names) -> None:
        self._steps, self._names = steps, names
        self._by_node = {step.node: step for step in steps}

    @overload
    def __getitem__(self, index: int) -> Step: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Step]: ...
    def __getitem__(self, index: int | slice) -> Any:
        return self._steps[index]

    def __len__(self) -> int:
        return len(self._steps)

    def __iter__(self) -> Iterator[Step]:
        return iter(self._steps)

    def find(self, tensor_or_node: Any) -> Step | None:
        """The step of a node, or of the node that a tensor came from; None where the run did not come to it."""
        node = (
            tensor_or_node if isinstance(tensor_or_node, Node) else target(runs.edge_required(tensor_or_node, 0)[0])[0]
        )
        return self._by_node.get(node)

    def rows(self, limit: int = ROWS) -> list[Sequence[str] | str]:
        """The cells of the table; where there are more than `limit` steps, those in the middle are left out."""
        chosen = shortened([(str(k),) for k in range(len(self))], limit, "steps")
        places = {int(row[0]) for row in chosen if not isinstance(row, str)}
        ready = self._steps[0]._queue.sets(places) if places else {}
        return [
            row if isinstance(row, str) else self._row(self._steps[int(row[0])], ready[int(row[0])]) for row in chosen
        ]

    def _row(self, step: Step, ready: Sequence[Node]) -> tuple[str, ...]:
        label = self._names.label
        if step.node.number == LEAF:
            out = f"{self._names.leaves.get(step.node, '')}.grad = {value_of(step.accumulated)}"
        else:
            edges = step.node.edges()
            out = ", ".join(
                "-" if edge is None else value_of(grad) for edge, grad in zip(edges, step.gradients_out, strict=False)
            )
        number = "max" if step.node.number == LEAF else str(step.sequence_nr)
        came = ", ".join(value_of(grad) for grad in step.gradients_in)
        return str(step.index + 1), self._ready(ready), label(step.node), number, came, out, ", ".join(step.released)

    def _ready(self, ready: Sequence[Node]) -> str:
        labels = [self._names.label(node) for node in ready[:4]]
        more = [f"{len(ready) - 4:,} more"] if len(ready) > 4 else []
        shown = [f"{label}:{node._sequence_nr()}" if labels.count(label) > 1 and node.number != LEAF else label
                 for label, node in zip(labels, ready, strict=False)]  # fmt: skip
        return ", ".join(shown + more)

    _HEAD = ("step", "ready", "runs", "number", "gradient in", "gradients out", "released")

    def __str__(self) -> str:
        return text_table(self._HEAD, self.rows(), [0, 3])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(f"A backward of {len(self):,} steps", self._HEAD, self.rows(), [0, 3])


def value_of(grad: Any) -> str:
    """A gradient as a cell shows it: a few numbers, or shape and largest magnitude."""
    if grad is None:
        return "None"
    array = grad.array
    if array.size <= 3 and array.ndim <= 1:
        numbers = ", ".join(f"{x:.6g}" for x in array.reshape(-1).tolist())
        return numbers if array.ndim == 0 else f"[{numbers}]"
    largest = f" max {np.abs(array).max():.3g}" if array.size else ""
    return f"{list(array.shape)}{largest}"


def trace_backward(outputs: Any, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None, *,
                   params: Any = None) -> BackwardTrace:  # fmt: skip
    """Run the backward of `outputs` as `autograd.backward` does, and return its steps.

    The other arguments are those of `backward`; `.grad` is afterwards what it would be after that. `params` names leaves in the
    table: a module, a dict, or pairs of name and tensor. The gradients in the steps are copies, so a trace takes as much memory as
    all gradients of the run together, and it keeps the nodes alive, though not what they released. An error of a node comes with
    a note that says which step it was.

    >>> import jitgrad as torch
    >>> x, w = torch.tensor(2.0), torch.tensor(3.0, requires_grad=True)
    >>> y = w * x
    >>> trace = torch.autograd.graph.trace_backward(y, params={"w": w})
    >>> [step.name for step in trace], trace[1].accumulated
    (['MulBackward0', 'torch::autograd::AccumulateGrad'], tensor(2.))
    """
    names = Names(params)
    wanted = None if inputs is None else [runs.accumulated_edge(x) for x in runs.inputs_of(inputs, "trace_backward")]
    seeds = runs.seeds_of(runs.as_tuple(outputs), gradient, batched=False)
    keep = create_graph if retain_graph is None else retain_graph
    run = (
        TracedRun(keep, create_graph)
        if wanted is None
        else TracedRun(keep, create_graph, {}, frozenset(node for node, _ in wanted))
    )
    try:
        runs.start(run, seeds)
    except Exception as error:
        if run.steps:
            error.add_note(f"In step {len(run.steps)} of the traced backward: {names.label(run.steps[-1].node)}.")
        raise
    return BackwardTrace(run.steps, names)
