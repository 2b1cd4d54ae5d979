"""`profile`: which ops and backward nodes run in a block, how often, and how long they take.

A profile is a mode: while none is on, neither a call nor a backward asks for one.
"""

from __future__ import annotations

import contextlib
import threading
from time import perf_counter_ns
from typing import Any

from .._engine import modes
from .._engine.node import LEAF, Node, target
from .._engine.run import Run
from .._tensor.aten import overload_for
from .._tensor.base import TensorBase
from .._tensor.interception import intercept
from .._tensor.invoke import run_op
from .profiler_util import EventList, FunctionEvent, FunctionEventAvg

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "profile", "record_function"]


class profile:
    """In the block, note each op, each node of a backward and each `record_function` of this thread, with their times.

    record_shapes: note the shapes of the operands, too. `enabled=False` notes nothing. What else torch takes is accepted and does nothing.
    Afterwards `function_events` has the events in order, `key_averages()` a sum per name; both print as tables.
    RuntimeError if the block is entered a second time.

    >>> import jitgrad
    >>> x = jitgrad.ones(3, requires_grad=True)
    >>> with profile() as prof:
    ...     (x * 2).sum().backward()
    >>> [event.name for event in prof.function_events if event.sequence_nr >= 0][:2]
    ['aten::mul', 'aten::sum']
    """

    def __init__(self, enabled: bool = True, *, record_shapes: bool = False, **ignored: Any) -> None:
        self.enabled, self.record_shapes = enabled, record_shapes
        self.entered = False
        self._events: list[FunctionEvent] = []
        self._open: list[FunctionEvent] = []
        self._first = 0
        self._outer: Any = None
        self._interceptor: Any = None

    def __enter__(self) -> profile | None:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self.entered = True
        self._first = perf_counter_ns()
        self._outer, modes.LOCAL.profile = modes.LOCAL.profile, self
        self._interceptor = intercept(self.call)
        return self

    def __exit__(self, *exception: object) -> None:
        if self.enabled:
            intercept(self._interceptor)
            modes.LOCAL.profile = self._outer

    # ---- taking notes
    def begin(self, name: str, shapes: Any = None, number: int = -1) -> FunctionEvent:
        """An event that goes on until `end`."""
        now = (perf_counter_ns() - self._first) / 1000
        event = FunctionEvent(len(self._events) + 1, name, threading.get_ident(), now, now, shapes, number)
        if self._open:
            event.cpu_parent = self._open[-1]
            event.cpu_parent.cpu_children.append(event)
        self._events.append(event)
        self._open.append(event)
        return event

    def end(self, event: FunctionEvent) -> None:
        """The event, and what began in it, is over."""
        event.time_range.end = (perf_counter_ns() - self._first) / 1000
        if event in self._open:
            del self._open[self._open.index(event) :]

    def call(self, op: Any, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
        """A call of an op, noted."""
        shapes = [list(x.meta.shape) if isinstance(x, TensorBase) else [] for x in inputs] if self.record_shapes else None
        event = self.begin(f"aten::{overload_for(op, inputs).base_name}", shapes)
        try:
            result = run_op(op, inputs, statics) if self._interceptor is None else self._interceptor(op, inputs, statics)
        finally:
            self.end(event)
        edge = result.fn if isinstance(result, TensorBase) else None
        if edge is not None and edge.number != LEAF:
            event.sequence_nr = target(edge)[0]._sequence_nr()
        return result

    def step(self, run: Run, node: Node) -> None:
        """A step of a backward, noted as torch does: the engine's part, and in it the node's own."""
        name = "torch::autograd::AccumulateGrad" if node.number == LEAF else node.name()
        number = -1 if node.number == LEAF else node._sequence_nr()
        outer = self.begin(f"autograd::engine::evaluate_function: {name}", None, number)
        inner = self.begin(name, None, number)
        try:
            run.step(node)
        finally:
            self.end(inner)
            self.end(outer)

    def check(self, node: Node, results: Any) -> None:
        """Nothing is looked for in what a node gives."""

    # ---- reading them
    @property
    def function_events(self) -> EventList:
        """The events in the order in which they began. RuntimeError while the block runs, or before."""
        if not self.entered or modes.LOCAL.profile is self:
            raise RuntimeError("Profiler didn't finish running")
        return EventList(self._events)

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all events, none counted twice."""
        return self.function_events.self_cpu_time_total

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> EventList:
        """A sum per name, or per name and shapes of the operands."""
        return self.function_events.key_averages(group_by_input_shape)

    def total_average(self) -> FunctionEventAvg:
        """One sum of all events."""
        return self.function_events.total_average()

    def table(self, sort_by: str | None = None, row_limit: int = 100, **how: Any) -> str:
        """The events as a table; see `EventList.table`."""
        return self.function_events.table(sort_by, row_limit, **how)

    def export_chrome_trace(self, path: str) -> None:
        """Write the events as a file for chrome://tracing."""
        self.function_events.export_chrome_trace(path)

    def __str__(self) -> str:
        return "<unfinished profiler_legacy_profile>" if not self.entered or modes.LOCAL.profile is self else str(self.function_events)

    __repr__ = __str__


class record_function(contextlib.ContextDecorator):
    """Name a block, or with `@record_function("name")` a function, in the profile that is on; without one do nothing.

    >>> with profile() as prof, record_function("outside"), record_function("inside"):
    ...     pass
    >>> [event.name for event in prof.function_events]
    ['outside', 'inside']
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args
        self._running: list[tuple[profile, FunctionEvent] | None] = []

    def __enter__(self) -> record_function:
        on = modes.LOCAL.profile
        self._running.append(None if on is None else (on, on.begin(self.name)))
        return self

    def __exit__(self, *exception: object) -> None:
        running = self._running.pop()
        if running is not None:
            running[0].end(running[1])


def _profiler_enabled() -> bool:
    """Whether a profile is on in this thread."""
    return modes.LOCAL.profile is not None
