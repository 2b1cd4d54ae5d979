"""Training steps to compile, twice the same: one to be compiled, one to stay eager."""

import warnings
from itertools import pairwise

import numpy as np

import jitgrad as torch
from jitgrad import nn, optim
from jitgrad.nn import functional as F


def mlp(sizes=(4, 16, 3), seed=0):
    torch.manual_seed(seed)
    layers = []
    for k, (i, o) in enumerate(pairwise(sizes)):
        layers += [nn.Linear(i, o)] + ([nn.ReLU()] if k < len(sizes) - 2 else [])
    return nn.Sequential(*layers)


def classes(batch=8, width=4, count=3, seed=1):
    rng = np.random.default_rng(seed)
    return torch.tensor(rng.standard_normal((batch, width)).astype("f4")), torch.tensor(rng.integers(0, count, batch))


class Trainer:
    """A model, an optimizer and a step."""

    def __init__(self, make=lambda p: optim.SGD(p, lr=0.1), sizes=(4, 16, 3), loss=F.cross_entropy):
        self.model = model = mlp(sizes)
        self.optimizer = optimizer = make(model.parameters())

        def step(x, y):
            optimizer.zero_grad()
            value = loss(model(x), y)
            value.backward()
            optimizer.step()
            return value

        self.step = step


def assert_same(a, b, tolerance=1e-6):
    """Parameters, gradients and version counters of two models."""
    for p, q in zip(a.parameters(), b.parameters(), strict=True):
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=tolerance, atol=tolerance)
        assert (p.grad is None) == (q.grad is None)
        if p.grad is not None:
            np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=10 * tolerance, atol=tolerance)
        assert p._version == q._version


def quietly(function, *arguments):
    """Call a function whose warnings do not matter here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*arguments)
