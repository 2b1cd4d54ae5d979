"""Negative log-likelihood and cross entropy over classes, as (batch, classes, inner).

All targets are looked at before anything is written: a kernel returns -1, or the position of the first that is no class. `weight` has an
element per class, or none. A reduction is 0 for none, 1 for mean, 2 for sum.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .language import data, offset, real, release, restore, size
from .registry import REASSOCIATE, kernel
from .scalar_fallback import exp, log, maximum, minimum


def bad_target(t: Any, count: Any, classes: Any, ignored: Any) -> Any:
    """Position of the first target that is neither a class nor `ignored`, or -1."""
    for k in range(count):
        if t[k] != ignored and (t[k] < 0 or t[k] >= classes):
            return np.int64(k)
    return np.int64(-1)


@kernel("bibnnnnnbd->n", uses=(bad_target,))
def nll(x: Any, target: Any, weight: Any, batch: int, classes: int, inner: int, ignored: int, reduction: int, out: Any, total: Any) -> Any:
    """out = -weight[t] * x[., t, .], one by one, their sum, or that over the sum of the weights, which is put into `total`."""
    p = data(x)
    t = data(target)
    w = data(weight)
    weighted = size(weight) > 0
    q = data(out)
    count = batch * inner
    token = release(count)
    bad = bad_target(t, count, classes, ignored)
    if bad < 0:
        loss = np.float64(0.0)
        weights = np.float64(0.0)
        for o in range(batch):
            for j in range(inner):
                at = o * inner + j
                c = t[at]
                part = real(0)
                if c != ignored:
                    factor = w[c] if weighted else real(1)
                    part = -factor * p[(o * classes + c) * inner + j]
                    weights += np.float64(factor)
                    loss += np.float64(part)
                if reduction == 0:
                    q[at] = part
        if reduction > 0:
            q[0] = real(loss / weights) if reduction == 1 else real(loss)
        data(total)[0] = weights
    restore(token)
    return bad


@kernel("bibnnnnnbd")
def nll_backward(grad: Any, target: Any, weight: Any, batch: int, classes: int, inner: int, ignored: int, reduction: int, out: Any,
                 total: Any) -> None:  # fmt: skip
    """Zeros, and -grad * weight[t] (over `total` for a mean) at the targets."""
    g = data(grad)
    t = data(target)
    w = data(weight)
    weighted = size(weight) > 0
    q = data(out)
    token = release(batch * classes * inner)
    for k in range(batch * classes * inner):
        q[k] = real(0)
    for o in range(batch):
        for j in range(inner):
            at = o * inner + j
            c = t[at]
            if c != ignored:
                factor = w[c] if weighted else real(1)
                scale = g[at] if reduction == 0 else g[0]
                if reduction == 1:
                    scale = real(np.float64(scale) / data(total)[0])
                q[(o * classes + c) * inner + j] = -factor * scale
    restore(token)


@kernel("bibnnnndb->n", fast=REASSOCIATE, uses=(bad_target,))
def cross_entropy(x: Any, target: Any, weight: Any, batch: int, classes: int, ignored: int, reduction: int, sums: Any, out: Any) -> Any:
    """`nll` of the logarithm of the softmax of the rows of x, which is not made: `sums` keeps each row's maximum and sum, then the weights' sum."""
    p = data(x)
    t = data(target)
    w = data(weight)
    weighted = size(weight) > 0
    z = data(sums)
    q = data(out)
    token = release(batch * classes)
    bad = bad_target(t, batch, classes, ignored)
    if bad < 0:
        loss = np.float64(0.0)
        weights = np.float64(0.0)
        for o in range(batch):
            c = t[o]
            part = real(0)
            if c != ignored:
                row = offset(p, o * classes)
                top = real(-np.inf)
                for k in range(classes):
                    top = maximum(top, row[k])
                sum_ = real(0)
                for k in range(classes):
                    sum_ += exp(row[k] - top)
                z[2 * o] = np.float64(top)
                z[2 * o + 1] = np.float64(sum_)
                factor = w[c] if weighted else real(1)
                # `minimum` changes nothing but keeps the compiler from adding log(sum) to a large maximum first
                part = factor * (log(sum_) - minimum(row[c] - top, real(0)))
                weights += np.float64(factor)
                loss += np.float64(part)
            if reduction == 0:
                q[o] = part
        if reduction > 0:
            q[0] = real(loss / weights) if reduction == 1 else real(loss)
        z[2 * batch] = weights
    restore(token)
    return bad


@kernel("bbibnnnndb")
def cross_entropy_backward(grad: Any, x: Any, target: Any, weight: Any, batch: int, classes: int, ignored: int, reduction: int, sums: Any,
                           out: Any) -> None:  # fmt: skip
    """out = scale * (softmax(x) - one-hot(t)), with scale as in `nll_backward`; zero for rows that are ignored."""
    g = data(grad)
    p = data(x)
    t = data(target)
    w = data(weight)
    weighted = size(weight) > 0
    z = data(sums)
    q = data(out)
    token = release(batch * classes)
    for o in range(batch):
        c = t[o]
        row = offset(p, o * classes)
        end = offset(q, o * classes)
        if c == ignored:
            for k in range(classes):
                end[k] = real(0)
        else:
            scale = g[o] if reduction == 0 else g[0]
            if reduction == 1:
                scale = real(np.float64(scale) / z[2 * batch])
            if weighted:
                scale *= w[c]
            top = real(z[2 * o])
            part = scale / real(z[2 * o + 1])
            for k in range(classes):
                end[k] = exp(row[k] - top) * part
            end[c] -= scale
    restore(token)
