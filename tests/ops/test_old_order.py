"""Factors given by position before what they multiply, as programs once wrote `p.add_(-0.1, grad)`."""

import pytest

from tests.libraries import lib

__all__ = ["lib"]

pytestmark = pytest.mark.filterwarnings("ignore:.*This overload of")


def tensors(lib):
    a, b, c = (lib.arange(4.0).view(2, 2) + k for k in range(3))
    return a, b, c


# how it was written, how it is written
PAIRS = {
    "add": (lambda t, a, b, c: t.add(a, 3, b), lambda t, a, b, c: t.add(a, b, alpha=3)),
    "add, the method": (lambda t, a, b, c: a.add(-0.5, b), lambda t, a, b, c: a - 0.5 * b),
    "sub": (lambda t, a, b, c: t.sub(a, 3, b), lambda t, a, b, c: t.sub(a, b, alpha=3)),
    "addcmul": (lambda t, a, b, c: t.addcmul(a, 2, b, c), lambda t, a, b, c: a + 2 * b * c),
    "addcdiv": (lambda t, a, b, c: a.addcdiv(2, b, c), lambda t, a, b, c: a + 2 * b / c),
    "addmm": (lambda t, a, b, c: t.addmm(2, a, 3, b, c), lambda t, a, b, c: 2 * a + 3 * (b @ c)),
    "addmm, beta alone": (lambda t, a, b, c: t.addmm(2, a, b, c), lambda t, a, b, c: 2 * a + b @ c),
    "addmm, the method": (lambda t, a, b, c: a.addmm(2, 3, b, c), lambda t, a, b, c: 2 * a + 3 * (b @ c)),
    "addmv": (lambda t, a, b, c: t.addmv(2, a[0], 3, b, c[0]), lambda t, a, b, c: 2 * a[0] + 3 * (b @ c[0])),
    "addr": (lambda t, a, b, c: t.addr(2, a, 3, b[0], c[0]), lambda t, a, b, c: 2 * a + 3 * t.outer(b[0], c[0])),
    "baddbmm": (lambda t, a, b, c: t.baddbmm(2, a[None], 3, b[None], c[None]), lambda t, a, b, c: (2 * a + 3 * (b @ c))[None]),
    "addbmm": (lambda t, a, b, c: t.addbmm(2, a, 3, b[None], c[None]), lambda t, a, b, c: 2 * a + 3 * (b @ c)),
}


@pytest.mark.parametrize("name", PAIRS)
def test_both_orders_agree(lib, name):
    old, new = PAIRS[name]
    assert lib.allclose(old(lib, *tensors(lib)), new(lib, *tensors(lib)))


def test_in_place_and_into_out(lib):
    a, b, c = tensors(lib)
    assert a.add_(-0.5, b) is a
    assert a.tolist() == [[-0.5, 0.0], [0.5, 1.0]]
    assert a._version == 1
    a.zero_().addcmul_(0.5, b, b).addcdiv_(-1, b, b).sub_(2, c)
    assert a.tolist() == [[-4.5, -5.0], [-4.5, -3.0]]
    out = lib.empty(0)
    assert lib.add(a, 2, b, out=out) is out
    assert lib.equal(out, a + 2 * b)


def test_gradients(lib):
    x = lib.ones(3, requires_grad=True)
    (x * 1).add_(4, x).sum().backward()
    assert x.grad.tolist() == [5.0] * 3


@pytest.mark.parametrize(
    "call",
    [
        lambda a, b: a.add(b, 2),
        lambda a, b: a.add(2, 3, b),
        lambda a, b: a.addcmul(2, 3, a, b),
        lambda a, b: a.addmm(1, 2, 3, a, b),
        lambda a, b: a.addmm(a, b, 2),
        lambda a, b: a.sub(2, "b"),
    ],
)
def test_what_fits_no_order(lib, call):
    a, b, _ = tensors(lib)
    with pytest.raises(TypeError):
        call(a, b)


def test_it_warns():
    lib = pytest.importorskip("jitgrad")  # torch warns once in a process
    with pytest.warns(UserWarning, match=r"This overload of add_ is deprecated:\n\tgive the factors by name, behind the tensors: alpha=2"):
        lib.ones(2).add_(2, lib.ones(2))
