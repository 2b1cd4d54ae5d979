"""Several threads: nothing that one of them adds to a shared leaf is lost."""

import sys
import threading

import pytest

import jitgrad as torch


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


@pytest.mark.parametrize("size", [4, 20_000])
@pytest.mark.parametrize("hooks", [False, True])
def test_threads_share_leaves(switching, size, hooks):
    steps, count = 60, 8
    w, v = torch.zeros(size, requires_grad=True), torch.ones(size, requires_grad=True)
    seen = []
    if hooks:
        w.register_hook(lambda g: seen.append(1))
        v.register_post_accumulate_grad_hook(lambda p: seen.append(1))

    def work(index):
        for step in range(steps):
            y = (w * v).sum() + (w * 2.0).sum() * (step % 2)
            y.backward(create_graph=False)

    run_all(count, work)
    assert w.grad.tolist() == [count * steps * 2.0] * size
    assert v.grad.tolist() == [0.0] * size
    assert len(seen) == (2 * count * steps if hooks else 0)


def test_threads_share_a_graph(switching):
    w = torch.ones(16, requires_grad=True)
    y = (w * 2).exp().tanh()
    z = (y * y + y).sum()
    alone = torch.autograd.grad(z, w, retain_graph=True)[0] * 1

    run_all(6, lambda index: [z.backward(retain_graph=True) for _ in range(30)])
    assert torch.allclose(w.grad, alone * 180)


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
