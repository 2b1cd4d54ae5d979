"""The spelled-out layers and losses save what the ops they stand for save: from the second call on as in the first, and as torch."""

import gc
import weakref

import pytest

import jitgrad
from tests.libraries import lib

__all__ = ["lib"]


@pytest.mark.parametrize("bias_only", [False, True])
def test_a_weight_that_no_gradient_needs_may_be_written_to(lib, bias_only):
    layer, x = lib.nn.Linear(5, 3), lib.ones(2, 5)
    layer.weight.requires_grad_(not bias_only)
    for _ in range(3):
        layer.zero_grad()
        y = layer(x).sum()
        with lib.no_grad():
            layer.weight.add_(1.0)
        y.backward()
        assert layer.bias.grad.tolist() == [2.0] * 3
        assert layer.weight.grad is None if bias_only else layer.weight.grad.tolist() == [[2.0] * 5] * 3


def test_a_weight_that_a_gradient_needs_may_not(lib):
    layer, x = lib.nn.Linear(5, 3), lib.ones(2, 5, requires_grad=True)
    for _ in range(3):
        y = layer(x).sum()
        with lib.no_grad():
            layer.weight.add_(1.0)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.backward()


@pytest.mark.parametrize("create_graph", [False, True])
def test_every_choice_of_inputs(create_graph):
    for needs in range(1, 8):
        tensors = [jitgrad.ones(2, 5), jitgrad.ones(3, 5), jitgrad.ones(3)]
        for k, x in enumerate(tensors):
            x.requires_grad_(bool(needs & 1 << k))
        for _ in range(3):
            wanted = [x for x in tensors if x.requires_grad]
            grads = jitgrad.autograd.grad(jitgrad.nn.functional.linear(*tensors).sum(), wanted, create_graph=create_graph)
            values = {(2, 5): 3.0, (3, 5): 2.0, (3,): 2.0}
            assert all(set(grad.flatten().tolist()) == {values[tuple(grad.shape)]} for grad in grads)


def kept(loss):
    return [(value.op, value.name, value.shape, value.nbytes) for value in jitgrad.autograd.graph.saved_memory(loss)]


@pytest.mark.parametrize("loss", ["cross_entropy", "mse_loss"])
def test_what_is_kept_is_the_same_in_every_call(loss):
    layer = jitgrad.nn.Linear(7, 4)
    x = jitgrad.ones(6, 7)
    target = jitgrad.zeros(6, dtype=jitgrad.int64) if loss == "cross_entropy" else jitgrad.zeros(6, 4)
    found = [kept(getattr(jitgrad.nn.functional, loss)(layer(x), target)) for _ in range(3)]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("keep", [False, True])
def test_all_of_it_goes_with_the_backward(keep):
    layer, x, target = jitgrad.nn.Linear(7, 4), jitgrad.ones(6, 7), jitgrad.zeros(6, dtype=jitgrad.int64)
    gc.collect()
    gc.disable()
    try:
        for _ in range(3):
            loss = jitgrad.nn.functional.cross_entropy(layer(x), target)
            ((sums, _),) = [(value, edge) for name, value, edge in loss.grad_fn.kept_values() if name == "sums"]
            alive = weakref.ref(sums)
            del sums
            if keep:
                loss.register_hook(lambda g: None)  # the full run
            loss.backward()
            assert alive() is None
            with pytest.raises(RuntimeError, match="second time"):
                loss.backward()
    finally:
        gc.enable()
