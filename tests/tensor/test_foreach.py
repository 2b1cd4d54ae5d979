"""`_foreach_*`: one op over a list of tensors."""

import pytest

from tests.libraries import leaf, lib

__all__ = ["lib"]


def lists(tensors):
    return [x.tolist() for x in tensors]


def pair(lib):
    return [lib.tensor([1.0, -4.0]), lib.tensor([[2.5]])]


CALLS = {
    "abs": lambda t, x: t._foreach_abs(x),
    "neg": lambda t, x: t._foreach_neg(x),
    "add a number": lambda t, x: t._foreach_add(x, 2),
    "add numbers": lambda t, x: t._foreach_add(x, [2, 0.5]),
    "add scaled tensors": lambda t, x: t._foreach_add(x, x, alpha=3),
    "add a tensor": lambda t, x: t._foreach_add(x, t.tensor(4.0)),
    "sub": lambda t, x: t._foreach_sub(x, [1, 2]),
    "mul": lambda t, x: t._foreach_mul(x, x),
    "div": lambda t, x: t._foreach_div(x, 2),
    "maximum of tensors": lambda t, x: t._foreach_maximum(x, x),
    "maximum of a number": lambda t, x: t._foreach_maximum(x, 2),
    "minimum of numbers": lambda t, x: t._foreach_minimum(x, [0, 2]),
    "clamp": lambda t, x: t._foreach_clamp_max(x, 1.5),
    "pow": lambda t, x: t._foreach_pow(x, [2, 3]),
    "pow of a number": lambda t, x: t._foreach_pow(2.0, x),
    "lerp": lambda t, x: t._foreach_lerp(x, [y + 1 for y in x], 0.25),
    "addcmul": lambda t, x: t._foreach_addcmul(x, x, x, value=2),
    "addcmul with numbers": lambda t, x: t._foreach_addcmul(x, x, x, [2, 3]),
    "addcdiv with a tensor": lambda t, x: t._foreach_addcdiv(x, x, x, t.tensor([2.0, 3.0])),
    "addcdiv with scalars": lambda t, x: t._foreach_addcdiv(x, x, x, scalars=[2.0, 3.0]),
    "norm": lambda t, x: t._foreach_norm(x, 1),
    "max": lambda t, x: t._foreach_max(x),
    "powsum": lambda t, x: t._foreach_powsum(x, 2),
    "clone": lambda t, x: t._foreach_clone(x),
}
EXPECTED = {
    "abs": [[1.0, 4.0], [[2.5]]],
    "add numbers": [[3.0, -2.0], [[3.0]]],
    "add scaled tensors": [[4.0, -16.0], [[10.0]]],
    "addcmul with numbers": [[3.0, 28.0], [[21.25]]],
    "minimum of numbers": [[0.0, -4.0], [[2.0]]],
    "norm": [5.0, 2.5],
    "powsum": [17.0, 6.25],
}


@pytest.mark.parametrize("case", CALLS)
def test_results(lib, case):
    found = CALLS[case](lib, pair(lib))
    assert type(found) is tuple
    if case in EXPECTED:
        assert lists(found) == EXPECTED[case]
    torch = pytest.importorskip("torch")
    assert lists(found) == lists(CALLS[case](torch, pair(torch)))


def test_writes(lib):
    x = pair(lib)
    assert lib._foreach_mul_(x, [2, 4]) is x
    assert lists(x) == [[2.0, -8.0], [[10.0]]]
    lib._foreach_add_(x, pair(lib), alpha=-1)
    assert lists(x) == [[1.0, -4.0], [[7.5]]]
    lib._foreach_addcdiv_(x, pair(lib), pair(lib), [1.0, 2.0])
    assert lists(x) == [[2.0, -3.0], [[9.5]]]
    lib._foreach_copy_(x, pair(lib))
    assert lists(x) == lists(pair(lib))
    lib._foreach_zero_(x)
    assert lists(x) == [[0.0, 0.0], [[0.0]]]
    assert [y._version for y in x] == [5, 5]


def test_gradients(lib):
    x = [leaf(lib, 1.0, 2.0), leaf(lib, 3.0)]
    y = lib._foreach_mul(lib._foreach_exp(x), [2.0, 5.0])
    (y[0].sum() + y[1].sum()).backward()
    assert x[0].grad.tolist() == y[0].tolist()
    assert x[1].grad.tolist() == y[1].tolist()
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        lib._foreach_add_(x, 1)


REFUSED = {
    "nothing": (lambda t: t._foreach_exp([]), RuntimeError, "Tensor list must have at least one tensor"),
    "lengths": (lambda t: t._foreach_add(pair(t), pair(t)[:1]), RuntimeError, "the same number of tensors, got 2 and 1"),
    "numbers": (lambda t: t._foreach_add(pair(t), [1.0]), RuntimeError, "same number of elements as scalar list"),
    "a row": (lambda t: t._foreach_mul(pair(t), t.tensor([3.0])), RuntimeError, "scalar tensor expected to be 0 dim but it has 1 dim"),
    "no tensor": (lambda t: t._foreach_exp([1.0]), TypeError, "expected Tensor as element 0"),
    "no list": (lambda t: t._foreach_exp(t.ones(2)), TypeError, "must be tuple of Tensors, not Tensor"),
    "no op": (lambda t: t._foreach_nothing, AttributeError, "has no attribute '_foreach_nothing'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(lib, case):
    call, error, words = REFUSED[case]
    with pytest.raises(error, match=words):
        call(lib)
