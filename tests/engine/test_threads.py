"""Several threads: nothing that one of them adds to a shared leaf is lost. All values are small integers, so sums are exact in any order."""

import contextlib
import os
import sys
import threading
import time

import pytest

import jitgrad as torch
from jitgrad._engine.extras import NodeExtras
from jitgrad._tensor import base

THREADS = 8
SIZES = [4, 20_000]  # kernels let the interpreter go above 4096 elements


@pytest.fixture
def switching():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def run_all(count, work):
    failed = []

    def guarded(index):
        try:
            work(index)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=guarded, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


# ---- shared leaves
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("hooks", [False, True])
def test_threads_share_leaves(switching, size, hooks):
    steps = 60
    w, v = torch.zeros(size, requires_grad=True), torch.ones(size, requires_grad=True)
    seen = []
    if hooks:
        w.register_hook(lambda g: seen.append(1))
        v.register_post_accumulate_grad_hook(lambda p: seen.append(1))

    def work(index):
        for step in range(steps):
            y = (w * v).sum() + (w * 2.0).sum() * (step % 2)
            y.backward(create_graph=False)

    run_all(THREADS, work)
    assert w.grad.tolist() == [THREADS * steps * 2.0] * size
    assert v.grad.tolist() == [0.0] * size
    assert len(seen) == (2 * THREADS * steps if hooks else 0)


WAYS = {  # the accelerated run, the definition, a part of the graph, a graph of the backward
    "plain": lambda loss, leaves: loss.backward(),
    "hooked": lambda loss, leaves: (loss.register_hook(lambda g: None), loss.backward()),
    "inputs": lambda loss, leaves: loss.backward(inputs=leaves),
    "graph": lambda loss, leaves: loss.backward(create_graph=True),
}


@pytest.mark.parametrize("rows", [2, 300])  # 300 * 24 elements: above the size from which kernels let the interpreter go
@pytest.mark.parametrize("way", [*WAYS, "mixed"])
def test_threads_share_a_model(switching, rows, way):
    """The spelled-out layers and losses of an MLP, run in every way at once."""
    steps = 12
    first, second = torch.nn.Linear(16, 24, dtype=torch.float64), torch.nn.Linear(24, 1, dtype=torch.float64)
    leaves = [*first.parameters(), *second.parameters()]
    with torch.no_grad():
        for p in leaves:
            p.fill_(1.0)
    x = torch.ones(rows, 16, dtype=torch.float64)

    def work(index):
        for step in range(steps):
            loss = torch.nn.functional.linear(first(x).relu(), second.weight, second.bias).sum()
            WAYS[way if way != "mixed" else list(WAYS)[(index + step) % len(WAYS)]](loss, leaves)

    run_all(THREADS, work)
    total = float(THREADS * steps * rows)
    assert [set(p.grad.flatten().tolist()) for p in leaves] == [{total}, {total}, {17 * total}, {total}]


@pytest.mark.parametrize("size", SIZES)
def test_a_hook_that_takes_the_gradient_away_takes_all_of_it(switching, size):
    """As in torch, no other run adds to a leaf between the sum and the hooks on it."""
    steps = 15
    w = torch.zeros(size, requires_grad=True)
    taken = torch.zeros(size)

    def take(leaf):
        grad = leaf.grad
        if grad is not None:  # another thread's hook may have taken it
            taken.add_(grad)
            time.sleep(0)  # lets others run
            leaf.grad = None

    w.register_post_accumulate_grad_hook(take)
    run_all(THREADS, lambda index: [(w * 1.0).sum().backward() for _ in range(steps)])
    assert w.grad is None
    assert taken.tolist() == [float(THREADS * steps)] * size


def test_hooks_of_other_leaves_may_wait_for_each_other():
    """The lock is the leaf's own: a hook may wait for a backward of another thread."""
    w, v = torch.zeros(3, requires_grad=True), torch.zeros(3, requires_grad=True)
    done = threading.Event()
    v.register_post_accumulate_grad_hook(lambda leaf: done.set())

    def wait(leaf):
        other = threading.Thread(target=lambda: (v * 2.0).sum().backward())
        other.start()
        other.join(60)
        assert done.is_set()

    w.register_post_accumulate_grad_hook(wait)
    (w * 1.0).sum().backward()
    assert v.grad.tolist() == [2.0] * 3


def test_a_child_process_finds_the_lock_free(monkeypatch):
    extras = NodeExtras()
    held = extras.guard()
    assert extras.guard() is held
    child = os.getpid() + 1
    monkeypatch.setattr(os, "getpid", lambda: child)
    assert extras.guard() is not held


@pytest.mark.parametrize("hooks", [False, True])
def test_first_gradients_are_not_lost(switching, hooks):
    for _ in range(40):
        w = torch.zeros(2, requires_grad=True)
        if hooks:
            w.register_hook(lambda g: None)  # sends the run by the full engine
        barrier = threading.Barrier(4)

        def work(index, w=w, barrier=barrier):
            y = (w * 1.0).sum()
            barrier.wait()
            y.backward()

        run_all(4, work)
        assert w.grad.tolist() == [4.0, 4.0]


# ---- a shared graph
@pytest.mark.parametrize("size", SIZES)
def test_threads_share_a_graph(switching, size):
    w = torch.ones(size, dtype=torch.float64, requires_grad=True)
    y = (w * 2) * w  # 2 w^2
    kept = y * 1
    kept.retain_grad()
    z = (kept * kept + kept).sum()  # 4 w^4 + 2 w^2
    steps = 20
    run_all(THREADS, lambda index: [z.backward(retain_graph=True) for _ in range(steps)])
    assert set(w.grad.tolist()) == {20.0 * THREADS * steps}
    assert set(kept.grad.tolist()) == {5.0 * THREADS * steps}


def test_one_thread_releases_the_graph_that_others_run(switching):
    """Whoever comes too late is told so; whoever ran has added all of its gradient, or nothing."""
    for _ in range(10):
        w = torch.ones(5000, requires_grad=True)
        z = (w * w * w).exp().tanh().sum() * 0.0 + (w * w).sum()
        ran, late = [], []

        def work(index, z=z, ran=ran, late=late):
            try:
                z.backward(retain_graph=index != 3)
                ran.append(index)
            except RuntimeError as error:
                late.append(str(error))

        run_all(THREADS, work)
        assert len(ran) + len(late) == THREADS
        assert all("second time" in text for text in late)
        assert (0.0 if w.grad is None else w.grad[0].item()) == 2.0 * len(ran)


def many_kinds(n):
    """A graph of elementwise, linear and general nodes, nodes of several outputs and in-place writes to views; small integers throughout."""
    torch.manual_seed(0)
    u, v, w = (torch.randint(-2, 3, (n, n)).to(torch.float64).requires_grad_() for _ in range(3))
    first, second = (torch.ones(n, n, dtype=torch.float64) @ u).relu().chunk(2, 0)
    h = torch.cat([second * 2, first], 0) * 1
    h[0] = h[1] * 2
    h[:, 1].mul_(3)
    picked = h[torch.tensor([0, 1, 1, 2])].sum(0)
    parts = (h @ v).sort(-1)[0].sum() + (h + w).max(1)[0].sum() + h.t().reshape(-1).cumsum(0).sum()
    return (u, v, w), picked.sum() + parts + (w.clamp(-1, 1) * h).sum() + torch.where(h > 0, h, w).sum()


RUNS = [
    lambda loss, leaves: loss.backward(retain_graph=True),
    lambda loss, leaves: loss.backward(retain_graph=True, inputs=leaves),
    lambda loss, leaves: torch.autograd.graph.trace_backward(loss, retain_graph=True),
    lambda loss, leaves: add_all(leaves, torch.autograd.grad(loss, leaves, retain_graph=True, create_graph=True)),
]


def add_all(leaves, grads):
    """Hand gradients to leaves as a backward would."""
    for leaf, grad in zip(leaves, grads, strict=True):
        leaf.backward(grad.detach())


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("n", [4, 80])
def test_threads_share_nodes_of_every_kind(switching, n, packed):
    with torch.autograd.graph.save_compressed(min_bytes=0) if packed else contextlib.nullcontext():
        leaves, loss = many_kinds(n)
    loss.backward(retain_graph=True)
    alone = [leaf.grad.clone() for leaf in leaves]
    for leaf in leaves:
        leaf.grad = None
    run_all(THREADS, lambda index: [RUNS[(index + step) % len(RUNS)](loss, leaves) for step in range(4)])
    for leaf, grad in zip(leaves, alone, strict=True):
        assert torch.equal(leaf.grad, grad * (THREADS * 4))


@pytest.mark.parametrize("create_graph", [False, True])
def test_threads_unpack_the_values_of_one_node(switching, create_graph):
    x = torch.ones(6, requires_grad=True)
    y = x.exp() * 0.0 + x * x
    result = y.grad_fn.next_functions[1][0]

    def unpack(held):
        time.sleep(0)
        return held

    result._raw_saved_self.register_hooks(lambda held: held.clone(), unpack)
    result._raw_saved_other.register_hooks(lambda held: held.clone(), unpack)
    z = y.sum()

    def work(index):
        for _ in range(10):
            z.backward(retain_graph=True, create_graph=create_graph)

    run_all(THREADS, work)
    assert x.grad.tolist() == [2.0 * 10 * THREADS] * 6
    z.backward()
    with pytest.raises(RuntimeError, match="second time"):
        z.backward()


def test_a_write_to_what_was_packed_later_is_no_harm():
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda held: held.clone(), lambda held: held)
    expected = y.tolist()
    with torch.no_grad():
        y.add_(1)
    y.sum().backward()
    assert x.grad.tolist() == expected


def test_a_hook_over_several_gradients_runs_once_per_backward(switching):
    a, b, calls = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True), []
    c, d = a * b, a + b
    meet = threading.Barrier(2)

    def slow(grad):
        meet.wait(60)  # both runs have come to `c` before either goes on to `d`

    torch.autograd.graph.register_multi_grad_hook((c, d), lambda grad: calls.append(1), mode="any")
    for x in (c, d):
        x.register_hook(slow)
    z = (c + d).sum()
    run_all(2, lambda index: z.backward(retain_graph=True))
    assert len(calls) == 2


# ---- version counters
def test_two_threads_make_one_counter(monkeypatch):
    made = []

    class Slow(base.Version):
        def __init__(self):
            super().__init__()
            made.append(self)
            time.sleep(0.05)

    monkeypatch.setattr(base, "Version", Slow)
    x = torch.ones(3)
    run_all(THREADS, lambda index: base.version_of(x))
    assert made == [x.vc]
