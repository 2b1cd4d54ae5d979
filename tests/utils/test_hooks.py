"""`utils.hooks.BackwardHook`: a module's backward hooks, put around any computation."""

from importlib import import_module

import pytest

from tests.libraries import leaf, lib

__all__ = ["lib"]


def backward_hook(lib, hooks=(), pre_hooks=()):
    return import_module(lib.__name__ + ".utils.hooks").BackwardHook("owner", hooks, pre_hooks)


def test_meets_both_gradients(lib):
    seen = []

    def hook(owner, grad_inputs, grad_outputs):
        seen.append((owner, [None if g is None else g.tolist() for g in grad_inputs], [g.tolist() for g in grad_outputs]))
        return (grad_inputs[0] * 10, None)

    x = leaf(lib, 1.0, 2.0)
    around = backward_hook(lib, [hook])
    inside, other = around.setup_input_hook((x, "no tensor"))
    assert other == "no tensor"
    assert (around.n_inputs, around.input_tensors_index) == (2, [0])
    (y,) = around.setup_output_hook((inside * 3,))
    assert (around.n_outputs, around.output_tensors_index) == (1, [0])
    assert y.grad_fn.name() == "BackwardHookFunctionBackward"
    y.sum().backward()
    assert seen == [("owner", [[3.0, 3.0], None], [[1.0, 1.0]])]
    assert x.grad.tolist() == [30.0, 30.0]
    assert around.grad_outputs is None


def test_pre_hooks_change_what_comes_in(lib):
    x = leaf(lib, 1.0)
    around = backward_hook(lib, [lambda owner, grads, outs: seen.append(outs[0].item())], [lambda owner, grads: (grads[0] * 4,)])
    seen = []
    (inside,) = around.setup_input_hook((x,))
    around.setup_output_hook(inside * 3).backward()
    assert seen == [4.0]
    assert x.grad.item() == 12.0


def test_number_of_gradients_is_checked(lib):
    around = backward_hook(lib, [lambda owner, grads, outs: (grads[0], grads[0])])
    (inside,) = around.setup_input_hook((leaf(lib, 1.0),))
    y = around.setup_output_hook(inside * 2)
    with pytest.raises(RuntimeError, match="Backward hook returned an invalid number of grad_input, got 2, but expected 1"):
        y.backward()
