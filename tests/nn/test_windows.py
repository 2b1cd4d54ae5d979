"""Convolutions, pools and frames, by hand and beside torch."""

import numpy as np
import pytest

import jitgrad
from tests.libraries import lib

__all__ = ["lib"]
normal = np.random.default_rng(0).normal


def together(fn, *shapes):
    """Results and gradients in both packages, on the same random numbers."""
    torch = pytest.importorskip("torch")
    values = [normal(size=shape).round(2) for shape in shapes]
    found = []
    for t in (jitgrad, torch):
        xs = [t.tensor(value, requires_grad=True) for value in values]
        out = fn(t.nn.functional, *xs)
        outs = out if isinstance(out, tuple) else (out,)
        (outs[0] * (t.arange(outs[0].numel(), dtype=t.float64).reshape(outs[0].shape) / 7 - 1)).sum().backward()
        found.append([y.detach().numpy() for y in outs] + [x.grad.numpy() for x in xs])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-9)
        assert ours.dtype == theirs.dtype


CASES = {
    "conv1d": (lambda F, x, w, b: F.conv1d(x, w, b, 2, 1, 2, 2), (2, 4, 15), (6, 2, 3), (6,)),
    "conv2d": (lambda F, x, w, b: F.conv2d(x, w, b, (2, 1), (1, 0), (1, 2)), (2, 3, 8, 9), (4, 3, 3, 2), (4,)),
    "same": (lambda F, x, w: F.conv2d(x, w, None, 1, "same", (2, 1)), (3, 8, 9), (4, 3, 3, 3)),
    "conv3d": (lambda F, x, w: F.conv3d(x, w, padding=1), (1, 2, 4, 4, 5), (3, 2, 3, 2, 2)),
    "transpose 1": (lambda F, x, w: F.conv_transpose1d(x, w, stride=3, padding=1, output_padding=2), (2, 4, 5), (4, 3, 3)),
    "transpose 2": (lambda F, x, w, b: F.conv_transpose2d(x, w, b, (2, 3), (1, 0), (1, 0), 2, (1, 2)), (2, 4, 5, 4), (4, 3, 3, 2), (6,)),
    "transpose 3": (lambda F, x, w: F.conv_transpose3d(x, w), (2, 3, 3, 2), (2, 3, 2, 2, 2)),
    "max with places": (lambda F, x: F.max_pool2d(x, 3, 2, 1, 1, True, True), (2, 3, 8, 9)),
    "max dilated": (lambda F, x: F.max_pool2d(x, (2, 3), (1, 2), (1, 1), (2, 1), False, True), (2, 3, 8, 9)),
    "max with ties": (lambda F, x: F.max_pool2d(x.round(), 3, 1, return_indices=True), (3, 8, 9)),
    "max 1": (lambda F, x: F.max_pool1d(x, 3), (3, 8)),
    "max 3": (lambda F, x: F.max_pool3d(x, 2, return_indices=True), (3, 4, 5, 6)),
    "mean with frame": (lambda F, x: F.avg_pool2d(x, 3, 2, 1, True, True), (2, 3, 8, 9)),
    "mean without": (lambda F, x: F.avg_pool2d(x, 3, 2, 1, True, False), (2, 3, 8, 9)),
    "mean divided": (lambda F, x: F.avg_pool2d(x, (2, 3), None, (1, 1), False, True, 5), (2, 3, 8, 9)),
    "mean 1": (lambda F, x: F.avg_pool1d(x, 3, 1), (2, 3, 8)),
    "mean 3": (lambda F, x: F.avg_pool3d(x, 2), (2, 3, 4, 4, 4)),
    "adaptive mean": (lambda F, x: F.adaptive_avg_pool2d(x, (3, None)), (2, 3, 8, 9)),
    "adaptive mean 1": (lambda F, x: F.adaptive_avg_pool1d(x, 5), (3, 8)),
    "adaptive max": (lambda F, x: F.adaptive_max_pool2d(x.round(), (3, 4), True), (2, 3, 8, 9)),
    "adaptive max 3": (lambda F, x: F.adaptive_max_pool3d(x, 2, True), (3, 8, 5, 4)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_beside_torch(name):
    together(*CASES[name])


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize(
    ("widths", "shape"), [((2, 1), (2, 3, 6)), ((2, 1, 0, 3), (3, 6, 7)), ((2, 1, 0, 3, 1, 1), (2, 3, 4, 6, 7)), ((-1, 2), (3, 6))]
)
def test_frames_beside_torch(mode, widths, shape):
    together(lambda F, x: F.pad(x, widths, mode), shape)


def test_by_hand(lib):
    F = lib.nn.functional
    x = lib.tensor([[[1.0, 2.0, 4.0, 8.0]]], requires_grad=True)
    y = F.conv1d(x, lib.tensor([[[1.0, 10.0]]]), lib.tensor([100.0]))
    assert y.tolist() == [[[121, 142, 184]]]
    y.sum().backward()
    assert x.grad.tolist() == [[[1, 11, 11, 10]]]
    assert F.conv_transpose1d(x, lib.tensor([[[1.0, 10.0]]]), stride=2).tolist() == [[[1, 10, 2, 20, 4, 40, 8, 80]]]
    assert F.max_pool1d(x, 2).tolist() == [[[2, 8]]]
    assert F.avg_pool1d(x, 2).tolist() == [[[1.5, 6]]]
    assert F.adaptive_avg_pool1d(x, 3).tolist() == [[[1.5, 3, 6]]]
    assert F.pad(x, (2, 1), "reflect").tolist() == [[[4, 2, 1, 2, 4, 8, 4]]]
    assert F.pad(x, (2, 1), "replicate").tolist() == [[[1, 1, 1, 2, 4, 8, 8]]]
    assert F.pad(x, (2, 1), "circular").tolist() == [[[4, 8, 1, 2, 4, 8, 1]]]


def test_pools_of_integers(lib):
    F = lib.nn.functional
    assert F.avg_pool1d(lib.tensor([[-1, -2, 5, 6]]), 2).tolist() == [[-1, 5]]
    assert F.avg_pool2d(lib.tensor([[[-1, -2], [-4, -4]]]), 2).tolist() == [[[-2]]]
    small = F.max_pool2d(lib.tensor([[[3, 1], [2, 0]]], dtype=lib.uint8), 2, 1, 1)
    assert small.dtype is lib.uint8
    assert small.tolist() == [[[3, 3, 1], [3, 3, 1], [2, 2, 0]]]


def test_second_derivatives():
    x, w = (jitgrad.tensor(normal(size=shape), requires_grad=True) for shape in ((1, 2, 4, 4), (2, 1, 2, 2)))
    F = jitgrad.nn.functional
    assert jitgrad.autograd.gradgradcheck(lambda x, w: F.conv2d(x, w, None, 1, 1, 1, 2), (x, w))
    assert jitgrad.autograd.gradgradcheck(lambda x, w: F.conv_transpose2d(x, w, None, 2, groups=1), (x, w))


LAYERS = {
    "Conv2d": lambda n: n.Conv2d(2, 4, (3, 2), 2, (1, 0), 2, 2, False, "reflect"),
    "Conv1d": lambda n: n.Conv1d(2, 2, 3, padding="same", padding_mode="circular"),
    "ConvTranspose2d": lambda n: n.ConvTranspose2d(2, 4, 3, 2, 1, 1), "MaxPool2d": lambda n: n.MaxPool2d(2, ceil_mode=True),
    "AvgPool1d": lambda n: n.AvgPool1d(2), "AvgPool2d": lambda n: n.AvgPool2d(3, divisor_override=2),
    "AdaptiveAvgPool2d": lambda n: n.AdaptiveAvgPool2d((1, None)), "AdaptiveMaxPool1d": lambda n: n.AdaptiveMaxPool1d(3),
    "ReflectionPad2d": lambda n: n.ReflectionPad2d(1), "CircularPad1d": lambda n: n.CircularPad1d((1, 2)),
    "ReplicationPad3d": lambda n: n.ReplicationPad3d(1),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_layers_print_and_save_as_in_torch(name):
    torch = pytest.importorskip("torch")
    ours, theirs = LAYERS[name](jitgrad.nn), LAYERS[name](torch.nn)
    assert repr(ours) == repr(theirs)
    assert {k: tuple(v.shape) for k, v in ours.state_dict().items()} == {k: tuple(v.shape) for k, v in theirs.state_dict().items()}


def test_sizes_of_transposes(lib):
    layer = lib.nn.ConvTranspose1d(1, 1, 3, stride=3)
    x = lib.ones(1, 1, 4)
    assert [layer(x, output_size=[size]).shape[-1] for size in (12, 13, 14)] == [12, 13, 14]
    with pytest.raises(ValueError, match="requested an output size of"):
        layer(x, output_size=[15])


def test_refused(lib):
    n, F, ones = lib.nn, lib.nn.functional, lib.ones
    for call, error, words in (
        (lambda: n.Conv2d(3, 4, 2, groups=2), ValueError, "in_channels must be divisible by groups"),
        (lambda: n.Conv2d(4, 3, 2, groups=2), ValueError, "out_channels must be divisible by groups"),
        (lambda: n.Conv2d(1, 1, 2, padding="foo"), ValueError, "Invalid padding string 'foo', should be one of"),
        (lambda: n.Conv2d(1, 1, 2, 2, padding="same"), ValueError, "padding='same' is not supported for strided convolutions"),
        (lambda: n.Conv2d(1, 1, 2, padding_mode="foo"), ValueError, "padding_mode must be one of"),
        (lambda: F.conv1d(ones(1, 3, 4), ones(1, 2, 1)), RuntimeError, r"Given groups=1, weight of size \[1, 2, 1\], expected input\[1, 3, 4\] to"),
        (lambda: F.conv1d(ones(1, 1, 2), ones(1, 1, 3)), RuntimeError, r"Calculated padded input size per channel: \(2\). Kernel size: \(3\)"),
        (lambda: F.conv2d(ones(3), ones(1, 1, 3, 3)), RuntimeError, r"Expected 3D \(unbatched\) or 4D \(batched\) input to conv2d"),
        (lambda: F.conv1d(ones(1, 1, 4), ones(1, 1, 2), stride=-1), RuntimeError, "non-positive stride is not supported"),
        (lambda: F.conv1d(ones(1, 1, 4), ones(1, 1, 2), dilation=0), RuntimeError, "dilation should be greater than zero"),
        (lambda: F.conv1d(ones(1, 1, 4), ones(1, 1, 2), padding=-1), RuntimeError, "negative padding is not supported"),
        (lambda: F.conv1d(ones(2, 2, 4), ones(2, 2, 2), groups=3), RuntimeError, "expected weight to be at least 3 at dimension 0"),
        (lambda: F.conv1d(ones(1, 1, 4), ones(1, 2)), RuntimeError, "weight should have at least three dimensions"),
        (lambda: F.conv1d(ones(1, 1, 4), ones(1, 1, 2), ones(3)), RuntimeError, "expected bias to be 1-dimensional with 1 elements"),
        (lambda: F.max_pool2d(ones(1, 2, 5, 5), 2, padding=-1), RuntimeError, "pad must be non-negative"),
        (lambda: F.max_pool2d(ones(2, 1, 9, 0), 1), RuntimeError, "tensor with optional 0 dim batch size for input, but got"),
        (lambda: F.avg_pool2d(ones(1, 5, 5), 2, divisor_override=0), RuntimeError, "divisor must be not zero"),
        (lambda: F.adaptive_avg_pool2d(ones(1, 2, 3, 4), ()), RuntimeError, "adaptive_avg_pool2d: output_size must be 2"),
        (lambda: F.adaptive_avg_pool2d(ones(1, 1, 1), (-1, 0)), RuntimeError, "elements of output_size must be greater than or equal to 0"),
        (lambda: F.adaptive_avg_pool2d(ones(2, 2), (2, 2)), ValueError, "Input dimension should be at least 3"),
        (lambda: F.max_pool2d(ones(1, 1, 2, 2), 3), RuntimeError, "Output size is too small"),
        (lambda: F.max_pool2d(ones(1, 1, 2, 2), 2, padding=2), RuntimeError, "pad should be at most half of effective kernel size"),
        (lambda: F.pad(ones(1, 3), (3, 0), "reflect"), RuntimeError, "Padding size should be less than the corresponding input dimension"),
        (lambda: F.pad(ones(1, 3), (4, 0), "circular"), RuntimeError, "Padding value causes wrapping around more than once"),
        (lambda: F.pad(ones(1, 3), (1, 0), "foo"), NotImplementedError, "."),
    ):
        with pytest.raises(error, match=words):
            call()
