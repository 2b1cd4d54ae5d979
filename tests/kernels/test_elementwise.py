"""Elementwise kernels: compiled against interpreted, over strides, broadcasting, masks, aliasing and special values."""

import numpy as np
import pytest

from jitgrad._expr import ATOMS, apply, derivative, scalar as s, trace, var
from jitgrad._kernels.elementwise import flat_source, interpreted, spec_of, strided_source
from jitgrad._kernels.maps import map_kernel

NO_MASKS = frozenset()
EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -3.0, 1e-30, 50.0, -200.0, np.inf, -np.inf, np.nan]
BLOW_UP = {"sinh", "cosh", "exp", "exp2", "expm1"}


def kernels(function, inputs, params=(), masks=NO_MASKS, name="tested"):
    outputs = trace(function, inputs, params)
    return [
        map_kernel(name + end, outputs, tuple(inputs), tuple(params), masks, strided=bool(end))
        for end in ("", "_strided")
    ]


def mixed(x, y, a):
    return s.where(x > 0, s.sqrt(abs(x)), a * x**2) + s.tanh(x * y)


MIXED = kernels(mixed, ["x", "y"], ["a"], name="mixed")


def close(found, wanted, dtype):
    tolerance = 2e-6 if dtype == np.float32 else 1e-14
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


def arrays(dtype, *shapes):
    rng = np.random.default_rng(5)
    return [rng.normal(size=shape).astype(dtype) for shape in shapes]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0), (37,), (5, 7), (2, 3, 4, 5)])
def test_flat_agrees_with_the_interpreter(shape, dtype):
    x, y = arrays(dtype, shape, shape)
    out, wanted = np.full(shape, np.nan, dtype), np.full(shape, np.nan, dtype)
    MIXED[0][x.dtype](x, y, 0.3, out)
    MIXED[0].plain(x.dtype)(x, y, 0.3, wanted)
    close(out, wanted, dtype)


VIEWS = {
    "same": lambda x, y: (x, y),
    "row": lambda x, y: (x, y[:1]),
    "missing axis": lambda x, y: (x, y[0]),
    "column": lambda x, y: (x, y[:, :1]),
    "column first": lambda x, y: (x[:, :1], y),
    "outer": lambda x, y: (x[:, :1], y[:1]),
    "scalar": lambda x, y: (x, y[0, 0, ...]),
    "transposed": lambda x, y: (x.T, y.T),
    "one transposed": lambda x, y: (x[:5, :5].T, y[:5, :5]),
    "reversed": lambda x, y: (x[::-1, ::-1], y),
    "steps": lambda x, y: (x[:, ::2], y[:, 1::2][:, :3]),
    "expanded": lambda x, y: (np.broadcast_to(x[:, None], (6, 4, 6)), y[:, None, :]),
    "middle": lambda x, y: (x[:, None, :, None], y[None, :, None, :2]),
    "empty": lambda x, y: (x[:, :0], y[:, :1]),
    "fortran": lambda x, y: (np.asfortranarray(x), np.asfortranarray(y)),
    "singleton strides": lambda x, y: (x[::3, None, ::5], y[:2, None, :1]),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("view", VIEWS)
def test_strided_agrees_with_the_interpreter(view, dtype):
    x, y = VIEWS[view](*arrays(dtype, (6, 6), (6, 6)))
    shape = np.broadcast_shapes(x.shape, y.shape)
    out, wanted = np.full(shape, np.nan, dtype), np.full(shape, np.nan, dtype)
    MIXED[1][x.dtype](x, y, 0.3, out)
    MIXED[1].plain(x.dtype)(x, y, 0.3, wanted)
    close(out, wanted, dtype)


def test_many_inputs_and_outputs():
    def rule(g, x, y):
        return g * y, g * x + y, s.where(g > 0, x, y)

    flat, strided = kernels(rule, ["g", "x", "y"], name="three")
    g, x, y = arrays(np.float32, (4, 5), (4, 5), (4, 5))
    for kernel, operands in ((flat, (g, x, y)), (strided, (g[:, :1], x, y[::-1]))):
        outs, wanted = [np.empty((3, 4, 5), np.float32) for _ in range(2)]
        kernel[g.dtype](*operands, *outs)
        kernel.plain(g.dtype)(*operands, *wanted)
        close(outs, wanted, np.float32)


def test_an_output_may_be_an_input():
    flat, _ = kernels(lambda x, y: x * y + s.exp(x), ["x", "y"], name="aliased")
    x, y = arrays(np.float32, (1000,), (1000,))
    wanted = np.empty_like(x)
    flat[x.dtype](x, y, wanted)
    for place in (0, 1):
        operands = [x.copy(), y.copy()]
        flat[x.dtype](*operands, operands[place])
        np.testing.assert_array_equal(operands[place], wanted)
    several, _ = kernels(lambda x, y: (x * y, x - y), ["x", "y"], name="aliased_twice")
    first, second = x.copy(), y.copy()
    several[x.dtype](first, second, first, second)
    np.testing.assert_array_equal(first, x * y)
    np.testing.assert_array_equal(second, x - y)


def test_masks_in_and_conditions_out():
    masks = frozenset({"m"})

    def rule(m, x, y):
        return s.where(m, x, 2 * y), (x > y) | ~m, s.logical_xor(s.isnan(x), m)

    flat, strided = kernels(rule, ["m", "x", "y"], masks=masks, name="masked")
    assert flat.spec == "mbbbmm"
    x, y = arrays(np.float64, (6, 5), (6, 5))
    x[2, 3] = np.nan
    m = x > y[0]
    for kernel, operands in ((flat, (m, x, y)), (strided, (m[:, :1], x, y)), (strided, (m, x[::-1], y[:1]))):
        outs = [np.empty((6, 5), kind) for kind in (float, bool, bool)]
        wanted = [np.empty((6, 5), kind) for kind in (float, bool, bool)]
        kernel[x.dtype](*operands, *outs)
        kernel.plain(x.dtype)(*operands, *wanted)
        for out, want in zip(outs, wanted, strict=True):
            np.testing.assert_array_equal(out, want)


# every atom in one kernel per arity: compiled values and derivatives against the interpreter's
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("arity", [1, 2])
def test_every_atom_compiles_to_what_the_interpreter_says(arity, dtype):
    ours = [atom for atom in ATOMS.values() if "." not in atom.name]  # other tests add functions of users
    atoms = [atom for atom in ours if atom.arity == arity and not {"c", "i"} & {*atom.takes, atom.gives}]
    names = ("x", "y")[:arity]
    symbols = [var(name) for name in names]
    values = [apply(atom.name, *symbols) for atom in atoms]
    outputs = tuple(values) + tuple(derivative(value, symbol) for value in values for symbol in symbols)
    kernel = map_kernel(f"atoms_{arity}", outputs, names, (), NO_MASKS, strided=False)
    grid = np.meshgrid(*[EDGES] * arity) if arity > 1 else [np.array(EDGES)]
    operands = [np.ravel(side).astype(dtype) for side in grid]
    outs, wanted = (np.empty((len(outputs), operands[0].size), dtype) for _ in range(2))
    kernel[outs.dtype](*operands, *outs)
    kernel.plain(outs.dtype)(*operands, *wanted)
    tolerance = 2e-6 if dtype == np.float32 else 1e-14
    labels = [atom.name for atom in atoms] + [f"{atom.name} by {name}" for atom in atoms for name in names]
    for label, out, want in zip(labels, outs, wanted, strict=True):
        np.testing.assert_allclose(out, want, rtol=tolerance, atol=np.finfo(dtype).tiny, err_msg=label)


@pytest.mark.parametrize("scale", [1.0, 1e5, 1e8, 1e20])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_angles_of_any_size(dtype, scale):
    flat, strided = ANGLES
    (x,) = arrays(dtype, (8, 9))
    x = (x * scale).astype(dtype)
    x[0, :2] = np.inf, np.nan
    with np.errstate(invalid="ignore"):
        wanted = (np.sin(x.astype(float)) + np.cos(x.astype(float))).astype(dtype)
    for kernel, operand in ((flat, x), (strided, np.asfortranarray(x))):
        out = np.empty_like(x)
        kernel[x.dtype](operand, out)
        np.testing.assert_allclose(
            out, wanted, rtol=1e-5 if dtype == np.float32 else 1e-12, atol=1e-7 if dtype == np.float32 else 1e-15
        )
    flat[x.dtype](x, x)
    np.testing.assert_allclose(
        x, wanted, rtol=1e-5 if dtype == np.float32 else 1e-12, atol=1e-7 if dtype == np.float32 else 1e-15
    )


ANGLES = kernels(lambda x: s.sin(x) + s.cos(x), ["x"], name="angles")


def test_names_of_inputs_may_be_anything():
    flat, strided = kernels(lambda exp, k, n, real: exp * k + n - real, ["exp", "k", "n", "real"], name="named")
    operands = arrays(np.float64, *[(3, 4)] * 4)
    for kernel in (flat, strided):
        out = np.empty((3, 4))
        kernel[out.dtype](*operands, out)
        np.testing.assert_allclose(out, operands[0] * operands[1] + operands[2] - operands[3], rtol=1e-14)


def test_outputs_that_use_no_input():
    flat, strided = kernels(lambda x, a: (2.0 * a, s.where(x > 0, 1.0, 0.0)), ["x"], ["a"], name="constant")
    x = np.array([[1.0, -1.0]])
    for kernel in (flat, strided):
        outs = np.empty((2, 1, 2))
        kernel[x.dtype](x, 1.5, *outs)
        np.testing.assert_array_equal(outs, [[[3.0, 3.0]], [[1.0, 0.0]]])
    (_, alone) = kernels(lambda a: a + 1, [], ["a"], name="alone")
    out = np.empty((2, 3))
    alone[out.dtype](1.5, out)
    np.testing.assert_array_equal(out, 2.5)


def test_specs():
    outputs = trace(lambda x, m, a: (x * a, x > a), ["x", "m"], ["a"])
    assert spec_of(outputs, ("x", "m"), ("a",), {"m"}) == "bmsbm"
    assert spec_of((var("m"),), ("m",), (), {"m"}) == "mm"


def test_sources_are_functions_of_their_arguments_alone():
    outputs = trace(mixed, ["x", "y"], ["a"])
    for write in (flat_source, strided_source):
        text, words = write("f", outputs, ("x", "y"), ("a",))
        assert (text, words) == write("f", trace(mixed, ["x", "y"], ["a"]), ("x", "y"), ("a",))
        assert text.startswith("def f(in_x, in_y, s_a, out0):\n")
        compile(text, "f", "exec")
        assert {"load", "store", "tanh", "sqrt", "where", "size"} <= words
    other, _ = flat_source("f", (var("x") - var("y"),), ("x", "y"), ())
    assert other != flat_source("f", (var("y") - var("x"),), ("x", "y"), ())[0]


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="uses y"):
        flat_source("f", (var("x") + var("y"),), ("x",), ())


def test_interpreted_integers_and_zero_division():
    run = interpreted(trace(lambda x, y: x // y, ["x", "y"]), ("x", "y"), ())
    out = np.empty(3, np.int64)
    run(np.array([7, -7, 8]), np.array([2]), out)
    np.testing.assert_array_equal(out, [3, -4, 4])
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        run(np.array([7]), np.array([0]), out[:1])
    add = interpreted(trace(lambda x, y: x + y, ["x", "y"]), ("x", "y"), ())
    flags = np.empty(2, bool)
    add(np.array([True, False]), np.array([True, False]), flags)
    np.testing.assert_array_equal(flags, [True, False])
