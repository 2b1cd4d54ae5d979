"""`jitgrad.profiler`: the profile of `autograd.profiler` under the names of today, step by step if a schedule says so.

>>> import jitgrad
>>> with profile(activities=[ProfilerActivity.CPU]) as prof:
...     jitgrad.ones(2).exp()
tensor([2.7183, 2.7183])
>>> [event.name for event in prof.events()]
['aten::exp']
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from typing import Any

from .autograd.profiler import profile as _Profile, record_function
from .autograd.profiler_util import EventList

__all__ = ["ProfilerAction", "ProfilerActivity", "profile", "record_function", "schedule", "supported_activities"]


class ProfilerActivity(enum.Enum):
    """What is followed: here that of the CPU, whatever is asked for."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3


class ProfilerAction(enum.Enum):
    """What a schedule says of a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities() -> set[ProfilerActivity]:
    """The CPU's."""
    return {ProfilerActivity.CPU}


def schedule(*, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0) -> Callable[[int], ProfilerAction]:
    """Of each cycle of steps `wait` are left out, `warmup` too, and `active` are noted; `repeat` cycles, or all (0), after `skip_first` steps."""
    length = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        cycle, place = divmod(step - skip_first, length)
        if step < skip_first or (repeat and cycle >= repeat) or place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < length - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


class profile:
    """In the block, note ops, backward nodes and named blocks; see `autograd.profiler.profile`.

    schedule: what to do in each step, from one call of `step` to the next; without one all is noted. on_trace_ready: called with the
    profile when a step that is to be saved, or the block, is over. What else torch takes is accepted and does nothing.
    """

    def __init__(
        self, *, activities: Iterable[ProfilerActivity] | None = None, schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None, record_shapes: bool = False, **ignored: Any,
    ) -> None:  # fmt: skip
        self.schedule = schedule or (lambda step: ProfilerAction.RECORD)
        self.named_steps = schedule is not None
        self.on_trace_ready, self.record_shapes = on_trace_ready, record_shapes
        self.step_num = 0
        self.profiler: _Profile | None = None  # what notes now, or did last
        self._running = False
        self._step: record_function | None = None

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin the first step."""
        self._begin_step()

    def stop(self) -> None:
        """End the last step, and hand over what was noted and has not been."""
        self._end_step()
        if self._running:
            self._save()

    def step(self) -> None:
        """End a step and begin the next."""
        self._end_step()
        if self._running and self.schedule(self.step_num) is ProfilerAction.RECORD_AND_SAVE:
            self._save()
        self.step_num += 1
        self._begin_step()

    def _begin_step(self) -> None:
        if self.schedule(self.step_num) not in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE):
            return
        if not self._running:
            self.profiler = _Profile(record_shapes=self.record_shapes)
            self.profiler.__enter__()
            self._running = True
        if self.named_steps:
            self._step = record_function(f"ProfilerStep#{self.step_num}")
            self._step.__enter__()

    def _end_step(self) -> None:
        if self._step is not None:
            self._step.__exit__()
            self._step = None

    def _save(self) -> None:
        assert self.profiler is not None
        self.profiler.__exit__()
        self._running = False
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def _noted(self) -> _Profile:
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized")
        return self.profiler

    def events(self) -> EventList:
        """The events of the last steps that were saved."""
        return self._noted().function_events

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> EventList:
        """A sum of them per name, or per name and shapes of the operands."""
        return self._noted().key_averages(group_by_input_shape)

    def export_chrome_trace(self, path: str) -> None:
        """Write them as a file for chrome://tracing."""
        self._noted().export_chrome_trace(path)
