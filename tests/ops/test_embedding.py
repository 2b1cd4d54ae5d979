"""Embedding: indices out of range, repeated ones, padding, frequencies, the second derivative."""

import pytest

from tests.libraries import lib

__all__ = ["lib"]


def grad(lib, indices, dtype="int64", **options):
    weight = lib.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], requires_grad=True)
    found = lib.nn.functional.embedding(lib.tensor(indices, dtype=getattr(lib, dtype)), weight, **options)
    found.sum().backward()
    return found, weight.grad[:, 0].tolist()


@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_rows_and_repeated_rows(lib, dtype):
    found, column = grad(lib, [[0, 2], [2, 2]], dtype)
    assert found.tolist() == [[[1, 2], [5, 6]], [[5, 6], [5, 6]]]
    assert column == [1, 0, 3]
    assert found.grad_fn.name() == "EmbeddingBackward0"


def test_padding_and_frequencies(lib):
    assert grad(lib, [0, 0, 1], padding_idx=1)[1] == [2, 0, 0]
    assert grad(lib, [0, 0, 1], padding_idx=-3)[1] == [0, 1, 0]
    assert grad(lib, [0, 0, 1], scale_grad_by_freq=True)[1] == [1, 1, 0]


@pytest.mark.parametrize("index", [3, -1, 1 << 40])
def test_out_of_range(lib, index):
    with pytest.raises(IndexError, match="index out of range in self"):
        grad(lib, [0, index])


def test_shapes(lib):
    found, column = grad(lib, 1)
    assert found.tolist() == [3, 4]
    assert column == [0, 1, 0]
    weight = lib.ones(3, 2)
    assert lib.nn.functional.embedding(lib.zeros(0, 4, dtype=lib.int64), weight).shape == (0, 4, 2)
    strided = lib.tensor([0, 9, 1, 9])[::2]
    assert lib.nn.functional.embedding(strided, lib.tensor([[1.0], [2.0]])).tolist() == [[1], [2]]
    with pytest.raises(RuntimeError, match="scalar types: Long, Int"):
        grad(lib, [0.0], "float32")


def test_second_derivative_knows_the_padding(lib):
    weight = lib.tensor([[1.0], [2.0]], requires_grad=True)
    indices = lib.tensor([0, 1, 0])
    (first,) = lib.autograd.grad((lib.nn.functional.embedding(indices, weight, padding_idx=0) ** 2).sum(), weight, create_graph=True)
    assert first.tolist() == [[0], [4]]
    (second,) = lib.autograd.grad(first.sum(), weight)
    assert second.tolist() == [[0], [2]]
