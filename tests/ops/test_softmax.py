"""Softmax and its logarithm: overflow, infinities, large logits, axes, dtypes."""

import math

import numpy as np
import pytest

from tests.libraries import lib

__all__ = ["lib"]
INF, NAN = math.inf, math.nan


@pytest.mark.parametrize("dim", [0, 1])
def test_overflow_and_infinities(lib, dim):
    x = lib.tensor([[1000.0, 1000.0, -INF], [-1000.0, 0.0, 1000.0]])
    p = (x if dim else x.t()).softmax(dim)
    assert (p if dim else p.t()).tolist() == [[0.5, 0.5, 0], [0, 0, 1]]
    logs = (x if dim else x.t()).log_softmax(dim)
    assert (logs if dim else logs.t())[1].tolist() == [-2000, -1000, 0]
    for bad in ([INF, 0.0], [-INF, -INF], [NAN, 0.0]):
        assert math.isnan(lib.tensor(bad).softmax(0)[0].item())


def test_large_logits_lose_nothing(lib):
    """An offset common to all logits changes no result by more than its own rounding."""
    x = lib.tensor([[8192.0, 8193.0, 8190.5]])
    wanted = lib.tensor([[0.0, 1.0, -1.5]])
    for dim, turn in ((1, lambda t: t), (0, lambda t: t.t())):
        assert turn(x).log_softmax(dim).tolist() == turn(wanted).log_softmax(dim).tolist()


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_shapes(lib, name):
    call = getattr(lib, name)
    assert call(lib.tensor(3.0), 0).item() == (1 if name == "softmax" else 0)
    assert call(lib.zeros(2, 0), 1).shape == (2, 0)
    assert call(lib.zeros(0, 2), 1).shape == (0, 2)
    x = lib.tensor(np.random.Generator(np.random.PCG64(1)).normal(size=(2, 3, 1500)))
    for dim in (0, 1, 2, -1):
        total = call(x, dim).sum(dim) if name == "softmax" else call(x, dim).exp().sum(dim)
        np.testing.assert_allclose(total.numpy(), 1)


def test_dtypes(lib):
    x = lib.tensor([1, 2])
    assert x.softmax(0, dtype=lib.float64).dtype is lib.float64
    assert lib.tensor([1.0, 2.0], dtype=lib.float16).log_softmax(0).dtype is lib.float16
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        x.softmax(0)
    with pytest.raises(IndexError, match="Dimension out of range"):
        lib.tensor([1.0]).softmax(1)


def test_node_names(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    assert x.softmax(0).grad_fn.name() == "SoftmaxBackward0"
    assert x.log_softmax(0).grad_fn.name() == "LogSoftmaxBackward0"
    y = x.softmax(0)
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
