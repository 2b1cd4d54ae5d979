"""Losses: node names, overflow, ignored and wrong targets, weights, shapes, what is saved."""

import math

import numpy as np
import pytest

from tests.libraries import lib

__all__ = ["lib"]
NAN = math.nan
LOGITS = [[1.0, 2.0], [3.0, 4.0]]


def functional(lib):
    """nn.functional of either package."""
    return lib.nn.functional


def loss_and_grad(call, values, lib, dtype="float32"):
    x = lib.tensor(values, dtype=getattr(lib, dtype), requires_grad=True)
    loss = call(x)
    loss.sum().backward()
    return loss.tolist(), x.grad.tolist()


def test_node_names(lib):
    F = functional(lib)
    x, y = lib.tensor(LOGITS, requires_grad=True), lib.tensor([[0.2, 0.4], [0.6, 0.8]])
    target, weight = lib.tensor([0, 1]), lib.tensor([1.0, 2.0])
    image, classes = lib.zeros(1, 2, 3, 3, requires_grad=True), lib.zeros(1, 3, 3, dtype=lib.int64)
    for loss, name in (
        (F.mse_loss(x, y), "MseLossBackward0"),
        (F.mse_loss(x, y, reduction="none"), "MseLossBackward0"),
        (F.l1_loss(x, y), "MeanBackward0"),
        (F.smooth_l1_loss(x, y), "SmoothL1LossBackward0"),
        (F.huber_loss(x, y), "HuberLossBackward0"),
        (F.binary_cross_entropy(x.sigmoid(), y), "BinaryCrossEntropyBackward0"),
        (F.binary_cross_entropy_with_logits(x, y), "BinaryCrossEntropyWithLogitsBackward0"),
        (F.nll_loss(x, target), "NllLossBackward0"),
        (F.cross_entropy(x, target), "NllLossBackward0"),
        (F.cross_entropy(x, target, weight), "NllLossBackward0"),
        (F.cross_entropy(image, classes), "NllLoss2DBackward0"),
        (F.cross_entropy(x, target, label_smoothing=0.1), "AddBackward0"),
    ):
        assert loss.grad_fn.name() == name


def test_all_targets_ignored(lib):
    F = functional(lib)
    ignored = lib.tensor([-100, -100])
    loss, grad = loss_and_grad(lambda x: F.cross_entropy(x, ignored), LOGITS, lib)
    assert math.isnan(loss)
    assert grad == [[0, 0], [0, 0]]
    assert loss_and_grad(lambda x: F.cross_entropy(x, ignored, reduction="sum"), LOGITS, lib) == (0, [[0, 0], [0, 0]])
    assert loss_and_grad(lambda x: F.cross_entropy(x, ignored, reduction="none"), LOGITS, lib) == ([0, 0], [[0, 0], [0, 0]])
    assert math.isnan(F.nll_loss(lib.tensor(LOGITS), ignored).item())


def test_smoothing_leaves_out_what_is_ignored(lib):
    F = functional(lib)
    target = lib.tensor([0, -100])
    loss, grad = loss_and_grad(lambda x: F.cross_entropy(x, target, label_smoothing=0.1), LOGITS, lib, "float64")
    assert loss == pytest.approx(1.2632616875182228)
    assert np.allclose(grad, [[-0.681058578630005, 0.681058578630005], [0, 0]])


@pytest.mark.parametrize("bad", [5, 2, -1])
@pytest.mark.parametrize("options", [{}, {"label_smoothing": 0.1}, {"reduction": "none"}, {"weight": True}])
def test_a_target_that_is_no_class(lib, bad, options):
    F = functional(lib)
    options = {**options, **({"weight": lib.ones(2)} if "weight" in options else {})}
    x = lib.tensor(LOGITS, requires_grad=True)
    for _ in range(2):  # the second call goes another way
        with pytest.raises(IndexError, match=f"Target {bad} is out of bounds"):
            F.cross_entropy(x, lib.tensor([0, bad]), **options)
    with pytest.raises(IndexError, match=f"Target {bad} is out of bounds"):
        F.nll_loss(lib.zeros(1, 2, 2, 2), lib.tensor([[[0, 1], [0, bad]]]))
    assert F.cross_entropy(x, lib.tensor([0, bad]), ignore_index=bad).item() == pytest.approx(1.3132617)


def test_cross_entropy_of_large_logits(lib):
    F = functional(lib)
    target = lib.tensor([1])
    near = loss_and_grad(lambda x: F.cross_entropy(x, target), [[0.0, 1.0, -1.5]], lib)
    far = loss_and_grad(lambda x: F.cross_entropy(x, target), [[8192.0, 8193.0, 8190.5]], lib)
    assert far[0] == near[0]
    assert np.allclose(far[1], near[1], rtol=1e-6, atol=0)
    assert loss_and_grad(lambda x: F.cross_entropy(x, target), [[1000.0, -1000.0]], lib) == (2000, [[1, -1]])


def test_binary_losses_at_the_ends(lib):
    F = functional(lib)
    target = lib.tensor([0.0, 1.0])
    call = lambda x: F.binary_cross_entropy_with_logits(x, target)  # noqa: E731
    assert loss_and_grad(call, [1000.0, -1000.0], lib) == (1000, [0.5, -0.5])
    assert loss_and_grad(call, [-1000.0, 1000.0], lib) == (0, [0, 0])
    loss, grad = loss_and_grad(lambda x: F.binary_cross_entropy(x, target), [1.0, 0.0], lib)
    assert (loss, grad) == (100, [pytest.approx(5e11), pytest.approx(-5e11)])


def test_kinks(lib):
    F = functional(lib)
    zero = lib.zeros(5)
    points = [-2.0, -1.0, 0.0, 0.5, 1.0]
    assert loss_and_grad(lambda x: F.smooth_l1_loss(x, zero, reduction="sum"), points, lib)[1] == [-1, -1, 0, 0.5, 1]
    assert loss_and_grad(lambda x: F.huber_loss(x, zero, reduction="sum"), points, lib)[1] == [-1, -1, 0, 0.5, 1]
    assert loss_and_grad(lambda x: F.l1_loss(x, zero, reduction="sum"), points, lib)[1] == [-1, -1, 0, 1, 1]
    assert loss_and_grad(lambda x: F.smooth_l1_loss(x, zero, reduction="sum", beta=0.0), points, lib)[1] == [-1, -1, 0, 1, 1]


def test_nothing_gives_nan(lib):
    F = functional(lib)
    empty = lib.zeros(0, 3, requires_grad=True)
    for call in (F.mse_loss, F.smooth_l1_loss, F.binary_cross_entropy_with_logits):
        loss = call(empty, lib.zeros(0, 3))
        assert math.isnan(loss.item())
        loss.backward()
        assert empty.grad.shape == (0, 3)
    assert math.isnan(F.cross_entropy(empty, lib.zeros(0, dtype=lib.int64)).item())


def test_nan_spreads(lib):
    F = functional(lib)
    x = lib.tensor([[NAN, 0.0], [1.0, 2.0]])
    for loss in (F.mse_loss(x, x * 0), F.huber_loss(x, x * 0), F.cross_entropy(x, lib.tensor([1, 1])), F.binary_cross_entropy_with_logits(x, x * 0)):
        assert math.isnan(loss.item())


def test_gradients_reach_the_target(lib):
    F = functional(lib)
    x, y = lib.tensor([0.25, 0.5], requires_grad=True), lib.tensor([0.5, 1.0], requires_grad=True)
    for call, wanted in ((F.mse_loss, [0.25, 0.5]), (F.huber_loss, [0.125, 0.25]), (F.binary_cross_entropy_with_logits, [-0.125, -0.25])):
        y.grad = None
        call(x, y).backward()
        assert y.grad.tolist() == pytest.approx(wanted)


def test_classes_as_bytes_and_one_row(lib):
    F = functional(lib)
    x = lib.tensor(LOGITS)
    assert F.cross_entropy(x, lib.tensor([0, 1], dtype=lib.uint8)).item() == F.cross_entropy(x, lib.tensor([0, 1])).item()
    assert F.cross_entropy(x[0], lib.tensor(1)).item() == pytest.approx(0.3132617)


def test_operands_that_do_not_lie_in_order(lib):
    F = functional(lib)
    values = np.arange(12.0).reshape(3, 4) / 7
    x, y = lib.tensor(values), lib.tensor(np.ascontiguousarray(values.T))
    target = lib.tensor([0, 9, 1, 9, 2])[::2]
    for call in (F.mse_loss, F.smooth_l1_loss, F.huber_loss, F.binary_cross_entropy_with_logits):
        assert call(x, y.t() * 0.5).item() == call(x, (y.t() * 0.5).contiguous()).item()
    assert F.cross_entropy(y.t(), target).item() == F.cross_entropy(x, target.contiguous()).item()


def test_half_precision(lib):
    F = functional(lib)
    x, y = lib.tensor(LOGITS, dtype=lib.float16, requires_grad=True), lib.zeros(2, 2, dtype=lib.float16)
    for loss in (F.mse_loss(x, y), F.binary_cross_entropy_with_logits(x, y), F.cross_entropy(x, lib.tensor([0, 1]))):
        x.grad = None
        loss.backward()
        assert (loss.dtype, x.grad.dtype) == (lib.float16, lib.float16)
    assert F.mse_loss(x, y).item() == 7.5


def test_writes_to_what_is_saved(lib):
    F = functional(lib)
    for call in (F.mse_loss, F.binary_cross_entropy_with_logits):
        x, y = lib.tensor(LOGITS, requires_grad=True), lib.zeros(2, 2)
        loss = call(x, y)
        y.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda F, t: F.mse_loss(t.tensor([1]), t.tensor([1])), NotImplementedError, "not implemented for 'Long'"),
        (lambda F, t: F.smooth_l1_loss(t.ones(1), t.ones(1), beta=-1.0), RuntimeError, "does not support negative values for beta"),
        (lambda F, t: F.huber_loss(t.ones(1), t.ones(1), delta=0.0), RuntimeError, "does not support non-positive values for delta"),
        (lambda F, t: F.binary_cross_entropy(t.tensor([2.0]), t.ones(1)), RuntimeError, "all elements of input should be between 0 and 1"),
        (lambda F, t: F.binary_cross_entropy(t.ones(1), t.tensor([2.0])), RuntimeError, "all elements of target should be between 0 and 1"),
        (lambda F, t: F.binary_cross_entropy(t.ones(1), t.ones(1).double()), RuntimeError, "Found dtype Double but expected Float"),
        (lambda F, t: F.nll_loss(t.ones(2, 3), t.tensor([0, 1, 2])), ValueError, r"Expected input batch_size \(2\) to match target batch_size \(3\)"),
        (lambda F, t: F.nll_loss(t.ones(2, 3), t.tensor([0.0, 1.0])), RuntimeError, "expected target dtype to be Long or Byte, but got Float"),
        (lambda F, t: F.cross_entropy(t.ones(2, 3), t.tensor([0, 1]), t.ones(2)), RuntimeError, "for all 3 classes or no classes"),
        (lambda F, t: F.cross_entropy(t.ones(2, 3), t.ones(2, 3), ignore_index=1), RuntimeError, "ignore_index is not supported"),
        (lambda F, t: F.cross_entropy(t.ones(2, 3), t.tensor([0, 1]), label_smoothing=2.0), RuntimeError, "label_smoothing must be between"),
        (lambda F, t: F.cross_entropy(t.ones(2, 3, 4, 4), t.zeros(2, 4).long()), RuntimeError, "only batches of spatial targets supported"),
    ],
)
def test_refusals(lib, call, kind, words):
    with pytest.raises(kind, match=words):
        call(functional(lib), lib)
