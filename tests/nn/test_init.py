"""What tensors are filled with at the start."""

import math

import pytest

import jitgrad as torch
from jitgrad.nn import init
from tests.libraries import lib

__all__ = ["lib"]


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(1)


def wide(*shape):
    return torch.empty(*shape, requires_grad=True)


def test_constants():
    assert init.constant_(wide(2), 3.0).tolist() == [3, 3]
    assert init.ones_(wide(2)).tolist() == [1, 1]
    assert init.zeros_(wide(2)).tolist() == [0, 0]
    assert init.eye_(wide(2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]]
    with pytest.raises(ValueError, match="Only tensors with 2 dimensions are supported"):
        init.eye_(wide(2))


@pytest.mark.parametrize(
    ("fill", "mean", "std"),
    [
        (lambda t: init.uniform_(t, -1, 3), 1, 4 / math.sqrt(12)),
        (lambda t: init.normal_(t, 2, 0.5), 2, 0.5),
        (lambda t: init.xavier_uniform_(t, gain=2), 0, 2 * math.sqrt(2 / 300)),
        (init.xavier_normal_, 0, math.sqrt(2 / 300)),
        (init.kaiming_uniform_, 0, math.sqrt(2 / 200)),
        (lambda t: init.kaiming_normal_(t, mode="fan_out", nonlinearity="relu"), 0, math.sqrt(2 / 100)),
        (lambda t: init.trunc_normal_(t, std=1.0, a=-1.0, b=1.0), 0, 0.5396),
    ],
)
def test_distributions(fill, mean, std):
    tensor = wide(100, 200)
    assert fill(tensor) is tensor
    assert tensor.requires_grad
    assert tensor.is_leaf
    assert abs(tensor.mean().item() - mean) < 0.03 * max(std, 1)
    assert abs(tensor.std().item() / std - 1) < 0.03


def test_truncation():
    tensor = init.trunc_normal_(wide(1000), mean=1.0, std=2.0, a=0.0, b=1.5)
    assert tensor.min().item() >= 0
    assert tensor.max().item() <= 1.5
    with pytest.warns(UserWarning, match="mean is more than 2 std from"):
        init.trunc_normal_(wide(3), mean=9.0, a=0.0, b=1.0)


def test_the_generator_decides():
    first = init.normal_(wide(3), generator=torch.Generator().manual_seed(5))
    assert torch.equal(first, init.normal_(wide(3), generator=torch.Generator().manual_seed(5)))


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 4), (4, 2, 3)])
def test_orthogonal(shape):
    matrix = init.orthogonal_(wide(*shape), gain=2).detach().reshape(shape[0], -1)
    small = matrix @ matrix.t() if matrix.shape[0] <= matrix.shape[1] else matrix.t() @ matrix
    assert torch.allclose(small, 4 * torch.eye(len(small)), atol=1e-5)
    with pytest.raises(ValueError, match="Only tensors with 2 or more dimensions"):
        init.orthogonal_(wide(3))


def test_fans():
    assert init._calculate_fan_in_and_fan_out(wide(2, 3)) == (3, 2)
    assert init._calculate_fan_in_and_fan_out(wide(2, 3, 5)) == (15, 10)
    with pytest.raises(ValueError, match="Fan in and fan out can not be computed"):
        init.xavier_uniform_(wide(3))
    with pytest.raises(ValueError, match="Mode fan_all not supported"):
        init.kaiming_normal_(wide(2, 2), mode="fan_all")


def test_gains():
    gains = {"linear": 1, "sigmoid": 1, "conv2d": 1, "tanh": 5 / 3, "relu": math.sqrt(2), "selu": 0.75}
    assert {name: init.calculate_gain(name) for name in gains} == gains
    assert init.calculate_gain("leaky_relu", 1) == 1
    assert init.calculate_gain("leaky_relu") == math.sqrt(2 / 1.0001)
    with pytest.raises(ValueError, match="negative_slope True not a valid number"):
        init.calculate_gain("leaky_relu", True)
    with pytest.raises(ValueError, match="Unsupported nonlinearity softer"):
        init.calculate_gain("softer")


@pytest.mark.parametrize("fill", [init.kaiming_uniform_, init.kaiming_normal_])
def test_nothing_to_fill(fill):
    with pytest.warns(UserWarning, match="Initializing zero-element tensors is a no-op"):
        fill(wide(0, 3))


@pytest.mark.parametrize("window", [(3,), (3, 2), (2, 3, 3)])
@pytest.mark.parametrize("groups", [1, 2])
def test_dirac_hands_channels_on(lib, window, groups):
    weights = lib.randn(2 * groups, 3, *window)
    assert lib.nn.init.dirac_(weights, groups) is weights
    middle = tuple(n // 2 for n in window)
    ones = {(start + channel, channel, *middle) for start in range(0, 2 * groups, 2) for channel in range(2)}
    assert {tuple(place) for place in weights.nonzero().tolist()} == ones
    assert weights.sum().item() == len(ones)
    x = lib.randn(1, 3, *(5 for _ in window))
    convolve = {1: lib.nn.functional.conv1d, 2: lib.nn.functional.conv2d, 3: lib.nn.functional.conv3d}[len(window)]
    y = convolve(x, weights)
    inner = tuple(slice(m, m + y.shape[2 + k]) for k, m in enumerate(middle))
    assert lib.allclose(y[:, :2], x[(slice(None), slice(0, 2), *inner)])


def test_what_dirac_and_sparse_refuse(lib):
    for shape in ((2,), (2, 2), (1,) * 6):
        with pytest.raises(ValueError, match="Only tensors with 3, 4, or 5 dimensions are supported"):
            lib.nn.init.dirac_(lib.ones(shape))
    with pytest.raises(ValueError, match="dim 0 must be divisible by groups"):
        lib.nn.init.dirac_(lib.ones(3, 2, 2), 2)
    with pytest.raises(ValueError, match="Only tensors with 2 dimensions are supported"):
        lib.nn.init.sparse_(lib.ones(3), 0.5)


def test_sparse_leaves_a_share_of_each_column(lib):
    matrix = lib.nn.init.sparse_(lib.nn.Parameter(lib.ones(50, 6)), 0.31, std=2.0)
    assert (matrix == 0).sum(0).tolist() == [16] * 6
    assert 1 < matrix[matrix != 0].std().item() < 3
    first, second = (init.sparse_(torch.ones(9, 4), 0.5, generator=torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(first, second)  # the places of the zeros, too, which torch takes from the default generator


def test_old_names_warn(lib):
    x = lib.ones(3, 3)
    with pytest.warns(FutureWarning, match="`nn.init.constant` is now deprecated in favor of `nn.init.constant_`"):
        assert lib.nn.init.constant(x, 2.0) is x
    assert x.sum().item() == 18
    for name in ("uniform", "normal", "eye", "xavier_uniform", "xavier_normal", "kaiming_uniform", "kaiming_normal", "orthogonal"):
        with pytest.warns(FutureWarning, match=f"`nn.init.{name}` is now deprecated"):
            getattr(lib.nn.init, name)(x)
    with pytest.warns(FutureWarning, match="deprecated"):
        lib.nn.init.sparse(x, 0.1)
    with pytest.warns(FutureWarning, match="deprecated"):
        lib.nn.init.dirac(lib.ones(1, 1, 1))
