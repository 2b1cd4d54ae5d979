"""What a profile notes: events in time, lists of them, sums over events of one name. Times are in microseconds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final, SupportsIndex, overload

from ._graph.tables import shortened, text_table

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "Interval"]

_HEAD: Final = ("Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "# of Calls")


class Interval:
    """A time from `start` to `end`."""

    __slots__ = ("end", "start")

    def __init__(self, start: float, end: float) -> None:
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        """Its length."""
        return self.end - self.start


class Timed:
    """Total, own and mean times, of an event or of a sum of events."""

    count = 1
    device_time_total = self_device_time_total = cpu_memory_usage = 0

    @property
    def cpu_time_total(self) -> float:
        """All time, that of what was called included."""
        raise NotImplementedError

    @property
    def self_cpu_time_total(self) -> float:
        """The time that was spent in nothing that was called."""
        raise NotImplementedError

    @property
    def cpu_time(self) -> float:
        """The mean time of a call."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def cpu_time_str(self) -> str:
        """`cpu_time` as people read it."""
        return duration(self.cpu_time)

    @property
    def cpu_time_total_str(self) -> str:
        """`cpu_time_total` as people read it."""
        return duration(self.cpu_time_total)

    @property
    def self_cpu_time_total_str(self) -> str:
        """`self_cpu_time_total` as people read it."""
        return duration(self.self_cpu_time_total)


class FunctionEvent(Timed):
    """One call: of an op (`aten::mul`), of a backward node (`MulBackward0`), or of a block that `record_function` names.

    `cpu_parent` is the event it happened in, `cpu_children` are those in it; `sequence_nr` is that of the node which the op made or which
    ran, -1 for none; `input_shapes` has a list per operand where shapes were asked for.
    """

    def __init__(self, id: int, name: str, thread: int, start_us: float, end_us: float, input_shapes: list[list[int]] | None = None,
                 sequence_nr: int = -1) -> None:  # fmt: skip
        self.id, self.name, self.thread, self.sequence_nr = id, name, thread, sequence_nr
        self.time_range = Interval(start_us, end_us)
        self.input_shapes = input_shapes if input_shapes is not None else []
        self.cpu_parent: FunctionEvent | None = None
        self.cpu_children: list[FunctionEvent] = []

    @property
    def key(self) -> str:
        """The name under which events are added up: the steps of a profile under one."""
        return "ProfilerStep*" if self.name.startswith("ProfilerStep#") else self.name

    @property
    def cpu_time_total(self) -> float:
        """From beginning to end."""
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:
        """Without the events in it."""
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    def __repr__(self) -> str:
        return (f"<FunctionEvent id={self.id} name={self.name} cpu_time={self.cpu_time_str} start_us={self.time_range.start:.3f} "
                f"end_us={self.time_range.end:.3f} cpu_children={[child.id for child in self.cpu_children]} thread={self.thread} "
                f"input_shapes={self.input_shapes} seq_nr={self.sequence_nr}>")  # fmt: skip


class FunctionEventAvg(Timed):
    """A sum of events of one name."""

    def __init__(self) -> None:
        self.key: str | None = None
        self.count = 0
        self.input_shapes: list[list[int]] = []
        self._total = self._own = 0.0

    @property
    def name(self) -> str | None:
        """The name of the events."""
        return self.key

    @property
    def cpu_time_total(self) -> float:
        """The sum of the events' times."""
        return self._total

    @property
    def self_cpu_time_total(self) -> float:
        """The sum of their own times."""
        return self._own

    def add(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        """Count an event, or a sum of events, in; returns the sum."""
        if self.key is None:
            self.key, self.input_shapes = other.key, other.input_shapes
        self.count += other.count
        self._total, self._own = self._total + other.cpu_time_total, self._own + other.self_cpu_time_total
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        return f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} cpu_time={self.cpu_time_str} count={self.count}>"


class EventList(Sequence[Any]):
    """Events, or sums of them; prints as a table."""

    def __init__(self, events: Iterable[Any] = ()) -> None:
        self._events = list(events)

    @overload
    def __getitem__(self, index: SupportsIndex, /) -> Any: ...
    @overload
    def __getitem__(self, index: slice, /) -> EventList: ...
    def __getitem__(self, index: Any, /) -> Any:
        found = self._events[index]
        return EventList(found) if isinstance(index, slice) else found

    def __len__(self) -> int:
        return len(self._events)

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all events, none counted twice."""
        return float(sum(event.self_cpu_time_total for event in self._events))

    def key_averages(self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0) -> EventList:
        """A sum per name, or per name and shapes of the operands."""
        sums: dict[Any, FunctionEventAvg] = {}
        for event in self._events:
            key = (event.key, str(event.input_shapes)) if group_by_input_shapes else event.key
            sums.setdefault(key, FunctionEventAvg()).add(event)
        return EventList(sums.values())

    def total_average(self) -> FunctionEventAvg:
        """One sum of all events, under the key "Total"."""
        total = FunctionEventAvg()
        for event in self._events:
            total.add(event)
        total.key = "Total"
        return total

    def table(self, sort_by: str | None = None, row_limit: int = 100, max_name_column_width: int = 55, header: str | None = None,
              top_level_events_only: bool = False) -> str:  # fmt: skip
        """A row per event, the largest first by an attribute such as "cpu_time_total" or "self_cpu_time_total" if one is given."""
        events = [event for event in self._events if not (top_level_events_only and getattr(event, "cpu_parent", None) is not None)]
        if sort_by is not None:
            events.sort(key=lambda event: getattr(event, sort_by), reverse=True)
        whole = self.self_cpu_time_total
        rows = [
            (event.key[:max_name_column_width], share(event.self_cpu_time_total, whole), event.self_cpu_time_total_str,
             share(event.cpu_time_total, whole), event.cpu_time_total_str, event.cpu_time_str, str(event.count))
            for event in events
        ]  # fmt: skip
        text = text_table(_HEAD, shortened(rows, row_limit, "events") if row_limit >= 0 else rows, range(1, len(_HEAD)))
        title = "" if header is None else header + "\n"
        return f"{title}{text}\nSelf CPU time total: {duration(whole)}"

    def __str__(self) -> str:
        return self.table()

    __repr__ = __str__

    def export_chrome_trace(self, path: str) -> None:
        """Write the events as a file for chrome://tracing or https://ui.perfetto.dev."""
        traced = [
            {"name": event.name, "ph": "X", "ts": event.time_range.start, "dur": event.cpu_time_total, "pid": "CPU functions", "tid": event.thread,
             "args": {"Input dims": event.input_shapes, "Sequence number": event.sequence_nr}}
            for event in self._events
        ]  # fmt: skip
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": traced}, file)


def duration(us: float) -> str:
    """A time as people read it."""
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if us >= size:
            return f"{us / size:.3f}{unit}"
    return f"{us:.3f}us"


def share(part: float, whole: float) -> str:
    """A part of a time in percent."""
    return f"{100 * part / whole:.2f}%" if whole else "--"
