"""Learning rate schedules by themselves."""

import math

import pytest

import jitgrad as torch
from jitgrad import optim
from jitgrad.optim import lr_scheduler as schedules


def optimizer_of(*rates, kind=optim.SGD, **options):
    groups = [{"params": [torch.ones(1)], "lr": rate} for rate in rates]
    return kind(groups, **options)


def rates(optimizer, schedule, steps):
    found = []
    for _ in range(steps):
        found.append(round(optimizer.param_groups[0]["lr"], 6))
        optimizer.step()
        schedule.step()
    return found


# schedule: (rates of six epochs from 1.0)
TABLE = {
    "lambda": (lambda o: schedules.LambdaLR(o, lambda epoch: 1 / (1 + epoch)), [1, 0.5, 0.333333, 0.25, 0.2, 0.166667]),
    "multiplicative": (lambda o: schedules.MultiplicativeLR(o, lambda _: 0.5), [1, 0.5, 0.25, 0.125, 0.0625, 0.03125]),
    "step": (lambda o: schedules.StepLR(o, 2), [1, 1, 0.1, 0.1, 0.01, 0.01]),
    "milestones": (lambda o: schedules.MultiStepLR(o, [1, 3, 3], 0.5), [1, 0.5, 0.5, 0.125, 0.125, 0.125]),
    "constant": (lambda o: schedules.ConstantLR(o, 0.5, 2), [0.5, 0.5, 1, 1, 1, 1]),
    "linear": (lambda o: schedules.LinearLR(o, 0.5, 1.0, 4), [0.5, 0.625, 0.75, 0.875, 1, 1]),
    "exponential": (lambda o: schedules.ExponentialLR(o, 0.5), [1, 0.5, 0.25, 0.125, 0.0625, 0.03125]),
    "cosine": (lambda o: schedules.CosineAnnealingLR(o, 2), [1, 0.5, 0, 0.5, 1, 0.5]),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_rates(name):
    make, expected = TABLE[name]
    optimizer = optimizer_of(1.0)
    assert rates(optimizer, make(optimizer), 6) == expected


@pytest.mark.parametrize("name", ["step", "milestones", "constant", "linear", "exponential", "cosine"])
def test_closed_form(name):
    make, expected = TABLE[name]
    optimizer = optimizer_of(1.0)
    schedule = make(optimizer)
    optimizer.step()
    for epoch in (5, 2, 0, 3):
        with pytest.warns(UserWarning, match=r"The epoch parameter in `scheduler\.step\(\)` was not necessary"):
            schedule.step(epoch)
        assert round(optimizer.param_groups[0]["lr"], 6) == pytest.approx(expected[epoch], abs=1e-6)


@pytest.mark.parametrize("name", TABLE)
def test_saved_and_loaded(name):
    make, expected = TABLE[name]
    optimizer = optimizer_of(1.0)
    schedule = make(optimizer)
    rates(optimizer, schedule, 3)
    other = optimizer_of(1.0)
    again = make(other)
    other.load_state_dict(optimizer.state_dict())
    again.load_state_dict(schedule.state_dict())
    assert rates(other, again, 3) == expected[3:]
    assert "optimizer" not in schedule.state_dict()


def test_resumed_by_last_epoch():
    optimizer = optimizer_of(0.25)
    optimizer.param_groups[0]["initial_lr"] = 1.0
    schedule = schedules.ExponentialLR(optimizer, 0.5, last_epoch=1)
    assert rates(optimizer, schedule, 2) == [0.25, 0.125]
    with pytest.raises(KeyError, match=r"param 'initial_lr' is not specified in param_groups\[0\]"):
        schedules.StepLR(optimizer_of(1.0), 2, last_epoch=1)


def test_groups_have_their_own_rates():
    optimizer = optimizer_of(1.0, 0.5)
    schedule = schedules.LambdaLR(optimizer, [lambda epoch: 1, lambda epoch: 0.5**epoch])
    optimizer.step()
    schedule.step()
    assert schedule.get_last_lr() == [1, 0.25]
    with pytest.raises(ValueError, match="Expected 2 lr_lambdas, but got 1"):
        schedules.LambdaLR(optimizer, [lambda epoch: 1])


def test_rate_as_a_tensor_changes_in_place():
    rate = torch.tensor(1.0)
    optimizer = optimizer_of(rate)
    schedule = schedules.ExponentialLR(optimizer, 0.5)
    optimizer.step()
    schedule.step()
    assert optimizer.param_groups[0]["lr"] is rate
    assert rate.item() == 0.5
    assert schedule.get_last_lr()[0] is not rate


def test_functions_with_a_state():
    class Decay:
        def __init__(self, by):
            self.by = by

        def __call__(self, epoch):
            return self.by**epoch

    schedule = schedules.LambdaLR(optimizer_of(1.0), Decay(0.5))
    other = schedules.LambdaLR(optimizer_of(1.0), Decay(0.1))
    other.load_state_dict(schedule.state_dict())
    assert other.lr_lambdas[0].by == 0.5
    with pytest.raises(TypeError, match="lr_lambda should be a function, but got int"):
        schedules.MultiplicativeLR(optimizer_of(1.0), 3)


# ---- the order of calls
def test_schedule_before_optimizer():
    optimizer = optimizer_of(1.0)
    optimizer.step()  # before there is a schedule: does not count
    schedule = schedules.StepLR(optimizer, 2)
    with pytest.warns(UserWarning, match=r"Detected call of `lr_scheduler\.step\(\)` before `optimizer\.step\(\)`"):
        schedule.step()
    schedule.step()  # said once


def test_step_replaced_by_the_user():
    optimizer = optimizer_of(1.0)
    schedule = schedules.StepLR(optimizer, 2)
    optimizer.step = lambda: None
    optimizer.step()
    with pytest.warns(UserWarning, match=r"Seems like `optimizer\.step\(\)` has been overridden"):
        schedule.step()


def test_asking_outside_a_step():
    schedule = schedules.StepLR(optimizer_of(1.0), 2)
    with pytest.warns(UserWarning, match=r"please use `get_last_lr\(\)`"):
        schedule.get_lr()
    with pytest.raises(TypeError, match="int is not an Optimizer"):
        schedules.StepLR(3, 2)


# ---- one cycle
def test_one_cycle():
    optimizer = optimizer_of(0.0, momentum=0.9)
    schedule = schedules.OneCycleLR(
        optimizer, max_lr=1.0, total_steps=10, pct_start=0.4, div_factor=10, final_div_factor=10
    )
    momenta = []
    found = []
    for _ in range(10):
        found.append(optimizer.param_groups[0]["lr"])
        momenta.append(optimizer.param_groups[0]["momentum"])
        optimizer.step()
        schedule.step() if len(found) < 10 else None
    assert found[0] == pytest.approx(0.1)
    assert found[3] == pytest.approx(1.0)
    assert found[9] == pytest.approx(0.01)
    assert found == sorted(found[:4]) + sorted(found[4:], reverse=True)
    assert momenta[0] == momenta[9] == 0.95
    assert momenta[3] == pytest.approx(0.85)


def test_one_cycle_in_three_phases_and_beyond():
    optimizer = optimizer_of(0.0, kind=optim.Adam)
    schedule = schedules.OneCycleLR(
        optimizer, 1.0, epochs=5, steps_per_epoch=2, three_phase=True, anneal_strategy="linear", pct_start=0.3
    )
    found = rates(optimizer, schedule, 10)
    assert max(found) == found[2] == 1.0
    assert found[0] == found[4] == 0.04
    assert optimizer.param_groups[0]["betas"][0] == pytest.approx(0.95)
    with pytest.raises(ValueError, match=r"Tried to step 11 times. The specified number of total steps is 10"):
        schedule.step()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "You must define either total_steps OR"),
        ({"total_steps": 0}, "Expected positive integer total_steps, but got 0"),
        ({"epochs": 1.5, "steps_per_epoch": 2}, "Expected positive integer epochs, but got 1.5"),
        ({"epochs": 1, "steps_per_epoch": -2}, "Expected positive integer steps_per_epoch, but got -2"),
        ({"total_steps": 9, "pct_start": 2.0}, "Expected float between 0 and 1 pct_start, but got 2.0"),
        (
            {"total_steps": 9, "anneal_strategy": "up"},
            "anneal_strategy must be one of 'cos' or 'linear', instead got up",
        ),
        ({"total_steps": 9, "max_lr": [1.0, 2.0]}, "max_lr must have the same length as optimizer.param_groups"),
    ],
)
def test_one_cycle_refuses(options, words):
    with pytest.raises(ValueError, match=words):
        schedules.OneCycleLR(optimizer_of(1.0), **{"max_lr": 1.0, **options})
    with pytest.raises(ValueError, match="optimizer must support momentum or beta1"):
        schedules.OneCycleLR(optimizer_of(1.0, kind=optim.Adagrad), 1.0, 9)


# ---- plateau
def test_plateau():
    optimizer = optimizer_of(1.0)
    schedule = schedules.ReduceLROnPlateau(optimizer, factor=0.5, patience=1, cooldown=2, min_lr=0.2)
    found = []
    for metric in (3.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0):
        schedule.step(torch.tensor(metric))
        found.append(optimizer.param_groups[0]["lr"])
    assert found == [1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 0.2, 0.2, 0.2, 0.2, 0.2]
    other = schedules.ReduceLROnPlateau(optimizer_of(1.0), mode="max")
    other.load_state_dict(schedule.state_dict())
    assert other.mode == "min"
    assert other.best == 1.0


def test_plateau_counts_nan_as_bad():
    optimizer = optimizer_of(1.0)
    schedule = schedules.ReduceLROnPlateau(optimizer, patience=0)
    schedule.step(1.0)
    schedule.step(math.nan)
    assert schedule.get_last_lr() == [0.1]


def test_plateau_refuses():
    optimizer = optimizer_of(1.0)
    for options, words in (
        ({"factor": 1.0}, "Factor should be < 1.0"),
        ({"mode": "up"}, "mode up is unknown!"),
        ({"threshold_mode": "up"}, "threshold mode up is unknown!"),
        ({"min_lr": [1, 2]}, "expected 1 min_lrs, got 2"),
    ):
        with pytest.raises(ValueError, match=words):
            schedules.ReduceLROnPlateau(optimizer, **options)
    schedule = schedules.ReduceLROnPlateau(optimizer, patience=0, min_lr=[0.1])
    optimizer.add_param_group({"params": [torch.ones(1)]})
    schedule.step(1.0)
    with pytest.raises(RuntimeError, match="The number of param groups in the `optimizer`"):
        schedule.step(1.0)


# ---- several
def test_sequence():
    optimizer = optimizer_of(1.0)
    schedule = schedules.SequentialLR(
        optimizer, [schedules.ConstantLR(optimizer, 0.1, 9), schedules.ExponentialLR(optimizer, 0.5)], milestones=[2]
    )
    assert rates(optimizer, schedule, 5) == [0.1, 0.1, 1, 0.5, 0.25]
    state = schedule.state_dict()
    assert len(state["_schedulers"]) == 2
    other = optimizer_of(1.0)
    again = schedules.SequentialLR(
        other, [schedules.ConstantLR(other, 0.1, 9), schedules.ExponentialLR(other, 0.5)], milestones=[2]
    )
    again.load_state_dict(state)
    assert again.last_epoch == 5
    assert again.get_last_lr() == [0.125]


def test_chain():
    optimizer = optimizer_of(1.0)
    schedule = schedules.ChainedScheduler(
        [schedules.ConstantLR(optimizer, 0.5, 2), schedules.ExponentialLR(optimizer, 0.5)]
    )
    assert rates(optimizer, schedule, 4) == [0.5, 0.25, 0.25, 0.125]
    assert schedule.get_last_lr() == [0.0625]


def test_several_refuse():
    optimizer, other = optimizer_of(1.0), optimizer_of(1.0)
    one, foreign = schedules.StepLR(optimizer, 1), schedules.StepLR(other, 1)
    plateau = schedules.ReduceLROnPlateau(optimizer)
    for make, error in (
        (lambda: schedules.SequentialLR(optimizer, [], []), ValueError),
        (lambda: schedules.SequentialLR(optimizer, [3], []), TypeError),
        (lambda: schedules.SequentialLR(optimizer, [one, plateau], [1]), ValueError),
        (lambda: schedules.SequentialLR(optimizer, [one, foreign], [1]), ValueError),
        (lambda: schedules.SequentialLR(optimizer, [one, one], [1, 2]), ValueError),
        (lambda: schedules.ChainedScheduler([]), ValueError),
    ):
        with pytest.raises(error):
            make()


@pytest.mark.parametrize(
    "make",
    [
        lambda o: schedules.ConstantLR(o, 2.0),
        lambda o: schedules.LinearLR(o, 0.0),
        lambda o: schedules.LinearLR(o, 1.0, 2.0),
    ],
)
def test_factors_refused(make):
    with pytest.raises(ValueError, match="multiplicative factor expected to be"):
        make(optimizer_of(1.0))
