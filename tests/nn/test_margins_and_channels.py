"""Losses of margins and likelihoods, distances, and what acts on channels: beside torch, and by hand where chance has a part."""

import numpy as np
import pytest

import jitgrad
from tests.libraries import lib

__all__ = ["lib"]
draw = np.random.default_rng(0)
SIGNS = draw.choice([-1.0, 1.0], 6)
LABELS = np.array([[2, 0, -1, 1], [-1, 2, 1, 0], [3, 2, 1, 0]])


def together(fn, *shapes):
    """Results and gradients in both packages, on the same random numbers."""
    torch = pytest.importorskip("torch")
    values = [draw.normal(size=shape) for shape in shapes]
    found = []
    for t in (jitgrad, torch):
        xs = [t.tensor(value, requires_grad=True) for value in values]
        out = fn(t, *xs)
        (out * t.arange(1, out.numel() + 1, dtype=t.float64).reshape(out.shape)).sum().backward()
        found.append([out.detach().numpy()] + [None if x.grad is None else x.grad.numpy() for x in xs])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-9)


def F(t):
    return t.nn.functional


CASES = {
    "poisson": (lambda t, x: F(t).poisson_nll_loss(x, t.tensor([0.0, 1, 2, 5], dtype=t.float64), reduction="none"), (4,)),
    "poisson full": (lambda t, x: F(t).poisson_nll_loss(x.exp(), t.tensor([0.0, 1, 2, 5], dtype=t.float64), False, True), (4,)),
    "gaussian": (lambda t, x, y, v: F(t).gaussian_nll_loss(x, y, v.exp(), True), (4, 3), (4, 3), (4, 3)),
    "gaussian of few variances": (lambda t, x, y, v: F(t).gaussian_nll_loss(x, y, v.exp(), eps=1.0), (4, 3), (4, 3), (4,)),
    "gaussian of one row": (lambda t, x, y, v: F(t).gaussian_nll_loss(x, y, v.exp()), (4, 3), (4, 3), (1, 3)),
    "hinge embedding": (lambda t, x: F(t).hinge_embedding_loss(x, t.tensor(SIGNS), 0.5, reduction="none"), (6,)),
    "margin ranking": (lambda t, x, y: F(t).margin_ranking_loss(x, y, t.tensor(SIGNS), 0.5, reduction="sum"), (6,), (6,)),
    "soft margin": (lambda t, x: F(t).soft_margin_loss(x, t.tensor(SIGNS)), (6,)),
    "multi margin": (lambda t, x: F(t).multi_margin_loss(x, t.tensor([1, 0, 3]), 2, 0.7, t.tensor([1.0, 2, 3, 4], dtype=t.float64)), (3, 4)),
    "multi margin of one": (lambda t, x: F(t).multi_margin_loss(x, t.tensor(2)), (4,)),
    "multilabel margin": (lambda t, x: F(t).multilabel_margin_loss(x, t.tensor(LABELS), reduction="none"), (3, 4)),
    "multilabel soft margin": (lambda t, x: F(t).multilabel_soft_margin_loss(x, t.tensor(LABELS > 1).double()), (3, 4)),
    "cosine": (lambda t, x, y: F(t).cosine_similarity(x, y, 1), (3, 4), (1, 4)),
    "pairwise": (lambda t, x, y: F(t).pairwise_distance(x, y, 3.0, keepdim=True), (3, 4), (3, 4)),
    "all pairs": (lambda t, x: F(t).pdist(x, 1.5), (5, 3)),
    "cosine embedding": (lambda t, x, y: F(t).cosine_embedding_loss(x, y, t.tensor(SIGNS), 0.1, reduction="none"), (6, 4), (6, 4)),
    "triplets": (lambda t, a, p, n: F(t).triplet_margin_loss(a, p, n, 2.0, swap=True, reduction="none"), (5, 4), (5, 4), (5, 4)),
    "triplets with a distance": (
        lambda t, a, p, n: F(t).triplet_margin_with_distance_loss(a, p, n, distance_function=lambda x, y: (x - y).abs().sum(-1)),
        (5, 4), (5, 4), (5, 4),
    ),
    "instances": (lambda t, x, w, b: F(t).instance_norm(x, weight=w, bias=b), (2, 3, 4, 5), (3,), (3,)),
    "neighbours": (lambda t, x: F(t).local_response_norm(x, 3, 0.5, 0.75, 2.0), (2, 5, 3, 4)),
    "columns": (lambda t, x: F(t).unfold(x, (2, 3), 2, 1, (1, 2)), (2, 3, 6, 7)),
    "pixels": (lambda t, x: F(t).pixel_shuffle(x, 2), (2, 8, 3, 4)),
    "pixels back": (lambda t, x: F(t).pixel_unshuffle(x, 2), (2, 2, 6, 4)),
    "channels": (lambda t, x: F(t).channel_shuffle(x, 2), (2, 6, 3, 4)),
    "slopes": (lambda t, x: F(t).rrelu(x, 0.2, 0.4), (6,)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_beside_torch(name):
    together(*CASES[name])


LAYERS = {
    "PoissonNLLLoss": {}, "HingeEmbeddingLoss": {"margin": 2.0}, "MarginRankingLoss": {}, "SoftMarginLoss": {}, "MultiMarginLoss": {"p": 2},
    "MultiLabelMarginLoss": {}, "MultiLabelSoftMarginLoss": {}, "CosineEmbeddingLoss": {}, "TripletMarginLoss": {"swap": True},
    "TripletMarginWithDistanceLoss": {}, "GaussianNLLLoss": {"full": True}, "CosineSimilarity": {}, "PairwiseDistance": {},
    "BatchNorm3d": {"num_features": 2},
    "InstanceNorm1d": {"num_features": 3, "affine": True, "track_running_stats": True}, "InstanceNorm2d": {"num_features": 3},
    "LocalResponseNorm": {"size": 2}, "Unfold": {"kernel_size": 2}, "PixelShuffle": {"upscale_factor": 2}, "PixelUnshuffle": {"downscale_factor": 2},
    "ChannelShuffle": {"groups": 2}, "RReLU": {"inplace": True}, "Dropout1d": {}, "Dropout2d": {"p": 0.2}, "Dropout3d": {}, "AlphaDropout": {},
    "FeatureAlphaDropout": {},
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_layers_print_and_save_as_in_torch(name):
    torch = pytest.importorskip("torch")
    ours, theirs = (n.__dict__[name](**LAYERS[name]) for n in (jitgrad.nn, torch.nn))
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())


def test_running_statistics_of_instances(lib):
    layer = lib.nn.InstanceNorm1d(2, momentum=0.5, track_running_stats=True)
    layer(lib.tensor([[[1.0, 3.0], [0.0, 4.0]], [[3.0, 5.0], [2.0, 2.0]]]))
    assert layer.running_mean.tolist() == [1.5, 1.0]
    assert layer.running_var.tolist() == [1.5, 2.5]
    layer.eval()
    out = layer(lib.tensor([[1.5, 1.5], [1.0, 1.0]]))
    assert out.abs().sum().item() < 1e-6


def test_channels_are_dropped_together(lib):
    lib.manual_seed(0)
    for name, shape in (("dropout1d", (8, 9, 4)), ("dropout2d", (8, 9, 2, 2)), ("dropout3d", (8, 9, 2, 2, 2)), ("dropout1d", (9, 4))):
        x = lib.ones(*shape, requires_grad=True)
        y = lib.nn.functional.__dict__[name](x, 0.5)
        y.sum().backward()
        rows = y.detach().reshape(-1, y.numel() // (72 if len(shape) > 2 else 9))
        assert {tuple(set(row)) for row in rows.tolist()} == {(0.0,), (2.0,)}
        assert x.grad.tolist() == y.tolist()
        assert lib.nn.functional.__dict__[name](x, 0.5, False).tolist() == x.tolist()


def test_noise_that_keeps_mean_and_variance(lib):
    lib.manual_seed(0)
    x = lib.randn(200_000, requires_grad=True)
    y = lib.nn.functional.alpha_dropout(x, 0.3, True)
    assert abs(y.mean().item()) < 0.02
    assert abs(y.var().item() - 1) < 0.02
    y.sum().backward()
    assert len(set(x.grad.tolist())) == 2
    z = lib.nn.functional.feature_alpha_dropout(lib.ones(4, 50, 3), 0.5, True)
    assert all(len(set(row)) == 1 for row in z.reshape(200, 3).tolist())
    assert len(set(z.reshape(-1).tolist())) == 2


def test_choices_by_chance(lib):
    lib.manual_seed(0)
    x = lib.zeros(2000, 2, requires_grad=True)
    with lib.no_grad():
        x[:, 0] = 1.0986123  # the logarithm of 3
    soft, hard = (lib.nn.functional.gumbel_softmax(x, 0.5, hard) for hard in (False, True))
    for y in (soft, hard):
        assert lib.allclose(y.sum(1), lib.ones(2000))
    assert ((hard > 0.999) | (hard < 0.001)).all()
    assert abs(hard[:, 0].mean().item() - 0.75) < 0.05
    (hard[:, 0]).sum().backward()
    assert (x.grad != 0).any()


def test_slopes_by_chance(lib):
    lib.manual_seed(0)
    x = lib.full((1000,), -1.0, requires_grad=True)
    y = lib.nn.functional.rrelu(x, 0.25, 0.75, True)
    y.sum().backward()
    assert (-y).tolist() == x.grad.tolist()
    assert -0.75 <= y.min().item() < -0.7 < -0.3 < y.max().item() <= -0.25
    assert lib.nn.RReLU()(lib.ones(2)).tolist() == [1, 1]


def test_refused(lib):
    f, ones = lib.nn.functional, lib.ones
    labels = lib.tensor([0, 1])
    for call, error, words in (
        (lambda: f.gaussian_nll_loss(ones(4, 3), ones(4, 3), ones(4, 2)), ValueError, "var is of incorrect size"),
        (lambda: f.gaussian_nll_loss(ones(4), ones(4), -ones(4)), ValueError, "var has negative entry/entries"),
        (lambda: f.margin_ranking_loss(ones(4), ones(4, 1), ones(4)), RuntimeError, "margin_ranking_loss : All input tensors should have"),
        (lambda: f.multi_margin_loss(ones(2, 3), labels, p=3), ValueError, "only p == 1 and p == 2 supported"),
        (lambda: f.multi_margin_loss(ones(2, 3), labels, weight=ones(2)), RuntimeError, r"inconsistent weight size, expected 3 but got \[2\]"),
        (lambda: f.multi_margin_loss(ones(2, 0), labels), RuntimeError, "Expected non-empty vector or matrix with optional 0-dim batch size"),
        (lambda: f.multilabel_margin_loss(ones(2, 3), labels), RuntimeError, r"inconsistent target size: \[2\] for input of size: \[2, 3\]"),
        (lambda: f.cosine_embedding_loss(ones(2), ones(2), ones(2)), RuntimeError, "1D target tensor expects 2D input tensors"),
        (lambda: f.triplet_margin_loss(ones(2), ones(2), ones(2), margin=0), ValueError, "margin must be greater than 0"),
        (lambda: f.triplet_margin_loss(ones(2), ones(2), ones(1, 2)), RuntimeError, "The anchor, positive, and negative tensors are"),
        (lambda: f.soft_margin_loss(ones(2), ones(2), reduction="foo"), ValueError, "foo is not a valid value for reduction"),
        (lambda: f.instance_norm(ones(2, 3, 1)), ValueError, "Expected more than 1 spatial element when training, got input size"),
        (lambda: f.pixel_shuffle(ones(3, 2, 2), 2), RuntimeError, "pixel_shuffle expects its input's 'channel' dimension to be divisible by"),
        (lambda: f.pixel_unshuffle(ones(1, 3, 2), 2), RuntimeError, "pixel_unshuffle expects height to be divisible by downscale_factor"),
        (lambda: f.channel_shuffle(ones(1, 3, 2), 2), RuntimeError, "Number of channels must be divisible by groups. Got 3 channels and 2 groups"),
        (lambda: f.rrelu(ones(1), 0.3, 0.1), RuntimeError, "Lower bound should be less than or equal to the upper bound"),
        (lambda: f.dropout2d(ones(1, 1, 1, 1), 2.0), ValueError, "dropout probability has to be between 0 and 1, but got 2.0"),
        (lambda: f.alpha_dropout(ones(1), 2.0), ValueError, "dropout probability has to be between 0 and 1, but got 2.0"),
    ):
        with pytest.raises(error, match=words):
            call()
