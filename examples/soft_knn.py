"""Soft assignment to the k nearest neighbours, and a metric learnt through it: `python examples/soft_knn.py`.

A kernel finds the k nearest points and weighs them by distance; which they are is an integer output without gradient, how much each counts has
one. Checked against the same thing in tensor ops; then a linear map to 10 dimensions is learnt that makes neighbours of one digit near.
"""

import math
import time

import numpy as np

import jitgrad as torch
from jitgrad.cli.digits import split_digits


def nearest(queries, points, k, temperature, alone):
    """Weights (q, k) of the k nearest points of each query, and which they are; with `alone` a query is no neighbour of itself."""
    count, width = queries.shape
    weights = np.empty((count, k), queries.dtype)
    index = np.empty((count, k), np.int64)
    for q in range(count):
        found = 0
        for p in range(points.shape[0]):
            if alone and p == q:
                continue
            d = 0.0
            for c in range(width):
                d += (queries[q, c] - points[p, c]) ** 2
            if found == k and d >= weights[q, k - 1]:
                continue
            place = min(found, k - 1)  # insert into the sorted distances; of equal ones the first stays first
            while place > 0 and weights[q, place - 1] > d:
                weights[q, place], index[q, place] = weights[q, place - 1], index[q, place - 1]
                place -= 1
            weights[q, place], index[q, place] = d, p
            found = min(found + 1, k)
        low, total = weights[q, 0], 0.0
        for s in range(k):
            weights[q, s] = math.exp((low - weights[q, s]) / temperature)
            total += weights[q, s]
        for s in range(k):
            weights[q, s] /= total
    return weights, index


def nearest_backward(grad, queries, points, k, temperature, alone, weights, index):
    into_queries, into_points = np.zeros_like(queries), np.zeros_like(points)
    for q in range(queries.shape[0]):
        mean = 0.0
        for s in range(k):
            mean += grad[q, s] * weights[q, s]
        for s in range(k):
            by_distance = -weights[q, s] * (grad[q, s] - mean) / temperature
            for c in range(queries.shape[1]):
                part = 2.0 * by_distance * (queries[q, c] - points[index[q, s], c])
                into_queries[q, c] += part
                into_points[index[q, s], c] -= part
    return into_queries, into_points


soft_knn = torch.jit_function(nearest, nearest_backward, outputs=2, name="soft_knn")


def in_ops(queries, points, k, temperature):
    """The same in tensor ops, which make the whole table of distances."""
    distances = ((queries[:, None] - points[None]) ** 2).sum(2)
    values, index = distances.topk(k, dim=1, largest=False)
    return torch.softmax(-values / temperature, 1), index


def check():
    rng = np.random.default_rng(0)
    queries, points = (torch.from_numpy(rng.normal(size=(n, 3))).requires_grad_() for n in (5, 9))
    weights, index = soft_knn(queries, points, 4, 0.7, False)
    wanted, order = in_ops(queries, points, 4, 0.7)
    assert (index == order).all()
    loss, reference = ((w * torch.arange(20.0).reshape(5, 4)).sum() for w in (weights, wanted))
    for found, right in zip(*(torch.autograd.grad(x, (queries, points)) for x in (loss, reference)), strict=True):
        assert float((found - right).abs().max()) < 1e-12
    torch.opcheck(
        soft_knn, queries, points, 4, 0.7, False, skip=("size 0", "0-d", "bounds", "ties", "NaN and infinity")
    )


def agreement(images, labels, onehot, k=5):
    """How often the neighbours' votes name the right digit."""
    weights, index = soft_knn(images, images, k, 1.0, True)
    return ((weights[:, :, None] * onehot[index]).sum(1).argmax(1) == labels).float().mean().item()


def main():
    check()
    print("check: weights, neighbours and gradients equal those of tensor ops; opcheck passes")
    torch.manual_seed(0)
    images, labels = (torch.from_numpy(x[:600]) for x in split_digits().train)
    onehot = torch.eye(10)[labels]
    basis = (torch.randn(64, 10) * 0.15).requires_grad_()
    before = agreement(images @ basis.detach(), labels, onehot)
    optimizer = torch.optim.Adam([basis], lr=0.01)
    times = []
    for _ in range(60):
        start = time.perf_counter()
        optimizer.zero_grad()
        low = images @ basis
        weights, index = soft_knn(low, low, 10, 1.0, True)
        votes = (weights[:, :, None] * onehot[index]).sum(1)
        loss = -(votes * onehot).sum(1).clamp_min(1e-6).log().mean()
        loss.backward()
        optimizer.step()
        times.append(time.perf_counter() - start)
    after = agreement(images @ basis.detach(), labels, onehot)
    print(f"600 digits in 10 dimensions: neighbours name the digit in {before:.1%} before, {after:.1%} after 60 steps")
    print(f"time: {sorted(times)[30] * 1e3:.1f} ms a step of 360,000 distances")


if __name__ == "__main__":
    main()
