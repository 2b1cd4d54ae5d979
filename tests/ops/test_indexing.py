"""Reading and writing by index: repeated indices, bounds, masks, transposes, node names, order."""

import numpy as np
import pytest

import jitgrad
from jitgrad._ops import places
from tests.libraries import lib

__all__ = ["lib"]
NAN = float("nan")


def leaf(lib, *values):
    return lib.tensor(list(values), dtype=lib.float64, requires_grad=True)


def long(lib, *values):
    return lib.tensor(list(values), dtype=lib.int64)


NODES = {
    "GatherBackward0": lambda t, x, i: x.gather(1, i),
    "IndexAddBackward0": lambda t, x, i: x.index_add(0, i[:, 0], x),
    "IndexBackward0": lambda t, x, i: x[i],
    "IndexCopyBackward0": lambda t, x, i: x.index_copy(1, i[:, 0], x[:, :2]),
    "IndexFillBackward0": lambda t, x, i: x.index_fill(1, i[:, 0], 2),
    "IndexFillBackward1": lambda t, x, i: x.index_fill(1, i[:, 0], x[0, 0]),
    "IndexPutBackward0": lambda t, x, i: x.index_put((i[:, 0],), x[0]),
    "IndexSelectBackward0": lambda t, x, i: x.index_select(1, i[:, 0]),
    "MaskedScatterBackward0": lambda t, x, i: x.masked_scatter(x > 2, x),
    "MaskedSelectBackward0": lambda t, x, i: x.masked_select(x > 2),
    "PutBackward0": lambda t, x, i: x.put(i, x[:, :2]),
    "ScatterAddBackward0": lambda t, x, i: x.scatter_add(1, i, x),
    "ScatterBackward0": lambda t, x, i: x.scatter(1, i, x),
    "ScatterBackward1": lambda t, x, i: x.scatter(1, i, 2.0),
    "ScatterReduceBackward0": lambda t, x, i: x.scatter_reduce(1, i, x, "prod"),
    "SelectScatterBackward0": lambda t, x, i: x.select_scatter(x[1], 0, 0),
    "SliceScatterBackward0": lambda t, x, i: x.slice_scatter(x[:1], 0, 0, 1),
    "SortBackward0": lambda t, x, i: x.sort().values,
    "SortBackward1": lambda t, x, i: x.sort(stable=True).values,
    "TakeBackward0": lambda t, x, i: x.take(i),
    "TopkBackward0": lambda t, x, i: x.topk(2).values,
}


@pytest.mark.parametrize("name", NODES)
def test_node_names(lib, name):
    x = leaf(lib, [1.0, 2.0, 3.0], [4.0, 5.0, 6.0])
    y = NODES[name](lib, x, long(lib, [1, 1], [0, 1]))
    assert y.grad_fn.name() == name


# ---------------------------------------------------------------- repeated indices
REPEATED = {
    "brackets": (lambda t, x: x[[0, 0, 2]], [2, 0, 1]),
    "index_select": (lambda t, x: x.index_select(0, long(t, 0, 0, 2)), [2, 0, 1]),
    "gather": (lambda t, x: x.gather(0, long(t, 0, 0, 2)), [2, 0, 1]),
    "take": (lambda t, x: x.take(long(t, 0, -3, 2)), [2, 0, 1]),
    "take_along_dim": (lambda t, x: t.take_along_dim(x, long(t, 0, 0, -1), 0), [2, 0, 1]),
    "two axes": (lambda t, x: x.expand(2, 3)[[0, 1, 1], [2, 2, 2]], [0, 0, 3]),
    "apart": (lambda t, x: x.expand(2, 2, 3)[[0, 0], :, [1, 1]], [0, 4, 0]),
}


@pytest.mark.parametrize("name", REPEATED)
@pytest.mark.parametrize("kind", ["float32", "float64", "float16"])
def test_repeated_indices_add_up(lib, name, kind):
    call, right = REPEATED[name]
    x = lib.tensor([1.0, 2.0, 3.0], dtype=getattr(lib, kind), requires_grad=True)
    call(lib, x).sum().backward()
    assert x.grad.tolist() == right


def test_scatter_add_of_repeated_indices(lib):
    src = leaf(lib, 1.0, 2.0, 3.0)
    (lib.zeros(3, dtype=lib.float64).scatter_add(0, long(lib, 0, 0, 2), src) ** 2).sum().backward()
    assert src.grad.tolist() == [6, 6, 6]


def test_a_source_larger_than_the_index():
    src = leaf(jitgrad, [1.0, 2.0, 3.0], [4.0, 5.0, 6.0])
    for name in ("scatter", "scatter_add"):
        src.grad = None
        getattr(jitgrad.zeros(2, 3, dtype=jitgrad.float64), name)(1, long(jitgrad, [0, 2]), src).sum().backward()
        assert src.grad.tolist() == [[1, 1, 0], [0, 0, 0]]


# ---------------------------------------------------------------- bounds
OUTSIDE = [
    (lambda t, x, i: x[i], IndexError),
    (lambda t, x, i: x[:, i], IndexError),
    (lambda t, x, i: x[i, i], IndexError),
    (lambda t, x, i: x.index_select(0, i), IndexError),
    (lambda t, x, i: x.index_copy(0, i, x[:1]), IndexError),
    (lambda t, x, i: x.index_fill(0, i, 1), IndexError),
    (lambda t, x, i: x.take(i), IndexError),
    (lambda t, x, i: x.put(i, x[0, :1]), IndexError),
    (lambda t, x, i: x.index_put((i,), x[:1]), IndexError),
    (lambda t, x, i: x.index_add(0, i, x[:1]), RuntimeError),
    (lambda t, x, i: x.gather(0, i[None]), RuntimeError),
    (lambda t, x, i: x.scatter(0, i[None], x), RuntimeError),
    (lambda t, x, i: x.scatter(0, i[None], 1.0), RuntimeError),
    (lambda t, x, i: x.scatter_add(0, i[None], x), RuntimeError),
]


@pytest.mark.parametrize("bad", [1000, -1000])
@pytest.mark.parametrize(("call", "error"), OUTSIDE)
def test_an_index_out_of_range(lib, call, error, bad):
    x = leaf(lib, [1.0, 2.0], [3.0, 4.0])
    with pytest.raises(error, match=r"out of range|out of bounds"):
        call(lib, x, long(lib, bad))


def test_negative_indices_only_where_torch_takes_them(lib):
    x = leaf(lib, 1.0, 2.0, 3.0)
    assert x[[-1]].tolist() == x.take(long(lib, -1)).tolist() == [3]
    for call in (x.index_select, x.gather):
        with pytest.raises((IndexError, RuntimeError)):
            call(0, long(lib, -1))


def test_a_saved_index_is_checked_again_before_a_kernel_goes_by_it():
    index = jitgrad.tensor([0, 2])
    x = leaf(jitgrad, 1.0, 2.0, 3.0)
    for y in (x.gather(0, index), x.index_select(0, index)):
        index.numpy()[0] = 10**9
        with pytest.raises(IndexError, match="index 1000000000 is out of bounds"):
            y.sum().backward()
        index.numpy()[0] = 0


def test_bounds_are_those_of_each_end():
    assert places.outside(np.array([0, 2]), 3) is None
    assert places.outside(np.array([], int), 0) is None
    assert places.outside(np.array([1, 3]), 3) == 3
    assert places.outside(np.array([1, -1], np.int32), 3) == -1


# ---------------------------------------------------------------- transposes
LINEAR = {
    "index": lambda t, x: x[[2, 0, 2], :, [1, 1, 0]],
    "index in the middle": lambda t, x: x[:, [[1, 0], [1, 1]]],
    "two neighbours": lambda t, x: x[:, [1, 0, 1], [3, 3, 0]],
    "mask": lambda t, x: x[x.detach() > 0],
    "index_select": lambda t, x: x.index_select(1, long(t, 1, 1, 0)),
    "gather": lambda t, x: x.gather(2, long(t, [[3, 0], [1, 1]])),
    "gather whole": lambda t, x: x.gather(1, (x.detach() > 0).long()),
    "masked_select": lambda t, x: x.masked_select(x.detach()[:1] > 0),
    "masked_scatter": lambda t, x: x.masked_scatter(x.detach() > 0, x * 2),
    "scatter": lambda t, x: x.scatter(1, long(t, [[1, 0], [0, 1]]), 3 * x[:1, :, :2]),
    "scatter_add": lambda t, x: x.scatter_add(0, long(t, [[1, 0], [0, 1]], [[1, 1], [1, 2]]), 3 * x[:2, :, :2]),
    "scatter number": lambda t, x: x.scatter(1, long(t, [[1, 0], [0, 1]]), 0.0),
    "index_add": lambda t, x: x.index_add(1, long(t, 1, 1), 2 * x, alpha=3),
    "index_copy": lambda t, x: x.index_copy(2, long(t, 3, 0, 1), 2 * x[..., :3]),
    "index_fill": lambda t, x: x.index_fill(2, long(t, -1, 0), 0),
    "index_put": lambda t, x: x.index_put((long(t, 0, 2), long(t, 1, 1)), 2 * x[0]),
    "index_put accumulating": lambda t, x: x.index_put((long(t, 1, 1),), 2 * x[0], accumulate=True),
    "take": lambda t, x: x.take(long(t, [0, -1], [5, 5])),
    "put": lambda t, x: x.put(long(t, 0, -1), x[0, 0, :2]),
    "put accumulating": lambda t, x: x.put(long(t, 0, 0), x[0, 0, :2], accumulate=True),
    "select_scatter": lambda t, x: x.select_scatter(2 * x[0], 0, 2),
    "slice_scatter": lambda t, x: x.slice_scatter(2 * x[..., :2], 2, 0, 4, 2),
    "diagonal_scatter": lambda t, x: x.diagonal_scatter(2 * x[..., 0], 0, 1, 2),
    "sort": lambda t, x: x.sort(1, descending=True).values,
    "topk": lambda t, x: x.topk(2, 2).values,
    "kthvalue": lambda t, x: x.kthvalue(2, 0).values,
    "scatter_reduce mean": lambda t, x: x.scatter_reduce(1, (x.detach() > 0).long(), x * 2, "mean"),
}


@pytest.mark.parametrize("kind", ["float64", "float32"])
@pytest.mark.parametrize("name", LINEAR)
def test_the_transpose_is_the_transpose(lib, name, kind):
    """<A x, v> = <x, A' v>, and the transpose of the transpose gives A again; x is no C-contiguous array."""
    call, rng = LINEAR[name], np.random.default_rng(2)
    x = lib.from_numpy(rng.standard_normal((4, 2, 3)).astype(kind)).permute(2, 1, 0).requires_grad_()
    y = call(lib, x)
    v = lib.from_numpy(rng.standard_normal(y.shape).astype(kind)).requires_grad_()
    (back,) = lib.autograd.grad(y, x, v, create_graph=True)
    scale = 1e-5 if kind == "float32" else 1e-12
    assert np.isclose((y * v).sum().item(), (x * back).sum().item(), atol=10 * scale)
    (again,) = lib.autograd.grad(back, v, x.detach())
    assert np.allclose(again.detach().numpy(), y.detach().numpy(), atol=scale)


@pytest.mark.parametrize("reduce", ["prod", "amax", "amin", "mean", "sum"])
@pytest.mark.parametrize("include_self", [True, False])
def test_scatter_reduce_gradients(lib, reduce, include_self):
    index = long(lib, [0, 0, 2])
    start = np.array([[1.0, 2.0, 3.0]]), np.array([[2.0, 0.5, 3.5]])

    def value(a, b):
        return a.scatter_reduce(1, index, b, reduce, include_self=include_self).mul(lib.tensor([1.0, 10, 100])).sum()

    a, b = (lib.tensor(x, requires_grad=True) for x in start)
    value(a, b).backward()
    for k, tensor in enumerate((a, b)):
        for j in range(3):
            ahead, behind = ([x.copy() for x in start] for _ in range(2))
            ahead[k][0, j] += 1e-6
            behind[k][0, j] -= 1e-6
            slope = (value(*map(lib.tensor, ahead)) - value(*map(lib.tensor, behind))).item() / 2e-6
            assert np.isclose(tensor.grad[0, j].item(), slope, atol=1e-4)


# ---------------------------------------------------------------- dtypes without kernels
@pytest.mark.parametrize("kind", ["int64", "uint8", "float16", "bool"])
def test_other_dtypes(lib, kind):
    x = lib.tensor([[1, 0, 1], [0, 1, 1]], dtype=getattr(lib, kind))
    index = long(lib, [1, 1], [0, 2])
    assert x.gather(1, index).tolist() == [[0, 0], [0, 1]]
    assert x.index_select(1, long(lib, 2, 0)).tolist() == [[1, 1], [1, 0]]
    assert x.index_add(0, long(lib, 0, 0), x).tolist() == [[2, 1, 3], [0, 1, 1]] if kind != "bool" else True
    assert x.scatter(1, index, x).tolist() == [[1, 0, 1], [0, 1, 1]]
    assert x[[1, 1]].tolist() == [[0, 1, 1], [0, 1, 1]]


def test_kernels_agree_with_numpy():
    rng = np.random.default_rng(3)
    for kind in (np.float32, np.float64):
        index = rng.integers(0, 5, 40)
        values = rng.standard_normal((3, 40, 2)).astype(kind)
        out, right = np.zeros((3, 5, 2), kind), np.zeros((3, 5, 2), kind)
        places.add_rows(out, index, values, 1)
        np.add.at(right, (slice(None), index), values)
        assert (out == right).all()
        whole = rng.integers(0, 5, (3, 7, 2))
        table = rng.standard_normal((3, 5, 2)).astype(kind)
        assert (places.take_along(table, whole, 1) == np.take_along_axis(table, whole, 1)).all()


# ---------------------------------------------------------------- masks
def test_masks(lib):
    x = leaf(lib, [1.0, 2.0], [3.0, 4.0])
    assert x[x > 2].tolist() == x.masked_select(x > 2).tolist() == [3, 4]
    assert x.nonzero().shape == (4, 2)
    assert [i.tolist() for i in (x > 1).nonzero(as_tuple=True)] == [[0, 1, 1], [1, 0, 1]]
    with pytest.raises(RuntimeError, match="masked_select: expected BoolTensor for mask"):
        x.masked_select(long(lib, 1, 0))
    with pytest.raises(RuntimeError, match="Number of elements of source < number of ones in mask"):
        x.masked_scatter(x > 0, x[0])


# ---------------------------------------------------------------- order
def test_nan_is_the_largest(lib):
    x = lib.tensor([2.0, NAN, 1.0, 3.0])
    assert x.sort().indices.tolist() == [2, 0, 3, 1]
    assert x.sort(descending=True).indices.tolist() == [1, 3, 0, 2]
    assert x.topk(2).indices.tolist() == [1, 3]
    assert x.topk(4, largest=False).indices.tolist() == [2, 0, 3, 1]
    assert x.kthvalue(4).indices.item() == 1


def test_sorting_is_stable(lib):
    x = lib.tensor([1, 0, 1, 0])
    assert x.sort(stable=True).indices.tolist() == x.argsort(stable=True).tolist() == [1, 3, 0, 2]
    assert x.sort(stable=True, descending=True).indices.tolist() == [0, 2, 1, 3]


@pytest.mark.parametrize("n", [1, 7, 300])
@pytest.mark.parametrize("k", [1, 5, 40])
@pytest.mark.parametrize("largest", [True, False])
def test_topk_is_the_front_of_sort(n, k, largest):
    rng = np.random.default_rng(n)
    x = jitgrad.tensor(rng.integers(0, 50, (3, n, 2)).astype(np.float32))
    k = min(k, n)
    right = x.sort(1, descending=largest)
    found = x.topk(k, 1, largest)
    assert (found.values == right.values[:, :k]).all()
    assert (x.gather(1, found.indices) == found.values).all()


def test_unique_and_searching(lib):
    x = lib.tensor([3, 1, 3, 2])
    values, inverse, counts = lib.unique(x, return_inverse=True, return_counts=True)
    assert (values.tolist(), inverse.tolist(), counts.tolist()) == ([1, 2, 3], [2, 0, 2, 1], [1, 1, 2])
    assert lib.unique_consecutive(lib.tensor([1, 1, 2, 1])).tolist() == [1, 2, 1]
    with pytest.raises(NotImplementedError, match="the derivative for '_unique2' is not implemented"):
        lib.unique(leaf(lib, 1.0, 2.0)).sum().backward()
    edges = lib.tensor([1.0, 2.0, 3.0])
    assert lib.bucketize(lib.tensor([2.0, 5.0]), edges).tolist() == [1, 3]
    assert lib.searchsorted(edges, lib.tensor([2.0]), right=True).tolist() == [2]
    assert lib.isin(x, lib.tensor([1, 2])).tolist() == [False, True, False, True]


def test_results_with_names(lib):
    result = lib.tensor([2.0, 1.0]).sort()
    assert result.values.tolist() == [1, 2]
    assert repr(result) == "torch.return_types.sort(\nvalues=tensor([1., 2.]),\nindices=tensor([1, 0]))"


# ---------------------------------------------------------------- axes of length zero
def test_empty_indices(lib):
    x = lib.zeros(3, 2, requires_grad=True)
    none = lib.zeros(0, dtype=lib.int64)
    for y in (
        x[none],
        x.index_select(0, none),
        x.gather(0, lib.zeros(0, 2, dtype=lib.int64)),
        x[:, none],
        x.masked_select(x > 1),
    ):
        assert y.numel() == 0
        y.sum().backward()
    assert x.grad.tolist() == [[0, 0]] * 3
    wide = lib.zeros(4, 0, requires_grad=True)
    column = leaf(lib, 1.0, 2.0, 3.0, 4.0)
    (wide + column[:, None]).sum().backward()
    assert column.grad.tolist() == [0, 0, 0, 0]
    assert wide.grad.shape == (4, 0)
