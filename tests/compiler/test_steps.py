"""Whole training steps: compiled and eager give the same numbers."""

import numpy as np
import pytest

import jitgrad as torch
from jitgrad import nn, optim
from jitgrad.nn import functional as F
from tests.compiler.steps import Trainer, assert_same, classes

OPTIMIZERS = {
    "sgd": lambda p: optim.SGD(p, lr=0.1),
    "momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.1, weight_decay=1e-2),
    "nesterov": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, maximize=True),
    "adam": lambda p: optim.Adam(p, lr=1e-2),
    "amsgrad": lambda p: optim.Adam(p, lr=1e-2, amsgrad=True, weight_decay=1e-2),
    "adamw": lambda p: optim.AdamW(p, lr=1e-2),
    "rmsprop": lambda p: optim.RMSprop(p, lr=1e-2, momentum=0.5, centered=True),
    "adagrad": lambda p: optim.Adagrad(p, lr=1e-2, lr_decay=0.1),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name):
    compiled, eager = Trainer(OPTIMIZERS[name]), Trainer(OPTIMIZERS[name])
    step = torch.compile(compiled.step)
    x, y = classes()
    for _ in range(5):
        a, b = step(x, y), eager.step(x, y)
        np.testing.assert_allclose(a.item(), b.item(), rtol=1e-6)
    assert step.history == []
    assert len(step.versions) == 1
    assert_same(compiled.model, eager.model)
    for p, q in zip(compiled.model.parameters(), eager.model.parameters(), strict=True):
        for key, value in eager.optimizer.state[q].items():
            np.testing.assert_allclose(compiled.optimizer.state[p][key].numpy(), value.numpy(), rtol=1e-5, atol=1e-7)


def test_what_is_returned_is_what_eager_returns():
    compiled, eager = Trainer(), Trainer()
    step, (x, y) = torch.compile(compiled.step), classes()
    for _ in range(3):
        a, b = step(x, y), eager.step(x, y)
    assert a.requires_grad
    assert a.grad_fn.name() == b.grad_fn.name() == "NllLossBackward0"
    assert type(a) is torch.Tensor
    with pytest.raises(RuntimeError, match="second time"):
        a.backward()


def test_schedulers_change_the_rate():
    compiled, eager = Trainer(), Trainer()
    schedules = [optim.lr_scheduler.ExponentialLR(t.optimizer, 0.5) for t in (compiled, eager)]
    step, (x, y) = torch.compile(compiled.step), classes()
    for _ in range(4):
        step(x, y), eager.step(x, y)
        for schedule in schedules:
            schedule.step()
    assert_same(compiled.model, eager.model)
    assert len(step.versions) == 1


def test_another_batch_size_is_another_version():
    compiled, eager = Trainer(), Trainer()
    step = torch.compile(compiled.step)
    for batch in (8, 8, 5, 8, 5):
        x, y = classes(batch)
        step(x, y), eager.step(x, y)
    assert len(step.versions) == 2
    assert_same(compiled.model, eager.model)


def test_gradients_accumulate_where_nobody_clears_them():
    compiled, eager = Trainer(), Trainer()
    x, y = classes()

    def steps(trainer):
        def step(x, y):
            F.cross_entropy(trainer.model(x), y).backward()

        return step

    a, b = torch.compile(steps(compiled)), steps(eager)
    for _ in range(4):
        a(x, y), b(x, y)
    assert_same(compiled.model, eager.model)
    compiled.model.zero_grad(), eager.model.zero_grad()
    for _ in range(2):
        a(x, y), b(x, y)
    assert_same(compiled.model, eager.model)


def test_a_gradient_that_somebody_keeps_is_not_written_again():
    compiled = Trainer()
    step, (x, y) = torch.compile(compiled.step), classes()
    step(x, y), step(x, y)
    weight = next(iter(compiled.model.parameters()))
    kept = weight.grad
    before = kept.numpy().copy()
    view = kept.numpy()
    step(x, y)
    assert weight.grad is not kept
    del kept
    step(x, y)
    np.testing.assert_array_equal(view, before)


def test_clearing_outside_works_too():
    compiled, eager = Trainer(), Trainer()
    step, (x, y) = torch.compile(compiled.step), classes()
    for _ in range(4):
        compiled.optimizer.zero_grad(), eager.optimizer.zero_grad()
        step(x, y), eager.step(x, y)
    assert_same(compiled.model, eager.model)


def test_batch_norm_moves_its_buffers():
    def make():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Linear(6, 3))
        optimizer = optim.SGD(model.parameters(), lr=0.1)

        def step(x, y):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        return model, step

    (model, inner), (other, eager) = make(), make()
    step, (x, y) = torch.compile(inner), classes()
    for _ in range(4):
        step(x, y), eager(x, y)
    assert step.history == []
    assert_same(model, other, 2e-6)
    for a, b in zip(model.buffers(), other.buffers(), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)
        assert a._version == b._version


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_layer_norm_embedding_and_softmax(dtype):
    def make():
        torch.manual_seed(0)
        table, norm, head = nn.Embedding(7, 8, padding_idx=0), nn.LayerNorm(8), nn.Linear(8, 3)
        model = nn.ModuleList([table, norm, head])
        model = model.double() if dtype == "f8" else model
        optimizer = optim.Adam(model.parameters(), lr=0.01)

        def step(index, y):
            optimizer.zero_grad()
            hidden = norm(table(index)).mean(1)
            loss = F.nll_loss(F.log_softmax(head(F.gelu(hidden)), -1), y, reduction="sum")
            loss.backward()
            optimizer.step()
            return loss

        return model, step

    (model, inner), (other, eager) = make(), make()
    step = torch.compile(inner)
    rng = np.random.default_rng(0)
    index, y = torch.tensor(rng.integers(0, 7, (5, 4))), torch.tensor(rng.integers(0, 3, 5))
    for _ in range(4):
        a, b = step(index, y), eager(index, y)
    assert step.history == []
    np.testing.assert_allclose(a.item(), b.item(), rtol=1e-6 if dtype == "f4" else 1e-12)
    assert_same(model, other, 5e-6)


def test_inner_gradients():
    """A loss on the derivative of a network by its input, as a physics-informed net has it."""

    def make():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
        optimizer = optim.SGD(model.parameters(), lr=0.05)

        def step(t):
            optimizer.zero_grad()
            x = t.detach().requires_grad_()
            u = model(x)
            (du,) = torch.autograd.grad(u.sum(), x, create_graph=True)
            (ddu,) = torch.autograd.grad(du.sum(), x, create_graph=True)
            loss = ((ddu + u) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        return model, step

    (model, inner), (other, eager) = make(), make()
    step = torch.compile(inner)
    t = torch.linspace(-1, 1, 10).reshape(10, 1)
    for _ in range(4):
        a, b = step(t), eager(t)
    assert step.history == []
    np.testing.assert_allclose(a.item(), b.item(), rtol=5e-6)
    assert_same(model, other, 5e-6)


def test_a_convolutional_net():
    def make():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Conv2d(1, 3, 3, padding=1), nn.BatchNorm2d(3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(27, 4))
        optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

        def step(x, y):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        return model, step

    (model, step), (other, eager) = make(), make()
    compiled = torch.compile(step)
    x, y = torch.randn(5, 1, 6, 6), torch.randint(0, 4, (5,))
    for _ in range(4):
        np.testing.assert_allclose(compiled(x, y).item(), eager(x, y).item(), rtol=1e-5)
    assert compiled.history == []
    for p, q in zip(model.state_dict().values(), other.state_dict().values(), strict=True):
        np.testing.assert_allclose(p.numpy(), q.numpy(), rtol=1e-5, atol=1e-6)


def test_results_lie_in_memory_as_eager_ones_do():
    weight = torch.randn(3, 4, requires_grad=True)

    def copies(x):
        return x.t().clone(), torch.ones_like(x.t()), (x * weight).t(), x + 1

    step, x = torch.compile(copies), torch.randn(3, 4)
    for _ in range(3):
        found, expected = step(x), copies(x)
        for a, b in zip(found, expected, strict=True):
            assert torch.equal(a, b)
            assert a.stride() == b.stride()
            assert a.is_contiguous() is b.is_contiguous()
        seed = torch.randn(4, 3)
        for a, b in zip(*(torch.autograd.grad(out[2], weight, seed) for out in (found, expected)), strict=True):
            assert torch.equal(a, b)
    assert len(step.versions) == 1
    assert step.history == []


def test_a_result_and_a_view_of_it_share_their_memory():
    def both(x):
        y = x * 2
        return y.view(-1), y

    step = torch.compile(both)
    with pytest.warns(RuntimeWarning, match="both runs eagerly: it returns a view"):
        step(torch.ones(2, 3))
    flat, whole = step(torch.ones(2, 3))
    flat.zero_()
    assert not whole.any()
