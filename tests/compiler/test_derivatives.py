"""A compiled function is differentiable, to any order."""

import numpy as np
import pytest

import jitgrad as torch
from jitgrad import nn
from jitgrad.nn import functional as F


def function(x, w):
    return torch.tanh(x @ w).pow(2).sum(1), (x * x).mean()


def leaves(seed=0):
    rng = np.random.default_rng(seed)
    return (torch.tensor(rng.standard_normal(shape).astype("f8"), requires_grad=True) for shape in ((4, 3), (3, 2)))


def test_gradients_of_arguments():
    compiled = torch.compile(function)
    for seed in range(3):
        (x, w), (u, v) = leaves(seed), leaves(seed)
        a, b = compiled(x, w)
        (a.sum() + 2 * b).backward()
        c, d = function(u, v)
        (c.sum() + 2 * d).backward()
        np.testing.assert_allclose(x.grad.numpy(), u.grad.numpy(), rtol=1e-12)
        np.testing.assert_allclose(w.grad.numpy(), v.grad.numpy(), rtol=1e-12)
    assert compiled.history == []
    assert a.grad_fn.name() == "CompiledBackward"


def test_inside_a_graph():
    compiled = torch.compile(function)
    for _ in range(2):
        (x, w), (u, v) = leaves(), leaves()
        compiled(x.exp(), w * 2)[0].prod().backward()
        function(u.exp(), v * 2)[0].prod().backward()
        np.testing.assert_allclose(x.grad.numpy(), u.grad.numpy(), rtol=1e-10)
        np.testing.assert_allclose(w.grad.numpy(), v.grad.numpy(), rtol=1e-10)
    assert compiled.history == []


def test_second_derivatives():
    compiled = torch.compile(lambda x: (x.sin() * x).sum())
    for _ in range(3):
        x = torch.tensor([0.3, 0.7], dtype=torch.float64, requires_grad=True)
        (g,) = torch.autograd.grad(compiled(x), x, create_graph=True)
        (h,) = torch.autograd.grad(g.sum(), x)
        value = x.detach().numpy()
        np.testing.assert_allclose(h.numpy(), 2 * np.cos(value) - value * np.sin(value), rtol=1e-12)


def test_parameters_of_a_captured_model():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Dropout(0.5), nn.Linear(5, 1))
    compiled = torch.compile(lambda x, y: F.mse_loss(model(x), y))
    x, y = torch.randn(6, 3), torch.randn(6, 1)
    compiled(x, y)
    for _ in range(2):
        state = torch.get_rng_state()
        model.zero_grad()
        compiled(x, y).backward()
        grads = [p.grad.clone() for p in model.parameters()]
        model.zero_grad()
        torch.set_rng_state(state)
        F.mse_loss(model(x), y).backward()
        for p, grad in zip(model.parameters(), grads, strict=True):
            np.testing.assert_allclose(grad.numpy(), p.grad.numpy(), rtol=1e-5, atol=1e-7)
    assert compiled.history == []


def test_a_second_backward_and_a_write_in_between_are_refused():
    compiled = torch.compile(lambda x: (x * x).sum())
    x = torch.ones(3, requires_grad=True)
    compiled(x)
    y = compiled(x)
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()
    y = compiled(x)
    with torch.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()
