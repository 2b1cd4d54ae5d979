"""Layer and batch normalisation: statistics, running moments, parameters left out, arguments."""

import numpy as np
import pytest

from tests.libraries import lib

__all__ = ["lib"]
VALUES = np.random.Generator(np.random.PCG64(2)).normal(size=(6, 4, 5)).astype(np.float32)


def test_node_names(lib):
    F = lib.nn.functional
    x = lib.tensor(VALUES, requires_grad=True)
    assert F.layer_norm(x, (5,)).grad_fn.name() == "NativeLayerNormBackward0"
    assert F.batch_norm(x, None, None, training=True).grad_fn.name() == "NativeBatchNormBackward0"


@pytest.mark.parametrize("shape", [(5,), (4, 5), (6, 4, 5)])
def test_rows_have_mean_0_and_variance_1(lib, shape):
    x = lib.tensor(VALUES * 3 + 100)
    found = lib.nn.functional.layer_norm(x, shape).numpy()
    axes = tuple(range(3 - len(shape), 3))
    np.testing.assert_allclose(found.mean(axes), 0, atol=1e-4)
    np.testing.assert_allclose(found.var(axes), 1, rtol=1e-3)


@pytest.mark.parametrize("channels_last", [False, True])
def test_running_moments(lib, channels_last):
    F = lib.nn.functional
    values = VALUES.transpose(0, 2, 1).reshape(30, 4) if channels_last else VALUES
    mean, variance = lib.zeros(4), lib.ones(4)
    found = F.batch_norm(lib.tensor(np.ascontiguousarray(values)), mean, variance, training=True, momentum=0.25)
    axes = (0,) if channels_last else (0, 2)
    np.testing.assert_allclose(found.numpy().mean(axes), 0, atol=1e-5)
    np.testing.assert_allclose(mean.numpy(), 0.25 * values.mean(axes), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(variance.numpy(), 0.75 + 0.25 * values.var(axes, ddof=1), rtol=1e-5)
    before = mean.tolist()
    used = F.batch_norm(lib.tensor(np.ascontiguousarray(values)), mean, variance, training=False)
    shape = (1, 4) if channels_last else (1, 4, 1)
    wanted = (values - mean.numpy().reshape(shape)) / np.sqrt(variance.numpy().reshape(shape) + 1e-5)
    np.testing.assert_allclose(used.numpy(), wanted, rtol=1e-4, atol=1e-5)
    assert mean.tolist() == before


def test_nothing_moves_no_moment(lib):
    mean, variance = lib.zeros(4), lib.ones(4)
    assert lib.batch_norm(lib.zeros(0, 4), None, None, mean, variance, True, 0.1, 1e-5, False).shape == (0, 4)
    assert mean.tolist() == [0, 0, 0, 0]
    assert lib.nn.functional.layer_norm(lib.zeros(0, 4), (4,)).shape == (0, 4)


@pytest.mark.parametrize("given", [(False, False), (True, False), (False, True), (True, True)])
def test_parameters_may_be_left_out(lib, given):
    F = lib.nn.functional
    x = lib.tensor(VALUES)
    weight, bias = (lib.full((5,), value, requires_grad=True) if wanted else None for value, wanted in zip((2.0, 3.0), given, strict=True))
    plain, found = F.layer_norm(x, (5,)), F.layer_norm(x, (5,), weight, bias)
    np.testing.assert_allclose(found.detach().numpy(), plain.numpy() * (2 if given[0] else 1) + (3 if given[1] else 0), rtol=1e-5, atol=1e-5)
    if any(given):
        found.sum().backward()
        if given[0]:
            np.testing.assert_allclose(weight.grad.numpy(), plain.numpy().sum((0, 1)), rtol=1e-4, atol=1e-4)
        if given[1]:
            assert bias.grad.tolist() == [24] * 5


def test_float16(lib):
    x = lib.tensor(VALUES, dtype=lib.float16, requires_grad=True)
    y = lib.nn.functional.layer_norm(x, (5,))
    y.sum().backward()
    assert (y.dtype, x.grad.dtype) == (lib.float16, lib.float16)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda F, t: F.layer_norm(t.ones(2, 3), (2,)), "Given normalized_shape="),
        (lambda F, t: F.layer_norm(t.ones(2, 3), (3,), t.ones(2)), "Expected weight to be of same shape as normalized_shape"),
        (lambda F, t: F.layer_norm(t.ones(2, 3), ()), "Expected normalized_shape to be at least 1-dimensional"),
        (lambda F, t: F.layer_norm(t.ones(2, 3).long(), (3,)), "not implemented for 'Long'"),
        (lambda F, t: F.batch_norm(t.ones(2, 3), t.ones(4), t.ones(4)), "running_mean should contain 3 elements not 4"),
        (lambda F, t: F.batch_norm(t.ones(2, 3), None, None, t.ones(5), training=True), "weight should contain 3 elements not 5"),
        (lambda F, t: F.batch_norm(t.ones(2, 3), None, None), "running_mean"),
    ],
)
def test_refusals(lib, call, words):
    with pytest.raises(RuntimeError, match=words):
        call(lib.nn.functional, lib)
