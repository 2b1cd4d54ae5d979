"""Values and gradients at edge points that other libraries got wrong: norms, ties, products with zeros, overflow, dead branches."""

import math

import pytest

from tests.libraries import leaf, lib

__all__ = ["lib"]
NAN = math.nan


def gradient(lib, fn, *values, dtype="float64"):
    """Of the sum of what the function returns."""
    x = leaf(lib, *values, dtype=dtype)
    fn(x).sum().backward()
    return x.grad.tolist()


def close(values):
    return pytest.approx(values, nan_ok=True)


# ---- S01
@pytest.mark.parametrize(
    ("values", "p", "expected"),
    [
        ([0, 0, 0], 2, [0, 0, 0]), ([0, 0, 0.2], 1, [0, 0, 1]), ([0, 0], 1.5, [0, 0]), ([0, 0], 0.5, [0, 0]),
        ([2, -2, 1], math.inf, [0.5, -0.5, 0]),
    ],
)  # fmt: skip
def test_s01_norm_at_the_origin(lib, values, p, expected):
    assert gradient(lib, lambda x: lib.norm(x, p), *map(float, values)) == expected


def test_s01_square_of_a_norm_at_the_origin(lib):
    assert gradient(lib, lambda x: lib.norm(x) ** 2, 0.0, 0.0, 0.0) == [0, 0, 0]


def test_s01_norm_spelled_out(lib):
    """NaN, as the chain rule has it: not to be turned into the norm, nor the norm into this."""
    assert gradient(lib, lambda x: (x * x).sum().sqrt(), 0.0, 0.0) == close([NAN, NAN])


# ---- S02
def max_over_both(lib, x):
    return lib.amax(x.reshape(2, 2), (0, 1))


@pytest.mark.parametrize(
    ("fn", "values", "expected"),
    [
        (lambda lib, x: lib.max(x), [0.1, 0.3, 0.3], [0, 0.5, 0.5]),
        (lambda lib, x: lib.min(x), [0.3, 0.1, 0.1], [0, 0.5, 0.5]),
        (lambda lib, x: lib.amax(x, 0), [0.3, 0.1, 0.3], [0.5, 0, 0.5]),
        (max_over_both, [1.0, 2.0, 2.0, 0.0], [0, 0.5, 0.5, 0]),
        (lambda lib, x: lib.max(x, dim=0).values, [0.3, 0.1, 0.3], [1, 0, 0]),
        (lambda lib, x: lib.median(x), [1.0, 1.0, 2.0], [0.5, 0.5, 0]),
    ],
)
def test_s02_ties(lib, fn, values, expected):
    assert gradient(lib, lambda x: fn(lib, x), *values) == expected


@pytest.mark.parametrize("name", ["median", "max", "min"])
def test_s02_the_index_says_who_gets_the_gradient(lib, name):
    x = leaf(lib, 1.0, 1.0, 2.0) if name != "max" else leaf(lib, 2.0, 2.0, 1.0)
    found = getattr(lib, name)(x, dim=0)
    found.values.backward()
    expected = [0.0, 0.0, 0.0]
    expected[found.indices.item()] = 1.0
    assert x.grad.tolist() == expected


# ---- S04
@pytest.mark.parametrize(
    ("values", "expected"), [([2, 0, 3, 4], [1, 32, 0, 0]), ([0, 2, 3], [9, 0, 0]), ([2, 0, 0, 3], [1, 2, 0, 0])]
)
def test_s04_cumprod_with_zeros(lib, values, expected):
    assert gradient(lib, lambda x: lib.cumprod(x, 0), *map(float, values)) == expected


# ---- S18
def cross_entropy(lib, targets, **named):
    x = lib.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=lib.float64, requires_grad=True)
    loss = lib.nn.functional.cross_entropy(x, lib.tensor(targets), **named)
    loss.backward()
    return loss.item(), x.grad.tolist()


def test_s18_every_target_ignored(lib):
    value, grad = cross_entropy(lib, [-100, -100])
    assert math.isnan(value)
    assert grad == [[0, 0], [0, 0]]
    assert cross_entropy(lib, [-100, -100], reduction="sum") == (0, [[0, 0], [0, 0]])


def test_s18_one_target_ignored_with_smoothing(lib):
    value, (first, second) = cross_entropy(lib, [0, -100], label_smoothing=0.1)
    assert value == pytest.approx(1.2632616875182228)
    assert first == close([-0.681058578630005, 0.681058578630005])
    assert second == [0, 0]


def test_s18_a_target_that_is_no_class(lib):
    with pytest.raises(IndexError):
        cross_entropy(lib, [0, 5])


# ---- S19
@pytest.mark.parametrize(
    ("fn", "values", "expected", "slopes"),
    [
        (lambda lib, x: lib.nn.functional.softplus(x), [-1000, 0, 20, 20.5, 1000], [0, 0.6931472, 20, 20.5, 1000], [0, 0.5, 1, 1, 1]),
        (lambda lib, x: lib.nn.functional.softplus(x, beta=5), [18, 100], [18, 100], [1, 1]),
        (lambda lib, x: lib.nn.functional.logsigmoid(x), [-1000, 0, 1000], [-1000, -0.6931472, 0], [1, 0.5, 0]),
    ],
)
def test_s19_softplus_and_logsigmoid_far_out(lib, fn, values, expected, slopes):
    x = leaf(lib, *map(float, values))
    y = fn(lib, x)
    y.sum().backward()
    assert y.tolist() == close(expected)
    assert x.grad.tolist() == close(slopes)


def test_s19_cross_entropy_of_logits_far_out(lib):
    x = leaf(lib, 1000.0, -1000.0)
    loss = lib.nn.functional.binary_cross_entropy_with_logits(x, lib.tensor([0.0, 1.0]))
    loss.backward()
    assert loss.item() == 1000
    assert x.grad.tolist() == [0.5, -0.5]


# ---- S03: torch has NaN
DEAD = {
    "where": (lambda lib, x: lib.where(x > 0, lib.sqrt(x), x), [-1.0, -4.0], "float64", [1, 1], [NAN, NAN]),
    "overflow": (lambda lib, x: lib.where(x <= 0, lib.exp(x), 1 + x), [100.0], "float32", [1], [NAN]),
    "mask": (lambda lib, x: (x / lib.tensor([0.0, 1.0], dtype=lib.float64))[lib.tensor([False, True])], [1.0, 1.0], "float64", [0, 1], [NAN, 1]),
}


@pytest.mark.parametrize("name", DEAD)
def test_s03_the_branch_not_taken(lib, name):
    fn, values, dtype, sound, in_torch = DEAD[name]
    expected = in_torch if lib.__name__ == "torch" else sound
    assert gradient(lib, lambda x: fn(lib, x), *values, dtype=dtype) == close(expected)


# ---- S14
def test_s14_nan_is_seen_and_goes_on(lib):
    x = lib.tensor([NAN, 1.0])
    functional = lib.nn.functional
    assert lib.isnan(x).tolist() == [True, False]
    assert (x != x).tolist() == [True, False]
    for fn in (
        lib.relu, lambda x: x.clamp(0, 1), lambda x: lib.maximum(lib.zeros(2), x), lambda x: lib.maximum(x, lib.zeros(2)),
        lambda x: x.clamp(min=0).clamp(max=1), functional.hardtanh, lambda x: lib.amax(x, 0, keepdim=True), lambda x: x.max()[None],
    ):  # fmt: skip
        assert math.isnan(fn(x)[0].item())


# ---- S17
@pytest.mark.parametrize(
    "fn",
    [
        lambda x: (x**2).mean(), lambda x: x.max(1).values.sum(), lambda x: (x * 0.5).sum(), lambda x: x.sum(), lambda x: (x + x * x).sum(),
        lambda x: sum(row.sum() for row in x), lambda x: (x / 3 - 2).mean(),
    ],
)  # fmt: skip
def test_s17_gradients_stay_float32(lib, fn):
    x = lib.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = fn(x)
    y.backward()
    assert (y.dtype, x.grad.dtype) == (lib.float32, lib.float32)


def test_s17_each_gradient_has_its_operands_dtype(lib):
    a, b = leaf(lib, 2.0), leaf(lib, 3.0, dtype="float64")
    c = a * b
    c.backward()
    assert (c.dtype, a.grad.dtype, b.grad.dtype) == (lib.float64, lib.float32, lib.float64)
    assert (a.grad.item(), b.grad.item()) == (3.0, 2.0)
