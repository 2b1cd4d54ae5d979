"""Interleaved timing: a burst of ours, a burst of theirs, and again, so a drifting machine leaves the ratio alone."""

import time
from typing import NamedTuple


class Row(NamedTuple):
    """A line of the table: what was measured, ours and theirs in `unit`, and who they are."""

    name: str
    ours: float
    theirs: float | None
    unit: str = "us"
    rival: str = "torch"

    @property
    def ratio(self):
        return None if self.theirs is None else self.ours / self.theirs


def table(rows):
    """The rows as Markdown, the way benchmarks/README.md holds them."""
    lines = ["| measured | jitgrad | beside it | ratio |", "|---|---|---|---|"]
    for row in rows:
        beside = "-" if row.theirs is None else f"{row.rival} {number(row.theirs)} {row.unit}"
        ratio = "-" if row.ratio is None else f"{row.ratio:.2f}"
        lines.append(f"| {row.name} | {number(row.ours)} {row.unit} | {beside} | {ratio} |")
    return lines


def number(value):
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


class Burst:
    """A step repeated for about `seconds`; remembers the best time of one step."""

    def __init__(self, step, seconds):
        self.step, self.best = step, float("inf")
        for _ in range(3):
            step()
        began = time.perf_counter()
        step()
        self.count = max(1, int(seconds / max(time.perf_counter() - began, 1e-7)))

    def __call__(self):
        step, count = self.step, range(self.count)
        began = time.perf_counter()
        for _ in count:
            step()
        self.best = min(self.best, (time.perf_counter() - began) / self.count)
