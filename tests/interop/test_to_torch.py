"""Ops exported to torch: values, gradients, higher orders, checks of torch's own gradcheck."""
# ruff: noqa: PLW0108  (a lambda is a Python function, which what it calls is not)

import gc
import weakref

import numpy as np
import pytest

from jitgrad.autograd.kernels import jit_function
from jitgrad.interop import to_torch
from tests.kernels_user.cases import make_product, make_scan
from tests.kernels_user.test_elementwise import bump, polar, softclip
from tests.kernels_user.test_jit_function import make_scale

torch = pytest.importorskip("torch")


def leaf(*shape, seed=0, kind=np.float64):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape).astype(kind)).requires_grad_()


def test_values_and_gradients_of_a_jit_function():
    x = leaf(5)
    y = to_torch(make_scan())(x, 0.5)
    want = torch.stack([sum(0.5 ** (i - j) * x[j] for j in range(i + 1)) for i in range(5)])
    torch.testing.assert_close(y, want)
    (g,) = torch.autograd.grad((y * y).sum(), x)
    (h,) = torch.autograd.grad((want * want).sum(), x)
    torch.testing.assert_close(g, h)


def test_torchs_own_gradcheck():
    assert torch.autograd.gradcheck(to_torch(make_product()), (leaf(2, 3), leaf(2, 3, seed=1)))
    assert torch.autograd.gradcheck(to_torch(bump), (leaf(2, 3), leaf(3, seed=1)))
    assert torch.autograd.gradgradcheck(to_torch(bump), (leaf(2), leaf(2, seed=1)))
    assert torch.autograd.gradgradcheck(lambda r, phi: to_torch(polar)(r, phi)[:2], (leaf(2), leaf(2, seed=1)))


def test_third_derivative():
    x = leaf(1)
    value, want = to_torch(bump)(x, 2.0), torch.exp(-x * x) * 2.0 + 8.0
    for _ in range(3):
        (value,) = torch.autograd.grad(value.sum(), x, create_graph=True)
        (want,) = torch.autograd.grad(want.sum(), x, create_graph=True)
    torch.testing.assert_close(value, want)


def test_keyword_arguments_and_float32():
    x = leaf(4, kind=np.float32)
    y = to_torch(softclip)(x, width=0.5)
    assert y.dtype is torch.float32
    torch.testing.assert_close(y, torch.where(x.abs() < 0.5, x, 0.5 * torch.tanh(x / 0.5)))
    y.sum().backward()
    assert x.grad.dtype is torch.float32


def test_layouts_partial_needs_and_unused_outputs():
    base = leaf(3, 4)
    w = leaf(4, 3, seed=1).detach()
    product = to_torch(make_product())
    product(base.t(), w).sum().backward()
    torch.testing.assert_close(base.grad, w.t())
    r, phi = leaf(3), leaf(3, seed=1)
    _, y, far = to_torch(polar)(r, phi)
    assert not far.requires_grad
    y.sum().backward()
    torch.testing.assert_close(r.grad, torch.sin(phi.detach()))


@pytest.mark.parametrize("which", ["input", "output"])
def test_a_write_in_torch_is_noticed(which):
    x = leaf(3) * 1.0
    y = to_torch(jit_function(lambda x: np.exp(x), lambda grad, x, y: grad * y, name="myexp"))(x)
    (x if which == "input" else y).mul_(2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_refusals():
    with pytest.raises(TypeError, match=r"scale_ writes into its inputs \(x\)"):
        to_torch(make_scale())
    scan = to_torch(make_scan())
    x = leaf(3)
    (g,) = torch.autograd.grad(scan(x, 0.5).sum(), x)
    with pytest.raises(RuntimeError, match="scan can't be differentiated twice"):
        (g,) = torch.autograd.grad((scan(x, 0.5) * x).sum(), x, create_graph=True)
        torch.autograd.grad(g.sum(), x)


def test_no_graph_is_kept_alive():
    x = leaf(3)
    y = to_torch(make_scan())(x, 0.5)
    y.sum().backward()
    node = weakref.ref(y.grad_fn)
    del y
    gc.collect()
    assert node() is None
