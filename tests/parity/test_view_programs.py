"""Random programs of views and in-place writes, run by both packages: values, gradients, gradients of gradients."""

import random

import numpy as np
import pytest

import jitgrad

torch = pytest.importorskip("torch")
SHAPES = [(2, 3), (4,), (2, 2, 2), (3, 2)]


class Program:
    """One random program; the same seed makes the same choices in either package."""

    def __init__(self, lib, seed):
        self.lib, self.rng = lib, random.Random(seed)
        self.leaves = [self.data(self.rng.choice(SHAPES)).requires_grad_() for _ in range(2)]
        self.pool = [self.leaves[0] * 1.5]
        if self.rng.random() < 0.5:
            self.pool.append(self.data((2, 3)))

    def data(self, shape):
        return self.lib.tensor(np.array([self.rng.uniform(-1, 1) for _ in range(int(np.prod(shape)))]).reshape(shape))

    def view(self, t):
        rng, what = self.rng, self.rng.randrange(8)
        dim = rng.randrange(t.ndim) if t.ndim else 0
        if what == 0 and t.ndim and t.shape[dim]:
            return t.select(dim, rng.randrange(t.shape[dim]))
        if what == 1 and t.ndim:
            start = rng.randint(0, t.shape[dim])
            return t[(slice(None),) * dim + (slice(start, rng.randint(start, t.shape[dim]), rng.choice([1, 2])),)]
        if what == 2 and t.ndim > 1:
            return t.transpose(*rng.sample(range(t.ndim), 2))
        if what == 3:
            return t.unsqueeze(rng.randint(0, t.ndim))
        if what == 4 and t.ndim > 1:
            return t.diagonal(rng.choice([0, 1, -1]))
        if what == 5:
            return t.squeeze()
        if what == 6 and t.ndim and t.shape[dim]:
            return rng.choice(t.unbind(dim))
        return t.view_as(t)

    def write(self, t):
        rng, what = self.rng, self.rng.randrange(9)
        number = rng.choice(self.leaves).reshape(-1)[0]
        if what == 0:
            return t.mul_(number)
        if what == 1:
            return t.add_(self.data(t.shape))
        if what == 2:
            return t.copy_(rng.choice([number, self.data(t.shape)]))
        if what == 3:
            return t.zero_()
        if what == 4:
            return t.exp_()
        if what == 5:
            return t.mul_(t.clone())
        if t.ndim and t.shape[0]:
            index = rng.randrange(t.shape[0])
            t[index if what == 6 else [index]] = number
        return t

    def run(self):
        for _ in range(self.rng.randint(3, 9)):
            t = self.rng.choice(self.pool)
            if self.rng.random() < 0.5:
                self.pool.append(self.view(t))
            else:
                self.write(t)
        loss = sum((t.sin() * 1.3).sum() for t in self.pool)
        grads = self.lib.autograd.grad(loss, self.leaves, create_graph=True, allow_unused=True)
        total = sum((g * g).sum() for g in grads if g is not None)
        second = self.lib.autograd.grad(total, self.leaves, allow_unused=True) if total.requires_grad else (None, None)
        return [*self.pool, *(self.lib.zeros(()) if g is None else g for g in (*grads, *second))]


def outcome(lib, seed):
    try:
        return [t.detach().numpy() for t in Program(lib, seed).run()]
    except RuntimeError as error:
        return str(error)


@pytest.mark.parametrize("seed", range(80))
def test_random_program(seed):
    right, found = outcome(torch, seed), outcome(jitgrad, seed)
    if isinstance(right, str):  # writes to several views at once, and the like
        if not isinstance(found, str):
            pytest.skip("torch loses track of a view of a leaf that was written to: " + right[:60])
        assert found[:24] == right[:24]
        return
    assert not isinstance(found, str), found
    for a, b in zip(found, right, strict=True):
        assert a.shape == b.shape or not (a.any() or b.any())
        assert np.allclose(a, b, rtol=1e-6, atol=1e-8)
