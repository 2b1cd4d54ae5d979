"""Sums and losses whose common case is spelled out, against the faces that define them."""

import numpy as np
import pytest

import jitgrad
from jitgrad._ops import classes, losses, reductions
from jitgrad._tensor import planned_losses as planned, planned_sums as sums

RNG = np.random.Generator(np.random.PCG64(8))
X, Y, TARGET = RNG.normal(size=(6, 5)), RNG.normal(size=(6, 5)), np.array([0, 4, -100, 2, 2, 1])
CASES = {
    "sum": (sums.sum, reductions.sum_, False),
    "mean": (sums.mean, reductions.mean, False),
    "mse": (planned.mse_loss, losses.mse_loss, "float"),
    "mse sum": (lambda x, y: planned.mse_loss(x, y, "sum"), lambda x, y: losses.mse_loss(x, y, "sum"), "float"),
    "cross entropy": (planned.cross_entropy, classes.cross_entropy, "class"),
    "cross entropy sum": (
        lambda x, y: planned.cross_entropy(x, y, None, 2, "sum"), lambda x, y: classes.cross_entropy(x, y, None, 2, "sum"), "class",
    ),
}  # fmt: skip


def operands(other, dtype, target_takes_gradient=False):
    x = jitgrad.tensor(X, dtype=dtype, requires_grad=True)
    if not other:
        return [x]
    values = np.where(TARGET < 0, 2, TARGET) if other == "class" else Y
    y = jitgrad.tensor(values) if other == "class" else jitgrad.tensor(values, dtype=dtype)
    return [x, y.requires_grad_() if target_takes_gradient else y]


def is_planned(node):
    return isinstance(node, planned.PlannedNode)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_agrees_with_the_face(name, dtype):
    fast, face, other = CASES[name]
    kind = getattr(jitgrad, dtype)
    for both in (False, True) if other == "float" else (False,):
        fast(*operands(other, kind, both))  # the first call with these Metas may go the long way
        ours, theirs = operands(other, kind, both), operands(other, kind, both)
        found, wanted = fast(*ours), face(*theirs)
        assert is_planned(found.fn)
        assert not is_planned(wanted.fn)
        assert found.grad_fn.name() == wanted.grad_fn.name()
        assert (found.item(), found.meta) == (wanted.item(), wanted.meta)
        for graph in (False, True):
            inputs = [x for x in ours if x.requires_grad], [x for x in theirs if x.requires_grad]
            pairs = [jitgrad.autograd.grad(y, x, retain_graph=True, create_graph=graph) for y, x in zip((found, wanted), inputs, strict=True)]
            for one, two in zip(*pairs, strict=True):
                np.testing.assert_allclose(one.detach().numpy(), two.detach().numpy(), rtol=1e-5, atol=1e-7)
                assert one.requires_grad is two.requires_grad
        found.backward()
        wanted.backward()
        for one, two in zip(ours, theirs, strict=True):
            assert (one.grad is None) == (two.grad is None)
            if one.grad is not None:
                np.testing.assert_array_equal(one.grad.numpy(), two.grad.numpy())


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case[2]])
def test_released_and_written(name):
    fast, _, other = CASES[name]
    fast(*operands(other, jitgrad.float32))
    loss = fast(*operands(other, jitgrad.float32))
    loss.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        loss.backward()
    x, y = operands(other, jitgrad.float32)
    loss = fast(x, y)
    y.mul_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("name", CASES)
def test_not_recorded(name):
    fast, _, other = CASES[name]
    fast(*operands(other, jitgrad.float32))
    with jitgrad.no_grad():
        assert fast(*operands(other, jitgrad.float32)).grad_fn is None
    with jitgrad.inference_mode():
        assert fast(*operands(other, jitgrad.float32)).is_inference()


def test_the_unusual_goes_to_the_face():
    x, y = operands("float", jitgrad.float32)
    results = sums.sum(x, 0), sums.sum(x.t()), sums.mean(x, dtype=jitgrad.float64)
    for result in (*results, planned.mse_loss(x, y, "none"), planned.mse_loss(x.t(), y.t())):
        assert not is_planned(result.fn)
    target = jitgrad.tensor([0, 1, 2, 3, 4, 0])
    for _ in range(2):
        for result in (planned.cross_entropy(x, target, label_smoothing=0.1), planned.cross_entropy(x, target, jitgrad.ones(5))):
            assert not is_planned(result.fn)
        with pytest.raises(IndexError, match="Target 5 is out of bounds"):
            planned.cross_entropy(x, target + 1)
