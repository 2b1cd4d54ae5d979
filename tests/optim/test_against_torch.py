"""Optimizers and schedules beside torch's: values after some steps, state, printing, rates over 50 epochs."""

import random
import warnings

import numpy as np
import pytest

import jitgrad
from jitgrad import optim

torch = pytest.importorskip("torch")
BOTH = (jitgrad, torch)

CASES = {
    "SGD": [{}, {"momentum": 0.9}, {"momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1},
            {"momentum": 0.9, "nesterov": True, "maximize": True}],
    "Adam": [{}, {"weight_decay": 0.1, "maximize": True}, {"amsgrad": True, "betas": (0.8, 0.9), "eps": 1e-3},
             {"amsgrad": True, "weight_decay": 0.2, "decoupled_weight_decay": True}],
    "AdamW": [{}, {"weight_decay": 0.1, "amsgrad": True}, {"maximize": True}, {"weight_decay": 0}],
    "RMSprop": [{}, {"centered": True}, {"momentum": 0.9}, {"momentum": 0.9, "centered": True, "weight_decay": 0.1}],
    "Adagrad": [{}, {"lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.1}, {"maximize": True}],
}  # fmt: skip
FLAT = [(name, options) for name, several in CASES.items() for options in several]


def descend(package, name, options, dtype, steps=8):
    """Parameters and optimizer after some steps; the last parameter has a gradient every other step only."""
    rng = np.random.default_rng(0)
    params = [
        package.tensor(rng.standard_normal(shape).astype(dtype), requires_grad=True) for shape in ((4, 3), (5,), ())
    ]
    optimizer = getattr(package.optim, name)(params, lr=0.01, **options)
    for step in range(steps):
        optimizer.zero_grad()
        loss = (params[0] ** 2).sum() + (params[1] * 3).sin().sum()
        if step % 2:
            loss = loss + params[2] ** 3
        loss.backward()
        optimizer.step()
    return params, optimizer


@pytest.mark.parametrize(("name", "options"), FLAT)
@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-11), ("float32", 2e-5)])
def test_steps(name, options, dtype, rtol):
    (ours, mine), (theirs, other) = (descend(package, name, options, dtype) for package in BOTH)
    for found, expected in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=rtol, atol=rtol)
    states, expected = mine.state_dict()["state"], other.state_dict()["state"]
    assert list(states) == list(expected)
    for key in expected:
        assert list(states[key]) == list(expected[key])
        for what in expected[key]:
            found, wanted = states[key][what], expected[key][what]
            assert str(found.dtype).split(".")[1] == str(wanted.dtype).split(".")[1]
            np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=rtol, atol=rtol)
    assert repr(mine) == repr(other)
    assert sorted(mine.state_dict()["param_groups"][0]) == sorted(other.state_dict()["param_groups"][0])


@pytest.mark.parametrize("name", CASES)
def test_going_on_from_a_state_of_torch(name):
    params, other = descend(torch, name, {}, "float64")
    mine = [jitgrad.tensor(p.detach().numpy().copy(), requires_grad=True) for p in params]
    optimizer = getattr(optim, name)(mine, lr=1.0)
    state = other.state_dict()
    state["state"] = {
        key: {what: jitgrad.tensor(value.numpy().copy()) for what, value in entry.items()}
        for key, entry in state["state"].items()
    }
    optimizer.load_state_dict(state)
    for several, one in ((params, other), (mine, optimizer)):
        for p in several:
            p.grad = None
        (several[0] ** 2).sum().backward()
        one.step()
    np.testing.assert_allclose(mine[0].detach().numpy(), params[0].detach().numpy(), rtol=1e-11)


SCHEDULES = {
    "LambdaLR": lambda s, o: s.LambdaLR(o, [lambda e: 0.9**e, lambda e: 1 / (e + 1)]),
    "MultiplicativeLR": lambda s, o: s.MultiplicativeLR(o, lambda e: 0.95),
    "StepLR": lambda s, o: s.StepLR(o, 7, 0.5),
    "MultiStepLR": lambda s, o: s.MultiStepLR(o, [3, 5, 5, 30], 0.5),
    "ConstantLR": lambda s, o: s.ConstantLR(o, 0.25, 6),
    "LinearLR": lambda s, o: s.LinearLR(o, 0.25, 0.8, 9),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.9),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, 8, 0.01),
    "OneCycleLR": lambda s, o: s.OneCycleLR(o, [1.0, 2.0], total_steps=50),
    "OneCycleLR in three phases": lambda s, o: s.OneCycleLR(
        o, 2.0, epochs=10, steps_per_epoch=5, three_phase=True, anneal_strategy="linear"
    ),
    "SequentialLR": lambda s, o: s.SequentialLR(
        o, [s.ConstantLR(o, 0.1, 4), s.ExponentialLR(o, 0.9), s.StepLR(o, 3)], [5, 20]
    ),
    "ChainedScheduler": lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 4), s.ExponentialLR(o, 0.9)]),
}


def pair_of_groups(package, kind):
    options = {"momentum": 0.9} if kind == "SGD" else {}
    params = [package.ones(2, requires_grad=True) for _ in range(2)]
    return getattr(package.optim, kind)(
        [{"params": [params[0]], "lr": 0.3}, {"params": [params[1]]}], lr=1.0, **options
    )


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_schedule(name, kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a sequence warns of its own first steps
        runs = [_rates(package, SCHEDULES[name], kind) for package in BOTH]
    for ours, theirs in zip(*runs, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-15)


def _rates(package, make, kind):
    optimizer = pair_of_groups(package, kind)
    schedule = make(package.optim.lr_scheduler, optimizer)
    momentum = "betas" if kind == "Adam" else "momentum"
    found = []
    for _ in range(50):
        found.append([*schedule.get_last_lr(), *(np.max(group[momentum]) for group in optimizer.param_groups)])
        optimizer.step()
        if len(found) < 50:
            schedule.step()
    return found


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedule_states_hold_the_same(name):
    states = [SCHEDULES[name](p.optim.lr_scheduler, pair_of_groups(p, "SGD")).state_dict() for p in BOTH]
    assert sorted(states[0]) == sorted(states[1])


@pytest.mark.parametrize("mode", ["min", "max"])
@pytest.mark.parametrize("threshold_mode", ["rel", "abs"])
def test_plateau(mode, threshold_mode):
    schedules = [
        package.optim.lr_scheduler.ReduceLROnPlateau(
            pair_of_groups(package, "SGD"), mode, 0.5, 2, 0.1, threshold_mode, 1, [0.01, 0.02]
        )
        for package in BOTH
    ]
    draw = random.Random(0)
    for _ in range(60):
        metric = draw.uniform(-1, 2)
        for schedule in schedules:
            schedule.step(metric)
        assert schedules[0].state_dict() == schedules[1].state_dict()
