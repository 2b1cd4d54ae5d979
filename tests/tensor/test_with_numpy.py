"""Tensors and NumPy's arrays in one expression, and memory shared by DLPack."""

import numpy as np
import pytest

from tests.libraries import lib

__all__ = ["lib"]
pytestmark = pytest.mark.filterwarnings("ignore:__array_wrap__ must accept:DeprecationWarning")
ARRAY = np.array([1.0, 4.0])


def same(found, lib, expected, dtype):
    assert isinstance(found, lib.Tensor)
    assert found.dtype is getattr(lib, dtype)
    assert found.tolist() == expected


def test_operators_with_arrays_give_tensors(lib):
    x = lib.tensor([2.0, 4.0])
    same(x + ARRAY, lib, [3.0, 8.0], "float64")
    same(x - ARRAY, lib, [1.0, 0.0], "float64")
    same(x * ARRAY, lib, [2.0, 16.0], "float64")
    same(x / ARRAY, lib, [2.0, 1.0], "float64")
    same(x**ARRAY, lib, [2.0, 256.0], "float64")
    same(x == ARRAY, lib, [False, True], "bool")
    same(np.equal(ARRAY, x), lib, [0, 1], "uint8")
    same(x * np.float64(2), lib, [4.0, 8.0], "float32")


def test_inequality_compares_elements():
    jitgrad = pytest.importorskip("jitgrad")  # torch says True
    same(jitgrad.tensor([2.0, 4.0]) != ARRAY, jitgrad, [True, False], "bool")


def test_functions_of_numpy_give_tensors(lib):
    x = lib.tensor([0.0, 4.0])
    same(np.sqrt(x), lib, [0.0, 2.0], "float32")
    same(np.maximum(x, 1), lib, [1.0, 4.0], "float32")
    same(np.isnan(x), lib, [0, 0], "uint8")
    assert all(isinstance(part, lib.Tensor) for part in np.modf(x))
    with pytest.raises(RuntimeError, match=r"Can't call numpy\(\) on Tensor that requires grad"):
        np.sqrt(lib.ones(2, requires_grad=True))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda t: ARRAY @ t.ones(2), ""),
        (lambda t: t.ones(2) < ARRAY, "'<' not supported between instances of 'Tensor' and 'numpy.ndarray'"),
        (lambda t: t.ones(2) + "a", "unsupported operand"),
    ],
)
def test_what_does_not_go_together(lib, call, words):
    with pytest.raises(TypeError, match=words or None):
        call(lib)


def test_dlpack_shares_memory(lib):
    x = lib.tensor([1.0, 2.0])
    array = np.from_dlpack(x)
    x[0] = 5
    assert array.tolist() == [5.0, 2.0]
    back = np.ones(2)
    y = lib.from_dlpack(back)
    y[0] = 7
    assert back.tolist() == [7.0, 1.0]
    with pytest.raises(BufferError, match=r"Can't export tensors that require gradient, use tensor.detach\(\)"):
        np.from_dlpack(lib.ones(1, requires_grad=True))


def test_dlpack_between_both():
    torch, jitgrad = pytest.importorskip("torch"), pytest.importorskip("jitgrad")
    x = jitgrad.tensor([1.0, 2.0])
    theirs = torch.from_dlpack(x)
    theirs += 1
    assert x.tolist() == [2.0, 3.0]
    assert jitgrad.from_dlpack(theirs).data_ptr() == x.data_ptr()
