"""What tensors are filled with at the start."""

import math

import pytest

import jitgrad as torch
from jitgrad.nn import init


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
