"""What a compiled function notices: everything it reads besides its arguments, and everything it would not do again."""

import random
import threading
import types
import warnings
from dataclasses import dataclass

import numpy as np
import pytest

import jitgrad as torch
from jitgrad import nn, optim
from jitgrad.nn import functional as F
from jitgrad.utils.checkpoint import checkpoint
from tests.compiler import settings_of_test as settings
from tests.compiler.steps import Trainer, assert_same, classes


class Config:
    scale = 2.0

    def __init__(self):
        self.shift = 1.0

    @property
    def double(self):
        return self.scale * 2

    @staticmethod
    def helper(x):
        return x + 1


class Derived(Config):
    pass


@dataclass
class Numbers:
    value: float = 1.0


def test_modules_classes_and_objects_are_read_again(monkeypatch):
    config, space, numbers = Derived(), types.SimpleNamespace(a=1.0), Numbers()

    def helper(x):
        return x * settings.RATE * settings.Scales.inner * config.scale + config.shift + config.double + space.a + numbers.value + Derived.helper(x)

    def step(x):
        return helper(x)

    compiled = torch.compile(step, limit=20)
    changes = [
        (settings, "RATE", 5.0), (settings.Scales, "inner", 7.0), (Config, "scale", 11.0), (config, "shift", 13.0), (space, "a", 17.0),
        (numbers, "value", 19.0), (Config, "helper", staticmethod(lambda x: x + 100)), (config, "scale", 23.0),
    ]  # fmt: skip
    x = torch.ones(2)
    for place, name, value in [(None, "", 0), *changes]:
        if place is not None:
            monkeypatch.setattr(place, name, value, raising=False)
        for _ in range(2):
            assert compiled(x).tolist() == step(x).tolist()
    assert compiled.history == []
    assert len(compiled.versions) == 1 + len(changes)


# ---------------------------------------------------------------- what the function would have to do again
def stepping():
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    return model, optim.SGD(model.parameters(), lr=0.1)


def train(model, optimizer, x):
    optimizer.zero_grad()
    loss = model(x).pow(2).mean()
    loss.backward()
    optimizer.step()
    return loss


def scheduler_inside():
    model, optimizer = stepping()
    schedule = optim.lr_scheduler.StepLR(optimizer, 1, 0.5)

    def step(x):
        loss = train(model, optimizer, x)
        schedule.step()
        return loss

    return model, step


def rates_written():
    model, optimizer = stepping()

    def step(x):
        loss = train(model, optimizer, x)
        for group in optimizer.param_groups:
            group["lr"] *= 0.9
        return loss

    return model, step


def iterator():
    model, optimizer = stepping()
    data = iter([torch.ones(4, 3) * k for k in range(1, 9)])
    return model, lambda x: train(model, optimizer, next(data))


def numpy_generator():
    model, optimizer = stepping()
    rng = np.random.default_rng(0)
    return model, lambda x: train(model, optimizer, x * float(rng.random()))


def python_random():
    model, optimizer = stepping()
    rng = random.Random(0)
    return model, lambda x: train(model, optimizer, x * rng.random())


def appended():
    model, optimizer = stepping()
    losses = []

    def step(x):
        losses.append(train(model, optimizer, x).detach())
        return losses[-1] * len(losses)

    return model, step


def nonlocal_count():
    model, optimizer = stepping()
    count = 0

    def step(x):
        nonlocal count
        count += 1
        return train(model, optimizer, x * count)

    return model, step


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.calls = nn.Linear(3, 2), 0

    def forward(self, x):
        self.calls += 1
        return self.inner(x) * self.calls


class Keeping(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 2)

    def forward(self, x):
        self.last = self.inner(x)
        return self.last


def module_of(kind):
    def make():
        torch.manual_seed(0)
        model = kind()
        optimizer = optim.SGD(model.parameters(), lr=0.1)
        return model, lambda x: train(model, optimizer, x)

    return make


CHANGING = {
    "scheduler": (scheduler_inside, "step the scheduler outside"), "rates": (rates_written, "the options of optimizer"),
    "iterator": (iterator, "the iterator data"), "numpy": (numpy_generator, "rng"), "python": (python_random, "rng"),
    "append": (appended, "losses"), "nonlocal": (nonlocal_count, "count"), "module counts": (module_of(Counting), "calls"),
    "module keeps": (module_of(Keeping), "attributes of model"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGING)
def test_what_changes_python_objects_runs_eagerly_and_is_named(name):
    make, words = CHANGING[name]
    (model, inner), (other, eager) = make(), make()
    step, x = torch.compile(inner), torch.ones(4, 3)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(4):
            np.testing.assert_allclose(step(x).item(), eager(x).item(), rtol=1e-6)
    assert [words in str(warning.message) for warning in seen] == [True]
    assert_same(model, other)


@pytest.mark.parametrize("read", ["scheduler", "groups"])
def test_rates_that_the_function_reads_itself_are_guarded(read):
    def make():
        model, optimizer = stepping()
        schedule = optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
        if read == "scheduler":
            return schedule, lambda x: train(model, optimizer, x) * schedule.get_last_lr()[0]
        return schedule, lambda x: train(model, optimizer, x) * optimizer.param_groups[0]["lr"]

    (schedule, inner), (other, eager) = make(), make()
    step, x = torch.compile(inner), torch.ones(4, 3)
    for _ in range(4):
        np.testing.assert_allclose(step(x).item(), eager(x).item(), rtol=1e-6)
        schedule.step(), other.step()
    assert step.history == []


# ---------------------------------------------------------------- modules, parameters, hooks, gradients
def both(change, undo=None, calls=2, make=Trainer):
    """A trainer compiled and one eager, before a change, after it, and after it is undone."""
    compiled, eager = make(), make()
    step, (x, y) = torch.compile(compiled.step), classes()
    for action in (None, change, undo):
        if action is not None:
            action(compiled), action(eager)
        for _ in range(calls):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                a, b = step(x, y), eager.step(x, y)
            np.testing.assert_allclose(a.item(), b.item(), rtol=2e-6)
            assert_same(compiled.model, eager.model, 2e-6)
    return step


def test_a_frozen_parameter():
    step = both(lambda t: t.model[0].weight.requires_grad_(False), lambda t: t.model[0].weight.requires_grad_(True))
    assert step.history == []


def test_a_layer_is_replaced():
    def change(trainer):
        torch.manual_seed(5)
        trainer.model[1] = nn.Tanh()

    both(change, lambda t: setattr(t.model, "1", nn.ReLU()))


def test_a_layer_is_added():
    both(lambda t: t.model.append(nn.Dropout(0.0)))


def test_a_forward_hook_comes_and_goes():
    handles = []
    both(lambda t: handles.append(t.model[0].register_forward_hook(lambda module, args, out: out * 2)), lambda t: handles.pop(0).remove())


def test_a_tensor_hook_comes_and_goes():
    handles = []
    both(lambda t: handles.append(t.model[0].bias.register_hook(lambda grad: grad * 3)), lambda t: handles.pop(0).remove())


def halve(parameter):
    parameter.grad.mul_(0.5)


def test_a_post_accumulate_hook():
    both(lambda t: t.model[0].bias.register_post_accumulate_grad_hook(halve))


def test_an_optimizer_hook():
    both(lambda t: t.optimizer.register_step_pre_hook(lambda optimizer, args, kwargs: [p.grad.mul_(2) for p in t.model.parameters()] and None))


def test_another_rule_of_the_optimizer():
    both(lambda t: t.optimizer.param_groups[0].update(momentum=0.9), lambda t: t.optimizer.param_groups[0].update(nesterov=True))


def test_a_group_is_added():
    def change(trainer):
        trainer.extra = nn.Parameter(torch.zeros(3))
        trainer.optimizer.add_param_group({"params": [trainer.extra], "lr": 0.5})

    both(change)


def test_training_flag_of_one_layer():
    def make():
        trainer = Trainer()
        trainer.model.append(nn.BatchNorm1d(3))
        return trainer

    both(lambda t: t.model[3].eval(), lambda t: t.model[3].train(), make=make)


def test_attributes_by_a_name_in_a_string():
    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = 2.0

        def forward(self, x):
            return x * getattr(self, "factor") if getattr(self, "training") else x  # noqa: B009

    scale = Scale()
    compiled = torch.compile(scale)
    x = torch.ones(1)
    assert compiled(x).item() == 2.0
    scale.factor = 3.0
    assert compiled(x).item() == 3.0
    scale.eval()
    assert compiled(x).item() == 1.0
    assert compiled.history == []


def test_what_no_code_reads_is_no_reason_to_trace_again():
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh())
    compiled = torch.compile(lambda x: model(x).detach())
    x = torch.ones(1, 2)
    compiled(x)
    model.eval()  # neither of the layers looks at it
    compiled(x)
    assert len(compiled.versions) == 1
    model.append(nn.Dropout(0.5))  # this one does
    model.train()
    compiled(x)
    model.eval()
    np.testing.assert_array_equal(compiled(x).numpy(), compiled(x).numpy())
    assert len(compiled.versions) == 3


def test_requires_grad_of_an_argument():
    compiled = torch.compile(lambda x: (x * 2).exp())
    for flag in (False, True, False, True):
        x = torch.ones(2, requires_grad=flag)
        out = compiled(x)
        assert out.requires_grad is flag
        if flag:
            out.sum().backward()
            np.testing.assert_allclose(x.grad.numpy(), 2 * np.exp([2.0, 2.0]), rtol=1e-6)
    assert compiled.history == []
    assert len(compiled.versions) == 2


def test_ragged_last_batches():
    compiled, eager = Trainer(), Trainer()
    step = torch.compile(compiled.step)
    for batch in (8, 8, 3, 8, 8, 3):
        x, y = classes(batch)
        step(x, y), eager.step(x, y)
    assert len(step.versions) == 2
    assert_same(compiled.model, eager.model)


def test_the_least_recently_used_version_goes():
    traced = []

    def step(x):
        traced.append(None) if False else None
        return x * 2

    compiled = torch.compile(step, limit=2)
    one, two, three = torch.ones(1), torch.ones(2), torch.ones(3)
    compiled(one), compiled(two), compiled(one)
    compiled(three)  # two goes
    shapes = [version.argument_metas[0].shape for version in compiled.versions.values()]
    assert sorted(shapes) == [(1,), (3,)]
    assert compiled(two).tolist() == [2.0, 2.0]


def test_two_threads_and_a_background_compilation():
    torch.manual_seed(0)
    model, (x, y) = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 3)), classes(32)
    parameters = list(model.parameters())

    def gradients(x, y):  # reads only: two threads that wrote the same weights would disturb each other in any case
        return torch.autograd.grad(nn.functional.cross_entropy(model(x), y), parameters)

    step = torch.compile(gradients, background=True)
    expected = [grad.numpy() for grad in gradients(x, y)]
    found, failures = [], []

    def work():
        try:
            found.extend(step(x, y) for _ in range(100))
        except Exception as why:
            failures.append(why)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    for _ in range(2):
        found.append(step(x, y))
        step.pending.join()
    assert step.history == []
    assert len(step.versions) >= 1
    for grads in found:
        for grad, value in zip(grads, expected, strict=True):
            np.testing.assert_allclose(grad.numpy(), value, rtol=1e-5, atol=1e-7)


def test_a_call_of_another_thread_during_the_trace_is_no_reason_to_give_up():
    weight = torch.nn.Parameter(torch.ones(2))
    optimizer, others = optim.SGD([weight], lr=0.1), [True]

    def step(x):
        if others.pop() if others else False:
            thread = threading.Thread(target=compiled, args=(x,))  # runs eagerly, and moves the weight under the trace
            thread.start()
            thread.join()
        optimizer.zero_grad()
        loss = (weight * x).sum()
        loss.backward()
        optimizer.step()
        return loss

    compiled = torch.compile(step)
    x = torch.ones(2)
    losses = [compiled(x).item() for _ in range(3)]
    np.testing.assert_allclose(losses, [1.8, 1.6, 1.4], rtol=1e-6)  # the one of the thread was 2.0
    assert compiled.history == []
    assert len(compiled.versions) == 1


def test_checkpointing_draws_the_same_mask_twice():
    def make():
        torch.manual_seed(0)
        first, last = nn.Linear(4, 8), nn.Linear(8, 2)

        def block(x):
            return F.dropout(first(x).relu(), 0.5)

        def step(x):
            for p in (*first.parameters(), *last.parameters()):
                p.grad = None
            loss = last(checkpoint(block, x, use_reentrant=False)).pow(2).mean()
            loss.backward()
            return loss

        return nn.ModuleList([first, last]), step

    (model, inner), (other, eager) = make(), make()
    step, x = torch.compile(inner), torch.ones(3, 4)
    for _ in range(3):
        state = torch.get_rng_state()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            a = step(x)
        after = torch.get_rng_state()
        torch.set_rng_state(state)
        b = eager(x)
        assert torch.equal(after, torch.get_rng_state())
        np.testing.assert_allclose(a.item(), b.item(), rtol=1e-6)
        assert_same(model, other, 2e-6)


def test_a_computed_index_out_of_range_ends_the_program_before_it_writes():
    weight = torch.ones(3, requires_grad=True)
    buffer = torch.zeros(3)

    def step(x, i):
        buffer.add_(x)
        return weight.detach()[i * 2].sum()

    compiled = torch.compile(step)
    x = torch.ones(3)
    for _ in range(2):
        assert compiled(x, torch.tensor([0, 1])).item() == 2.0
    assert compiled.history == []
    with pytest.raises(IndexError, match="index 4 is out of bounds for dimension 0 with size 3"):
        compiled(x, torch.tensor([0, 2]))
    assert buffer.tolist() == [2.0, 2.0, 2.0]
