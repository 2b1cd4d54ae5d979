"""Random numbers: the state, moments, ranges, dropout, what takes gradients, arguments."""

import pickle

import numpy as np
import pytest

import jitgrad
from tests.libraries import lib

__all__ = ["lib"]
COUNT = 200_000


def test_seed_and_state(lib):
    assert lib.manual_seed(3).initial_seed() == lib.initial_seed() == 3
    first = lib.rand(5).tolist()
    state = lib.get_rng_state()
    assert state.dtype is lib.uint8
    second = lib.randn(5).tolist()
    lib.set_rng_state(state)
    assert lib.randn(5).tolist() == second
    lib.manual_seed(3)
    assert lib.rand(5).tolist() == first
    assert lib.seed() == lib.initial_seed() != 3
    for seed in (-1, 2**64 - 1):
        assert lib.manual_seed(seed).initial_seed() == 2**64 - 1
    with pytest.raises(ValueError, match="Overflow"):
        lib.manual_seed(2**64)
    with pytest.raises(TypeError, match=r"RNG state must be a torch\.ByteTensor"):
        lib.set_rng_state(lib.zeros(3))
    with pytest.raises(RuntimeError, match="the input RNG state size to be 3"):
        lib.set_rng_state(lib.zeros(3, dtype=lib.uint8))


def test_generators_are_apart(lib):
    one, two = lib.Generator().manual_seed(1), lib.Generator().manual_seed(1)
    lib.manual_seed(5)
    wanted = lib.rand(3).tolist()
    lib.manual_seed(5)
    assert lib.rand(4, generator=one).tolist() == lib.rand(4, generator=two).tolist()
    assert lib.rand(3).tolist() == wanted
    other = lib.Generator()
    other.set_state(one.get_state())
    assert lib.randint(100, (9,), generator=other).tolist() == lib.randint(100, (9,), generator=one).tolist()


def test_generators_are_copied_and_pickled():
    one = jitgrad.Generator().manual_seed(7)
    jitgrad.rand(3, generator=one)
    twins = one.clone_state(), pickle.loads(pickle.dumps(one))
    wanted = jitgrad.rand(3, generator=one).tolist()
    assert [jitgrad.rand(3, generator=twin).tolist() for twin in twins] == [wanted, wanted]
    assert {twin.initial_seed() for twin in twins} == {7}


def test_forked_state(lib):
    fork = lib.random.fork_rng if lib.__name__ == "torch" else lib.fork_rng
    lib.manual_seed(1)
    wanted = lib.rand(2).tolist()
    lib.manual_seed(1)
    with fork():
        lib.rand(100)
    assert lib.rand(2).tolist() == wanted


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_moments(lib, dtype):
    lib.manual_seed(0)
    kind = getattr(lib, dtype)
    u = lib.rand(COUNT, dtype=kind).numpy().astype(np.float64)
    assert u.min() >= 0
    assert u.max() < 1
    assert (u.mean(), u.var()) == (pytest.approx(0.5, abs=4e-3), pytest.approx(1 / 12, abs=2e-3))
    z = lib.randn(COUNT + 1, dtype=kind).numpy().astype(np.float64)
    assert [(z**k).mean() for k in (1, 2, 3, 4)] == pytest.approx([0, 1, 0, 3], abs=0.06)
    assert np.corrcoef(z[:-1], z[1:])[0, 1] == pytest.approx(0, abs=0.01)
    e = lib.empty(COUNT, dtype=kind).exponential_(2.0).numpy().astype(np.float64)
    assert e.min() >= 0
    assert (e.mean(), e.std()) == (pytest.approx(0.5, abs=6e-3), pytest.approx(0.5, abs=1e-2))


def test_fills(lib):
    lib.manual_seed(0)
    x = lib.empty(COUNT)
    assert x.uniform_(-2, 5) is x
    assert x.min().item() >= -2
    assert x.max().item() < 5
    assert x.normal_(3, 0.5).mean().item() == pytest.approx(3, abs=0.01)
    assert x.std().item() == pytest.approx(0.5, abs=0.01)
    assert x.bernoulli_(0.3).mean().item() == pytest.approx(0.3, abs=0.01)
    assert sorted(set(x.tolist())) == [0, 1]
    assert set(x.random_(3).tolist()) == {0, 1, 2}
    assert set(x.random_(-1, 2).tolist()) == {-1, 0, 1}
    assert x.random_().max().item() > 2**23
    assert lib.empty(9, dtype=lib.uint8).random_().dtype is lib.uint8


def test_integers(lib):
    lib.manual_seed(0)
    x = lib.randint(-3, 4, (COUNT,))
    assert x.dtype is lib.int64
    counts = np.bincount(x.numpy() + 3, minlength=7) / COUNT
    assert counts == pytest.approx(np.full(7, 1 / 7), abs=5e-3)
    wide = lib.randint(-(2**62), 2**62, (1000,)).numpy()
    assert (wide.min() < -(2**61), wide.max() > 2**61) == (True, True)
    assert len(set(wide.tolist())) == 1000
    assert lib.randint(5, (2, 3), dtype=lib.int32).dtype is lib.int32
    assert lib.randint_like(lib.zeros(2, 3), 1, 2).tolist() == [[1, 1, 1]] * 2


@pytest.mark.parametrize("count", [0, 1, 2, 5, 1023, 1024, 5000])
def test_permutations(lib, count):
    lib.manual_seed(count)
    x = lib.randperm(count)
    assert sorted(x.tolist()) == list(range(count))
    assert x.dtype is lib.int64


def test_permutations_are_even(lib):
    lib.manual_seed(0)
    seen = {tuple(lib.randperm(3).tolist()) for _ in range(200)}
    assert len(seen) == 6


def test_choices(lib):
    lib.manual_seed(0)
    p = lib.tensor([[0.0, 1.0, 3.0], [2.0, 0.0, 0.0]])
    x = lib.multinomial(p, COUNT, replacement=True).numpy()
    assert np.bincount(x[0], minlength=3) / COUNT == pytest.approx([0, 0.25, 0.75], abs=0.01)
    assert set(x[1]) == {0}
    assert sorted(lib.multinomial(p[0], 2).tolist()) == [1, 2]
    first = [lib.multinomial(p[0], 1).item() for _ in range(400)]
    assert first.count(2) / 400 == pytest.approx(0.75, abs=0.1)


def test_no_gradient_passes_a_fill(lib):
    for fill in ("uniform_", "normal_", "bernoulli_", "random_", "exponential_"):
        x = lib.ones(3, requires_grad=True)
        y = x * 2
        getattr(y, fill)()
        y.sum().backward()
        assert x.grad.tolist() == [0, 0, 0]
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
            getattr(x, fill)()
        with lib.no_grad():
            version = x._version
            getattr(x, fill)()
        assert x._version == version + 1


def test_dropout(lib):
    lib.manual_seed(0)
    F = lib.nn.functional
    x = lib.ones(COUNT, requires_grad=True)
    y = F.dropout(x, 0.25)
    y.sum().backward()
    assert x.grad.tolist() == y.tolist()
    kept = y.detach().numpy()
    assert (kept != 0).mean() == pytest.approx(0.75, abs=0.01)
    assert set(kept.round(5)) == {0, np.float32(1.33333)}
    assert F.dropout(x, 0.5, training=False) is x
    assert F.dropout(x, 1.0).sum().item() == 0
    assert bool(F.dropout(lib.full((9,), float("nan"))).isnan().all())
    assert F.dropout(lib.ones(0), 0.5).shape == (0,)
    assert F.dropout(lib.ones(8, dtype=lib.float16)).dtype is lib.float16
    with pytest.raises(ValueError, match="dropout probability has to be between 0 and 1"):
        F.dropout(x, 1.5)


def test_dropout_in_place(lib):
    x = lib.ones(1000, requires_grad=True)
    y = x * 1
    assert lib.nn.functional.dropout(y, 0.5, inplace=True) is y
    y.sum().backward()
    assert x.grad.tolist() == y.tolist()
    assert 300 < int((y == 0).sum()) < 700


def test_normal_around_tensors(lib):
    lib.manual_seed(0)
    mean, std = lib.tensor([[-100.0], [100.0]], requires_grad=True), lib.tensor([1e-3, 1.0, 0.0])
    x = lib.normal(mean, std)
    assert x.shape == (2, 3)
    assert x[:, 2].tolist() == [-100, 100]
    x.sum().backward()
    assert mean.grad.tolist() == [[0], [0]]
    assert lib.normal(5.0, 0.0, (2,)).tolist() == [5, 5]


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda t: t.rand(2, dtype=t.int64), NotImplementedError, "not implemented for 'Long'"),
        (lambda t: t.randint(5, 5, (2,)), RuntimeError, "random_ expects 'from' to be less than 'to', but got from=5 >= to=5"),
        (lambda t: t.randint(0, 300, (2,), dtype=t.uint8), RuntimeError, "to - 1 is out of bounds"),
        (lambda t: t.randn(-1), RuntimeError, "negative dimension -1"),
        (lambda t: t.randperm(-1), RuntimeError, "negative dimension -1"),
        (lambda t: t.rand(2.5), TypeError, "must be tuple of ints, not float"),
        (lambda t: t.ones(2).uniform_(2, 1), RuntimeError, r"expects to return a \[from, to\) range, but found from=2 > to=1"),
        (lambda t: t.ones(2).normal_(0, -1), RuntimeError, "normal expects std >= 0.0, but found std -1"),
        (lambda t: t.ones(2).bernoulli_(2), RuntimeError, r"bernoulli_ expects p to be in \[0, 1\], but got p=2"),
        (lambda t: t.ones(2).exponential_(0), RuntimeError, "exponential_ expects lambda > 0.0, but found lambda=0"),
        (lambda t: t.bernoulli(t.tensor([2.0])), RuntimeError, "Expected p_in >= 0 && p_in <= 1"),
        (lambda t: t.multinomial(t.tensor([0.5]), 2), RuntimeError, "without replacement"),
        (lambda t: t.multinomial(t.tensor([0.0, 0.0]), 1), RuntimeError, "invalid multinomial distribution"),
        (lambda t: t.multinomial(t.tensor([-1.0, 2.0]), 1), RuntimeError, "either `inf`, `nan` or element < 0"),
    ],
)
def test_refusals(lib, call, kind, words):
    with pytest.raises(kind, match=words):
        call(lib)
