"""Medians, modes, quantiles, running extremes, counts and histograms, differences, parts of numbers: values, ties, NaN, errors, nodes."""

import math

import numpy as np
import pytest

from tests.libraries import leaf, lib

__all__ = ["lib"]
NAN, INF = math.nan, math.inf
RANDOM = np.random.default_rng(3)


def plain(found):
    """Tensors and named tuples as lists, NaN as a word."""
    if isinstance(found, tuple):
        return [plain(x) for x in found]
    values = found.tolist() if hasattr(found, "tolist") else found
    if isinstance(values, list):
        return [plain(x) for x in values]
    return "nan" if values != values else values


CASES = {
    "median": (lambda t: t.tensor([3.0, 1.0, 2.0, 4.0]).median(), 2.0),
    "median along": (lambda t: t.median(t.tensor([[1, 3, 2], [6, 5, 4]]), 1), [[2, 5], [2, 1]]),
    "median meets nan": (lambda t: t.tensor([1.0, NAN, 0.0]).median(0), ["nan", 1]),
    "median of none": (lambda t: t.median(t.tensor([])), "nan"),
    "nanmedian": (lambda t: t.tensor([1.0, NAN, 0.0]).nanmedian(0), [0.0, 2]),
    "nanmedian of nan": (lambda t: t.tensor([NAN, NAN]).nanmedian(0), ["nan", 0]),
    "mode": (lambda t: t.mode(t.tensor([1, 2, 2, 1, 3])), [1, 3]),
    "mode along": (lambda t: t.mode(t.tensor([[1.0, 2.0], [1.0, 3.0]]), 0, True).values, [[1.0, 2.0]]),
    "quantile": (lambda t: t.quantile(t.tensor([0.0, 1.0, 2.0, 10.0]), 0.5), 1.5),
    "quantile lower": (lambda t: t.quantile(t.tensor([0.0, 1.0, 2.0, 10.0]), 0.5, interpolation="lower"), 1.0),
    "quantile nearest": (lambda t: t.quantile(t.tensor([0.0, 1.0, 2.0, 10.0]), 0.5, interpolation="nearest"), 2.0),
    "quantile midpoint": (lambda t: t.quantile(t.tensor([0.0, 1.0, 2.0, 10.0]), 0.9, interpolation="midpoint"), 6.0),
    "quantiles first": (lambda t: t.quantile(t.ones(2, 3), t.tensor([0.1, 0.5]), dim=1, keepdim=True).shape, [2, 2, 1]),
    "quantiles of all": (lambda t: t.quantile(t.ones(2, 3), t.tensor([0.1, 0.5]), keepdim=True).shape, [2, 1, 1]),
    "quantile meets nan": (lambda t: t.quantile(t.tensor([1.0, NAN, 0.0]), 0.5), "nan"),
    "nanquantile": (lambda t: t.nanquantile(t.tensor([1.0, NAN, 0.0]), 0.5), 0.5),
    "cummax": (lambda t: t.cummax(t.tensor([1.0, 1.0, 0.0, 1.0]), 0), [[1.0, 1.0, 1.0, 1.0], [0, 1, 1, 3]]),
    "cummax meets nan": (lambda t: t.cummax(t.tensor([1.0, 3.0, NAN, 2.0, NAN]), 0).indices, [0, 1, 2, 2, 4]),
    "cummin": (lambda t: t.cummin(t.tensor([2, 1, 3]), 0), [[2, 1, 1], [0, 1, 1]]),
    "cummax of bools": (lambda t: t.cummax(t.tensor([True, False]), 0), [[True, True], [0, 0]]),
    "logcumsumexp": (lambda t: t.logcumsumexp(t.tensor([-INF, 0.0, INF]), 0), [-INF, 0.0, INF]),
    "aminmax": (lambda t: t.aminmax(t.tensor([[1, 4], [2, 3]]), dim=1), [[1, 2], [4, 3]]),
    "count_nonzero": (lambda t: t.count_nonzero(t.tensor([[0, 1], [2, 0]]), (0, 1)), 2),
    "nansum": (lambda t: t.tensor([1.0, NAN]).nansum(), 1.0),
    "nanmean": (lambda t: t.tensor([1.0, NAN, 3.0]).nanmean(), 2.0),
    "bincount": (lambda t: t.bincount(t.tensor([1, 3, 1]), minlength=5), [0, 2, 0, 1, 0]),
    "bincount with weights": (lambda t: t.bincount(t.tensor([1, 2]), t.tensor([0.5, 2.0])), [0.0, 0.5, 2.0]),
    "histc": (lambda t: t.histc(t.tensor([1.0, NAN, 2.0, 9.0]), 2, 0, 4), [1.0, 1.0]),
    "histc of one value": (lambda t: t.histc(t.tensor([1.0, 1.0]), 2), [0.0, 2.0]),
    "histogram": (lambda t: t.histogram(t.tensor([1.0, 2.0, 3.0]), 2, range=(0.0, 4.0)), [[1.0, 2.0], [0.0, 2.0, 4.0]]),
    "diff": (lambda t: t.diff(t.tensor([1, 4, 9]), n=2), [2]),
    "diff of bools": (lambda t: t.diff(t.tensor([True, False, False])), [True, False]),
    "diff joined": (lambda t: t.diff(t.tensor([1, 4]), prepend=t.tensor([0]), append=t.tensor([9])), [1, 3, 5]),
    "gradient": (lambda t: t.gradient(t.tensor([0.0, 1.0, 4.0, 9.0]), edge_order=2), [[0.0, 2.0, 4.0, 6.0]]),
    "gradient at": (lambda t: t.gradient(t.tensor([0.0, 1.0, 9.0]), spacing=(t.tensor([0.0, 1.0, 3.0]),)), [[1.0, 2.0, 4.0]]),
    "trapezoid": (lambda t: t.trapezoid(t.tensor([1.0, 3.0]), t.tensor([0.0, 2.0])), 4.0),
    "cumulative_trapezoid": (lambda t: t.cumulative_trapezoid(t.tensor([1.0, 3.0, 5.0]), dx=2), [4.0, 12.0]),
    "vander": (lambda t: t.vander(t.tensor([2, 3])), [[2, 1], [3, 1]]),
    "frexp": (lambda t: t.frexp(t.tensor([8.0, -3.0])), [[0.5, -0.75], [4, 2]]),
    "ldexp": (lambda t: t.ldexp(t.tensor([1.0, 3.0]), t.tensor([2, -1])), [4.0, 1.5]),
    "nextafter": (lambda t: t.nextafter(t.tensor(1.0), t.tensor(2.0)) > 1, True),
    "gcd": (lambda t: t.gcd(t.tensor([-4, 0]), t.tensor(6)), [2, 6]),
    "lcm": (lambda t: t.lcm(t.tensor([4, 0]), t.tensor(6)), [12, 0]),
    "angle": (lambda t: t.angle(t.tensor([-1.0, 1.0, NAN])).isnan(), [False, False, True]),
    "cov": (lambda t: t.cov(t.tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])), [[1.0, -1.0], [-1.0, 1.0]]),
    "corrcoef": (lambda t: t.corrcoef(t.tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])), [[1.0, -1.0], [-1.0, 1.0]]),
    "dist": (lambda t: t.dist(t.tensor([3.0, 0.0]), t.tensor([0.0, 4.0])), 5.0),
}


@pytest.mark.parametrize("name", CASES)
def test_values(lib, name):
    call, expected = CASES[name]
    assert plain(call(lib)) == pytest.approx(expected) if not isinstance(expected, (str, list)) else plain(call(lib)) == expected


NODES = {
    "MedianBackward0": lambda t, x: x.median(),
    "MedianBackward1": lambda t, x: x.median(0).values,
    "NanmedianBackward0": lambda t, x: x.nanmedian(),
    "NanmedianBackward1": lambda t, x: x.nanmedian(0)[0],
    "ModeBackward0": lambda t, x: x.mode().values,
    "CummaxBackward0": lambda t, x: x.cummax(0).values,
    "CumminBackward0": lambda t, x: x.cummin(0).values,
    "LogcumsumexpBackward0": lambda t, x: x.logcumsumexp(0),
    "AminmaxBackward0": lambda t, x: x.aminmax().max,
    "NansumBackward0": lambda t, x: x.nansum(),
    "FrexpBackward0": lambda t, x: x.frexp().mantissa,
    "NextafterBackward0": lambda t, x: x.nextafter(x),
    "AngleBackward0": lambda t, x: x.angle(),
}


@pytest.mark.parametrize("name", NODES)
def test_node_names(lib, name):
    assert NODES[name](lib, leaf(lib, [1.0, 2.0], [3.0, 5.0])).grad_fn.name() == name


def test_gradients_of_ties(lib):
    x = leaf(lib, 1.0, 2.0, 2.0, 3.0)
    x.median().backward()
    assert x.grad.tolist() == [0.0, 0.5, 0.5, 0.0]
    x = leaf(lib, 1.0, 1.0, 3.0)
    low, high = x.aminmax()
    (2 * low + 5 * high).backward()
    assert x.grad.tolist() == [1.0, 1.0, 5.0]
    x = leaf(lib, NAN, 2.0)
    x.nansum().backward()
    assert x.grad.tolist() == [0.0, 1.0]


CALLS = [
    lambda t, x: x.logcumsumexp(0),
    lambda t, x: x.cummax(1).values,
    lambda t, x: x.quantile(0.3, dim=1),
    lambda t, x: x.kron(x),
    lambda t, x: x.cov(),
    lambda t, x: t.trapezoid(x, dim=0),
    lambda t, x: t.gradient(x),
    lambda t, x: x.diff(n=2),
    lambda t, x: t.dist(x, x.flip(0), 3),
    lambda t, x: x.frexp()[0],
]


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_gradients_by_differences(number):
    lib = pytest.importorskip("jitgrad")
    x = lib.tensor(RANDOM.standard_normal((3, 4)), requires_grad=True)
    assert lib.autograd.gradcheck(lambda x: CALLS[number](lib, x), [x])


def test_logcumsumexp_keeps_its_digits_beside_large_elements():
    lib = pytest.importorskip("jitgrad")  # torch loses four of them
    x, grad = lib.tensor([1e4, 1.0, 2.0], requires_grad=True), lib.tensor([0.5, 0.25, 0.125])
    x.logcumsumexp(0).backward(grad)
    assert x.grad.tolist() == [0.875, 0.0, 0.0]


REFUSED = [
    (lambda t: t.median(t.ones(0, 3), 0), IndexError, r"median\(\): Expected reduction dim 0 to have non-zero size."),
    (lambda t: t.median(t.tensor([True])), NotImplementedError, "median_cpu"),
    (lambda t: t.mode(t.ones(0, 2), 0), IndexError, r"mode\(\): Expected reduction dim 0"),
    (lambda t: t.quantile(t.ones(3), 1.5), RuntimeError, r"quantile\(\) q must be in the range \[0, 1\] but got 1.5"),
    (lambda t: t.quantile(t.ones(3), t.ones(1, dtype=t.float64)), RuntimeError, "q tensor must be same dtype"),
    (lambda t: t.quantile(t.ones(3), 0.5, interpolation="x"), RuntimeError, "interpolation must be one of"),
    (lambda t: t.quantile(t.ones(3), [0.5]), TypeError, r"quantile\(\) received an invalid combination"),
    (lambda t: t.logcumsumexp(t.ones(2).long(), 0), NotImplementedError, "logcumsumexp_out_cpu"),
    (lambda t: t.aminmax(t.ones(0)), RuntimeError, "cannot compute aminmax over an empty dimension"),
    (lambda t: t.bincount(t.tensor([-1])), RuntimeError, "bincount only supports 1-d non-negative integral inputs."),
    (lambda t: t.histc(t.tensor([1, 2]), 3), NotImplementedError, "histogram_cpu"),
    (lambda t: t.histc(t.ones(2), 3, 3, 1), RuntimeError, "max must be larger than min"),
    (lambda t: t.diff(t.tensor(1.0)), RuntimeError, "diff expects input to be at least one-dimensional"),
    (lambda t: t.diff(t.ones(3, 2), prepend=t.ones(2, 3)), RuntimeError, "diff expects the shape of tensor to prepend"),
    (lambda t: t.gradient(t.ones(1)), RuntimeError, "expected each dimension size to be at least"),
    (lambda t: t.gradient(t.ones(3), edge_order=3), RuntimeError, "only supports edge_order=1 and edge_order=2"),
    (lambda t: t.trapezoid(t.ones(3), t.ones(2)), RuntimeError, "There must be one `x` value for each sample point"),
    (lambda t: t.gcd(t.ones(2), t.ones(2)), NotImplementedError, "gcd_cpu"),
    (lambda t: t.frexp(t.ones(2).long()), RuntimeError, r"torch.frexp\(\) only supports floating-point dtypes"),
    (lambda t: t.cov(t.ones(2, 3, 4)), RuntimeError, r"cov\(\): expected input to have two or fewer dimensions"),
    (lambda t: t.cov(t.ones(2, 3), fweights=t.ones(3)), RuntimeError, "expected fweights to have integral dtype"),
    (lambda t: t.cov(t.ones(2, 3), aweights=-t.ones(3)), RuntimeError, r"cov\(\): aweights cannot be negative"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_refusals(lib, number):
    call, error, words = REFUSED[number]
    with pytest.raises(error, match=words):
        call(lib)
