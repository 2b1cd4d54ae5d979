"""Indices that come twice or lead outside, and axes of size 0."""

import pytest

from tests.libraries import leaf, lib

__all__ = ["lib"]


# ---- S05
def test_s05_repeated_indices_add_up(lib):
    x = leaf(lib, 1.0, 2.0, 3.0)
    x[[0, 0, 2]].sum().backward()
    assert x.grad.tolist() == [2, 0, 1]


def test_s05_repeated_indices_of_scatter_add(lib):
    src = leaf(lib, 1.0, 2.0, 3.0, dtype="float64")
    out = lib.zeros(3, dtype=lib.float64).scatter_add(0, lib.tensor([0, 0, 2]), src)
    assert out.tolist() == [3, 0, 3]
    (out**2).sum().backward()
    assert src.grad.tolist() == [6, 6, 6]


def test_s05_repeated_rows_of_an_embedding(lib):
    table = lib.ones(3, 2, requires_grad=True)
    lib.nn.functional.embedding(lib.tensor([[0, 2], [2, 2]]), table).sum().backward()
    assert table.grad.tolist() == [[1, 1], [0, 0], [3, 3]]


# ---- S06
def test_s06_broadcasting_against_an_axis_of_size_0(lib):
    a, b = lib.zeros(4, 0, requires_grad=True), leaf(lib, 1.0, 2.0, 3.0, 4.0)
    (a + b[:, None]).sum().backward()
    assert b.grad.tolist() == [0, 0, 0, 0]
    assert tuple(a.grad.shape) == (4, 0)


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_s06_scans_of_nothing(lib, name):
    x = lib.zeros(2, 0, requires_grad=True)
    getattr(lib, name)(x, -1).sum().backward()
    assert tuple(x.grad.shape) == (2, 0)


def test_s06_a_product_over_nothing(lib):
    a, b = lib.zeros(3, 0, requires_grad=True), lib.zeros(0, 4, requires_grad=True)
    c = a @ b
    assert c.tolist() == [[0] * 4] * 3
    assert c.grad_fn is not None
    c.sum().backward()
    assert (tuple(a.grad.shape), tuple(b.grad.shape)) == ((3, 0), (0, 4))


# ---- S23
@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda lib, x: x[[1000]], IndexError), (lambda lib, x: x[1000], IndexError), (lambda lib, x: x[[-4]], IndexError),
        (lambda lib, x: x[lib.tensor([1000])], IndexError),
        (lambda lib, x: lib.nn.functional.embedding(lib.tensor([5]), lib.ones(3, 2)), IndexError),
        (lambda lib, x: lib.nn.functional.cross_entropy(lib.ones(1, 2), lib.tensor([5])), IndexError),
        (lambda lib, x: lib.nn.functional.nll_loss(lib.ones(1, 2), lib.tensor([-1])), IndexError),
        (lambda lib, x: lib.zeros(3).scatter_add(0, lib.tensor([3]), lib.ones(1)), RuntimeError),
        (lambda lib, x: x.gather(0, lib.tensor([3])), RuntimeError), (lambda lib, x: x.index_select(0, lib.tensor([3])), IndexError),
    ],
)  # fmt: skip
def test_s23_an_index_out_of_range(lib, call, error):
    with pytest.raises(error):
        call(lib, lib.tensor([1.0, 2.0, 3.0]))


def test_s23_an_index_from_the_end(lib):
    assert lib.tensor([1.0, 2.0, 3.0])[[-1]].tolist() == [3]
