"""Where values lie: in memory from outside, or in the arena, whose places are given again when nobody reads them any more."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .graph import Graph
from .operations import Value
from .schedule import Schedule, index_values

LINE = 64  # places begin on a cache line


@dataclass
class Slot:
    """A place in the arena and the groups during which it is taken."""

    offset: int
    size: int
    first: int
    last: int


class Layout:
    """The memory of a program. `homes` has the pointer variable of every value that lies outside the arena."""

    def __init__(self, graph: Graph, schedule: Schedule, homes: dict[int, str], needed: set[int] | None) -> None:
        self.schedule = schedule
        self.homes = homes
        self.slots: dict[int, Slot] = {}
        self.size = 0
        self.used: dict[int, None] = {}
        self.scratches: dict[int, int] = {}
        self.last = lifetimes(schedule)
        for value in graph.values:
            if value.source is not None or value.number in homes or value.number not in schedule.sinks:
                continue
            if needed is not None and value.number not in needed:
                continue
            first = schedule.sinks[value.number].group
            self.take(value.number, value.numel * value.dtype.itemsize, first, self.last.get(value.number, first))

    def take(self, key: int, size: int, first: int, last: int) -> Slot:
        """The lowest place that is free from one group to another."""
        size = (size + LINE - 1) // LINE * LINE
        offset = 0
        for slot in sorted(
            (s for s in self.slots.values() if s.last >= first and s.first <= last), key=lambda s: s.offset
        ):
            if slot.offset - offset >= size:
                break
            offset = max(offset, slot.offset + slot.size)
        slot = self.slots[key] = Slot(offset, size, first, last)
        self.size = max(self.size, offset + size)
        return slot

    def pointer(self, value: Value) -> str:
        """The variable that points to a value."""
        self.used.setdefault(value.number)
        return self.homes.get(value.number, f"p_{value.label}")

    def region(self, value: Value) -> object:
        """What two values share if, and only if, they lie in the same place."""
        slot = self.slots.get(value.number)
        return ("arena", slot.offset) if slot is not None else self.homes.get(value.number, f"p_{value.label}")

    def scratch(self, value: Value, size: int) -> str:
        """The address of memory for the time of the value's own group."""
        key = -1 - value.number
        if key not in self.slots:
            group = self.schedule.sinks[value.number].group
            self.take(key, size, group, group)
        return f"arena + {self.slots[key].offset}"


def lifetimes(schedule: Schedule) -> dict[int, int]:
    """The last group that reads each stored value."""
    last: dict[int, int] = {}
    for group in schedule.groups:
        for sink in group.sinks:
            for view in schedule.reads(sink.op):
                for value in numbers(view.value, index_values(view)):
                    last[value.number] = max(last.get(value.number, 0), group.number)
    for value in schedule.wanted:
        last[value.number] = len(schedule.groups)
    return last


def numbers(first: Value, rest: Iterable[Value]) -> Iterable[Value]:
    """One value and some more."""
    yield first
    yield from rest
