"""`autograd.functional` beside torch's: values, structure, history, refusals, over all combinations of strict and create_graph."""

import itertools

import pytest

import jitgrad
from tests.libraries import leaf


def square(a):
    return a * a


def two(a, b):
    return a * b, a.sum() * b


def cube(a):
    return (a**3).sum()


def mixed(a, b):
    return (a * a * b).sum()


def linear(a):
    return a * 2


def cut(a):
    return a.detach() * 2


def first_only(a, b):
    return a * a


def first_cube(a, b):
    return (a**3).sum()


def total(a):
    return a.sum()


def quadratic(a):
    return (a * a).sum()


def in_a_tuple(a):
    return (a.sum(),)


def no_tensor(a):
    return 3


X, Y, TWO, THREE, ONE = [1.0, 2.0], [3.0, 4.0], [1.0, 1.0], [1.0, 1.0, 1.0], [2.0]
# function, inputs, vector: lists become tensors, a "leaf" one that takes a gradient
PRODUCTS = [
    (square, X, TWO), (square, X, None), (two, (X, Y), (TWO, X)), (cube, X, None), (square, X, THREE), (two, (X, Y), TWO), (square, X, (X, X)),
    (two, (X, Y), (X, THREE)), (square, 3.0, None), (two, (X, 3.0), None), (no_tensor, X, X), (square, X, 3.0), (cut, X, X), (first_only, (X, Y), X),
    (linear, X, X), (square, ("leaf", X), TWO), (square, ONE, None), (first_only, (X, Y), (X, Y)), (cube, X, TWO), (mixed, (X, Y), (TWO, X)),
    (total, X, X), (in_a_tuple, X, X), (first_cube, (X, Y), (X, Y)), (quadratic, ("leaf", X), X), (cube, X, THREE), (cube, ONE, None),
]  # fmt: skip
MATRICES = [
    (square, X), (two, (X, Y)), (first_only, (X, Y)), (square, ("leaf", X)), (cube, X), (linear, ("leaf", X)), (cut, ("leaf", X)), (mixed, (X, Y)),
    (total, X), (in_a_tuple, X), (first_cube, (X, Y)), (quadratic, ("leaf", X)), (cube, ("leaf", X)), (no_tensor, X), (cube, (X,)),
]  # fmt: skip


def made(lib, value):
    if isinstance(value, tuple) and value and value[0] == "leaf":
        return leaf(lib, *value[1])
    if isinstance(value, tuple):
        return tuple(made(lib, one) for one in value)
    return lib.tensor(value) if isinstance(value, list) else value


def described(result):
    """Values, shapes, nesting and whether there is a history."""
    if isinstance(result, (tuple, list)):
        return tuple(described(one) for one in result)
    return result.tolist(), tuple(result.shape), result.requires_grad


def outcome(lib, call):
    try:
        return described(call(lib))
    except Exception as error:
        return type(error).__name__, str(error).replace("torch.", "").replace("jitgrad.", "")


OPTIONS = [dict(zip(("strict", "create_graph"), pair, strict=True)) for pair in itertools.product([False, True], repeat=2)]


@pytest.mark.parametrize("name", ["vjp", "jvp", "vhp", "hvp"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_products(name, options):
    torch = pytest.importorskip("torch")
    for function, inputs, vector in PRODUCTS:

        def call(lib, function=function, inputs=inputs, vector=vector):
            return getattr(lib.autograd.functional, name)(function, made(lib, inputs), made(lib, vector), **options)

        assert outcome(jitgrad, call) == outcome(torch, call), (function.__name__, inputs, vector)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("more", [{}, {"vectorize": True}], ids=str)
def test_jacobian(options, more):
    torch = pytest.importorskip("torch")
    for function, inputs in MATRICES:

        def call(lib, function=function, inputs=inputs):
            return lib.autograd.functional.jacobian(function, made(lib, inputs), **options, **more)

        assert outcome(jitgrad, call) == outcome(torch, call), (function.__name__, inputs)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("more", [{}, {"vectorize": True}], ids=str)
def test_hessian(options, more):
    torch = pytest.importorskip("torch")
    for function, inputs in MATRICES:

        def call(lib, function=function, inputs=inputs):
            return lib.autograd.functional.hessian(function, made(lib, inputs), **options, **more)

        assert outcome(jitgrad, call) == outcome(torch, call), (function.__name__, inputs)


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")
def test_strategies(lib):
    functional = lib.autograd.functional
    x = lib.tensor(X)
    forward = functional.jacobian(square, x, vectorize=True, strategy="forward-mode")
    assert forward.tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert functional.hessian(cube, x, vectorize=True, outer_jacobian_strategy="forward-mode").tolist() == [[6.0, 0.0], [0.0, 12.0]]
    with pytest.raises(AssertionError, match="Expected strategy to be either"):
        functional.jacobian(square, x, strategy="sideways")
    with pytest.raises(AssertionError, match="Expected strategy to be either"):
        functional.hessian(cube, x, outer_jacobian_strategy="sideways")
    with pytest.raises(NotImplementedError, match='`create_graph=True` and `strategy="forward-mode"` are not supported together'):
        functional.jacobian(square, x, create_graph=True, strategy="forward-mode")
    with pytest.raises(RuntimeError, match='`strict=True` and `strategy="forward-mode"` are not supported together'):
        functional.jacobian(square, x, strict=True, strategy="forward-mode")
    with pytest.raises(NotImplementedError, match="only implemented for `vectorize=True`"):
        functional.jacobian(square, x, strategy="forward-mode")


def test_results_are_differentiable(lib):
    x = leaf(lib, 1.0, 2.0)
    jacobian = lib.autograd.functional.jacobian(square, x, create_graph=True)
    assert lib.autograd.grad(jacobian.sum(), x)[0].tolist() == [2.0, 2.0]
    hessian = lib.autograd.functional.hessian(cube, x, create_graph=True)
    assert lib.autograd.grad(hessian.sum(), x)[0].tolist() == [6.0, 6.0]


def test_without_recording_outside(lib):
    x = lib.tensor(X)
    with lib.no_grad():
        assert lib.autograd.functional.vjp(cube, x)[1].tolist() == [3.0, 12.0]
        assert lib.autograd.functional.jvp(square, x, x)[1].tolist() == [2.0, 8.0]
        assert lib.autograd.functional.hessian(cube, x).tolist() == [[6.0, 0.0], [0.0, 12.0]]


def test_an_input_captured_by_the_function_is_a_constant(lib):
    x = leaf(lib, 1.0, 2.0)
    assert lib.autograd.functional.jacobian(lambda a: a * x, x).tolist() == [[1.0, 0.0], [0.0, 2.0]]


def test_shapes(lib):
    matrix = lib.ones(2, 3)
    assert lib.autograd.functional.jacobian(lambda a: a.sum(0), matrix).shape == (3, 2, 3)
    assert lib.autograd.functional.hessian(lambda a: (a**2).sum(), matrix).shape == (2, 3, 2, 3)
    rows = lib.autograd.functional.jacobian(lambda a, b: (a.sum(), a @ b), (matrix, lib.ones(3)))
    assert [[tuple(part.shape) for part in row] for row in rows] == [[(2, 3), (3,)], [(2, 2, 3), (2, 3)]]


def test_standard_basis(lib):
    basis = lib.autograd.functional._construct_standard_basis_for
    parts = basis((lib.zeros(2), lib.zeros(1, dtype=lib.float64)), (2, 1))
    assert [part.tolist() for part in parts] == [[[1, 0], [0, 1], [0, 0]], [[0], [0], [1]]]
    assert [part.dtype for part in parts] == [lib.float32, lib.float64]
    with pytest.raises(AssertionError, match="Expected at least one tensor"):
        basis((), ())
    with pytest.raises(AssertionError, match="to have the same length, but got 1 and 0"):
        basis((lib.zeros(2),), ())
