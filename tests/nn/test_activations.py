"""Activations of `nn.functional` beside torch's: values, gradients, in place, errors."""

import inspect

import pytest

import jitgrad

torch = pytest.importorskip("torch")

POINTS = [-7.0, -3.0, -1.5, -1.0, -0.5, -0.2, 0.0, 0.3, 0.5, 1.0, 2.0, 3.0, 6.0, 7.0]
CALLS = {
    "relu": {}, "relu6": {}, "selu": {}, "mish": {}, "silu": {}, "hardsigmoid": {}, "hardswish": {},
    "celu": {"alpha": 2.0}, "elu": {"alpha": 0.5}, "leaky_relu": {"negative_slope": 0.2}, "hardtanh": {"min_val": -2.0, "max_val": 0.5},
    "threshold": {"threshold": 0.4, "value": -3.0}, "hardshrink": {"lambd": 0.4}, "softshrink": {"lambd": 0.4},
    "softsign": {}, "tanhshrink": {}, "softmin": {"dim": 0},
}  # fmt: skip
IN_PLACE = ["relu", "relu6", "selu", "mish", "silu", "hardsigmoid", "hardswish", "celu", "elu", "leaky_relu", "hardtanh", "threshold"]


def result(lib, name, inplace):
    x = lib.tensor(POINTS, dtype=lib.float64, requires_grad=True)
    h = x * 1
    y = getattr(lib.nn.functional, name)(h, **CALLS[name], **({"inplace": True} if inplace else {}))
    assert not inplace or y is h
    y.backward(lib.arange(1.0, 1 + len(POINTS), dtype=lib.float64))
    return y.tolist(), x.grad.tolist()


@pytest.mark.parametrize(("name", "inplace"), [*[(name, False) for name in CALLS], *[(name, True) for name in IN_PLACE]])
def test_values_and_gradients(name, inplace):
    for ours, theirs in zip(result(jitgrad, name, inplace), result(torch, name, inplace), strict=True):
        assert ours == pytest.approx(theirs, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("name", CALLS)
def test_arguments(name):
    theirs = getattr(torch.nn.functional, name)
    if not inspect.isfunction(theirs):
        pytest.skip("its arguments can't be asked for")
    ours = inspect.signature(getattr(jitgrad.nn.functional, name)).parameters
    expected = inspect.signature(theirs).parameters
    assert [(p.name, p.default) for p in ours.values()] == [(p.name, p.default) for p in expected.values()]


@pytest.mark.parametrize("name", ["relu_", "elu_", "selu_", "celu_", "leaky_relu_", "hardtanh_", "threshold_"])
def test_in_place_by_name(name):
    found = []
    for lib in (jitgrad, torch):
        x = lib.tensor(POINTS)
        assert getattr(lib.nn.functional, name)(x, **CALLS[name[:-1]]) is x
        found.append(x.tolist())
    assert found[0] == pytest.approx(found[1], rel=1e-6)


def test_prelu():
    grads = []
    for lib in (jitgrad, torch):
        x = lib.tensor([[-1.0, 2.0], [-3.0, -4.0]], requires_grad=True)
        w = lib.tensor([0.1, 0.2], requires_grad=True)
        lib.nn.functional.prelu(x, w).sum().backward()
        grads.append((x.grad.tolist(), w.grad.tolist()))
    assert grads[0] == grads[1]


@pytest.mark.parametrize("lib", [jitgrad, torch])
def test_crossed_bounds(lib):
    with pytest.raises(ValueError, match="min_val cannot be greater than max_val"):
        lib.nn.functional.hardtanh(lib.ones(1), 1.0, -1.0)
