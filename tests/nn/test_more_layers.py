"""The less common layers: their values, their words, and torch beside them."""

import numpy as np
import pytest

import jitgrad
from jitgrad import nn
from tests.libraries import lib

__all__ = ["lib"]

LAYERS = {
    "SELU": lambda n: n.SELU(), "Mish": lambda n: n.Mish(), "Hardsigmoid": lambda n: n.Hardsigmoid(), "Hardswish": lambda n: n.Hardswish(),
    "Hardtanh": lambda n: n.Hardtanh(-0.5, 1.5), "ReLU6": lambda n: n.ReLU6(), "CELU": lambda n: n.CELU(2.0),
    "Threshold": lambda n: n.Threshold(0.3, 7.0), "Hardshrink": lambda n: n.Hardshrink(0.3), "Softshrink": lambda n: n.Softshrink(0.3),
    "Tanhshrink": lambda n: n.Tanhshrink(), "Softsign": lambda n: n.Softsign(), "PReLU": lambda n: n.PReLU(4),
    "one slope": lambda n: n.PReLU(init=0.1),
    "GLU": lambda n: n.GLU(1), "Softmin": lambda n: n.Softmin(1), "Softmax2d": lambda n: n.Softmax2d(), "RMSNorm": lambda n: n.RMSNorm(5),
    "RMSNorm of two axes": lambda n: n.RMSNorm((3, 5), 1e-2, False), "GroupNorm": lambda n: n.GroupNorm(2, 4),
    "GroupNorm without": lambda n: n.GroupNorm(4, 4, 1e-2, affine=False), "BatchNorm2d": lambda n: n.BatchNorm2d(4),
    "ZeroPad1d": lambda n: n.ZeroPad1d((2, -1)), "ZeroPad2d": lambda n: n.ZeroPad2d(1), "ZeroPad3d": lambda n: n.ZeroPad3d((0, 1, 2, 0, 0, 1)),
    "ConstantPad1d": lambda n: n.ConstantPad1d(1, 0.5), "ConstantPad2d": lambda n: n.ConstantPad2d((1, 0, -1, 2), 3.0),
    "ConstantPad3d": lambda n: n.ConstantPad3d(-1, 3.0),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_beside_torch(name):
    torch = pytest.importorskip("torch")
    values = np.random.default_rng(0).normal(size=(2, 4, 3, 5))
    found = []
    for package in (jitgrad, torch):
        layer = LAYERS[name](package.nn).double()
        x = package.tensor(values, requires_grad=True)
        out = layer(x)
        weights = package.arange(out.numel(), dtype=package.float64).reshape(out.shape) / 7 - 1
        (out * weights).sum().backward()
        found.append([out.detach(), x.grad, *(p.grad for p in layer.parameters()), repr(layer), list(layer.state_dict())])
    ours, theirs = found
    for a, b in zip(ours, theirs, strict=True):
        if isinstance(a, jitgrad.Tensor):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-7, atol=1e-12)  # torch has a 1/6 of single precision in Hardsigmoid
        else:
            assert a == b


X = [-4.0, -0.25, 0.0, 0.25, 4.0]
VALUES = {
    "Hardsigmoid": [0, 2.75 / 6, 0.5, 3.25 / 6, 1], "Hardtanh": [-0.5, -0.25, 0, 0.25, 1.5], "ReLU6": [0, 0, 0, 0.25, 4],
    "Threshold": [7, 7, 7, 7, 4], "Hardshrink": [-4, 0, 0, 0, 4], "Softshrink": [-3.7, 0, 0, 0, 3.7], "Softsign": [-0.8, -0.2, 0, 0.2, 0.8],
    "one slope": [-0.4, -0.025, 0, 0.25, 4], "ZeroPad1d": [0, 0, -4, -0.25, 0, 0.25], "ConstantPad1d": [0.5, *X, 0.5],
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_values(name):
    assert LAYERS[name](nn)(jitgrad.tensor(X)).tolist() == pytest.approx(VALUES[name])


def test_normalised():
    x = jitgrad.tensor([[1.0, 3.0, 10.0, 30.0]])
    assert nn.GroupNorm(2, 4, eps=0.0)(x).reshape(-1).tolist() == pytest.approx([-1, 1, -1, 1])
    assert nn.RMSNorm(2, eps=0.0)(jitgrad.tensor([1.0, 7.0])).tolist() == pytest.approx([0.2, 1.4])


@pytest.mark.parametrize("bias", [True, False])
def test_bilinear(bias):
    layer = nn.Bilinear(2, 3, 4, bias=bias).double()
    a, b = jitgrad.rand(5, 2, dtype=jitgrad.float64, requires_grad=True), jitgrad.rand(5, 3, dtype=jitgrad.float64, requires_grad=True)
    expected = np.einsum("ni,kij,nj->nk", a.detach().numpy(), layer.weight.detach().numpy(), b.detach().numpy())
    np.testing.assert_allclose(layer(a, b).detach().numpy(), expected + (layer.bias.detach().numpy() if bias else 0))
    assert jitgrad.autograd.gradcheck(layer, (a, b))
    assert max(p.abs().max().item() for p in layer.parameters()) <= 2**-0.5


@pytest.mark.parametrize("log_target", [True, False])
@pytest.mark.parametrize("reduction", ["none", "sum", "batchmean", "mean"])
@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides")
def test_divergence(lib, reduction, log_target):
    target = lib.tensor([[0.25, 0.75], [0.0, 1.0]]).clamp(min=1e-30 if log_target else 0.0)
    x = lib.tensor([[0.5, 0.5], [0.25, 0.75]]).log().requires_grad_()
    loss = lib.nn.KLDivLoss(reduction=reduction, log_target=log_target)(x, target.log() if log_target else target)
    total = 0.25 * np.log(0.5) + 0.75 * np.log(1.5) + np.log(4 / 3)
    assert loss.sum().item() == pytest.approx(total / {"batchmean": 2, "mean": 4}.get(reduction, 1), abs=1e-6)
    loss.sum().backward()
    expected = (-target / {"batchmean": 2, "mean": 4}.get(reduction, 1)).tolist()
    assert [pytest.approx(row, abs=1e-7) for row in expected] == x.grad.tolist()


def test_refused(lib):
    n, ones = lib.nn, lib.ones
    for call, error, words in (
        (lambda: n.Hardtanh(1, 0), AssertionError, r"max_val \(0\) must be greater than min_val \(1\)"),
        (lambda: n.Softmax2d()(ones(2)), ValueError, "Softmax2d: expected input to be 3D or 4D, got 1D instead"),
        (lambda: n.GLU()(ones(3)), RuntimeError, "Halving dimension must be even, but dimension 0 is size 3"),
        (lambda: n.functional.glu(lib.tensor(1.0)), RuntimeError, "glu does not support scalars"),
        (lambda: n.RMSNorm(3)(ones(2)), RuntimeError, r"Given normalized_shape=\[3\], expected input with shape \[\*3\], but got input of size"),
        (lambda: n.functional.rms_norm(ones(2, 3), (3,), ones(2)), RuntimeError, "Expected weight to be of same shape as normalized_shape"),
        (lambda: n.GroupNorm(3, 4), ValueError, r"num_channels \(4\) must be divisible by num_groups \(3\)"),
        (lambda: n.GroupNorm(2, 4)(ones(4)), RuntimeError, "Expected at least 2 dimensions for input tensor but received 1"),
        (lambda: n.functional.group_norm(ones(2, 3), 2), RuntimeError, "Expected number of channels in input to be divisible by num_groups"),
        (lambda: n.functional.group_norm(ones(2, 4), 2, ones(3)), RuntimeError, "Expected weight to be a vector of size equal to the number"),
        (lambda: n.BatchNorm2d(3)(ones(2, 3)), ValueError, r"expected 4D input \(got 2D input\)"),
        (lambda: n.Bilinear(0, 2, 3), ValueError, "in1_features must be > 0, but got"),
        (lambda: n.Bilinear(1, 2, 3)(ones(1, 2), ones(1, 2)), RuntimeError, r"bilinear\(\): input1 size does not match weight size: got 2 but"),
        (lambda: n.functional.pad(ones(2), (1,)), RuntimeError, "Padding length must be divisible by 2"),
        (lambda: n.functional.pad(ones(2), (1, 1, 1, 1)), RuntimeError, "Padding length should be less than or equal to two times the input"),
    ):
        with pytest.raises(error, match=words):
            call()


@pytest.mark.filterwarnings("error")
def test_a_mean_of_a_divergence_is_warned_of(lib):
    with pytest.raises(UserWarning, match="reduction: 'mean' divides the total loss by both the batch size"):
        lib.nn.KLDivLoss()(lib.zeros(1), lib.ones(1))
