"""Reductions: node names, ties, the origin, zeros, empty axes, accuracy, dtypes, arguments."""

import math

import numpy as np
import pytest

from tests.libraries import leaf, lib

__all__ = ["lib"]
INF, NAN = math.inf, math.nan
X = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
NODES = {
    "SumBackward0": lambda t, x: x.sum(),
    "SumBackward1": lambda t, x: x.sum(0),
    "MeanBackward0": lambda t, x: x.mean(),
    "MeanBackward1": lambda t, x: x.mean((0, 1)),
    "ProdBackward0": lambda t, x: x.prod(),
    "ProdBackward1": lambda t, x: x.prod(1),
    "MaxBackward0": lambda t, x: x.max(1).values,
    "MaxBackward1": lambda t, x: x.max(),
    "MinBackward0": lambda t, x: x.min(0).values,
    "MinBackward1": lambda t, x: x.min(),
    "AmaxBackward0": lambda t, x: x.amax(),
    "AminBackward0": lambda t, x: x.amin(0),
    "VarBackward0": lambda t, x: x.var(),
    "StdBackward0": lambda t, x: x.std(1),
    "LinalgVectorNormBackward0": lambda t, x: x.norm(),
    "LogsumexpBackward0": lambda t, x: x.logsumexp(0),
    "CumsumBackward0": lambda t, x: x.cumsum(0),
    "CumprodBackward0": lambda t, x: x.cumprod(0),
}


@pytest.mark.parametrize("name", NODES)
def test_node_names(lib, name):
    x = lib.tensor(X, requires_grad=True)
    assert NODES[name](lib, x).grad_fn.name() == name


def grad_of(call, *values, dtype="float64", lib):
    x = leaf(lib, *values, dtype=dtype)
    call(x).sum().backward()
    return x.grad.tolist()


def test_ties_share_or_follow_the_index(lib):
    def grad(call, *values):
        return grad_of(call, *values, lib=lib)

    assert grad(lambda x: x.max(), 0.1, 0.3, 0.3) == [0, 0.5, 0.5]
    assert grad(lambda x: x.min(), 0.3, 0.1, 0.1) == [0, 0.5, 0.5]
    assert grad(lambda x: x.amax(0), 0.3, 0.1, 0.3) == [0.5, 0, 0.5]
    assert grad(lambda x: x.amax((0, 1)), [1, 2], [2, 0]) == [[0, 0.5], [0.5, 0]]
    assert grad(lambda x: x.max(dim=0).values, 0.3, 0.1, 0.3) == [1, 0, 0]
    assert grad(lambda x: x.min(dim=0).values, 0.3, 0.1, 0.1) == [0, 1, 0]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64"])
def test_indices_name_the_first(lib, dtype):
    x = lib.tensor([[3, 1, 3], [0, 2, 2]], dtype=getattr(lib, dtype))
    assert x.max(1).indices.tolist() == x.argmax(1).tolist() == [0, 1]
    assert x.min(1).indices.tolist() == x.argmin(1).tolist() == [1, 0]
    assert x.max(0).indices.tolist() == [0, 1, 0]
    assert (x.argmax().item(), x.argmin().item()) == (0, 3)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("dim", [0, 1])
def test_nan_is_the_largest_and_the_smallest(lib, dtype, dim):
    x = lib.tensor([[1.0, NAN, 5.0, NAN]] * 2, dtype=getattr(lib, dtype))
    x = x.t() if dim == 0 else x
    assert x.max(dim).indices.tolist() == x.min(dim).indices.tolist() == x.argmax(dim).tolist() == [1, 1]
    for found in (x.max(), x.min(), x.amax(), x.amin(dim)[0], x.max(dim).values[0], x.sum(), x.prod(), x.norm(INF)):
        assert math.isnan(found.item())


def test_norms_at_the_origin(lib):
    cases = [
        (lambda x: x.norm(), [0, 0, 0], [0, 0, 0]),
        (lambda x: x.norm() ** 2, [0, 0, 0], [0, 0, 0]),
        (lambda x: x.norm(p=1), [0, 0, 0.2], [0, 0, 1]),
        (lambda x: x.norm(p=1.5), [0, 0], [0, 0]),
        (lambda x: x.norm(p=0.5), [0, 0], [0, 0]),
        (lambda x: x.norm(p=INF), [2, -2, 1], [0.5, -0.5, 0]),
    ]
    for call, values, wanted in cases:
        assert grad_of(call, *values, lib=lib) == pytest.approx(wanted, abs=1e-12)
    assert all(map(math.isnan, grad_of(lambda x: (x * x).sum().sqrt(), 0, 0, lib=lib))) or lib.__name__ == "jitgrad"


def test_products_with_zeros(lib):
    def grad(call, *values):
        return grad_of(call, *values, lib=lib)

    assert grad(lambda x: x.cumprod(0), 2, 0, 3, 4) == [1, 32, 0, 0]
    assert grad(lambda x: x.cumprod(0), 0, 2, 3) == [9, 0, 0]
    assert grad(lambda x: x.cumprod(0), 2, 0, 0, 3) == [1, 2, 0, 0]
    assert grad(lambda x: x.prod(), 2, 0, 3) == [0, 6, 0]
    assert grad(lambda x: x.prod(), 0, 0, 3) == [0, 0, 0]
    assert grad(lambda x: x.prod(0), [2, 0], [3, 4]) == [[3, 4], [2, 0]]


def test_products_have_third_derivatives(lib):
    x = leaf(lib, 2.0, 0.0, 3.0, dtype="float64")
    (first,) = lib.autograd.grad(x.cumprod(0).sum(), x, create_graph=True)  # 1 + b + bc, a + ac, ab
    (second,) = lib.autograd.grad(first[0], x, create_graph=True)
    assert second.tolist() == [0, 4, 0]
    (third,) = lib.autograd.grad(second[1], x)
    assert third.tolist() == [0, 0, 1]


def test_axes_of_length_zero(lib):
    x = lib.zeros(2, 0, requires_grad=True)
    for call in (lambda x: x.cumsum(1), lambda x: x.cumprod(1), lambda x: x.sum(1), lambda x: x.prod(1), lambda x: x.norm(2, 1)):
        call(x).sum().backward()
        assert x.grad.shape == (2, 0)
    assert x.sum().item() == 0
    assert x.prod().item() == 1
    assert x.logsumexp(1).tolist() == [-INF, -INF]
    assert math.isnan(x.mean().item())
    assert x.sum(0).shape == (0,)
    assert (x.all().item(), x.any().item()) == (True, False)
    a, b = lib.zeros(4, 0, requires_grad=True), leaf(lib, 1.0, 2.0, 3.0, 4.0)
    (a + b[:, None]).sum().backward()
    assert b.grad.tolist() == [0, 0, 0, 0]
    assert a.grad.shape == (4, 0)


def test_zero_d(lib):
    x = lib.tensor(3.0, requires_grad=True)
    for name in ("sum", "mean", "max", "cumsum", "prod", "amax"):
        result = getattr(x, name)(0)
        result = result.values if name == "max" else result
        assert (result.shape, result.item()) == ((), 3)
        x.grad = None
        result.backward()
        assert x.grad.item() == 1
    assert x.argmax(0).item() == 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_are_good_to_a_rounding(lib, dtype):
    if lib.__name__ == "torch":
        pytest.skip("torch's float32 sums are less accurate")
    values = np.random.Generator(np.random.PCG64(0)).random((3000, 301)).astype(dtype)
    x = lib.tensor(values)
    wide = values.astype(np.longdouble)
    spacing = np.finfo(dtype).eps
    for found, wanted in (
        (x.sum(), wide.sum()),
        (x.mean(), wide.mean()),
        (x.sum(0), wide.sum(0)),
        (x.sum(1), wide.sum(1)),
        (x.t().sum(0), wide.sum(1)),
        (x.norm(), np.sqrt((wide**2).sum())),
        (x.norm(2, 0), np.sqrt((wide**2).sum(0))),
    ):
        error = np.abs(found.numpy() - wanted) / wanted
        assert error.max() < (3 * spacing if dtype == "float32" else 40 * spacing)


def test_variance_of_values_far_from_zero(lib):
    x = lib.tensor([10000.0, 10001.0, 10002.0])
    assert x.var().item() == pytest.approx(1, abs=1e-6)
    assert lib.stack([x, x]).var(0).tolist() == [0, 0, 0]


def test_std_of_equals_has_no_gradient(lib):
    assert grad_of(lambda x: x.std(), 2, 2, 2, lib=lib) == [0, 0, 0]


def test_no_degree_of_freedom(lib):
    with pytest.warns(UserWarning, match=r"degrees of freedom is <= 0"):
        assert math.isnan(lib.tensor([3.0]).var().item())
    with pytest.warns(UserWarning, match=r"degrees of freedom is <= 0"):
        assert lib.tensor([1.0, 2.0]).var(0, correction=3).item() == INF


def test_logsumexp_at_the_ends(lib):
    assert lib.tensor([1000.0, 1000.0]).logsumexp(0).item() == pytest.approx(1000 + math.log(2))
    assert lib.tensor([-INF, -INF]).logsumexp(0).item() == -INF
    assert lib.tensor([INF, 1.0]).logsumexp(0).item() == INF
    assert math.isnan(lib.tensor([NAN, 1.0]).logsumexp(0).item())
    assert lib.tensor([0, 0]).logsumexp(0).dtype is lib.float32


def test_result_dtypes(lib):
    small = lib.tensor([1, 2], dtype=lib.uint8)
    assert {call().dtype for call in (small.sum, small.prod, lib.tensor([True]).sum)} == {lib.int64}
    assert small.cumsum(0).dtype is lib.int64
    assert (small.max().dtype, small.amax().dtype, small.max(0).values.dtype) == (lib.uint8,) * 3
    assert (small.all().dtype, small.any(0).dtype, lib.tensor([1.0]).any().dtype) == (lib.uint8, lib.uint8, lib.bool)
    half = lib.tensor([1.0, 2.0], dtype=lib.float16)
    assert {half.sum().dtype, half.mean().dtype, half.var().dtype, half.norm().dtype, half.cumsum(0).dtype} == {lib.float16}
    x = leaf(lib, 1.0, 2.0)
    wide = x.sum(dtype=lib.float64)
    wide.backward()
    assert (wide.dtype, x.grad.dtype) == (lib.float64, lib.float32)
    assert (x.sum(dtype=float).dtype, small.mean(dtype=float).dtype, small.prod(dtype=int).dtype) == (lib.float64, lib.float64, lib.int64)
    with pytest.raises(TypeError, match="dtype"):
        x.sum(dtype="float32")


def test_float16_sums_are_wide(lib):
    assert lib.full((4096,), 0.1, dtype=lib.float16).mean().item() == pytest.approx(0.1, rel=1e-3)


def test_layouts(lib):
    if lib.__name__ == "torch":
        pytest.skip("from_numpy takes no negative strides there")
    values = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for array in (values[:, ::-1], values[:, :, ::2], values.transpose(2, 0, 1), np.broadcast_to(values[:1], (2, 3, 4))):
        x = lib.tensor(values)
        x.array = array
        for dim in (0, 1, 2, (0, 2), (1, 2)):
            np.testing.assert_allclose(x.sum(dim).numpy(), array.sum(dim))
            np.testing.assert_allclose(x.amax(dim).numpy(), array.max(dim))
        np.testing.assert_array_equal(x.argmax(1).numpy(), array.argmax(1))
        np.testing.assert_allclose(x.cumsum(1).numpy(), array.cumsum(1))


def test_numpy_names(lib):
    x = lib.tensor(X)
    assert x.sum(axis=1).tolist() == [6, 15]
    assert lib.mean(x, axis=0, keepdims=True).shape == (1, 3)
    assert x.max(axis=1).values.tolist() == [3, 6]
    assert x.argmax(axis=0).tolist() == [1, 1, 1]
    assert x.cumsum(axis=1).tolist() == [[1, 3, 6], [4, 9, 15]]


def test_named_results(lib):
    result = lib.tensor([[1.0, 3.0]]).max(1)
    values, indices = result
    assert result.values is result[0] is values
    assert indices.tolist() == [1]
    assert str(result) == "torch.return_types.max(\nvalues=tensor([3.]),\nindices=tensor([1]))"


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda t: t.tensor([1]).mean(), RuntimeError, "could not infer output dtype. Input dtype must be either a floating point"),
        (lambda t: t.tensor([1]).var(), RuntimeError, "std and var only support floating point"),
        (lambda t: t.tensor([1]).norm(), RuntimeError, "Expected a floating point or complex tensor as input. Got Long"),
        (lambda t: t.tensor([1.0]).sum(0, 1), TypeError, "argument 'keepdim'"),
        (lambda t: t.tensor([1.0]).sum(1), IndexError, "Dimension out of range"),
        (lambda t: t.ones(2, 2).sum((0, 0)), RuntimeError, "dim 0 appears multiple times"),
        (lambda t: t.zeros(0).max(), RuntimeError, "Expected reduction dim to be specified for input.numel"),
        (lambda t: t.zeros(2, 0).max(1), IndexError, "Expected reduction dim 1 to have non-zero size"),
        (lambda t: t.zeros(2, 0).argmax(1), IndexError, "Expected reduction dim 1 to have non-zero size"),
        (lambda t: t.tensor([True]).argmax(), RuntimeError, "does not support bool input"),
        (lambda t: t.zeros(2, 3).sum_to_size(3, 3), RuntimeError, "is not expandable to size"),
        (lambda t: t.zeros(2, 0).norm(INF), RuntimeError, "cannot compute the inf norm on an empty tensor"),
    ],
)
def test_refusals(lib, call, kind, words):
    with pytest.raises(kind, match=words):
        call(lib)
