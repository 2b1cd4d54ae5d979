"""The update rules of the rarer optimizers; see `rules.py`."""

from __future__ import annotations

from .._expr import scalar as s
from .rules import Step, X, _direction, _moments, rule


@rule(states=2)
def adadelta(
    p: X, g: X, square_avg: X, acc_delta: X, lr: X, rho: X, rest: X, eps: X, weight_decay: X, *, maximize: bool, decay: bool,
) -> Step:  # fmt: skip
    """Adadelta: steps as long as those of late, by the root mean squares of steps and gradients; `rest` is 1 - rho."""
    g = _direction(p, g, weight_decay, maximize, decay)
    square = rho * square_avg + rest * (g * g)
    delta = s.sqrt(acc_delta + eps) / s.sqrt(square + eps) * g
    return p - lr * delta, square, rho * acc_delta + rest * (delta * delta)


@rule(states=2)
def adamax(
    p: X, g: X, exp_avg: X, exp_inf: X, lr: X, eps: X, weight_decay: X, rest1: X, beta2: X, *, maximize: bool, decay: bool,
) -> Step:  # fmt: skip
    """Adam by the largest gradient of late; `lr` comes divided by the correction of the mean."""
    g = _direction(p, g, weight_decay, maximize, decay)
    mean = exp_avg + rest1 * (g - exp_avg)
    largest = s.maximum(exp_inf * beta2, s.abs(g) + eps)
    return p - lr * mean / largest, mean, largest


@rule(states=2)
def nadam(
    p: X, g: X, exp_avg: X, exp_avg_sq: X, rate: X, ahead: X, eps: X, weight_decay: X, shrink: X, rest1: X, beta2: X, rest2: X, root: X, *,
    maximize: bool, decay: bool, decoupled: bool,
) -> Step:  # fmt: skip
    """Adam that looks ahead: `rate` is that of the gradient, `ahead` that of the mean; `shrink` as in AdamW."""
    p = p * shrink if decoupled else p
    g = _direction(p, g, weight_decay, maximize, decay and not decoupled)
    mean, square = _moments(g, exp_avg, exp_avg_sq, rest1, beta2, rest2)
    scale = s.sqrt(square) / root + eps
    return p - rate * g / scale - ahead * mean / scale, mean, square


@rule(states=2)
def radam(
    p: X, g: X, exp_avg: X, exp_avg_sq: X, rate: X, rectified: X, plain: X, eps: X, weight_decay: X, shrink: X, rest1: X, beta2: X, rest2: X, *,
    maximize: bool, decay: bool, decoupled: bool,
) -> Step:  # fmt: skip
    """Adam whose second moment counts as soon as it is known well enough: `rectified` is by how much, `plain` 1 until then and 0 after."""
    p = p * shrink if decoupled else p
    g = _direction(p, g, weight_decay, maximize, decay and not decoupled)
    mean, square = _moments(g, exp_avg, exp_avg_sq, rest1, beta2, rest2)
    return p - rate * mean * (rectified / (s.sqrt(square) + eps) + plain), mean, square


@rule(states=1)
def asgd(
    p: X, g: X, ax: X, eta: X, shrink: X, mu: X, weight_decay: X, *, maximize: bool, decay: bool, averages: bool,
) -> Step:  # fmt: skip
    """Gradient descent with a mean of the parameters beside it."""
    after = p * shrink - eta * _direction(p, g, weight_decay, maximize, decay)
    return after, ax + (after - ax) * mu if averages else after


@rule(states=2)
def rprop(p: X, g: X, prev: X, step_size: X, less: X, more: X, low: X, high: X, *, maximize: bool) -> Step:
    """Steps by the sign of the gradient alone: longer as long as it stays, shorter, and not taken, where it has changed."""
    g = -g if maximize else g
    product = g * prev
    size = s.where(product > 0, step_size * more, s.where(product < 0, step_size * less, step_size))
    size = s.minimum(s.maximum(size, low), high)
    used = s.where(product < 0, 0, g)
    return p - s.sign(used) * size, used, size
