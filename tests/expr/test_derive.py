"""Derivatives: every atom against torch and against finite differences, kinks and edges, selection, second order."""

import math

import numpy as np
import pytest

from jitgrad._expr import ATOMS, apply, const, derivative, param, scalar as s, stays_finite, substitute, var
from jitgrad._expr.interpret import evaluate

X, Y, Z = var("x"), var("y"), var("z")
INF, NAN = math.inf, math.nan

EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -3.0, 0.1, 20.5, -1000.0, 1000.0, INF, -INF, NAN]
UNARY = [name for name, atom in ATOMS.items() if atom.takes == "r" and atom.gives == "r"]
BINARY = [name for name, atom in ATOMS.items() if atom.takes == "rr" and atom.gives == "r" and name != "zmul"]
PAIRS = [(a, b) for a in EDGES for b in EDGES]


def torch_function(torch, name):
    special = {
        "logsigmoid": torch.nn.functional.logsigmoid,
        "softplus": lambda x: torch.nn.functional.softplus(x, threshold=1e9),
    }
    return special.get(name) or getattr(torch, name)


def ours(expr, wrt, values, dtype):
    env = {name: np.array(value, dtype) for name, value in values.items()}
    (out,) = evaluate([derivative(expr, wrt)], env, dtype)
    return np.broadcast_to(out, np.broadcast_shapes(*(v.shape for v in env.values())))


def agree(found, wanted, dtype, what):
    tolerance = 1e-5 if dtype == np.float32 else 1e-11
    wrong = ~np.isclose(found, wanted, rtol=tolerance, atol=tolerance * 1e-2, equal_nan=True)
    # torch's own vectorised kernels lose the last bits of some functions; infinities must agree exactly
    assert not wrong.any(), (what, found[wrong], wanted[wrong], np.flatnonzero(wrong))


def torch_gradients(torch, function, columns, dtype):
    leaves = [torch.tensor(column, dtype=dtype, requires_grad=True) for column in columns]
    out = function(*leaves)
    if not out.requires_grad:
        return [np.zeros(len(columns[0])) for _ in leaves]
    out.sum().backward()
    return [np.zeros(len(columns[0])) if leaf.grad is None else leaf.grad.numpy() for leaf in leaves]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", UNARY)
def test_unary_partials_are_torchs(name, dtype):
    torch = pytest.importorskip("torch", reason="torch is the oracle of this test")
    # exp overflows in torch's softplus once its threshold is lifted
    values = [x for x in EDGES if name != "softplus" or abs(x) < 1000]
    function = torch_function(torch, name)
    (wanted,) = torch_gradients(torch, function, [values], getattr(torch, np.dtype(dtype).name))
    agree(ours(apply(name, X), X, {"x": values}, dtype), wanted, dtype, name)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", [n for n in BINARY if n != "floor_divide"])
def test_binary_partials_are_torchs(name, dtype):
    torch = pytest.importorskip("torch", reason="torch is the oracle of this test")
    xs, ys = zip(*PAIRS, strict=True)
    wanted = torch_gradients(torch, torch_function(torch, name), [xs, ys], getattr(torch, np.dtype(dtype).name))
    for symbol, want in zip((X, Y), wanted, strict=True):
        agree(ours(apply(name, X, Y), symbol, {"x": xs, "y": ys}, dtype), want, dtype, (name, symbol))


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 0.5, -0.5, -1, -2, 2.5, -1.5, 4])
def test_constant_powers_are_torchs(exponent):
    torch = pytest.importorskip("torch", reason="torch is the oracle of this test")
    values = [x for x in EDGES if abs(x) != 1000]
    (wanted,) = torch_gradients(torch, lambda x: x**exponent, [values], torch.float64)
    agree(ours(X**exponent, X, {"x": values}, np.float64), wanted, np.float64, exponent)
    forward = torch.tensor(values, dtype=torch.float64) ** exponent
    (out,) = evaluate([X**exponent], {"x": np.array(values)}, np.float64)
    np.testing.assert_allclose(out, forward.numpy(), rtol=1e-14)


def test_clamp_is_torchs():
    torch = pytest.importorskip("torch", reason="torch is the oracle of this test")
    rows = [(x, lo, hi) for x in (-1.0, 0.0, 0.5, 1.0, 2.0, NAN) for lo in (0.0, 1.0, 3.0) for hi in (1.0, 2.0)]
    columns = list(zip(*rows, strict=True))
    wanted = torch_gradients(torch, torch.clamp, columns, torch.float64)
    values = dict(zip("xyz", columns, strict=True))
    for symbol, want in zip((X, Y, Z), wanted, strict=True):
        agree(ours(s.clamp(X, Y, Z), symbol, values, np.float64), want, np.float64, symbol)


@pytest.mark.parametrize("name", [n for n in (*UNARY, *BINARY) if ATOMS[n].differentiable])
def test_partials_are_finite_differences(name):
    points = {"acosh": (1.3, 2.7), "atanh": (0.2, 0.7), "asin": (0.2, 0.7), "acos": (0.2, 0.7)}.get(name, (0.6, 1.7))
    x = np.array([points[0], points[1], points[0] + 0.15])
    y = np.array([1.3, 0.45, 2.2])
    expr = apply(name, X, Y) if ATOMS[name].arity == 2 else apply(name, X)
    h = 1e-6
    for symbol in (X, Y)[: ATOMS[name].arity]:

        def at(shift, symbol=symbol):
            env = {"x": x + (shift if symbol is X else 0), "y": y + (shift if symbol is Y else 0)}
            return evaluate([expr], env, np.float64)[0]

        if name == "copysign" and symbol is Y:
            continue
        numeric = (at(h) - at(-h)) / (2 * h)
        np.testing.assert_allclose(ours(expr, symbol, {"x": x, "y": y}, np.float64), numeric, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("name", [n for n in UNARY if ATOMS[n].differentiable])
def test_second_derivatives_are_finite_differences(name):
    x = np.array(
        {"acosh": [1.3, 2.7], "atanh": [0.2, 0.7], "asin": [0.2, 0.7], "acos": [0.2, 0.7]}.get(name, [0.6, 1.7])
    )
    first = derivative(apply(name, X), X)
    h = 1e-6
    numeric = (evaluate([first], {"x": x + h}, "f8")[0] - evaluate([first], {"x": x - h}, "f8")[0]) / (2 * h)
    np.testing.assert_allclose(ours(first, X, {"x": x}, np.float64), numeric, rtol=1e-6, atol=1e-7)


def test_choice_is_between_finished_derivatives():
    assert derivative(s.where(X > 0, s.sqrt(X), X), X) is s.where(X > 0, derivative(s.sqrt(X), X), 1.0)
    found = ours(s.where(X > 0, s.sqrt(X), X), X, {"x": [-1.0, -4.0, 4.0, 0.0]}, np.float64)
    np.testing.assert_array_equal(found, [1.0, 1.0, 0.25, 1.0])
    composed = s.where(X > 20, X, s.log(1 + s.exp(X)))  # overflow on the side that is not taken
    np.testing.assert_array_equal(ours(composed, X, {"x": [1000.0]}, np.float32), [1.0])


def test_a_masked_branch_is_not_poisoned():
    partial = derivative(s.exp(X), X)
    (out,) = evaluate([s.zmul(var("g"), partial)], {"g": np.float32([0, 0, 2]), "x": np.float32([100, NAN, 0])}, "f4")
    np.testing.assert_array_equal(out, [0, 0, 2])
    # inside one expression the outer zero wins as well: D[sqrt(x)^2] at 0
    np.testing.assert_array_equal(ours(s.square(s.sqrt(X)), X, {"x": [0.0, 4.0]}, np.float64), [0.0, 1.0])


def test_a_nan_under_a_true_zero_of_the_author_is_not_hidden_in_the_value():
    (value,) = evaluate([X * 0.0], {"x": np.float64([NAN, 1.0])}, "f8")
    assert np.isnan(value[0])


@pytest.mark.parametrize("x", [-1000.0, -20.0, 0.0, 20.0, 20.5, 1000.0])
def test_stable_atoms_do_not_overflow(x):
    np.testing.assert_allclose(
        ours(s.softplus(X), X, {"x": [x]}, np.float32),
        [1 / (1 + math.exp(-x))] if x > -700 else [0],
        rtol=1e-6,
        atol=1e-37,
    )
    assert np.isfinite(ours(s.logsigmoid(X), X, {"x": [x]}, np.float32)).all()
    mish = X * s.tanh(s.softplus(X))
    assert np.isfinite(ours(mish, X, {"x": [x]}, np.float32)).all()


def test_ties_share_the_gradient():
    np.testing.assert_array_equal(
        ours(s.maximum(X, Y), X, {"x": [1.0, 2.0, 3.0], "y": [1.0, 3.0, 2.0]}, "f8"), [0.5, 0, 1]
    )
    assert ours(s.maximum(X, X), X, {"x": [2.0]}, "f8") == 1.0
    np.testing.assert_array_equal(ours(s.relu(X), X, {"x": [-1.0, 0.0, 2.0, NAN]}, "f8"), [0, 0, 1, 1])


def test_params_and_subexpressions_can_be_differentiated_by():
    a = param("a")
    assert derivative(a * X, a) is X
    inner = s.exp(X)
    assert derivative(inner * Y, inner) is Y
    assert derivative(X, Y) is const(0.0)


def test_the_output_is_shared_with_the_forward():
    out = s.tanh(X)
    assert substitute(derivative(out, X), {out: var("result")}) is 1.0 - var("result") * var("result")


def test_unknown_atoms_and_wrong_arity_are_refused():
    with pytest.raises(ValueError, match="no atom 'nonsense'"):
        derivative(apply("nonsense", X), X)
    with pytest.raises(ValueError, match="2 operands"):
        derivative(apply("exp", X, Y), X)


def test_stays_finite_knows_poles_and_exponentials():
    for expr in (X * Y + 2, s.where(X > 0, X, Y) / 3, s.tanh(X) * s.sigmoid(Y), 1.0 - s.tanh(X) * s.tanh(X)):
        assert stays_finite(expr)
    for expr in (1 / X, s.exp(X), s.sqrt(X), X / Y, X / 0, const(INF), X * s.log(Y), s.pow(X, Y)):
        assert not stays_finite(expr)


def test_random_compositions_match_torch():
    torch = pytest.importorskip("torch", reason="torch is the oracle of this test")
    rng = np.random.default_rng(0)
    smooth = ["tanh", "sigmoid", "sin", "softplus", "erf", "atan", "expm1", "asinh"]
    x, y = rng.normal(size=(2, 5))
    for _ in range(40):
        expr, tensor = [X, Y], [torch.tensor(x, requires_grad=True), torch.tensor(y, requires_grad=True)]
        leaves = list(tensor)
        for _ in range(6):
            i, j = rng.integers(len(expr), size=2)
            name = smooth[rng.integers(len(smooth))]
            function = torch.nn.functional.softplus if name == "softplus" else getattr(torch, name)
            op = [lambda a, b: a + b, lambda a, b: a * b, lambda a, b: a - b][rng.integers(3)]
            expr.append(op(apply(name, expr[i]), expr[j]))
            tensor.append(op(function(tensor[i]), tensor[j]))
        wanted = torch.autograd.grad(tensor[-1].sum(), leaves, allow_unused=True)
        for symbol, want in zip((X, Y), wanted, strict=True):
            found = ours(expr[-1], symbol, {"x": x, "y": y}, np.float64)
            np.testing.assert_allclose(found, np.zeros(5) if want is None else want.numpy(), rtol=1e-7, atol=1e-9)
