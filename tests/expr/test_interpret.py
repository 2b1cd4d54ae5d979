"""The interpreter: torch's values for every atom, every dtype, integers, conditions."""

import subprocess
import sys

import numpy as np
import pytest

from jitgrad._expr import ATOMS, apply, const, param, scalar as s, var
from jitgrad._expr.interpret import NUMPY, evaluate

X, Y = var("x"), var("y")
INF, NAN = np.inf, np.nan
EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 3.0, 1e-30, -1000.0, 1000.0, INF, -INF, NAN]
GRID_X, GRID_Y = (np.ravel(grid) for grid in np.meshgrid(EDGES, EDGES))
CONDITIONS = {"isnan", "isinf", "isfinite", "logical_and", "logical_or", "logical_xor", "logical_not"}


def test_every_atom_has_a_numpy_function():
    assert NUMPY.keys() == ATOMS.keys()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", [n for n, a in ATOMS.items() if a.arity < 3 and n != "zmul" and a.gives != "i"])
def test_values_are_torchs(name, dtype):
    torch = pytest.importorskip("torch", reason="torch is the oracle of this test")
    function = {
        "logsigmoid": torch.nn.functional.logsigmoid,
        "softplus": lambda x: torch.nn.functional.softplus(x, threshold=80),
    }.get(name) or getattr(torch, name)
    columns = [GRID_X.astype(dtype), GRID_Y.astype(dtype)][: ATOMS[name].arity]
    wanted = function(*map(torch.tensor, columns)).numpy()
    (found,) = evaluate([apply(name, *(X, Y)[: len(columns)])], dict(zip("xy", columns, strict=False)), dtype)
    assert found.dtype == (np.bool_ if ATOMS[name].gives == "c" else dtype)
    tolerance = 1e-6 if dtype == np.float32 else 1e-14
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance if name in ("sin", "cos", "tan") else 0)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16, np.int32, np.int64])
@pytest.mark.parametrize(
    "name", ["add", "sub", "mul", "floor_divide", "remainder", "fmod", "maximum", "minimum", "pow"]
)
def test_integers_are_torchs(name, dtype):
    torch = pytest.importorskip("torch", reason="torch is the oracle of this test")
    values = [v for v in (-128, -7, -2, -1, 0, 1, 2, 3, 7, 127, 255) if np.iinfo(dtype).min <= v <= np.iinfo(dtype).max]
    pairs = [(a, b) for a in values for b in values if name in ("add", "sub", "mul", "maximum", "minimum", "pow") or b]
    if name == "pow":
        pairs = [(a, b) for a, b in pairs if -3 <= b <= 3]
    x, y = (np.array(column, dtype) for column in zip(*pairs, strict=True))
    wanted = getattr(torch, name)(torch.tensor(x), torch.tensor(y)).numpy()
    (found,) = evaluate([apply(name, X, Y)], {"x": x, "y": y}, dtype)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod"])
def test_integer_division_by_zero_raises_as_in_torch(name):
    for zero in (Y, const(0), param("p")):
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            evaluate([apply(name, X, zero)], {"x": np.array([1, 2]), "y": np.array([1, 0]), "p": 0}, np.int64)


def test_constants_and_params_do_not_widen_the_dtype():
    for dtype in (np.float16, np.float32):
        expr = (X * 0.1 + param("p")) / 3 - s.where(X > 0, 2, X) ** 2
        (out,) = evaluate([expr], {"x": np.ones(3, dtype), "p": 0.2}, dtype)
        assert out.dtype == dtype
    (out,) = evaluate([X + (-1)], {"x": np.array([0, 5], np.uint8)}, np.uint8)  # wraps instead of raising
    np.testing.assert_array_equal(out, np.array([255, 4], np.uint8))
    (out,) = evaluate([X * 2], {"x": np.array([2**62 + 1])}, np.int64)  # not through float64
    assert out[0] == 2 * (2**62 + 1) - 2**64


def test_conditions_are_bools_and_count_as_numbers_where_used_as_such():
    x = np.float32([-1, 0, 2])
    condition, counted, mixed = evaluate([X > 0, (X > 0) + (X > -2), s.where(X, X, 5)], {"x": x}, "f4")
    assert condition.dtype == np.bool_
    np.testing.assert_array_equal(counted, np.float32([1, 1, 2]))
    np.testing.assert_array_equal(mixed, np.float32([-1, 5, 2]))


def test_mask_inputs_stay_bool():
    mask = np.array([True, False])
    chosen, inverted = evaluate([s.where(var("m"), X, 0.0), ~var("m")], {"m": mask, "x": np.float32([1, NAN])}, "f4")
    np.testing.assert_array_equal(chosen, np.float32([1, 0]))
    np.testing.assert_array_equal(inverted, ~mask)


def test_arrays_broadcast_and_shapes_of_rank_zero_stay():
    (out,) = evaluate([X + Y], {"x": np.ones((3, 1)), "y": np.ones((1, 4))}, "f8")
    assert out.shape == (3, 4)
    (out,) = evaluate([s.exp(X)], {"x": np.array(0.0)}, "f8")
    assert isinstance(out, np.ndarray)
    assert out.shape == ()


def test_no_warnings_reach_the_caller():
    with np.errstate(all="raise"):
        evaluate([s.log(X), 1 / X, s.exp(X)], {"x": np.float32([0, -1, 1000])}, "f4")


def test_a_missing_name_is_named():
    with pytest.raises(KeyError, match="y"):
        evaluate([X + Y], {"x": np.ones(2)}, "f8")


def test_the_package_needs_no_numpy():
    code = (
        "import sys, types; pkg = types.ModuleType('jitgrad'); pkg.__path__ = [sys.argv[1]];"
        "sys.modules['jitgrad'] = pkg;"
        "import jitgrad._expr; assert not {'numpy', 'numba'} & sys.modules.keys()"
    )
    import jitgrad._expr as package

    root = package.__path__[0].rsplit("_expr", 1)[0]
    subprocess.run([sys.executable, "-c", code, root], check=True, timeout=60)
