"""Soft-DTW, the differentiable distance of two series (Cuturi and Blondel, 2017): `python examples/soft_dtw.py`.

The recursion and its reverse are two loops. Checked against the sum over all alignments, and by `opcheck`; then two series of 40 samples
are averaged under the distance, and a step is timed beside the same loops without autograd.
"""

import math
import time

import numpy as np
from numba import njit

import jitgrad as torch


@torch.jit_function
def soft_dtw(cost, gamma):
    """The soft minimum, over all monotone alignments, of the summed cost; keeps the table of the recursion."""
    n, m = cost.shape
    table = np.full((n + 1, m + 1), np.inf, cost.dtype)
    table[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            a, b, c = table[i - 1, j - 1], table[i - 1, j], table[i, j - 1]
            low = min(a, b, c)
            total = math.exp((low - a) / gamma) + math.exp((low - b) / gamma) + math.exp((low - c) / gamma)
            table[i, j] = cost[i - 1, j - 1] + low - gamma * math.log(total)
    return table[n, m], table  # the value, then what the backward wants to see again


@soft_dtw.backward
def soft_dtw_backward(grad, cost, gamma, value, table):
    """How much each pair of samples takes part: the recursion read from its end (algorithm 2 of the paper)."""
    n, m = cost.shape
    share = np.zeros((n + 2, m + 2), cost.dtype)
    share[n, m] = grad
    for i in range(n, 0, -1):
        for j in range(m, 0, -1):
            total = share[i, j]
            if i < n:
                total += share[i + 1, j] * math.exp((table[i + 1, j] - table[i, j] - cost[i, j - 1]) / gamma)
            if j < m:
                total += share[i, j + 1] * math.exp((table[i, j + 1] - table[i, j] - cost[i - 1, j]) / gamma)
            if i < n and j < m:
                total += share[i + 1, j + 1] * math.exp((table[i + 1, j + 1] - table[i, j] - cost[i, j]) / gamma)
            share[i, j] = total
    out = np.empty_like(cost)
    for i in range(n):
        for j in range(m):
            out[i, j] = share[i + 1, j + 1]
    return out


def distance(x, y, gamma=0.1):
    """Soft-DTW of two series under squared differences."""
    return soft_dtw((x[:, None] - y[None, :]) ** 2, gamma)


def alignments(n, m):
    """All monotone paths through an n by m table, as lists of cells."""
    if n == 1 and m == 1:
        return [[(0, 0)]]
    steps = [(n - 1, m)] * (n > 1) + [(n, m - 1)] * (m > 1) + [(n - 1, m - 1)] * (n > 1 and m > 1)
    return [[*path, (n - 1, m - 1)] for a, b in steps for path in alignments(a, b)]


def check():
    """Value and gradient beside the definition: a sum over every alignment, differentiated by jitgrad."""
    cost = torch.from_numpy(np.random.default_rng(0).uniform(size=(4, 5))).requires_grad_()
    sums = torch.stack([torch.stack([cost[i, j] for i, j in path]).sum() for path in alignments(4, 5)])
    by_definition = -0.5 * torch.logsumexp(-sums / 0.5, 0)
    (wanted,) = torch.autograd.grad(by_definition, cost)
    value = soft_dtw(cost, 0.5)
    (found,) = torch.autograd.grad(value, cost)
    assert abs(value.item() - by_definition.item()) < 1e-12
    assert float((found - wanted).abs().max()) < 1e-12
    torch.opcheck(soft_dtw, cost, 0.5, skip=("size 0",))  # an empty series has no alignment
    return value.item()


def average(first, second, steps=60, rate=0.05):
    """The series nearest to both."""
    x = ((first + second) / 2).clone().requires_grad_()
    for _ in range(steps):
        loss = distance(x, first) + distance(x, second)
        (g,) = torch.autograd.grad(loss, x)
        with torch.no_grad():
            x -= rate * g
    return x.detach(), loss.item()


def best(call, repeat=300):
    """The shortest of many runs, in microseconds."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times) * 1e6


def timing(n=40):
    """Forward and backward through jitgrad, and the two loops alone."""
    cost = torch.from_numpy(np.random.default_rng(1).uniform(size=(n, n))).requires_grad_()
    array, forward, backward = cost.detach().numpy(), njit(soft_dtw.py_func), njit(soft_dtw_backward)

    def ours():
        cost.grad = None
        soft_dtw(cost, 1.0).backward()

    def raw():
        value, table = forward(array, 1.0)
        backward(1.0, array, 1.0, value, table)

    ours()
    raw()
    return best(ours), best(raw)


def main():
    print(f"check: value and gradient equal the sum over all alignments ({check():.6f}); opcheck passes")
    t = np.linspace(0, 2 * np.pi, 40)
    first, second = torch.from_numpy(np.sin(t)), torch.from_numpy(np.sin(t - 0.9))
    start = (distance((first + second) / 2, first) + distance((first + second) / 2, second)).item()
    _, end = average(first, second)
    print(f"average of two series: distance {start:.3f} for the mean, {end:.3f} after 60 steps")
    ours, raw = best_of(3)
    print(f"time: 40x40 forward and backward {ours:.1f} us, the bare loops {raw:.1f} us, ratio {ours / raw:.2f}")


def best_of(rounds):
    """The round with the smallest times: the machine may be busy."""
    found = [timing() for _ in range(rounds)]
    return min(ours for ours, _ in found), min(raw for _, raw in found)


if __name__ == "__main__":
    main()
