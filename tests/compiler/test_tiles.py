"""Products in tiles of vector registers: every shape of tile, both orders of both operands, both dtypes."""

import numpy as np
import pytest

import jitgrad as torch
from jitgrad._kernels import tiling

needs_tiles = pytest.mark.skipif(not tiling.in_tiles(128, 256, 128, np.dtype("f4"), False), reason="no 512-bit vectors here, or a better BLAS")
SHAPES = [(64, 96, 64), (132, 80, 64), (12, 16, 1024), (100, 240, 48), (48, 176, 32), (65, 90, 33), (7, 12, 40), (10, 70, 64), (11, 47, 2)]


@needs_tiles
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", SHAPES)
def test_products(shape, dtype, monkeypatch):
    monkeypatch.setattr(tiling, "SMALLEST", 1)
    m, n, k = shape
    rng = np.random.default_rng(0)

    def matrix(rows, columns):
        return torch.tensor(rng.standard_normal((rows, columns)).astype(dtype))

    compiled = torch.compile(lambda a, b, at, bt: (a @ b, at.t() @ b, a @ bt.t(), at.t() @ bt.t()))
    for _ in range(3):
        given = matrix(m, k), matrix(k, n), matrix(k, m), matrix(n, k)
        a, b, at, bt = (x.numpy().astype("f8") for x in given)
        for found, left, right in zip(compiled(*given), (a, at.T, a, at.T), (b, b, bt.T, bt.T), strict=True):
            error = np.abs(found.numpy() - left @ right) / (np.abs(left) @ np.abs(right))
            assert error.max() < (1e-6 if dtype == "f4" else 1e-15)
    assert compiled.history == []
    assert compiled.source().count("tile_") > 4
    lanes = 64 // np.dtype(dtype).itemsize
    assert ("tile_across(" in compiled.source()) is (m % lanes == n % lanes == k % lanes == 0 and m < n)


@needs_tiles
@pytest.mark.parametrize("columns", [64, 42])
def test_nan_and_infinity_stay_in_their_rows_and_columns(columns):
    a, b = np.ones((63, 64), "f4"), np.ones((64, columns), "f4")
    a[3, 5], b[7, 9], b[63, columns - 1] = np.nan, np.inf, np.inf
    compiled = torch.compile(lambda x, y: x @ y)
    for _ in range(2):
        found = compiled(torch.tensor(a), torch.tensor(b)).numpy()
    assert "tile_" in compiled.source()
    np.testing.assert_array_equal(np.isnan(found), np.isnan(a @ b))
    np.testing.assert_array_equal(np.isposinf(found), np.isposinf(a @ b))


@needs_tiles
def test_nothing_is_written_beyond_the_last_column():
    x, w = torch.ones(9, 64), torch.ones(64, 10)
    memory = torch.full((9, 12), 7.0)

    def step(x, w, memory):
        memory[:, :10] = x @ w
        return memory.sum()

    compiled = torch.compile(step)
    for _ in range(2):
        memory.fill_(7.0)
        compiled(x, w, memory)
    assert "tile_" in compiled.source()
    np.testing.assert_array_equal(memory.numpy(), [[64.0] * 10 + [7.0] * 2] * 9)


def test_what_stays_with_blas():
    single = np.dtype("f4")
    assert not tiling.in_tiles(1024, 1024, 1024, single, False)  # the second operand is larger than the cache
    assert not tiling.in_tiles(128, 7, 128, single, False)  # most lanes would be idle
    assert not tiling.in_tiles(8, 16, 16, single, False)
    assert not tiling.in_tiles(128, 250, 128, single, True)
    assert not tiling.in_tiles(128, 256, 128, np.dtype("i8"), False)
