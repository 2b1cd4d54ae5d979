"""Random graphs: the accelerated run, the full run and torch run the same nodes in the same order and get the same gradients."""

import random

import numpy as np
import pytest

import jitgrad
from tests.libraries import function


def build(lib, seed, hooks=False):
    """Leaves, a loss and the log of what ran; Functions of one and two outputs and one without gradient are among the nodes."""
    choose, log = random.Random(seed), []

    def keep(ctx, x, k):
        ctx.k = k
        return x.tanh()

    def two(ctx, x, y, k):
        ctx.k = k
        ctx.save_for_backward(x, y)
        return x * y, x + y

    def back_two(ctx, g, h):
        log.append(ctx.k)
        x, y = ctx.saved_tensors
        return g * y + h, g * x + h, None

    one = function(lib, keep, lambda ctx, g: log.append(ctx.k) or (g * 0.5, None))
    pair = function(lib, two, back_two)
    nothing = function(lib, keep, lambda ctx, g: log.append(ctx.k) or (None, None))
    values = np.random.default_rng(seed).standard_normal((5, 3)).astype("f4")
    leaves = [lib.tensor(values[k].tolist(), requires_grad=True) for k in range(choose.randint(1, 5))]
    if hooks:
        for k, x in enumerate(leaves):
            x.register_post_accumulate_grad_hook(lambda p, k=k: log.append(("leaf", k)))
    steps = [
        lambda a, b, k: [a * b], lambda a, b, k: [a + b], lambda a, b, k: [(a - b).tanh()], lambda a, b, k: [one.apply(a, k)],
        lambda a, b, k: [one.apply(a, k)], lambda a, b, k: pair.apply(a.tanh(), b.tanh(), k), lambda a, b, k: [-a],
        lambda a, b, k: [lib.cat([a[:1], b[1:]])], lambda a, b, k: [nothing.apply(a, k)] if choose.random() < 0.3 else [a * 0.5],
    ]  # fmt: skip
    pool = list(leaves)
    for k in range(choose.randint(5, 40)):
        a, b = choose.choice(pool[-6:] if choose.random() < 0.7 else pool), choose.choice(pool)
        pool.extend(choose.choice(steps)(a, b, k))
    return leaves, sum((x.sum() for x in pool[-3:]), lib.tensor(0.0)), log


def gradients(leaves):
    return [None if x.grad is None else x.grad.numpy() for x in leaves]


@pytest.mark.parametrize("hooks", [False, True])
def test_three_runs_agree(hooks):
    torch = pytest.importorskip("torch")
    compared = 0
    for seed in range(80):
        oracle, loss, order = build(torch, seed, hooks)
        if not loss.requires_grad:
            continue
        fast, fast_loss, fast_order = build(jitgrad, seed, hooks)
        full, full_loss, full_order = build(jitgrad, seed, hooks)
        loss.backward()
        fast_loss.backward()
        full_loss.backward(inputs=full)
        assert fast_order == order
        assert full_order == order
        for expected, one, other in zip(gradients(oracle), gradients(fast), gradients(full), strict=True):
            if expected is None:
                assert one is None
                assert other is None
            else:
                np.testing.assert_array_equal(one, other)
                np.testing.assert_allclose(one, expected, rtol=1e-4, atol=1e-6)
        compared += 1
    assert compared > 60


def test_the_newest_node_runs_first_and_accumulators_before_all(lib):
    log = []
    x, y = lib.ones(1, requires_grad=True), lib.ones(1, requires_grad=True)
    x.register_hook(lambda g: log.append("x"))
    y.register_hook(lambda g: log.append("y"))
    a = x * 2
    b = y * 3
    c = a * 4
    for name, node in {"a": a, "b": b, "c": c}.items():
        node.register_hook(lambda g, name=name: log.append(name))
    (b + c).backward()
    assert log == ["c", "b", "y", "a", "x"]


def test_the_worked_example(lib):
    """After the sum both the product and the accumulator of b are ready; the accumulator has the largest number and goes first."""
    log = []
    x, w, b = lib.tensor(2.0), lib.tensor(3.0, requires_grad=True), lib.tensor(1.0, requires_grad=True)
    product = w * x
    b.register_hook(lambda g: log.append("AccumulateGrad of b"))
    w.register_hook(lambda g: log.append("AccumulateGrad of w"))
    product.grad_fn.register_prehook(lambda g: log.append("MulBackward0"))
    y = product + b
    (y * y).backward()
    assert log == ["AccumulateGrad of b", "MulBackward0", "AccumulateGrad of w"]
    assert (w.grad.item(), b.grad.item()) == (28.0, 14.0)


# ---------------------------------------------------------------- the order of hooks
@pytest.mark.parametrize(
    ("count", "order"), [(3, [0, 1, 2]), (4, [0, 2, 1, 3]), (5, [0, 2, 4, 1, 3]), (7, [0, 2, 5, 6, 4, 1, 3])]
)
def test_accumulators_that_are_ready_at_once(lib, count, order):
    """As torch's heap leaves them."""
    log = []
    leaves = [lib.ones(2, requires_grad=True) for _ in range(count)]
    for k, x in enumerate(leaves):
        x.register_hook(lambda g, k=k: log.append(k))
    lib.cat(leaves).sum().backward()
    assert log == order


def hooked(lib, seed):
    """What the hooks of a random graph saw, in order."""
    choose, log = random.Random(seed), []
    pool = [lib.ones(2, requires_grad=True) for _ in range(6)]
    leaves = list(pool)
    for k, x in enumerate(leaves):
        x.register_hook(lambda g, k=k: log.append(("leaf", k)))
        if choose.random() < 0.3:
            x.register_post_accumulate_grad_hook(lambda p, k=k: log.append(("accumulated", k)))
    steps = [
        lambda a, b: a * b, lambda a, b: a + b, lambda a, b: a.sin(), lambda a, b: a.clone(),
        lambda a, b: lib.stack([a, b, *[choose.choice(pool) for _ in range(3)]]).sum(0),
    ]  # fmt: skip
    for k in range(12):
        step, a, b = choose.choice(steps), choose.choice(pool), choose.choice(pool)
        y = step(a, b)
        if choose.random() < 0.4:
            y.register_hook(lambda g, k=k: log.append(("result", k)))
        pool.append(y)
    roots, way = choose.sample(pool, choose.randint(1, 3)), choose.randrange(3)
    if way == 0:
        lib.autograd.backward([x.sum() for x in roots])
    elif way == 1:
        lib.autograd.backward(roots, [lib.ones(2)] * len(roots))
    else:
        lib.autograd.grad([x.sum() for x in roots], leaves, allow_unused=True)
    return log


def test_hooks_come_in_torchs_order():
    torch = pytest.importorskip("torch")
    seen = [hooked(jitgrad, seed) for seed in range(120)]
    assert seen == [hooked(torch, seed) for seed in range(120)]
    assert sum(map(len, seen)) > 400


def test_a_gradient_without_axes_is_an_array():
    """NumPy makes a number of an array without axes; the sum of gradients, a kernel, would read it as an array."""
    x = jitgrad.tensor(3.0, requires_grad=True)
    first = jitgrad.tensor([0])
    for op in (lambda t: t.flip(0), lambda t: t.roll(0), lambda t: t.cumsum(0), lambda t: t.sort(0)[0], lambda t: t.index_select(0, first)):
        y = x * 2
        (op(y) * 3 + op(y) * 5 + y).sum().backward()
    assert x.grad.item() == 90.0
