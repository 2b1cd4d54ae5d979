"""Activations: overflow, kinks, arguments, in-place functions."""

import math

import numpy as np
import pytest

import jitgrad
from jitgrad import tensor

INF, NAN = math.inf, math.nan


def both(call, points, kind=np.float32):
    """Values and gradients."""
    x = tensor(np.array(points, kind), requires_grad=True)
    y = call(x)
    y.sum().backward()
    return y.tolist(), x.grad.tolist()


def test_softplus_and_logsigmoid_do_not_overflow():
    values, grads = both(jitgrad.softplus, [-1000, 0, 20, 20.5, 1000])
    assert values == pytest.approx([0, math.log(2), 20, 20.5, 1000])
    assert grads == pytest.approx([0, 0.5, 1, 1, 1])
    values, grads = both(lambda x: jitgrad.softplus(x, 5), [18, 100])
    assert (values, grads) == ([18, 100], [1, 1])
    values, grads = both(jitgrad.logsigmoid, [-1000, 0, 1000])
    assert values == pytest.approx([-1000, -math.log(2), 0])
    assert grads == [1, 0.5, 0]


def test_sigmoid_and_tanh_at_the_ends():
    assert both(jitgrad.sigmoid, [-INF, -1000, 1000, INF]) == ([0, 0, 1, 1], [0, 0, 0, 0])
    assert both(jitgrad.tanh, [-INF, -1000, 1000, INF]) == ([-1, -1, 1, 1], [0, 0, 0, 0])


@pytest.mark.parametrize("name", ["relu", "leaky_relu", "elu", "selu", "gelu", "silu", "mish", "softplus", "hardtanh", "hardswish", "relu6"])
def test_nan_stays(name):
    call = getattr(jitgrad, name)
    assert np.isnan(call(tensor([NAN])).item())
    assert np.isnan(call(tensor(np.array([NAN]))).item())


def test_kinks():
    assert both(jitgrad.relu, [-1, 0, 1]) == ([0, 0, 1], [0, 0, 1])
    assert both(jitgrad.hardtanh, [-2, -1, 0, 1, 2]) == ([-1, -1, 0, 1, 1], [0, 0, 1, 0, 0])
    assert both(jitgrad.relu6, [0, 3, 6]) == ([0, 3, 6], [0, 1, 0])
    assert both(jitgrad.hardswish, [-3, 0, 3])[1] == pytest.approx([0, 0.5, 1])
    assert both(lambda x: jitgrad.leaky_relu(x, 0.5), [-2, 0, 2]) == ([-1, 0, 2], [0.5, 0.5, 1])
    assert both(jitgrad.hardshrink, [-0.5, 0.5, 1]) == ([0, 0, 1], [0, 0, 1])
    assert both(lambda x: jitgrad.threshold(x, 1, 7), [0, 1, 2]) == ([7, 7, 2], [0, 0, 1])


def test_smooth_units_far_out():
    values, grads = both(jitgrad.mish, [-1000, 1000])
    assert (values, grads) == ([0, 1000], [0, 1])
    values, grads = both(jitgrad.gelu, [-100, 100])
    assert (values, grads) == ([0, 100], [0, 1])
    values, grads = both(lambda x: jitgrad.elu(x, 2.0), [-1000, 1000])
    assert (values, grads) == ([-2, 1000], [0, 1])


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: jitgrad.gelu(tensor([1.0]), approximate="fast"), RuntimeError, "approximate argument must be either none or tanh"),
        (lambda: jitgrad.gelu(tensor([1])), NotImplementedError, "not implemented for 'Long'"),
        (lambda: jitgrad.relu(tensor([True])), RuntimeError, "Boolean inputs not supported for relu"),
        (lambda: jitgrad.softplus(tensor([1.0]), "a"), TypeError, "argument 'beta' must be Number, not str"),
        (lambda: jitgrad.celu(tensor([1.0]), 0), RuntimeError, "alpha cannot be 0 for CELU"),
        (lambda: jitgrad.softshrink(tensor([1.0]), -1.0), RuntimeError, "lambda must be in range"),
        (lambda: jitgrad.hardtanh(tensor(np.array([1], np.uint8))), RuntimeError, "unsigned type with negative limits"),
        (lambda: jitgrad.prelu(tensor([[1.0, 2.0]]), tensor([1.0, 2.0, 3.0])), RuntimeError, "Mismatch of parameter numbers"),
    ],
)
def test_refusals(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


def test_in_place_functions():
    x = tensor([-1.0, 2.0], requires_grad=True)
    for call in (jitgrad.relu_, jitgrad.leaky_relu_, jitgrad.elu_, jitgrad.silu_):
        y = x * 1
        assert call(y) is y
        x.grad = None
        y.sum().backward()
        assert x.grad[1].item() > 0.9
    y = x * 1
    jitgrad.leaky_relu_(y, 0.5)
    assert y.tolist() == [-0.5, 2]
    assert not hasattr(y, "leaky_relu_")
    assert not hasattr(y, "gelu")


def test_prelu_has_a_weight_for_each_channel():
    x = tensor([[-1.0, -2.0], [3.0, -4.0]], requires_grad=True)
    weight = tensor([0.5, 0.25], requires_grad=True)
    result = jitgrad.prelu(x, weight)
    assert result.tolist() == [[-0.5, -0.5], [3, -1]]
    result.sum().backward()
    assert weight.grad.tolist() == [-1, -6]
    assert x.grad.tolist() == [[0.5, 0.25], [1, 0.25]]
