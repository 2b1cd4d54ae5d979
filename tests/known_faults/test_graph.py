"""What graphs keep alive, how deep they may be, and what is computed twice."""

import gc
import weakref

import pytest

import jitgrad
from tests.libraries import function, leaf, lib

__all__ = ["lib"]


@pytest.fixture
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


# ---- S09
def context_of(lib, keep):
    """A weak reference to the context of a Function that keeps its output; the result is gone."""
    refs = []

    def forward(ctx, x):
        y = x * 2
        keep(ctx, y)
        refs.append(weakref.ref(ctx))
        return y

    made = function(lib, forward, lambda ctx, grad: grad * 2)
    y = made.apply(leaf(lib, 1.0))
    assert refs[0]() is not None
    del y
    return refs[0]


def test_s09_an_output_kept_on_the_context(no_collector, lib):
    """Dead at once here, and in torch after a collection."""
    ref = context_of(lib, lambda ctx, y: ctx.__setattr__("y", y))
    if lib.__name__ == "torch":
        gc.collect()
    assert ref() is None


def test_s09_a_saved_output_makes_no_circle(no_collector, lib):
    assert context_of(lib, lambda ctx, y: ctx.save_for_backward(y))() is None


def test_s09_many_steps_keep_nothing(no_collector):
    """10,000 steps with the collector off leave no node behind."""
    alive = weakref.WeakSet()

    def forward(ctx, x):
        alive.add(ctx)
        ctx.y = y = x * 2
        ctx.save_for_backward(y)
        return y

    made = function(jitgrad, forward, lambda ctx, grad: grad * 2)
    x = leaf(jitgrad, 1.0)
    for step in range(10_000):
        made.apply(x).backward()
        assert len(alive) == 0, step


# ---- S10 (more of it, with other ops and in a thread with a small stack: tests/engine/test_deep.py)
def test_s10_a_very_long_chain():
    x = leaf(jitgrad, 1.0)
    y = x
    for _ in range(100_000):
        y = y + 1
    assert repr(y) == "tensor([100001.], grad_fn=<AddBackward0>)"
    y.backward()
    assert x.grad.tolist() == [1]
    del y


# ---- S22
@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize("preserve", [True, False])
def test_s22_a_checkpoint_draws_the_same_mask(lib, reentrant, preserve):
    run = pytest.importorskip(f"{lib.__name__}.utils.checkpoint").checkpoint
    lib.manual_seed(0)
    x = lib.ones(64, requires_grad=True)
    y = run(lib.nn.Dropout(0.5), x, use_reentrant=reentrant, preserve_rng_state=preserve)
    lib.rand(7)
    before = lib.get_rng_state()
    y.sum().backward()
    same = bool(((x.grad != 0) == (y != 0)).all())
    untouched = bool((lib.get_rng_state() == before).all())
    assert (same, untouched) == (preserve, preserve)
