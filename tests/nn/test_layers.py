"""Layers and losses by themselves: what they compute, what they refuse, how they start."""

import math

import pytest

import jitgrad as torch
from jitgrad import nn
from jitgrad.nn import functional as F


def flat(tensor):
    return [round(value, 4) for value in tensor.detach().reshape(-1).tolist()]


# ---- linear, shapes
def test_linear():
    layer = nn.Linear(2, 3)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
        layer.bias.copy_(torch.tensor([0.0, 1.0, 2.0]))
    assert flat(layer(torch.tensor([[3.0, 5.0]]))) == [3, 6, 10]
    layer(torch.ones(4, 2)).sum().backward()
    assert flat(layer.weight.grad) == [4] * 6
    assert flat(layer.bias.grad) == [4] * 3
    assert nn.Linear(2, 3, bias=False).bias is None
    assert nn.Linear(2, 3, dtype=torch.float64).weight.dtype is torch.float64
    assert nn.Linear(2, 3)(torch.ones(5, 4, 2)).shape == (5, 4, 3)
    with pytest.raises(RuntimeError):
        layer(torch.ones(4, 3))


def test_linear_starts_within_its_bounds():
    torch.manual_seed(0)
    layer = nn.Linear(100, 50)
    for tensor in layer.parameters():
        assert tensor.abs().max().item() <= 0.1
        assert tensor.abs().max().item() > 0.09
        assert abs(tensor.mean().item()) < 0.03


def test_flatten_and_back():
    x = torch.ones(5, 2, 3)
    assert nn.Flatten()(x).shape == (5, 6)
    assert nn.Flatten(0, 1)(x).shape == (10, 3)
    assert nn.Unflatten(1, (2, 3))(torch.ones(5, 6)).shape == (5, 2, 3)
    with pytest.raises(TypeError, match="unflattened_size must be a tuple of ints, but found type int"):
        nn.Unflatten(1, 3)
    with pytest.raises(TypeError, match="found element of type float at pos 1"):
        nn.Unflatten(1, (2, 3.0))


# ---- activations
ACTIVATIONS = {
    nn.ReLU: [0, 0, 2],
    nn.LeakyReLU: [-0.01, 0, 2],
    nn.ELU: [-0.6321, 0, 2],
    nn.GELU: [-0.1587, 0, 1.9545],
    nn.SiLU: [-0.2689, 0, 1.7616],
    nn.Sigmoid: [0.2689, 0.5, 0.8808],
    nn.Tanh: [-0.7616, 0, 0.964],
    nn.Softplus: [0.3133, 0.6931, 2.1269],
    nn.LogSigmoid: [-1.3133, -0.6931, -0.1269],
}


@pytest.mark.parametrize("kind", ACTIVATIONS, ids=lambda kind: kind.__name__)
def test_activation(kind):
    assert flat(kind()(torch.tensor([-1.0, 0.0, 2.0]))) == ACTIVATIONS[kind]
    assert math.isnan(kind()(torch.tensor(float("nan"))).item())


@pytest.mark.parametrize("kind", [nn.ReLU, nn.LeakyReLU, nn.ELU, nn.SiLU])
def test_activation_in_place(kind):
    x = torch.tensor([-1.0, 0.0, 2.0])
    assert kind(inplace=True)(x) is x
    assert flat(x) == ACTIVATIONS[kind]


def test_softmax():
    x = torch.tensor([[0.0, math.log(3.0)]])
    assert flat(nn.Softmax(dim=1)(x)) == [0.25, 0.75]
    assert flat(nn.LogSoftmax(dim=1)(x)) == [-1.3863, -0.2877]
    assert flat(F.softmin(x, dim=1)) == [0.75, 0.25]
    assert F.softmax(x, 1, dtype=torch.float64).dtype is torch.float64
    with pytest.warns(UserWarning, match="Implicit dimension choice for softmax has been deprecated"):
        assert flat(nn.Softmax()(x)) == [0.25, 0.75]
    with pytest.warns(UserWarning, match="Implicit dimension choice for log_softmax"):
        assert flat(F.log_softmax(torch.zeros(2))) == [-0.6931, -0.6931]


# ---- dropout
def test_dropout():
    torch.manual_seed(3)
    x = torch.ones(1000, requires_grad=True)
    y = nn.Dropout(0.25)(x)
    kept = (y != 0).sum().item()
    assert 700 < kept < 800
    assert abs(y.max().item() - 4 / 3) < 1e-6
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())
    assert torch.equal(nn.Dropout(0.25).eval()(x), x)
    assert nn.Dropout(1.0)(x).abs().sum().item() == 0
    assert torch.equal(nn.Dropout(0.0)(x), x)
    torch.manual_seed(3)
    assert torch.equal(nn.Dropout(0.25)(x), y)
    for make in (nn.Dropout, lambda p: F.dropout(x, p)):
        with pytest.raises(ValueError, match=r"dropout probability has to be between 0 and 1, but got 1\.5"):
            make(1.5)


# ---- normalisation
def test_layer_norm():
    layer = nn.LayerNorm(4)
    x = torch.tensor([[1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 0.0, 8.0]])
    y = layer(x)
    assert flat(y.mean(1)) == [0, 0]
    assert flat(y.std(1, correction=0)) == [1, 1]
    assert nn.LayerNorm([2, 4]).weight.shape == (2, 4)
    assert nn.LayerNorm(4, bias=False).bias is None
    assert nn.LayerNorm(4, elementwise_affine=False).weight is None
    with pytest.raises(RuntimeError):
        layer(torch.ones(2, 3))


def test_batch_norm():
    layer = nn.BatchNorm1d(2)
    x = torch.tensor([[1.0, 10.0], [3.0, 30.0]])
    assert flat(layer(x)) == [-1, -1, 1, 1]
    assert flat(layer.running_mean) == [0.2, 2]
    assert flat(layer.running_var) == [1.1, 20.9]
    assert layer.num_batches_tracked.item() == 1
    before = layer.running_mean.clone()
    layer.eval()
    assert flat(layer(x)) == [0.7628, 1.7499, 2.6697, 6.1247]
    assert torch.equal(layer.running_mean, before)
    assert layer.train()(torch.ones(3, 2, 5)).shape == (3, 2, 5)
    with pytest.raises(ValueError, match=r"expected 2D or 3D input \(got 1D input\)"):
        layer(torch.ones(2))
    with pytest.raises(ValueError, match="Expected more than 1 value per channel when training"):
        layer(torch.ones(1, 2))


def test_batch_norm_without_statistics_or_with_plain_averages():
    x = torch.tensor([[1.0], [3.0]])
    assert flat(nn.BatchNorm1d(1, track_running_stats=False).eval()(x)) == [-1, 1]
    layer = nn.BatchNorm1d(1, momentum=None, affine=False)
    layer(x)
    layer(x + 4)
    assert flat(layer.running_mean) == [4]
    layer.reset_running_stats()
    assert flat(layer.running_mean) == [0]
    assert layer.num_batches_tracked.item() == 0


# ---- look-up
def test_embedding():
    table = nn.Embedding(4, 2, padding_idx=-1)
    assert table.padding_idx == 3
    assert flat(table.weight[3]) == [0, 0]
    table(torch.tensor([[0, 0], [3, 2]])).sum().backward()
    assert flat(table.weight.grad) == [2, 2, 0, 0, 1, 1, 0, 0]
    fixed = nn.Embedding.from_pretrained(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert flat(fixed(torch.tensor(1))) == [3, 4]
    assert not fixed.weight.requires_grad
    for wrong in (
        lambda: nn.Embedding(4, 2, padding_idx=4), lambda: nn.Embedding(4, 2, _weight=torch.ones(2, 4)),
        lambda: nn.Embedding.from_pretrained(torch.ones(2)),
    ):  # fmt: skip
        with pytest.raises(AssertionError):
            wrong()
    with pytest.raises(IndexError):
        table(torch.tensor([4]))


def test_embedding_limits_the_norms_of_the_rows_in_use():
    table = nn.Embedding.from_pretrained(torch.tensor([[3.0, 4.0], [30.0, 40.0]]), max_norm=1.0)
    assert flat(table(torch.tensor([0, 0]))) == [0.6, 0.8, 0.6, 0.8]
    assert flat(table.weight) == [0.6, 0.8, 30, 40]


def test_one_hot():
    assert F.one_hot(torch.tensor([0, 2])).tolist() == [[1, 0, 0], [0, 0, 1]]
    assert F.one_hot(torch.tensor([[1]]), 4).tolist() == [[[0, 1, 0, 0]]]
    for wrong in ((torch.tensor([0.5]),), (torch.tensor([-1]),), (torch.tensor([3]), 3)):
        with pytest.raises(RuntimeError):
            F.one_hot(*wrong)


# ---- losses
PAIR = torch.tensor([1.0, 2.0, 6.0]), torch.tensor([1.0, 4.0, 2.0])
DISTANCES = {
    F.mse_loss: ([0, 4, 16], {}),
    F.l1_loss: ([0, 2, 4], {}),
    F.smooth_l1_loss: ([0, 1, 3], {"beta": 2.0}),
    F.huber_loss: ([0, 2, 6], {"delta": 2.0}),
}


@pytest.mark.parametrize("loss", DISTANCES, ids=lambda loss: loss.__name__)
def test_distances(loss):
    errors, options = DISTANCES[loss]
    assert flat(loss(*PAIR, reduction="none", **options)) == errors
    assert loss(*PAIR, reduction="sum", **options).item() == sum(errors)
    assert abs(loss(*PAIR, **options).item() - sum(errors) / 3) < 1e-6
    with pytest.warns(UserWarning, match=r"Using a target size .* that is different to the input size"):
        assert loss(PAIR[0], PAIR[1].reshape(3, 1), reduction="none", **options).shape == (3, 3)
    with pytest.raises(ValueError, match="most is not a valid value for reduction"):
        loss(*PAIR, reduction="most")


@pytest.mark.parametrize("loss", [F.mse_loss, F.l1_loss, F.huber_loss], ids=lambda loss: loss.__name__)
def test_weighted_distances(loss):
    weight = torch.tensor([1.0, 3.0, 0.0])
    errors = [error * w for error, w in zip(flat(loss(*PAIR, reduction="none")), (1, 3, 0), strict=True)]
    assert flat(loss(*PAIR, weight=weight, reduction="none")) == errors
    assert loss(*PAIR, weight=weight, reduction="sum").item() == sum(errors)
    mean = sum(errors) / (3 if loss is F.huber_loss else 4)
    assert abs(loss(*PAIR, weight=weight).item() - mean) < 1e-6
    with pytest.raises(ValueError, match="Weights and input must have the same size"):
        loss(*PAIR, weight=torch.ones(2))
    with pytest.raises(ValueError, match="Invalid reduction mode: most"):
        loss(*PAIR, weight=weight, reduction="most")


def test_older_arguments():
    for options, reduction in (
        ({"size_average": False}, "sum"), ({"reduce": False}, "none"), ({"size_average": True}, "mean"),
    ):  # fmt: skip
        with pytest.warns(UserWarning, match=f"please use reduction='{reduction}' instead"):
            found = F.mse_loss(*PAIR, **options)
        assert flat(found) == flat(F.mse_loss(*PAIR, reduction=reduction))
        with pytest.warns(UserWarning, match="size_average and reduce args will be deprecated"):
            assert nn.MSELoss(**options).reduction == reduction
    with pytest.warns(UserWarning, match="elementwise_mean"):
        F.mse_loss(*PAIR, reduction="elementwise_mean")


def test_every_target_ignored():
    logits = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    nothing = torch.tensor([-100, -100])
    assert math.isnan(F.cross_entropy(logits, nothing).item())
    F.cross_entropy(logits, nothing, reduction="sum").backward()
    assert flat(logits.grad) == [0, 0, 0, 0]
    loss = F.cross_entropy(logits, torch.tensor([0, -100]), label_smoothing=0.1)
    assert abs(loss.item() - 1.2632617) < 1e-5
    with pytest.raises(IndexError):
        F.cross_entropy(logits, torch.tensor([5, 0]))


def test_losses_as_modules():
    logits, target = torch.tensor([[1.0, 3.0], [2.0, 2.0]]), torch.tensor([1, 0])
    weight = torch.tensor([1.0, 2.0])
    assert torch.equal(nn.CrossEntropyLoss(weight)(logits, target), F.cross_entropy(logits, target, weight))
    smooth = nn.CrossEntropyLoss(label_smoothing=0.2, reduction="sum", ignore_index=1)
    assert torch.equal(
        smooth(logits, target), F.cross_entropy(logits, target, reduction="sum", ignore_index=1, label_smoothing=0.2)
    )
    logs = logits.log_softmax(1)
    assert abs((nn.NLLLoss()(logs, target) - nn.CrossEntropyLoss()(logits, target)).item()) < 1e-6
    ones = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    both = nn.BCEWithLogitsLoss(pos_weight=weight)(logits, ones)
    assert torch.equal(both, F.binary_cross_entropy_with_logits(logits, ones, pos_weight=weight))
    plain = nn.BCEWithLogitsLoss()(logits, ones)
    assert abs((nn.BCELoss()(logits.sigmoid(), ones) - plain).item()) < 1e-5
    assert list(nn.BCEWithLogitsLoss(weight).state_dict()) == ["weight"]
    assert nn.HuberLoss(delta=2)(*PAIR).item() == pytest.approx(8 / 3)
    with pytest.raises(TypeError, match="delta must be a float or int"):
        nn.HuberLoss(delta="a")
    with pytest.raises(ValueError, match=r"Target size .* must be the same as input size"):
        nn.BCEWithLogitsLoss()(logits, ones[0])
    with pytest.raises(ValueError, match=r"Using a target size .* is deprecated"):
        nn.BCELoss()(logits, ones[0])


def test_a_small_network_learns():
    torch.manual_seed(0)
    x = torch.linspace(-1, 1, 64).reshape(64, 1)
    model = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(200):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), (3 * x).sin())
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.03
