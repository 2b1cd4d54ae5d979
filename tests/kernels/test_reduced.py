"""Sums of expressions: compiled against interpreted, over the edges of blocks and lanes."""

import numpy as np
import pytest

from jitgrad._expr import param, scalar as s, var
from jitgrad._kernels.reduced import BLOCK, interpreted_middle, interpreted_sum, middle_kernel, sum_kernel

X, Y, A = var("x"), var("y"), param("a")
FLAT = s.tanh(X) * A + Y * Y
MIDDLE = s.square(X) * A
SUM = sum_kernel("tested", FLAT, ("x", "y"), ("a",))
ALONG = middle_kernel("tested", MIDDLE, ("a",))
RNG = np.random.Generator(np.random.PCG64(6))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 1023, 1024, 1025, 5000])
def test_flat(dtype, count):
    x, y = (RNG.normal(size=count).astype(dtype) for _ in range(2))
    found, wanted = np.empty((), dtype), np.empty((), dtype)
    SUM[np.dtype(dtype)](x, y, 0.75, 2.0, found)
    interpreted_sum(FLAT, ("x", "y", "a"))(x, y, 0.75, 2.0, wanted)
    np.testing.assert_allclose(found, wanted, rtol=1e-6 if dtype == np.float32 else 1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 5, 1), (3, 70, 1), (2, 1, 3), (1, 200, 7), (2, 67, 1030), (4, 0, 3), (0, 3, 2), (2, 4, 0)])
def test_middle(dtype, shape):
    outer, n, inner = shape
    x = RNG.normal(size=shape).astype(dtype)
    found, wanted = np.empty((outer, inner), dtype), np.empty((outer, inner), dtype)
    ALONG[np.dtype(dtype)](x, 0.5, outer, n, inner, 3.0, np.empty(min(inner, BLOCK)), found)
    interpreted_middle(MIDDLE, ("x", "a"))(x, 0.5, outer, n, inner, 3.0, None, wanted)
    np.testing.assert_allclose(found, wanted, rtol=1e-6 if dtype == np.float32 else 1e-13)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_stays(bad):
    x = np.ones((3, 5), np.float32)
    x[1, 2] = bad
    out = np.empty(5, np.float32)
    ALONG[x.dtype](x, 1.0, 1, 3, 5, 1.0, np.empty(5), out)
    np.testing.assert_array_equal(out, [3, 3, bad, 3, 3])
    rows = np.empty(3, np.float32)
    ALONG[x.dtype](x, 1.0, 3, 5, 1, 1.0, np.empty(1), rows)
    np.testing.assert_array_equal(rows, [5, bad, 5])
