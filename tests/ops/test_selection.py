"""Choices: where, clamps, extrema, fills, interpolation."""

import math

import numpy as np
import pytest

import jitgrad
from jitgrad import tensor

INF, NAN = math.inf, math.nan
MASK = tensor([True, False, True])
F = tensor([1.0, 2.0, 3.0])


def gradient(call, *arrays):
    inputs = [tensor(np.array(a, float), requires_grad=True) for a in arrays]
    call(*inputs).sum().backward()
    return [x.grad.tolist() for x in inputs]


# ---------------------------------------------------------------- where
def test_where_promotes_and_takes_numbers():
    assert jitgrad.where(MASK, 1, 2).tolist() == [1, 2, 1]
    assert jitgrad.where(MASK, 1, 2).dtype is jitgrad.int64
    assert jitgrad.where(MASK, 1.0, 2).dtype is jitgrad.float32
    assert jitgrad.where(MASK, F, F.to(jitgrad.float64)).dtype is jitgrad.float64
    assert jitgrad.where(MASK, tensor([1, 2, 3]), 2.5).tolist() == [1, 2.5, 3]
    assert F.where(MASK, 0.0).tolist() == [1, 0, 3]
    assert jitgrad.where(MASK, True, False).dtype is jitgrad.bool
    assert jitgrad.where(tensor(np.array([1, 0], np.uint8)), 1.0, 2.0).tolist() == [1, 2]


def test_where_broadcasts_its_condition():
    x = tensor([[1.0], [2.0]], requires_grad=True)
    result = jitgrad.where(MASK, x, 0.0)
    assert result.tolist() == [[1, 0, 1], [2, 0, 2]]
    result.sum().backward()
    assert x.grad.tolist() == [[2], [2]]


def test_where_refuses():
    with pytest.raises(RuntimeError, match="where expected condition to be a boolean tensor, but got a tensor with dtype Float"):
        jitgrad.where(F, F, F)
    with pytest.raises(TypeError, match="invalid combination of arguments"):
        jitgrad.where(MASK, F)
    with pytest.raises(RuntimeError, match="value cannot be converted to type uint8_t without overflow"):
        jitgrad.where(MASK, tensor(np.array([1, 2, 3], np.uint8)), 300)


# ---------------------------------------------------------------- clamps
def test_clamps():
    x = tensor([-INF, -1.0, 0.5, 2.0, INF, NAN])
    np.testing.assert_array_equal(x.clamp(0, 1).numpy(), [0, 0, 0.5, 1, 1, NAN])
    np.testing.assert_array_equal(x.clamp(min=0).numpy(), [0, 0, 0.5, 2, INF, NAN])
    np.testing.assert_array_equal(x.clamp(max=0).numpy(), [-INF, -1, 0, 0, 0, NAN])
    np.testing.assert_array_equal(x.clamp(2, 1).numpy(), [1, 1, 1, 1, 1, NAN])
    assert np.isnan(x.clamp(NAN, 1).numpy()).all()
    assert tensor([1, 5]).clamp(0, 3).tolist() == [1, 3]
    assert tensor([1, 5]).clamp(0.5, 3).dtype is jitgrad.float32
    assert jitgrad.clip(F, 1.5, 2.5).tolist() == [1.5, 2, 2.5]


def test_the_gradient_of_a_clamp_passes_at_its_bounds():
    points = [-1.0, 0.0, 0.5, 1.0, 2.0]
    assert gradient(lambda x: x.clamp(0, 1), points) == [[0, 1, 1, 1, 0]]
    assert gradient(lambda x: x.clamp(min=0), points) == [[0, 1, 1, 1, 1]]
    assert gradient(lambda x: x.clamp_max(1), points) == [[1, 1, 1, 1, 0]]
    zeros, ones = [0.0] * 5, [1.0] * 5
    assert gradient(lambda x, lo, hi: x.clamp(lo, hi), points, zeros, ones) == [[0, 1, 1, 1, 0], [1, 0, 0, 0, 0], [0, 0, 0, 0, 1]]
    assert gradient(lambda x, lo: x.clamp_min(lo), points, zeros) == [[0, 1, 1, 1, 1], [1, 0, 0, 0, 0]]


def test_clamp_refuses():
    with pytest.raises(RuntimeError, match="At least one of 'min' or 'max' must not be None"):
        F.clamp()
    with pytest.raises(TypeError, match="invalid combination of arguments"):
        F.clamp(min=0, max=F)
    with pytest.raises(RuntimeError, match="without overflow"):
        tensor(np.array([1], np.uint8)).clamp(0, 300)


# ---------------------------------------------------------------- extrema
def test_ties_share_the_gradient():
    x, y = [1.0, 2.0, 3.0], [2.0, 2.0, 2.0]
    assert gradient(jitgrad.maximum, x, y) == [[0, 0.5, 1], [1, 0.5, 0]]
    assert gradient(jitgrad.minimum, x, y) == [[1, 0.5, 0], [0, 0.5, 1]]
    assert gradient(jitgrad.fmax, x, y) == [[0, 1, 1], [1, 0, 0]]


def test_extrema_and_nan():
    x, y = tensor([NAN, 1.0, NAN]), tensor([1.0, NAN, NAN])
    assert jitgrad.maximum(x, y).isnan().tolist() == [True, True, True]
    assert jitgrad.minimum(x, y).isnan().tolist() == [True, True, True]
    np.testing.assert_array_equal(jitgrad.fmax(x, y).numpy(), [1, 1, NAN])
    np.testing.assert_array_equal(jitgrad.fmin(x, y).numpy(), [1, 1, NAN])
    with pytest.raises(TypeError, match="must be Tensor, not int"):
        jitgrad.maximum(F, 2)


# ---------------------------------------------------------------- fills
def test_masked_fill():
    assert F.masked_fill(MASK, 0).tolist() == [0, 2, 0]
    assert tensor([1, 2, 3]).masked_fill(MASK, 2.9).tolist() == [2, 2, 2]
    assert tensor([1, 2, 3]).masked_fill(MASK, 2.9).dtype is jitgrad.int64
    assert F.to(jitgrad.float64).masked_fill(MASK, tensor(5.0)).dtype is jitgrad.float64
    value = tensor(7.0, requires_grad=True)
    x = tensor([1.0, 2.0, 3.0], requires_grad=True)
    result = x.masked_fill(MASK, value)
    assert type(result.grad_fn).__name__ == "MaskedFillBackward1"
    result.sum().backward()
    assert value.grad.item() == 2
    assert x.grad.tolist() == [0, 1, 0]
    assert type(x.masked_fill(MASK, 1.0).grad_fn).__name__ == "MaskedFillBackward0"


def test_masked_fill_refuses():
    with pytest.raises(RuntimeError, match="masked_fill_ only supports boolean masks, but got mask with dtype long int"):
        F.masked_fill(tensor([1, 0, 1]), 0)
    with pytest.raises(RuntimeError, match=r"0-dimensional value tensor, but got tensor with 1 dimension\(s\)"):
        F.masked_fill(MASK, F)
    with pytest.raises(RuntimeError, match=r"output with shape \[1\] doesn't match the broadcast shape \[3\]"):
        F[:1].clone().masked_fill_(MASK, 0)


def test_fills_in_place():
    x = tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    y.fill_(3)
    assert type(y.grad_fn).__name__ == "FillBackward2"
    y.sum().backward()
    assert x.grad.tolist() == [0, 0]
    z = x * 1
    z.zero_()
    assert type(z.grad_fn).__name__ == "ZeroBackward0"
    value = tensor(2.0, requires_grad=True)
    v = x * 1
    v.fill_(value)
    v.sum().backward()
    assert value.grad.item() == 2
    assert type(v.grad_fn).__name__ == "FillBackward3"
    plain = tensor([1.0, 2.0])
    for number in (4, 5):
        assert plain.fill_(number).tolist() == [number, number]
    assert plain._version == 2
    assert jitgrad.fill(plain, 1).tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="0-dimension value tensor"):
        plain.fill_(plain)
    with pytest.raises(RuntimeError, match="without overflow"):
        tensor(np.array([1], np.uint8)).fill_(300)


def test_nan_to_num():
    x = tensor([NAN, INF, -INF, 1.0])
    limit = float(np.finfo(np.float32).max)
    assert x.nan_to_num().tolist() == [0, limit, -limit, 1]
    assert x.nan_to_num(1.0, 2.0, 3.0).tolist() == [1, 2, 3, 1]
    assert gradient(lambda x: x.nan_to_num(), [NAN, INF, 1.0]) == [[0, 0, 1]]


# ---------------------------------------------------------------- between two
def test_lerp_is_exact_at_both_ends():
    start, end = tensor([0.1, 1e8]), tensor([0.7, 1.0])
    assert start.lerp(end, 0.0).tolist() == start.tolist()
    assert start.lerp(end, 1.0).tolist() == end.tolist()
    assert gradient(lambda x, y, w: x.lerp(y, w), [1.0, 2.0], [3.0, 5.0], [0.25, 0.75]) == [[0.75, 0.25], [0.25, 0.75], [2, 3]]
    with pytest.raises(RuntimeError, match="expected dtype float for `end` but got dtype double"):
        start.lerp(end.to(jitgrad.float64), 0.5)


def test_heaviside():
    x = tensor([-1.0, 0.0, 2.0, NAN])
    assert jitgrad.heaviside(x, tensor([0.5])).tolist()[:3] == [0, 0.5, 1]
