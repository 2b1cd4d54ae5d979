"""The rarer optimizers in compiled steps: in the program where options and the count of steps make their numbers, by name refused where not."""

import numpy as np
import pytest

import jitgrad as torch
from jitgrad import optim
from tests.compiler.steps import Trainer, assert_same, classes

FOLLOWED = {
    "adadelta": lambda p: optim.Adadelta(p, rho=0.8, weight_decay=0.1),
    "adamax": lambda p: optim.Adamax(p, maximize=True),
    "radam": lambda p: optim.RAdam(p, lr=1e-2),
    "radam, rectified soon": lambda p: optim.RAdam(p, betas=(0.8, 0.9), weight_decay=0.1, decoupled_weight_decay=True),
    "radam, never rectified": lambda p: optim.RAdam(p, betas=(0.8, 0.6), weight_decay=0.1),
    "rprop": lambda p: optim.Rprop(p, etas=(0.4, 1.3), step_sizes=(1e-3, 0.1)),
}


def assert_same_states(compiled, eager):
    assert_same(compiled.model, eager.model, 1e-5)
    for p, q in zip(compiled.model.parameters(), eager.model.parameters(), strict=True):
        assert list(compiled.optimizer.state[p]) == list(eager.optimizer.state[q])
        for key, value in eager.optimizer.state[q].items():
            np.testing.assert_allclose(compiled.optimizer.state[p][key].numpy(), value.numpy(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", FOLLOWED)
def test_the_program_has_the_update(name):
    compiled, eager = Trainer(FOLLOWED[name]), Trainer(FOLLOWED[name])
    step = torch.compile(compiled.step)
    x, y = classes()
    for _ in range(12):
        a, b = step(x, y), eager.step(x, y)
        np.testing.assert_allclose(a.item(), b.item(), rtol=1e-5)
    assert step.history == []
    assert len(step.versions) == 1
    assert_same_states(compiled, eager)


@pytest.mark.parametrize("name", ["adadelta", "adamax", "radam"])
def test_options_may_change(name):
    compiled, eager = Trainer(FOLLOWED[name]), Trainer(FOLLOWED[name])
    step, (x, y) = torch.compile(compiled.step), classes()
    changes = [{"lr": 0.02}, {"eps": 1e-3}, {"weight_decay": 0.2}, {"maximize": False}, {"weight_decay": 0}]
    for change in changes:
        step(x, y), eager.step(x, y)
        for trainer in (compiled, eager):
            trainer.optimizer.param_groups[0].update(change)
    step(x, y), eager.step(x, y)
    assert step.history == []
    assert_same_states(compiled, eager)


@pytest.mark.parametrize("kind", ["NAdam", "ASGD"])
def test_what_the_program_cannot_have_is_named(kind):
    """Their states have numbers of their own that go from step to step."""
    make = getattr(optim, kind)
    compiled, eager = Trainer(make), Trainer(make)
    step, (x, y) = torch.compile(compiled.step), classes()
    with pytest.warns(RuntimeWarning, match=f"{kind} has its own update"):
        step(x, y), eager.step(x, y)
    for _ in range(3):
        step(x, y), eager.step(x, y)
    assert_same_states(compiled, eager)
