"""The compiled scalar functions: errors in units in the last place, special values, and their plain-Python twins."""

import functools
import math

import numba
import numpy as np
import pytest

from jitgrad._kernels import scalar_fallback, vector_math

INF, NAN = math.inf, math.nan
UNARY = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "ceil",
    "cos",
    "cos_far",
    "cosh",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "log",
    "log10",
    "log1p",
    "log2",
    "logsigmoid",
    "rint",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sin_far",
    "sinh",
    "softplus",
    "sqrt",
    "tan",
    "tan_far",
    "tanh",
    "trunc",
]
BINARY = [
    "atan2",
    "copysign",
    "floor_divide",
    "fmod",
    "hypot",
    "logaddexp",
    "maximum",
    "minimum",
    "pow_",
    "remainder",
    "xlogy",
    "zmul",
]
TESTS = ["isfinite", "isinf", "isnan"]
DTYPES = [np.float32, np.float64]

EDGES = np.array(
    [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        2.0,
        -2.0,
        3.0,
        -3.0,
        0.3,
        88.0,
        -88.0,
        1e-30,
        -1e-30,
        1e-42,
        1e3,
        -1e3,
        104.0,
        -104.0,
        1e30,
        -1e30,
        INF,
        -INF,
        NAN,
    ]
)


@functools.cache
def compiled(name, dtype):
    """The function over whole arrays."""
    function = getattr(vector_math, name)
    kind = numba.from_dtype(np.dtype(dtype))
    out = numba.boolean if name in TESTS else kind
    if name in BINARY:

        def loop(x, y, out):
            for i in range(x.size):
                out[i] = function(x[i], y[i])

        signature = (kind[::1], kind[::1], out[::1])
    else:

        def loop(x, out):
            for i in range(x.size):
                out[i] = function(x[i])

        signature = (kind[::1], out[::1])
    return numba.njit(signature, error_model="numpy", fastmath={"contract"})(loop)


def run(name, *arrays):
    out = np.empty(arrays[0].shape, np.bool_ if name in TESTS else arrays[0].dtype)
    compiled(name, arrays[0].dtype.type)(*arrays, out)
    return out


def plain(name, *arrays):
    with np.errstate(all="ignore"):
        return np.array([getattr(scalar_fallback, name)(*row) for row in zip(*arrays, strict=True)])


def test_both_sides_provide_the_same_names():
    assert set(vector_math.__all__) == {"NAMES", *scalar_fallback.NAMES}
    assert {*UNARY, *BINARY, *TESTS} | {"fma", "where", "load", "store", "step"} == set(scalar_fallback.NAMES)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", UNARY + TESTS)
def test_special_values(name, dtype):
    same(name, dtype, [EDGES.astype(dtype)])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BINARY)
def test_special_values_of_two_arguments(name, dtype):
    grid = np.meshgrid(EDGES[abs(EDGES) != 1e30], EDGES[abs(EDGES) != 1e30])
    same(name, dtype, [np.ravel(side).astype(dtype) for side in grid])


def same(name, dtype, columns):
    if name in ("sin", "cos", "tan"):  # their formulas end at 2**20
        columns = [column[(abs(column) < 2**20) | ~np.isfinite(column)] for column in columns]
    found, wanted = run(name, *columns), plain(name, *columns).astype(bool if name in TESTS else dtype)
    tiny = 4 * np.finfo(dtype).smallest_subnormal
    tolerance = 4e-7 if dtype == np.float32 else 1e-15
    wrong = ~np.isclose(found, wanted, rtol=tolerance, atol=tiny, equal_nan=True)
    # the sign of a zero and of a difference that underflows
    wrong |= (
        (np.signbit(found) != np.signbit(wanted)) & ~np.isnan(wanted) & (wanted != 0 if name in UNSIGNED_ZERO else True)
    )
    rows = np.flatnonzero(wrong)
    assert not rows.size, [(*(column[i] for column in columns), found[i], wanted[i]) for i in rows[:10]]


UNSIGNED_ZERO = {"maximum", "minimum", "logsigmoid", "fmod", "remainder", "floor_divide", "xlogy"}


# name: (points, allowed units in the last place for float32, for float64)
RANGES = {  # float64 rows of 2.5 and more are the C library's
    "exp": ((-104, 88.7), 1.0, 1.0),
    "exp2": ((-149, 127.9), 1.0, 1.0),
    "expm1": ((-20, 88.7), 1.7, 1.9),
    "log": ("positive", 1.0, 1.0),
    "log2": ("positive", 0.51, 1.6),
    "log10": ("positive", 0.51, 2.5),
    "log1p": ((-0.999, 50), 1.0, 1.0),
    "tanh": ((-10, 10), 1.5, 1.5),
    "sigmoid": ((-88, 40), 1.6, 1.6),
    "softplus": ((-80, 40), 1.7, 1.7),
    "logsigmoid": ((-40, 80), 1.7, 1.7),
    "erf": ((-4, 4), 1.2, 1.2),
    "erfc": ((-5, 9), 0.6, 3.0),
    "sin": ((-1e6, 1e6), 0.6, 2.0),
    "cos": ((-1e6, 1e6), 0.6, 2.0),
    "tan": ((-1e6, 1e6), 0.6, 2.5),
    "sinh": ((-80, 80), 0.6, 2.5),
    "cosh": ((-80, 80), 0.6, 2.5),
    "asin": ((-1, 1), 0.6, 2.5),
    "acos": ((-1, 1), 0.6, 2.5),
    "atan": ((-50, 50), 0.6, 2.5),
    "asinh": ((-1e4, 1e4), 0.6, 2.5),
    "acosh": ((1, 1e4), 0.6, 2.5),
    "atanh": ((-1, 1), 0.6, 2.5),
    "rsqrt": ("positive", 1.5, 1.5),
}


def points(where, dtype, count):
    rng = np.random.default_rng(7)
    if where == "positive":
        limits = np.log2([np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max])
        return np.concatenate([2.0 ** rng.uniform(*limits, count), rng.uniform(0.4, 2.5, count)]).astype(dtype)
    low, high = where
    small = rng.uniform(-1, 1, count) * 10.0 ** rng.uniform(-8, 0, count)
    both = np.concatenate([rng.uniform(low, high, count), rng.normal(size=count), small]).astype(dtype)
    return both[(both > low) & (both < high)]


def reference(mpmath, name):
    own = {
        "exp2": lambda x: mpmath.mpf(2) ** x,
        "log2": lambda x: mpmath.log(x) / mpmath.log(2),
        "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
        "softplus": lambda x: mpmath.log1p(mpmath.exp(x)),
        "logsigmoid": lambda x: -mpmath.log1p(mpmath.exp(-x)),
        "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    }
    return own.get(name) or getattr(mpmath, name)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", RANGES)
def test_units_in_the_last_place(name, dtype):
    mpmath = pytest.importorskip("mpmath", reason="mpmath is the oracle of this test")
    where, single, double = RANGES[name]
    x = points(where, dtype, 400)
    found = run(name, x)
    function = reference(mpmath, name)
    with mpmath.workprec(160):
        wanted = [function(mpmath.mpf(float(v))) for v in x]
        nearest = np.array([float(w) for w in wanted])
        unit = np.spacing(abs(nearest.astype(dtype))).astype(float)
        errors = np.array(
            [abs(float((mpmath.mpf(float(f)) - w) / u)) for f, w, u in zip(found, wanted, unit, strict=True)]
        )
    assert errors.max() <= (single if dtype == np.float32 else double), (x[errors.argmax()], errors.max())


def test_powers_are_rounded_well():
    rng = np.random.default_rng(3)
    x = (2.0 ** rng.uniform(-20, 20, 4000)).astype(np.float32)
    y = rng.uniform(-6, 6, 4000).astype(np.float32)
    wanted = x.astype(float) ** y.astype(float)
    assert (abs(run("pow_", x, y) - wanted) / np.spacing(wanted.astype(np.float32))).max() <= 0.51


@pytest.mark.parametrize(
    "name", ["exp", "tanh", "sigmoid", "log", "log1p", "expm1", "softplus", "logsigmoid", "erf", "sin", "cos"]
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_vectorises(name, dtype):
    vector = "x float>" if dtype == np.float32 else "x double>"
    assert vector in next(iter(compiled(name, dtype).inspect_llvm().values()))
    assert vector not in next(iter(compiled("sin_far", dtype).inspect_llvm().values()))


def test_compensation_survives_reassociation():
    @numba.njit(["void(float32[::1], float32[::1])"], error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
    def loop(x, out):
        for i in range(x.size):
            out[i] = vector_math.log1p(x[i])

    x = points((-0.999, 50), np.float32, 300)
    out = np.empty_like(x)
    loop(x, out)
    np.testing.assert_allclose(out, run("log1p", x), rtol=2.5e-7)  # without it small results would be all wrong


def test_not_a_number_with_a_payload_stays_one():
    odd = np.array([0x7FC00001, 0xFFC12345, 0x7FFFFFFF], np.uint32).view(np.float32)
    for name in ("exp", "exp2", "expm1", "tanh", "sigmoid", "softplus", "logsigmoid", "erf", "log", "sin"):
        assert np.isnan(run(name, odd)).all(), name


def test_integers_are_compared_as_integers():
    @numba.njit
    def both(x, y):
        return (
            vector_math.maximum(x, y),
            vector_math.minimum(x, y),
            vector_math.where(x > y, x, y),
            vector_math.isnan(x),
        )

    assert both(2**62 + 1, 2**62) == (2**62 + 1, 2**62, 2**62 + 1, False)


def test_plain_functions_keep_the_dtype():
    assert type(scalar_fallback.exp(np.float32(1))) is np.float32
    assert type(scalar_fallback.exp(1.0)) is float
    with np.errstate(all="ignore"):
        assert scalar_fallback.exp(np.float32(100)) == np.float32(INF)
