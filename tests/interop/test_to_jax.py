"""Ops exported to JAX: values, gradients, jit, vmap, second derivatives."""

import numpy as np
import pytest

from jitgrad.autograd.kernels import jit_function
from jitgrad.interop import to_jax
from tests.kernels_user.cases import make_product, make_scan
from tests.kernels_user.test_elementwise import bump, polar, softclip
from tests.kernels_user.test_jit_function import make_scale

jax = pytest.importorskip("jax")
jnp = jax.numpy


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def array(*shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape))


def test_values_and_gradients_of_a_jit_function():
    scan = to_jax(make_scan())
    matrix = jnp.asarray([[0.5 ** (i - j) if j <= i else 0.0 for j in range(5)] for i in range(5)])
    x = array(5)
    np.testing.assert_allclose(scan(x, 0.5), matrix @ x)
    found = jax.grad(lambda x: (scan(x, 0.5) ** 2).sum())(x)
    np.testing.assert_allclose(found, jax.grad(lambda x: ((matrix @ x) ** 2).sum())(x))
    np.testing.assert_allclose(jax.jit(jax.grad(lambda x: (scan(x, 0.5) ** 2).sum()))(x), found)


def test_two_arguments_and_an_integer_array():
    product = to_jax(make_product())
    x, w = array(2, 3), array(2, 3, seed=1)
    gx, gw = jax.grad(lambda x, w: product(x, w).sum(), argnums=(0, 1))(x, w)
    np.testing.assert_allclose(gx, w)
    np.testing.assert_allclose(gw, x)
    pick = to_jax(jit_function(lambda x, k: x[k], pick_backward, name="pick"))
    np.testing.assert_allclose(jax.grad(lambda x: pick(x, jnp.asarray([1, 1, 0])).sum())(array(3)), [1.0, 2.0, 0.0])


def pick_backward(grad, x, k, y):
    g = np.zeros_like(x)
    for i in range(k.size):
        g[k[i]] += grad[i]
    return g


def test_second_derivative_of_an_elementwise_function():
    ours = to_jax(bump)

    def theirs(x, y):
        return jnp.exp(-x * x) * y + y**3

    x, y = array(3), array(3, seed=1)
    for function in (jax.grad, lambda f: jax.grad(lambda x: jax.grad(f)(x).sum())):
        found = function(lambda x: ours(x, y).sum())(x)
        np.testing.assert_allclose(found, function(lambda x: theirs(x, y).sum())(x), rtol=1e-10)


def test_several_results_keywords_vmap_and_float32():
    r, phi = array(3), array(3, seed=1)
    x, _, far = to_jax(polar)(r, phi)
    np.testing.assert_allclose(x, r * jnp.cos(phi))
    assert far.dtype == bool
    np.testing.assert_allclose(jax.grad(lambda r: to_jax(polar)(r, phi)[1].sum())(r), jnp.sin(phi))
    np.testing.assert_allclose(
        jax.vmap(lambda row: to_jax(make_scan())(row, 0.5))(array(2, 4))[1], to_jax(make_scan())(array(2, 4)[1], 0.5)
    )
    assert to_jax(softclip)(jnp.ones(2, jnp.float32), width=0.5).dtype == jnp.float32


def test_mutating_ops_are_refused():
    with pytest.raises(TypeError, match="scale_ writes into its inputs"):
        to_jax(make_scale())
