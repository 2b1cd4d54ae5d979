"""Both modes mixed, beside torch's."""

import pytest

import jitgrad
from tests.forward import QUIET, tangent

pytestmark = QUIET


def test_reverse_over_forward(lib, fw):
    x, v = lib.tensor([1.0, 2.0], requires_grad=True), lib.tensor([1.0, 3.0], requires_grad=True)
    with fw.dual_level():
        y = fw.make_dual(x, v) ** 3
        found = fw.unpack_dual(y).tangent
        assert found.tolist() == [3.0, 36.0]
        assert [g.tolist() for g in lib.autograd.grad(found.sum(), (x, v))] == [[6.0, 36.0], [3.0, 12.0]]


def test_an_op_whose_tangent_torch_can_not_differentiate():
    fw = jitgrad.autograd.forward_ad
    x, v = jitgrad.tensor([1.0, 2.0], requires_grad=True), jitgrad.tensor([1.0, 3.0], requires_grad=True)
    with fw.dual_level():
        found = fw.unpack_dual(fw.make_dual(x, v).logsumexp(0)).tangent
        first, second = jitgrad.autograd.grad(found, (x, v))
    assert second.tolist() == pytest.approx(x.detach().softmax(0).tolist())
    assert first.sum().item() == pytest.approx(0.0, abs=1e-6)


def test_an_op_on_a_tensor_and_itself_in_place():
    fw = jitgrad.autograd.forward_ad  # torch doubles the tangent that it has overwritten already
    with fw.dual_level():
        y = fw.make_dual(jitgrad.tensor([3.0]), jitgrad.tensor([1.0])).clone()
        y.mul_(y)
        assert tangent(fw, y) == [6.0]


def test_forward_over_reverse(lib, fw):
    w = lib.tensor([1.0, 2.0], requires_grad=True)
    with fw.dual_level():
        dual = fw.make_dual(w, lib.tensor([1.0, 1.0]))
        (grad,) = lib.autograd.grad((dual**3).sum(), w)
        assert (grad.tolist(), tangent(fw, grad)) == ([3.0, 12.0], [6.0, 12.0])
        x = fw.make_dual(lib.tensor([3.0, 4.0]), lib.ones(2))
        (grad,) = lib.autograd.grad((x * w).exp().log().sum(), w)
        assert tangent(fw, grad) == pytest.approx([1.0, 1.0])
        (grad,) = lib.autograd.grad((x * w).softmax(0)[0], w, create_graph=True)
        assert fw.unpack_dual(grad).tangent.requires_grad


def test_an_accumulated_gradient(lib, fw):
    w = lib.tensor([1.0, 2.0], requires_grad=True)
    w.grad = lib.ones(2)
    held = w.grad
    with fw.dual_level():
        (fw.make_dual(lib.tensor([3.0, 4.0]), lib.ones(2)) * w).sum().backward()
        assert w.grad is held
        assert (held.tolist(), tangent(fw, held)) == ([4.0, 5.0], [1.0, 1.0])


def test_writes_are_differentiated_in_both_modes(lib, fw):
    x = lib.tensor([2.0, 3.0], requires_grad=True)
    with fw.dual_level():
        y = fw.make_dual(x, lib.ones(2)).clone()
        y[0] = y[1] * 2
        y.mul_(y.clone())
        found = fw.unpack_dual(y).tangent
        assert (y.tolist(), found.tolist()) == ([36.0, 9.0], [24.0, 6.0])
        assert lib.autograd.grad(found.sum(), x)[0].tolist() == [0.0, 10.0]


def test_a_graph_goes_when_the_level_ends(lib, fw):
    x = lib.rand(3, requires_grad=True)
    with fw.dual_level():
        y = fw.make_dual(lib.rand(3), x).exp()
        y.sum()
    del y
    assert x.grad is None


def test_saved_values_that_pass_through_hooks(lib, fw):
    w = lib.tensor([1.0, 2.0], requires_grad=True)
    with fw.dual_level():
        dual = fw.make_dual(w, lib.ones(2))
        with lib.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
            y = (dual**3).sum()
        assert tangent(fw, lib.autograd.grad(y, w)[0]) == [6.0, 12.0]


def test_hooks_see_tangents(lib, fw):
    w, seen = lib.tensor([1.0, 2.0], requires_grad=True), []
    with fw.dual_level():
        y = fw.make_dual(w, lib.ones(2)) ** 3
        y.register_hook(lambda grad: seen.append(tangent(fw, grad)))
        (y * y).sum().backward()
    assert seen == [[6.0, 24.0]]


GRAPHS = {
    "linear": lambda lib, x, w: lib.nn.functional.linear(x, w, w[0]),
    "relu": lambda lib, x, w: (x @ w).relu(),
    "sum": lambda lib, x, w: (x * w).sum(),
    "mean": lambda lib, x, w: x.mean(),
    "cross_entropy": lambda lib, x, w: lib.nn.functional.cross_entropy(x, lib.tensor([0, 1])),
    "softmax": lambda lib, x, w: x.softmax(1),
    "in place": lambda lib, x, w: x.clone().mul_(w),
    "written row": lambda lib, x, w: written_row(x, w),
    "views": lambda lib, x, w: x.t()[0] * 3,
    "chain": lambda lib, x, w: (x.exp() * 2).log1p(),
}


def written_row(x, w):
    y = x.clone()
    y[0] = x[1] * w[0]
    return y


@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_made_before_the_level(lib, fw, name):
    x, w = lib.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True), lib.tensor([[1.0, 1.0], [0.0, 2.0]], requires_grad=True)
    y = GRAPHS[name](lib, x, w)
    direction = lib.full_like(y, 2.0)
    want = lib.autograd.grad(y, (x, w), direction, retain_graph=True, allow_unused=True)
    with fw.dual_level():
        found = lib.autograd.grad(y, (x, w), fw.make_dual(lib.ones_like(y), direction), allow_unused=True)
        for one, other in zip(found, want, strict=True):
            assert (one is None) is (other is None)
            assert one is None or lib.allclose(fw.unpack_dual(one).tangent, other)


def test_transforms_inside_a_level(lib, fw):
    with fw.dual_level():
        dual = fw.make_dual(lib.tensor([1.0, 2.0]), lib.ones(2))
        assert tangent(fw, lib.func.grad(lambda x: (x**3).sum())(dual)) == [6.0, 12.0]
        assert tangent(fw, lib.func.vmap(lambda x: x * x)(dual)) == [2.0, 4.0]
