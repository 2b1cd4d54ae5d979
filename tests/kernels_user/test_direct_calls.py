"""The short ways of a `jit_function`, taken from the second call on, give what the careful ones give, and keep the contract."""

import numpy as np
import pytest

import jitgrad
from jitgrad._core.settings import settings
from jitgrad.autograd.kernels import KernelError, jit_function
from tests.kernels_user.cases import tensor

needs_compiler = pytest.mark.skipif(not settings.jit, reason="about compiled code")


def triple(x, y, z):
    return x * y + z


def triple_backward(grad, x, y, z, out):
    return grad * y, grad * x, grad.copy()


def triple_by_need(grad, x, y, z, out, needs):
    gx = grad * y if needs[0] else np.zeros(0)
    gy = grad * x if needs[1] else np.zeros(0)
    gz = grad.copy() if needs[2] else np.zeros(0)
    return gx, gy, gz


def leaves(count):
    return [tensor([1.0 + k, 2.0 + k]) for k in range(count)]


@pytest.mark.parametrize("backward", [triple_backward, triple_by_need])
@pytest.mark.parametrize("wanted", [(0, 1, 2), (1,), (0, 2)])
def test_three_inputs(backward, wanted):
    op = jit_function(triple, backward, name="triple")
    given = [x if place in wanted else x.detach() for place, x in enumerate(leaves(3))]
    expected = [[2.0, 3.0], [1.0, 2.0], [1.0, 1.0]]
    for _ in range(3):
        found = jitgrad.autograd.grad(op(*given).sum(), [given[place] for place in wanted])
        assert [g.tolist() for g in found] == [expected[place] for place in wanted]


def parts(x, w):
    total = 0.0
    for k in range(x.size):
        total += x[k] * w[k]
    return x * w, total, x + w


def parts_backward(product, total, x, w, out, number, scratch):
    grad = product + total
    return grad * w, grad * x


@pytest.mark.parametrize(
    "use", [lambda a, b: a.sum() + b, lambda a, b: a.sum(), lambda a, b: b * 1.0, lambda a, b: a[0] * b]
)
def test_several_outputs(use):
    op = jit_function(parts, parts_backward, outputs=2, name="parts")
    x, w = leaves(2)
    wanted = jitgrad.autograd.grad(use(x * w, (x * w).sum()), (x, w))
    for _ in range(3):
        a, b = op(x, w)
        assert (a.shape, b.shape, a.grad_fn.name()) == ((2,), (), "PartsBackward")
        found = jitgrad.autograd.grad(use(a, b), (x, w))
        assert [g.tolist() for g in found] == [g.tolist() for g in wanted]
    with jitgrad.no_grad():
        assert [y.requires_grad for y in op(x, w)] == [False, False]
    assert [y.requires_grad for y in op(x.detach(), w.detach())] == [False, False]


def test_several_outputs_know_what_was_written_to():
    op = jit_function(lambda x: (x * x, x + x), lambda g, h, x, y, z: 2.0 * x * g + h + 0.0 * z, outputs=2, name="pair")
    for _ in range(3):
        leaf = tensor([1.0])
        x = leaf * 1.0
        y, z = op(x)
        y.mul_(2.0)  # never read by backward
        y.sum().backward()
        assert leaf.grad.item() == 4.0
        for written in (x, z):
            y, z = op(x)
            (x if written is x else z).mul_(3.0)
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                y.sum().backward()


def test_outputs_gradients_and_scratch_of_one_allocation_are_told_apart():
    def halves(x):
        both = np.empty(2 * x.size)
        both[: x.size] = x
        both[x.size :] = 2.0 * x
        return both[: x.size], both[x.size :], both[: x.size]

    def halves_backward(g, h, x, y, z, scratch):
        return g + 2.0 * h

    op = jit_function(halves, halves_backward, outputs=2, name="halves")
    x = tensor([1.0, 2.0], grad=False)
    for _ in range(3):
        y, z = op(x)
        y.mul_(10.0)
        assert (y.tolist(), z.tolist()) == ([10.0, 20.0], [2.0, 4.0])

    def shared(grad, x, y, z, out):
        both = np.empty(3 * x.size)
        both[:] = 1.0
        return both[: x.size], both[x.size : 2 * x.size], both[2 * x.size :]

    op = jit_function(triple, shared, name="shared")
    for _ in range(3):
        given = leaves(3)
        op(*given).sum().backward()
        given[0].grad.mul_(5.0)
        assert [g.grad.tolist() for g in given] == [[5.0, 5.0], [1.0, 1.0], [1.0, 1.0]]


def test_a_shape_that_goes_wrong_later_is_told_by_name():
    def backward(grad, x, y, z, out, needs):
        n = x.size if x[0] < 10 else 1
        return np.zeros(x.size), np.zeros(n), np.zeros(x.size)

    op = jit_function(triple, backward, name="triple")
    given = leaves(3)
    for _ in range(2):
        op(*given).sum().backward()
    given[0] = tensor([20.0, 1.0])
    with pytest.raises(
        KernelError, match=r"backward returned a gradient of shape \[1\] for 'y', which has shape \[2\]"
    ):
        op(*given).sum().backward()


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_backward_that_raises_can_be_tried_again(count):
    """The saved values go when the backward has run, not before."""
    limit = np.array([1.0])

    def one(grad, x, y, z, out):
        if grad[0] > 1.0:
            raise ValueError("too large")
        return grad * 1.0, grad * 1.0, grad * 1.0

    forms = {
        1: jit_function(lambda x: x * 1.0, lambda grad, x, y: one(grad, x, x, x, y)[0], name="one"),
        2: jit_function(lambda x, y: x + y, lambda grad, x, y, out: one(grad, x, y, y, out)[:2], name="two"),
        3: jit_function(triple, one, name="three"),
    }
    op, given = forms[count], leaves(count)
    op(*given).sum().backward()  # compiled, and the short way from here on
    y = op(*given)
    for x in given:
        x.grad = None
    with pytest.raises(ValueError, match="too large"):
        y.backward(tensor([2.0, 1.0], grad=False))
    assert all(x.grad is None for x in given)
    y.backward(tensor(limit.repeat(2), grad=False))
    assert all(x.grad.tolist() == [1.0, 1.0] for x in given)
    with pytest.raises(RuntimeError, match="second time"):
        y.backward(tensor([1.0, 1.0], grad=False))
