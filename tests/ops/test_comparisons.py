"""Comparisons and tests: NaN, integers, promotion, closeness, and in-place results."""

import math

import numpy as np
import pytest

import jitgrad
from jitgrad import tensor

INF, NAN = math.inf, math.nan


def test_nan_compares_with_nothing():
    x = tensor([NAN, 1.0])
    assert (x == x).tolist() == [False, True]
    assert (x != x).tolist() == [True, False]
    assert (x < 2).tolist() == (x <= 2).tolist() == [False, True]
    assert (x > 0).tolist() == (x >= 0).tolist() == [False, True]
    assert x.isnan().tolist() == [True, False]


def test_tests_of_floats():
    x = tensor([INF, -INF, NAN, 0.0, -0.0])
    assert x.isinf().tolist() == [True, True, False, False, False]
    assert x.isfinite().tolist() == [False, False, False, True, True]
    assert jitgrad.isposinf(x).tolist() == [True, False, False, False, False]
    assert jitgrad.isneginf(x).tolist() == [False, True, False, False, False]
    assert jitgrad.signbit(x).tolist()[:2] == [False, True]
    assert jitgrad.signbit(x).tolist()[3:] == [False, True]
    assert tensor([1, 2]).isnan().tolist() == [False, False]
    assert tensor([1, 2]).isfinite().tolist() == [True, True]


def test_results_are_bool_and_take_no_gradient():
    x = tensor([1.0, 2.0], requires_grad=True)
    for result in (x == 1, x < x, x.isnan(), x.logical_not(), x.logical_and(x)):
        assert result.dtype is jitgrad.bool
        assert not result.requires_grad


def test_numbers_beyond_the_dtype():
    x = tensor(np.array([1, 255], np.uint8))
    assert (x == 300).tolist() == [False, False]
    assert (x == -1).tolist() == [False, False]
    assert (x < 300).tolist() == [True, True]
    assert (tensor([1, 2]) == 1.5).tolist() == [False, False]
    assert (tensor([2**53 + 1]) == 2**53).tolist() == [False]


def test_what_is_no_operand():
    x = tensor([1.0])
    assert (x == None) is False  # noqa: E711
    assert (x != "a") is True
    with pytest.raises(TypeError, match="'<' not supported"):
        x < "a"
    with pytest.raises(TypeError, match="must be Tensor, not NoneType"):
        x.eq(None)
    with pytest.raises(TypeError, match=r"logical_and\(\): argument 'other'"):
        x.logical_and(1)


def test_truth_values():
    a, b = tensor([0.0, 2.0, NAN, 0.0]), tensor([0, 0, 1, 5])
    assert jitgrad.logical_and(a, b).tolist() == [False, False, True, False]
    assert jitgrad.logical_or(a, b).tolist() == [False, True, True, True]
    assert jitgrad.logical_xor(a, b).tolist() == [False, True, False, True]
    assert a.logical_not().tolist() == [True, False, False, True]


def test_in_place_a_comparison_ends_the_history():
    x = tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    assert y.lt_(4) is y
    assert y.tolist() == [1, 0]
    assert y.dtype is jitgrad.float32
    assert type(y.grad_fn).__name__ == "LtBackward0"
    (y * x).sum().backward()
    assert x.grad.tolist() == [1, 0]


def test_closeness():
    x = tensor([1.0, INF, NAN, 1.0])
    y = tensor([1.0 + 5e-6, INF, NAN, 1.1])
    assert jitgrad.isclose(x, y).tolist() == [True, True, False, False]
    assert jitgrad.isclose(x, y, equal_nan=True).tolist() == [True, True, True, False]
    assert not jitgrad.allclose(x, y)
    assert jitgrad.allclose(x[:2], y[:2])
    assert jitgrad.isclose(tensor([INF]), tensor([1.0]), rtol=INF).tolist() == [False]
    assert jitgrad.isclose(tensor([100, 100]), tensor([101, 100]), rtol=0.02).tolist() == [True, True]
    assert jitgrad.isclose(tensor([100, 100]), tensor([101, 100])).tolist() == [False, True]
    with pytest.raises(RuntimeError, match="Float did not match Double"):
        jitgrad.isclose(x, y.to(jitgrad.float64))
    with pytest.raises(RuntimeError, match="rtol must be greater than or equal to zero, but got -1"):
        jitgrad.allclose(x, y, rtol=-1)


def test_equal_looks_at_shape_and_elements():
    assert jitgrad.equal(tensor([1.0, 2.0]), tensor([1.0, 2.0]))
    assert jitgrad.equal(tensor([1.0, 2.0]), tensor([1, 2]))
    assert not jitgrad.equal(tensor([1.0, 2.0]), tensor([[1.0, 2.0]]))
    assert not jitgrad.equal(tensor([NAN]), tensor([NAN]))
    with pytest.raises(TypeError, match="must be Tensor, not int"):
        jitgrad.equal(tensor([1.0]), 1)
