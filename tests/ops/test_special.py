"""Special functions: identities and known values, edges, derivatives by differences, refusals, names of nodes."""

import math

import numpy as np
import pytest

from jitgrad._ops import special_values as values
from tests.libraries import lib

__all__ = ["lib"]
NAN, INF = math.nan, math.inf
EULER = 0.5772156649015329


def array(tensor):
    return np.asarray(tensor.tolist())


KNOWN = [
    ("gammaln", (5.0,), math.log(24)),
    ("gammaln", (0.5,), math.log(math.pi) / 2),
    ("gammaln", (-1.0,), INF),
    ("digamma", (1.0,), -EULER),
    ("digamma", (0.5,), -EULER - 2 * math.log(2)),
    ("digamma", (-0.5,), 2 - EULER - 2 * math.log(2)),
    ("digamma", (0.0,), -INF),
    ("digamma", (-3.0,), NAN),
    ("gammainc", (1.0, 2.0), 1 - math.exp(-2)),
    ("gammaincc", (1.0, 40.0), math.exp(-40)),
    ("gammainc", (0.5, 0.25), math.erf(0.5)),
    ("gammainc", (2.0, -1.0), NAN),
    ("erfinv", (math.erf(0.3),), 0.3),
    ("erfinv", (1.0,), INF),
    ("erfinv", (2.0,), NAN),
    ("ndtri", (0.5,), 0.0),
    ("ndtri", (0.0,), -INF),
    ("erfcx", (0.0,), 1.0),
    ("erfcx", (30.0,), 0.018795888861416751),
    ("log_ndtr", (-40.0,), -804.6084420137538),
    ("i0", (0.0,), 1.0),
    ("i1e", (100.0,), 0.039744153025130249),
    ("entr", (0.0,), 0.0),
    ("entr", (-1.0,), -INF),
    ("entr", (0.5,), 0.5 * math.log(2)),
    ("xlog1py", (0.0, -1.0), 0.0),
    ("xlog1py", (2.0, 1.0), 2 * math.log(2)),
    ("zeta", (2.0, 1.0), math.pi**2 / 6),
    ("zeta", (4.0, 1.0), math.pi**4 / 90),
    ("zeta", (1.0, 2.0), INF),
]


@pytest.mark.parametrize(("name", "arguments", "expected"), KNOWN)
def test_known_values(lib, name, arguments, expected):
    found = getattr(lib.special, name)(*[lib.tensor(x, dtype=lib.float64) for x in arguments]).item()
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-14, nan_ok=True)


def test_identities():
    x = np.linspace(0.05, 30, 200)
    np.testing.assert_allclose(values.lgamma(x + 1), values.lgamma(x) + np.log(x), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(values.digamma(x + 1), values.digamma(x) + 1 / x, rtol=1e-13, atol=1e-13)
    fraction = np.linspace(0.05, 0.95, 50)
    np.testing.assert_allclose(values.digamma(1 - fraction) - values.digamma(fraction), math.pi / np.tan(math.pi * fraction), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(values.polygamma(1, x + 1), values.polygamma(1, x) - 1 / x**2, rtol=1e-11)
    np.testing.assert_allclose(values.erf(values.erfinv(np.linspace(-0.999, 0.999, 101))), np.linspace(-0.999, 0.999, 101), rtol=1e-14, atol=1e-16)
    order = np.linspace(0.1, 60, 200)
    np.testing.assert_allclose(values.gammainc(order, x, False) + values.gammainc(order, x, True), 1, rtol=1e-12)
    tails = 10.0 ** np.arange(-300, 0, 7.0)
    np.testing.assert_allclose(values.erfc(-values.ndtri(tails) / math.sqrt(2)) / 2, tails, rtol=1e-10)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_are_torchs(dtype):
    torch, jitgrad = pytest.importorskip("torch"), pytest.importorskip("jitgrad")
    x = np.linspace(-6, 40, 97).astype(dtype)
    unit = np.linspace(-0.999, 0.999, 51).astype(dtype)
    cases = dict.fromkeys(("gammaln", "digamma", "erfcx", "i0e", "i1e", "ndtr", "log_ndtr"), x) | {"i1": x[:60], "erfinv": unit}
    cases["ndtri"] = np.abs(unit)
    tolerance = 2e-5 if dtype == "float32" else 1e-10
    for name, data in cases.items():
        ours, theirs = (array(getattr(t.special, name)(t.tensor(data))) for t in (jitgrad, torch))
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance, err_msg=name)


CALLS = {
    "LgammaBackward0": lambda t, x: x.lgamma(),
    "DigammaBackward0": lambda t, x: x.digamma(),
    "PolygammaBackward0": lambda t, x: x.polygamma(2),
    "MvlgammaBackward0": lambda t, x: (x + 2).mvlgamma(3),
    "IgammaBackward0": lambda t, x: t.igamma(t.tensor([1.5, 2.0, 0.3], dtype=t.float64), x),
    "IgammacBackward0": lambda t, x: t.igammac(t.tensor([1.5, 2.0, 0.3], dtype=t.float64), x),
    "ErfinvBackward0": lambda t, x: (x / 3).erfinv(),
    "SpecialNdtriBackward0": lambda t, x: t.special.ndtri(x / 3),
    "SpecialErfcxBackward0": lambda t, x: t.special.erfcx(x - 1),
    "SpecialLogNdtrBackward0": lambda t, x: t.special.log_ndtr(x - 2),
    "I0Backward0": lambda t, x: x.i0(),
    "SpecialI1Backward0": lambda t, x: t.special.i1(x),
    "SpecialI0EBackward0": lambda t, x: t.special.i0e(x),
    "SpecialI1EBackward0": lambda t, x: t.special.i1e(x),
    "SpecialEntrBackward0": lambda t, x: t.special.entr(x),
    "SpecialXlog1PyBackward2": lambda t, x: t.special.xlog1py(x, 2.0),
    "SpecialZetaBackward1": lambda t, x: t.special.zeta(3.5, x),
}


@pytest.mark.parametrize("name", CALLS)
def test_derivatives_and_nodes(lib, name):
    x = lib.tensor([0.4, 1.3, 2.2], dtype=lib.float64, requires_grad=True)
    assert CALLS[name](lib, x).grad_fn.name() == name
    assert lib.autograd.gradcheck(lambda x: CALLS[name](lib, x), [x])
    assert lib.autograd.gradgradcheck(lambda x: CALLS[name](lib, x), [x])


def test_derivatives_at_zero(lib):
    x = lib.zeros(1, dtype=lib.float64, requires_grad=True)
    for call, slope in ((lib.special.i1, 0.5), (lib.special.i1e, 0.5), (lib.i0, 0.0), (lib.special.i0e, 0.0)):
        (grad,) = lib.autograd.grad(call(x), x)
        assert grad.item() == slope


REFUSED = [
    (lambda t: t.polygamma(-1, t.ones(1)), RuntimeError, r"polygamma\(n, x\) does not support negative n."),
    (lambda t: t.polygamma(1.5, t.ones(1)), TypeError, r"polygamma\(\): argument 'n' \(position 1\) must be int, not float"),
    (lambda t: t.mvlgamma(t.ones(1), 0), RuntimeError, "p has to be greater than or equal to 1"),
    (lambda t: t.igamma(t.ones(1).long(), t.ones(1).long()), NotImplementedError, "\"igamma_cpu\" not implemented for 'Long'"),
    (lambda t: t.igamma(t.ones(1), 2.0), TypeError, r"igamma\(\): argument 'other' \(position 2\) must be Tensor, not float"),
    (lambda t: t.igamma(t.ones(1, requires_grad=True), t.ones(1)).backward(), NotImplementedError, "the derivative for 'igamma: input' is not"),
    (lambda t: t.special.zeta(t.ones(1, requires_grad=True) + 2, 2.0).backward(), NotImplementedError, "the derivative for 'zeta' is not"),
    (lambda t: t.special.zeta(2, 3), TypeError, r"special_zeta\(\) received an invalid combination of arguments - got \(int, int\)"),
    (lambda t: t.special.erfcx(t.ones(1).half()), NotImplementedError, "\"erfcx_cpu\" not implemented for 'Half'"),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_refusals(lib, number):
    call, error, words = REFUSED[number]
    with pytest.raises(error, match=words):
        call(lib)


def test_integers_become_floats(lib):
    for call in (lib.lgamma, lib.digamma, lib.erfinv, lib.i0, lib.special.ndtr, lib.special.entr):
        assert call(lib.tensor([1])).dtype is lib.float32
    x = lib.ones(2)
    assert x.lgamma_() is x
    assert x.tolist() == [0.0, 0.0]
