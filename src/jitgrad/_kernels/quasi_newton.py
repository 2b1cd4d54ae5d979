"""The direction of a quasi-Newton step, by the pairs of steps and changes of the gradient kept from earlier ones."""

from __future__ import annotations

from typing import Any

from .language import data, dim, offset, real, release, restore, size
from .registry import REASSOCIATE, kernel


@kernel("bbbbnnsb", fast=REASSOCIATE)
def two_loops(changes: Any, steps: Any, inverses: Any, shares: Any, first: int, count: int, scale: float, out: Any) -> None:
    """out = H out, by the two-loop recursion (Nocedal and Wright, Numerical Optimization, 2nd edition, algorithm 7.4).

    `changes` and `steps` are matrices of which `count` rows are in use, from row `first` on and around the end. `inverses[i]` is one over
    the product of a row of each, `scale` times the identity the matrix that the recursion starts from. `shares[k]` is left holding the
    coefficient of the kth pair in use.
    """
    n = size(out)
    rows = dim(changes, 0)
    p_changes = data(changes)
    p_steps = data(steps)
    inverse = data(inverses)
    share = data(shares)
    q = data(out)
    token = release(4 * n * count)
    for k in range(count - 1, -1, -1):
        row = (first + k) % rows
        change = offset(p_changes, row * n)
        step = offset(p_steps, row * n)
        total = real(0)
        for j in range(n):
            total += step[j] * q[j]
        part = total * inverse[row]
        share[k] = part
        for j in range(n):
            q[j] -= part * change[j]
    factor = real(scale)
    for j in range(n):
        q[j] *= factor
    for k in range(count):
        row = (first + k) % rows
        change = offset(p_changes, row * n)
        step = offset(p_steps, row * n)
        total = real(0)
        for j in range(n):
            total += change[j] * q[j]
        part = share[k] - total * inverse[row]
        for j in range(n):
            q[j] += part * step[j]
    restore(token)
