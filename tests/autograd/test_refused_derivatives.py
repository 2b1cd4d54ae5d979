"""Derivatives whose own derivative is an error, because what the rule has for it would be wrong."""

import numpy as np
import pytest

from tests.libraries import leaf

CASES = {"scatter_reduce": {}, "index_reduce": {}}


def product(lib, name, x, src, index):
    return getattr(lib, name)(x, 0, lib.tensor(index), src, "prod")


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore:index_reduce")
def test_two_zeros_in_a_product_by_index(lib, name):
    x, src = leaf(lib, 3.0, 5.0), leaf(lib, 0.0, 0.0, 7.0)
    y = product(lib, name, x, src, [0, 0, 1])
    of_x, of_src = lib.autograd.grad(y.sum(), (x, src), create_graph=True)
    assert of_x.tolist() == [0.0, 7.0]
    assert of_src.tolist() == [0.0, 0.0, 5.0]
    assert type(of_src.grad_fn).__name__ == "Error"
    with pytest.raises(RuntimeError, match="Double backward is unsupported for"):
        of_src.sum().backward()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore:index_reduce")
def test_one_zero_has_a_second_derivative(lib, name):
    x, src = leaf(lib, 3.0, 5.0), leaf(lib, 0.0, 2.0, 7.0)
    y = product(lib, name, x, src, [0, 0, 1])
    (of_src,) = lib.autograd.grad(y.sum(), src, create_graph=True)
    assert of_src.tolist() == [6.0, 0.0, 5.0]
    (second,) = lib.autograd.grad(of_src[0], src)
    assert second.tolist() == [0.0, 3.0, 0.0]


def test_forward_mode_is_not_a_second_derivative():
    jitgrad = pytest.importorskip("jitgrad")
    x = jitgrad.tensor([3.0])
    tangent = jitgrad.func.jvp(lambda s: product(jitgrad, "scatter_reduce", x, s, [0, 0]), (jitgrad.zeros(2),), (jitgrad.ones(2),))[1]
    assert np.array_equal(tangent.numpy(), [0.0])
