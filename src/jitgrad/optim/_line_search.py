"""A line search to the strong Wolfe conditions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

DECREASE = 1e-4  # c1: the share of the decrease promised by the slope that a step must bring
FLATTEN = 0.9  # c2: how much of the slope may be left


class Point(NamedTuple):
    """A step on the line: its length, the value and the slope there, and the gradient of which this is the slope."""

    step: float
    value: float
    slope: float
    gradient: Any


def strong_wolfe(
    at: Callable[[float], Point], start: Point, first: float, reach: float, tolerance: float, trials: int
) -> tuple[Point, int]:
    """The lowest point that the search found, and how often `at` was called: once for `first`, and at most `trials` times more.

    A step is good (Nocedal and Wright, Numerical Optimization, 2nd edition, equations 3.7) when it goes down enough, `value <= start.value +
    c1 step start.slope`, and flattens enough, `|slope| <= c2 |start.slope|`. An interval in which no parameter goes farther than
    `tolerance` is not searched on; `reach` is how far the parameter that goes farthest gets with a step of 1.
    """
    before, point, used = start, at(first), 0
    while used < trials:  # longer and longer steps until one is good or an interval must hold a good one (algorithm 3.5)
        if _too_high(point, start) or (used > 1 and point.value >= before.value):
            break
        if abs(point.slope) <= -FLATTEN * start.slope:
            return point, used + 1
        if point.slope >= 0:
            break
        longer = point.step + 0.01 * (point.step - before.step), 10 * point.step
        before, point = point, at(cubic_minimum(before, point, *longer))
        used += 1
    else:
        before = start
    low, high = _sorted(before, point)
    near = False  # whether the last step was near an end of its interval
    while used < trials and not abs(high.step - low.step) * reach < tolerance:  # the interval shrinks (algorithm 3.6)
        step, near = _inside(low, high, near)
        point = at(step)
        used += 1
        if _too_high(point, start) or point.value >= low.value:
            low, high = _sorted(low, point)
            continue
        if abs(point.slope) <= -FLATTEN * start.slope:
            return point, used + 1
        if point.slope * (high.step - low.step) >= 0:
            high = low
        low = point
    return low, used + 1


def _too_high(point: Point, start: Point) -> bool:
    return point.value > start.value + DECREASE * point.step * start.slope


def _sorted(one: Point, other: Point) -> tuple[Point, Point]:
    """The lower one first."""
    return (one, other) if one.value <= other.value else (other, one)


def _inside(low: Point, high: Point, near: bool) -> tuple[float, bool]:
    """The next step in an interval, and whether it is near an end.

    A second one in turn, or one at the very end, is moved a tenth of the width inwards: else the interval would hardly shrink.
    """
    left, right = min(low.step, high.step), max(low.step, high.step)
    step = cubic_minimum(low, high, left, right)
    margin = 0.1 * (right - left)
    if not min(right - step, step - left) < margin:
        return step, False
    if near or step >= right or step <= left:
        return (right - margin if abs(step - right) < abs(step - left) else left + margin), False
    return step, True


def cubic_minimum(one: Point, other: Point, low: float, high: float) -> float:
    """Where the cubic with the values and slopes of two points has its minimum, kept within `low` and `high`; their middle if it has none.

    Equation 3.59 of Nocedal and Wright.

    >>> cubic_minimum(Point(0.0, 1.0, -2.0, None), Point(3.0, 4.0, 4.0, None), 0.0, 3.0)
    1.0
    """
    left, right = (one, other) if one.step <= other.step else (other, one)
    width = right.step - left.step
    middle = (low + high) / 2
    if width == 0:
        return middle
    d1 = left.slope + right.slope - 3 * (right.value - left.value) / width
    square = d1 * d1 - left.slope * right.slope
    if not square >= 0:
        return middle
    d2 = math.sqrt(square)
    over, under = right.slope + d2 - d1, right.slope - left.slope + 2 * d2
    if under == 0:  # a straight line: the minimum is at the end that it falls towards
        return middle if over == 0 else (low if over > 0 else high)
    return min(max(right.step - width * over / under, low), high)
