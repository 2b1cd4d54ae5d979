"""A gradient of zero that is handed through as it is hides no derivative: the backward is linear in the gradient there too."""

import pytest

import jitgrad


@pytest.mark.parametrize(("name", "slope"), [("log", 0.5), ("log2", 0.7213475), ("log1p", 1 / 3), ("reciprocal", -0.25), ("sqrt", 0.3535534)])
def test_the_derivative_by_a_gradient_of_zero(name, slope):
    x = jitgrad.tensor([2.0], requires_grad=True)
    grad = jitgrad.tensor([0.0], requires_grad=True)
    (found,) = jitgrad.autograd.grad(getattr(x, name)(), x, grad, create_graph=True)
    assert found.tolist() == [0.0]
    (again,) = jitgrad.autograd.grad(found, grad)
    assert again.item() == pytest.approx(slope)


def test_a_product_with_the_jacobian_by_two_backwards():
    _, found = jitgrad.autograd.functional.jvp(jitgrad.log, jitgrad.tensor([2.0]), jitgrad.tensor([3.0]))
    assert found.item() == 1.5
