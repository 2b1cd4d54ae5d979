"""`scalar_function`: helpers that raise, fail to compile, call themselves, share a body, and given partials inside other functions."""
# ruff: noqa: PLW0108  (a lambda is a Python function, which what it calls is not)

import pytest

import jitgrad
from jitgrad._core.settings import settings
from jitgrad.autograd.kernels import KernelError, elementwise, scalar_function
from tests.kernels_user.cases import tensor

needs_compiler = pytest.mark.skipif(not settings.jit, reason="about compiled code")
FACTOR = 3.0


def slope(function, x):
    return jitgrad.autograd.grad(function(x).sum(), x)[0].tolist()


def positive(a):
    if a < 0:
        raise ValueError("negative")
    return a


@pytest.mark.parametrize("size", [3, 100_000])  # the larger one would let the GIL go
@pytest.mark.parametrize("step", [1, 2])
def test_an_exception_of_a_helper_arrives_and_leaves_all_usable(size, step):
    helper = scalar_function(positive, partials=(lambda a: 1.0,))
    f = elementwise(lambda x: helper(x))
    wrong = jitgrad.ones(step * size)
    wrong[0] = -1.0
    for _ in range(2):
        with pytest.raises(ValueError, match="negative"):
            f(wrong[::step])
        assert f(wrong.abs()[::step]).sum().item() == size


@needs_compiler
@pytest.mark.parametrize(
    ("helper", "message"),
    [
        (lambda a: (a, a), r"<lambda> must return one number, not UniTuple\(float64 x 2\), for float64"),
        (lambda a: None, "<lambda> must return one number, not none"),
        (lambda a: a.upper(), "can't be compiled for float64: Unknown attribute 'upper' of type float64"),
    ],
)
def test_a_helper_that_is_no_function_of_a_number(helper, message):
    known = scalar_function(helper, partials=(None,))
    f = elementwise(lambda x: known(x) + 1.0)
    for _ in range(2):
        with pytest.raises(KernelError, match=message) as caught:
            f(tensor([1.0]))
        assert "test_scalar_function.py" in str(caught.value)


def factorial(a):
    return 1.0 if a < 1 else factorial(a - 1) * a


def test_a_helper_that_calls_itself():
    helper = scalar_function(factorial, partials=(None,))
    assert elementwise(lambda x: helper(x))(tensor([5.0, 3.0])).tolist() == [120.0, 6.0]


def test_one_helper_with_two_derivatives():
    def twice(a):
        return 2.0 * a

    first, second = (scalar_function(twice, partials=(lambda a, k=k: k,)) for k in (2.0, 7.0))
    x = tensor([1.0])
    functions = [elementwise(lambda x: first(x)), elementwise(lambda x: second(x))]
    assert [slope(f, x) for f in functions] == [[2.0], [7.0]]


def test_a_partial_keeps_the_values_it_read_when_the_call_was_made():
    global FACTOR
    helper = scalar_function(lambda a: a * FACTOR, partials=(lambda a: FACTOR,))
    f = elementwise(lambda x: helper(x))
    x = tensor([1.0])
    y = f(x)
    try:
        FACTOR = 5.0
        assert jitgrad.autograd.grad(y.sum(), x)[0].tolist() == [3.0]
        assert (f(x).item(), slope(f, x)) == (5.0, [5.0])
    finally:
        FACTOR = 3.0


def test_a_partial_that_is_not_one_derivative():
    helper = scalar_function(factorial, partials=(lambda a: (a, a),))
    with pytest.raises(TypeError, match="a partial is one derivative, but <lambda> returned 2 results"):
        elementwise(lambda x: helper(x))(tensor([1.0])).sum().backward()


# ---- given partials inside other functions
def test_a_given_partial_counts_where_the_function_is_part_of_another():
    where = jitgrad.where

    @elementwise
    def hard(w, scale):
        return where(w >= 0, scale, -scale)

    outer = elementwise(lambda x: 3.0 * hard(x, 2.0) + hard(x * 2.0, x), name="outer")
    x = tensor([0.25, 2.0])
    assert slope(outer, x) == [1.0, 1.0]

    @hard.partial("w")
    def through(w, scale):
        return where(abs(w) <= 1, scale, 0.0)

    assert outer(x).tolist() == [6.25, 8.0]
    assert slope(outer, x) == [7.5, 1.0]  # 3 * 2 + 2 x + sign(x), then sign(x)
    (g,) = jitgrad.autograd.grad(outer(x).sum(), x, create_graph=True)
    assert jitgrad.autograd.grad(g.sum(), x)[0].tolist() == [2.0, 0.0]


def test_what_a_given_partial_reads_is_watched_from_outside():
    global FACTOR
    inner = elementwise(lambda x: x * 1.0, name="inner")
    inner.partial("x")(lambda x: FACTOR)
    outer = elementwise(lambda x: inner(x) + 0.0)
    x = tensor([1.0])
    try:
        assert slope(outer, x) == [3.0]
        FACTOR = 4.0
        assert slope(outer, x) == [4.0]
    finally:
        FACTOR = 3.0


def test_a_given_partial_that_reads_the_result():
    root = elementwise(lambda x: jitgrad.sqrt(x), name="root")
    root.partial("x")(lambda result: 10.0 * result)
    assert slope(elementwise(lambda x: root(x) * 2.0), tensor([4.0])) == [40.0]


def test_an_exception_of_a_helper_inside_a_compiled_step():
    helper = scalar_function(positive, partials=(lambda a: 1.0,))
    f = elementwise(lambda x: helper(x) * 2.0)
    step = jitgrad.compile(lambda x: f(x).sum())
    right, wrong = jitgrad.ones(100_000), jitgrad.ones(100_000)  # large enough to let the GIL go
    wrong[7] = -1.0
    for _ in range(2):
        assert step(right).item() == 200_000.0
        with pytest.raises(ValueError, match="negative"):
            step(wrong)
    assert step(right).item() == 200_000.0
