"""Words that only compiled steps use, in functions of their own."""

import numba
import numpy as np
import pytest

import jitgrad as torch
from jitgrad import nn
from jitgrad._kernels.program import keep_rolled, rolled

ROWS, COLUMNS = 32, 16


def bias(x, b, out):
    for r in range(ROWS):
        for c in range(COLUMNS):
            out[r, c] = x[r, c] + b[c]


def bias_rolled(x, b, out):
    for r in range(ROWS):
        for c in range(COLUMNS):
            out[r, c] = x[r, c] + b[c]
            rolled()
    keep_rolled()


def test_a_rolled_loop_is_vectorised_along_its_columns():
    kind = numba.types.float32
    signature = numba.void(kind[:, ::1], kind[::1], kind[:, ::1])
    code = {}
    for function in (bias, bias_rolled):
        compiled = numba.njit(signature, error_model="numpy")(function)
        (code[function.__name__],) = compiled.inspect_llvm().values()
        x, b = np.arange(512, dtype="f4").reshape(ROWS, COLUMNS), np.arange(16, dtype="f4")
        out = np.empty_like(x)
        compiled(x, b, out)
        np.testing.assert_array_equal(out, x + b)
    assert "llvm.loop.unroll.disable" in code["bias_rolled"]
    assert "llvm.loop.unroll.disable" not in code["bias"]
    assert code["bias_rolled"].count("fadd") < code["bias"].count("fadd")  # else every column would have its own


@pytest.mark.parametrize(("width", "short"), [(4, False), (8, True), (16, True), (48, True), (56, False)])
def test_short_inner_loops_of_a_program_are_rolled(width, short):
    torch.manual_seed(0)
    layer = nn.Sequential(nn.Linear(3, width), nn.ReLU())
    compiled = torch.compile(lambda x: layer(x).detach())
    x = torch.randn(32, 3)
    for _ in range(2):
        found = compiled(x)
    assert ("rolled()" in compiled.source()) is short
    np.testing.assert_allclose(found.numpy(), layer(x).detach().numpy(), rtol=1e-6, atol=1e-7)
