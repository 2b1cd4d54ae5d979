"""Where the boxes and arrows of a layered graph go. Standard library only; loops, no recursion.

Four stages, as usual since Sugiyama: ranks by the longest way from a root; invisible boxes where an arrow passes a rank; an order
in each rank with few crossings; positions that keep arrows straight. Ranks run downwards here; whoever wants them to run to the
right exchanges the axes.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final, NamedTuple

BESIDE: Final = 22.0  # between boxes of a rank
PASSING: Final = 12.0  # between an arrow that passes and its neighbours
GAP: Final = 42.0  # between ranks, at least
SWEEPS: Final = 12
STRAIGHT: Final = 40.0  # how much more an arrow between ops weighs than one to a leaf, so that the way through a model is a straight line
Point = tuple[float, float]


class Layout(NamedTuple):
    """Centre of the upper edge of each box; the points that each arrow goes through, its ends on the boxes' edges; the whole size."""

    boxes: list[Point]
    arrows: list[list[Point]]
    width: float
    height: float


def lay_out(sizes: Sequence[Point], edges: Sequence[tuple[int, int]], light: Sequence[bool]) -> Layout:
    """Positions for boxes of some width and height. `edges` lead from box to box, without circles; `light` marks those to leaves."""
    rank = ranks(len(sizes), edges)
    widths = [width for width, _ in sizes]
    chains = []  # per edge the boxes it goes through, invisible ones between its ends
    for start, end in edges:
        chain = [start]
        for level in range(rank[start] + 1, rank[end]):
            chain.append(len(rank))
            rank.append(level)
            widths.append(0.0)
        chains.append([*chain, end])
    links: dict[tuple[int, int], float] = {}
    for chain, is_light in zip(chains, light, strict=True):
        weight = 1.0 if is_light else STRAIGHT
        for pair in itertools.pairwise(chain):
            unseen = (pair[0] >= len(sizes)) + (pair[1] >= len(sizes))  # the longer an arrow, the straighter
            links[pair] = links.get(pair, 0.0) + weight * (1, 2, 16)[unseen]
    rows = order(rank, list(links))
    xs = positions(rows, widths, links, len(sizes))
    return finished(sizes, rank, rows, xs, chains)


# ---- ranks
def ranks(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """The length of the longest way to each box."""
    below: list[list[int]] = [[] for _ in range(count)]
    missing = [0] * count
    for start, end in edges:
        below[start].append(end)
        missing[end] += 1
    found = [0] * count
    ready = [k for k in range(count) if missing[k] == 0]
    while ready:
        box = ready.pop()
        for end in below[box]:
            found[end] = max(found[end], found[box] + 1)
            missing[end] -= 1
            if missing[end] == 0:
                ready.append(end)
    return found


# ---- order
def order(rank: Sequence[int], links: Sequence[tuple[int, int]]) -> list[list[int]]:
    """The boxes of each rank from left to right, with few crossings of the links between neighbouring ranks."""
    down: dict[int, list[int]] = {}
    up: dict[int, list[int]] = {}
    for start, end in links:
        down.setdefault(start, []).append(end)
        up.setdefault(end, []).append(start)
    rows: list[list[int]] = [[] for _ in range(max(rank, default=0) + 1)]
    for box in first_met(rank, down):
        rows[rank[box]].append(box)
    best, fewest = [list(row) for row in rows], crossings(rows, down)
    for sweep in range(SWEEPS):
        if not fewest:
            break
        forward = sweep % 2 == 0
        for level in range(1, len(rows)) if forward else range(len(rows) - 2, -1, -1):
            sort_by_neighbours(rows[level], rows[level - 1 if forward else level + 1], up if forward else down)
        exchange(rows, up, down)
        found = crossings(rows, down)
        if found < fewest:
            best, fewest = [list(row) for row in rows], found
    return best


def first_met(rank: Sequence[int], down: dict[int, list[int]]) -> list[int]:
    """Boxes in the order in which a walk from the roots meets them, arguments from left to right."""
    seen: dict[int, None] = {}
    todo = [box for box in reversed(range(len(rank))) if rank[box] == 0]
    while todo:
        box = todo.pop()
        if box not in seen:
            seen[box] = None
            todo.extend(reversed(down.get(box, ())))
    return list(seen)


def sort_by_neighbours(row: list[int], fixed: Sequence[int], neighbours: dict[int, list[int]]) -> None:
    """Order a rank by the mean place of each box's neighbours in a fixed rank; a box without any stays where it is."""
    place = {box: k for k, box in enumerate(fixed)}
    keys = {}
    for k, box in enumerate(row):
        near = [place[other] for other in neighbours.get(box, ())]
        keys[box] = sum(near) / len(near) if near else float(k)
    row.sort(key=keys.__getitem__)


def exchange(rows: list[list[int]], up: dict[int, list[int]], down: dict[int, list[int]]) -> None:
    """Exchange neighbours wherever that leaves fewer crossings."""
    for level, row in enumerate(rows):
        above = {box: k for k, box in enumerate(rows[level - 1])} if level else {}
        below = {box: k for k, box in enumerate(rows[level + 1])} if level + 1 < len(rows) else {}
        for k in range(len(row) - 1):
            a, b = row[k], row[k + 1]
            gain = 0
            for place, neighbours in ((above, up), (below, down)):
                first = [place[other] for other in neighbours.get(a, ())]
                second = [place[other] for other in neighbours.get(b, ())]
                gain += sum((x > y) - (x < y) for x in first for y in second)
            if gain > 0:
                row[k], row[k + 1] = b, a


def crossings(rows: Sequence[Sequence[int]], down: dict[int, list[int]]) -> int:
    """How often links between neighbouring ranks cross, counted with a tree of sums."""
    total = 0
    for upper, lower in itertools.pairwise(rows):
        place = {box: k for k, box in enumerate(lower)}
        sums = [0] * (len(lower) + 1)
        passed = 0
        for box in upper:
            ends = sorted(place[end] for end in down.get(box, ()))
            for end in ends:
                total += passed - prefix(sums, end + 1)
            for end in ends:
                passed += 1
                k = end + 1
                while k <= len(lower):
                    sums[k] += 1
                    k += k & -k
    return total


def prefix(sums: Sequence[int], count: int) -> int:
    """The sum of the first `count` places of a tree of sums."""
    total = 0
    while count:
        total += sums[count]
        count -= count & -count
    return total


# ---- positions
def positions(
    rows: Sequence[Sequence[int]], widths: Sequence[float], links: dict[tuple[int, int], float], real: int
) -> list[float]:
    """The centre of each box: as near to its neighbours as the others in its rank allow."""
    near: list[list[tuple[int, float]]] = [[] for _ in widths]
    level = {box: k for k, row in enumerate(rows) for box in row}
    for (start, end), weight in links.items():
        near[start].append((end, weight))
        near[end].append((start, weight))
    xs = [0.0] * len(widths)
    for row in rows:
        wanted = [0.0] * len(row)
        settle(row, wanted, [1.0] * len(row), widths, real, xs)
    for sweep in range(4 * SWEEPS):
        forward = sweep % 2 == 0
        for row in rows if forward else reversed(rows):
            wanted, weights = [], []
            for box in row:
                last = sweep >= 2 * SWEEPS  # at first from one side at a time, then from both
                pulls = [
                    (xs[other], weight) for other, weight in near[box] if last or (level[other] < level[box]) == forward
                ]
                weight = sum(weight for _, weight in pulls)
                wanted.append(sum(x * pull for x, pull in pulls) / weight if weight else xs[box])
                weights.append(weight or 0.01)
            settle(row, wanted, weights, widths, real, xs)
    return xs


def settle(
    row: Sequence[int],
    wanted: Sequence[float],
    weights: Sequence[float],
    widths: Sequence[float],
    real: int,
    xs: list[float],
) -> None:
    """Put the boxes of a rank as near to where they are wanted as keeps them apart, in weighted squares.

    Neighbours that would come too near to each other are pooled, and move together.
    """
    offsets = [0.0]
    for a, b in itertools.pairwise(row):
        between = BESIDE if a < real and b < real else PASSING
        offsets.append(offsets[-1] + (widths[a] + widths[b]) / 2 + between)
    pools: list[tuple[float, float, int]] = []  # mean, weight, how many boxes
    for want, weight, offset in zip(wanted, weights, offsets, strict=False):
        pool = (want - offset, weight, 1)
        while pools and pools[-1][0] > pool[0]:
            mean, heavy, count = pools.pop()
            together = heavy + pool[1]
            pool = ((mean * heavy + pool[0] * pool[1]) / together, together, count + pool[2])
        pools.append(pool)
    k = 0
    for mean, _, count in pools:
        for _ in range(count):
            xs[row[k]] = mean + offsets[k]
            k += 1


# ---- points
def finished(
    sizes: Sequence[Point],
    rank: Sequence[int],
    rows: Sequence[Sequence[int]],
    xs: Sequence[float],
    chains: list[list[int]],
) -> Layout:
    """Heights, the places where arrows leave and arrive, and the points between."""
    real = len(sizes)
    left = min((xs[k] - (sizes[k][0] if k < real else 0) / 2 for row in rows for k in row), default=0.0)
    xs = [x - left for x in xs]
    tall = [max((sizes[k][1] for k in row if k < real), default=0.0) for row in rows]
    slant = [0.0] * len(rows)
    for chain in chains:
        for a, b in itertools.pairwise(chain):
            slant[rank[a]] = max(slant[rank[a]], abs(xs[a] - xs[b]))
    tops = [0.0]
    for height, wide in zip(tall, slant, strict=True):
        tops.append(tops[-1] + height + min(2.5 * GAP, GAP + wide / 8))
    leave = ends(chains, xs, sizes, 0)
    arrive = ends(chains, xs, sizes, -1)
    arrows = []
    for k, chain in enumerate(chains):
        start, end = chain[0], chain[-1]
        points = [(leave[k], tops[rank[start]] + sizes[start][1]), (leave[k], tops[rank[start]] + tall[rank[start]])]
        for box in chain[1:-1]:
            points += [(xs[box], tops[rank[box]]), (xs[box], tops[rank[box]] + tall[rank[box]])]
        arrows.append([*points, (arrive[k], tops[rank[end]])])
    width = max((xs[k] + (sizes[k][0] if k < real else 0) / 2 for row in rows for k in row), default=0.0)
    return Layout([(xs[k], tops[rank[k]]) for k in range(real)], arrows, width, tops[len(rows) - 1] + tall[-1])


def ends(chains: list[list[int]], xs: Sequence[float], sizes: Sequence[Point], side: int) -> dict[int, float]:
    """Where each arrow leaves (`side` 0) or arrives (-1): beside each other along the box's edge, in the order of where they go or come from."""
    at: dict[int, list[int]] = {}
    for k, chain in enumerate(chains):
        at.setdefault(chain[side], []).append(k)
    found = {}
    for box, arrows in at.items():
        arrows.sort(key=lambda k: (xs[chains[k][1 if side == 0 else -2]], k))
        apart = min(26.0, (sizes[box][0] - 24) / max(len(arrows) - 1, 1))
        for place, k in enumerate(arrows):
            found[k] = xs[box] + (place - (len(arrows) - 1) / 2) * apart
    return found
