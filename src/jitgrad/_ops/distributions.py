"""Fills with random numbers of rarer distributions: Cauchy, geometric, log-normal, Poisson. New values, so no gradient passes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._core.dtypes import bool_
from .._core.meta import Meta
from .axes import DOUBLE
from .checks import C_NAMES
from .kinds import Array, Tensor, composite, linear
from .random import check_floating, exponential_array, normal_array, stream_of, uniform_array

KEY = 0x9E3779B97F4A7C15  # so that these numbers have nothing in common with the stream's own


@linear(node="CauchyBackward0", name="_cauchy")
def cauchy_op(input: Array, median: float, sigma: float, stream: Any) -> Array:
    return np.asarray(median + sigma * np.tan(math.pi * (uniform_array(input.shape, DOUBLE, stream) - 0.5)), input.dtype)


@linear(node="GeometricBackward0", name="_geometric")
def geometric_op(input: Array, p: float, stream: Any) -> Array:
    """How many draws of probability `p` until the first success."""
    draws = -exponential_array(input.shape, DOUBLE, stream) / math.log1p(-p)
    return np.asarray(np.maximum(np.ceil(draws), 1), input.dtype)


@linear(node="LogNormalBackward0", name="_log_normal")
def log_normal_op(input: Array, mean: float, std: float, stream: Any) -> Array:
    return np.asarray(np.exp(normal_array(input.shape, DOUBLE, stream, mean, std)), input.dtype)


@linear(node="PoissonBackward0", name="_poisson")
def poisson_op(input: Array, stream: Any) -> Array:
    """By NumPy's generator, under a key that follows from the stream's state."""
    seed, start = stream.take(1)
    return np.asarray(np.random.Generator(np.random.Philox(key=seed ^ KEY, counter=start)).poisson(input), input.dtype)


for _op in (cauchy_op, geometric_op, log_normal_op, poisson_op):

    @_op.adjoint
    def _(grad: Array, like: Meta) -> Array:
        return np.zeros(like.shape, grad.dtype)


@composite(inplace="only", public=False)
def cauchy(input: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Any = None) -> Tensor:
    """Cauchy's distribution around a median. RuntimeError for integers."""
    if not input.meta.kind.is_floating_point:
        raise RuntimeError("Cauchy distribution is a continuous probability distribution. dtype must be a floating point but you specified "
                           f"{C_NAMES[input.meta.kind]}")  # fmt: skip
    if sigma <= 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    return cauchy_op(input, float(median), float(sigma), stream_of(generator))


@composite(inplace="only", public=False)
def geometric(input: Tensor, p: float, *, generator: Any = None) -> Tensor:
    """How many draws of probability `p` it takes to succeed: 1, 2, ..."""
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    if input.meta.kind is bool_:
        raise NotImplementedError("\"geometric_cpu\" not implemented for 'Bool'")
    return geometric_op(input, float(p), stream_of(generator))


@composite(inplace="only", public=False)
def log_normal(input: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Any = None) -> Tensor:
    """Numbers whose logarithm is normal with the given mean and standard deviation."""
    if std <= 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    check_floating("log_normal_cpu", input.meta.kind)
    return log_normal_op(input, float(mean), float(std), stream_of(generator))


@composite(method=False)
def poisson(input: Tensor, generator: Any = None) -> Tensor:
    """A number of Poisson's distribution for each rate. RuntimeError for a negative rate, NotImplementedError for integers."""
    check_floating("poisson_cpu", input.meta.kind)
    if not bool((input.detach() >= 0).all()):
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    return poisson_op(input, stream_of(generator))
