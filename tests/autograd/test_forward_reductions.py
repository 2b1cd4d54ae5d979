"""Tangents of reductions: one gradient by ones, which is the whole Jacobian where each element has a part in one result only."""

import math

import pytest

import jitgrad
from jitgrad.autograd import forward_ad
from jitgrad.func import jvp

REDUCTIONS = {
    "logsumexp": lambda x: x.logsumexp(1),
    "norm": lambda x: x.norm(),
    "norms": lambda x: x.norm(dim=0, keepdim=True),
    "var": lambda x: x.var((0, 1), keepdim=True),
    "std": lambda x: x.std(0),
    "prod": lambda x: x.prod(),
    "products": lambda x: x.prod(1, keepdim=True),
    "amax": lambda x: x.amax((0, 1)),
    "max": lambda x: x.max(),
    "nansum": lambda x: x.nansum(1),
    "det": lambda x: x[:, :2].det(),
    "cross entropy": lambda x: jitgrad.nn.functional.cross_entropy(x, jitgrad.tensor([2, 0])),
    "squared error": lambda x: jitgrad.nn.functional.mse_loss(x, x * x),
}


def at(*values):
    return jitgrad.tensor([list(values[:3]), list(values[3:])], dtype=jitgrad.float64)


X, T = at(0.5, 2.0, -1.0, 1.5, 0.25, 3.0), at(1.0, 0.0, -2.0, 0.5, 3.0, 0.25)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_tangent_is_the_product_with_the_gradient(name):
    function = REDUCTIONS[name]
    value, tangent = jvp(function, (X,), (T,))
    x = X.clone().requires_grad_()
    y = function(x)
    assert value.tolist() == y.tolist()
    rows = [jitgrad.autograd.grad(entry, x, retain_graph=True)[0] for entry in y.flatten()]
    assert tangent.flatten().tolist() == pytest.approx([(row * T).sum().item() for row in rows])


@pytest.mark.parametrize("name", ["logsumexp", "norm", "var", "prod", "cross entropy"])
def test_the_tangent_has_derivatives_too(name):
    function = REDUCTIONS[name]
    x, t = X.clone().requires_grad_(), T.clone().requires_grad_()
    with forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(function(forward_ad.make_dual(x, t))).tangent
    by_x, by_t = jitgrad.autograd.grad(tangent.sum(), (x, t))
    (first,) = jitgrad.autograd.grad(function(x).sum(), x, create_graph=True)
    (second,) = jitgrad.autograd.grad(first, x, T)
    assert by_x.flatten().tolist() == pytest.approx(second.flatten().tolist())
    assert by_t.flatten().tolist() == pytest.approx(first.flatten().tolist())
    nested = jvp(lambda x: jvp(function, (x,), (T,))[1], (X,), (T,))[1]
    assert nested.sum().item() == pytest.approx((second * T).sum().item())


def test_a_direction_of_zero_where_there_is_no_derivative():
    x = jitgrad.tensor([math.inf, 4.0])
    one, other = jitgrad.tensor([1.0, 0.0]), jitgrad.tensor([0.0, 1.0])
    error = jitgrad.nn.MSELoss()
    for function, there in ((jitgrad.norm, 0.0), (lambda x: x.logsumexp(0), 0.0), (lambda x: error(x, jitgrad.ones(2)), 3.0)):
        assert jvp(function, (x,), (other,))[1].item() == there
        assert not math.isfinite(jvp(function, (x,), (one,))[1].item())


def test_nothing_is_recorded_without_need():
    x = X.clone().requires_grad_()
    with jitgrad.no_grad(), forward_ad.dual_level():
        y, tangent = forward_ad.unpack_dual(forward_ad.make_dual(x, T).logsumexp(0))
        assert not y.requires_grad
        assert not tangent.requires_grad
    with forward_ad.dual_level():
        y, tangent = forward_ad.unpack_dual(forward_ad.make_dual(X, T).logsumexp(0))
        assert not y.requires_grad
        assert not tangent.requires_grad


def test_the_backward_is_run_once(monkeypatch):
    """Not recorded and transposed once more, as for other ops."""
    calls = []
    monkeypatch.setattr(jitgrad._tensor.dual_rules, "pulled_twice", lambda *args: calls.append(args))
    tangent = jvp(lambda x: x.var(), (X,), (T,))[1]
    assert calls == []
    assert tangent.shape == ()
