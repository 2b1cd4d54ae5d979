"""Schedules in cycles, by a power, and what schedules say about the order of calls."""

import io
import math
import types
import warnings

import pytest

from tests.libraries import lib

__all__ = ["lib"]


def two_groups(lib, kind="SGD", **options):
    options = {"momentum": 0.5, **options} if kind == "SGD" else options
    return getattr(lib.optim, kind)([{"params": [lib.ones(2)]}, {"params": [lib.zeros(1)], "lr": lib.tensor(0.5)}], lr=0.05, **options)


def rates(schedule, count, *epochs):
    """The rates of both groups before each of `count` steps."""
    found = []
    for k in range(count):
        found.append([float(group["lr"]) for group in schedule.optimizer.param_groups])
        schedule.optimizer.step()
        schedule.step(*[epochs[k]] if epochs else ())
    return found


def test_polynomial(lib):
    schedule = lib.optim.lr_scheduler.PolynomialLR(two_groups(lib), total_iters=4, power=2.0)
    expected = [[base * (1 - k / 4) ** 2 for base in (0.05, 0.5)] for k in range(5)] + [[0.0, 0.0]] * 2
    assert [pytest.approx(row, abs=1e-6) for row in expected] == rates(schedule, 7)
    with pytest.warns(UserWarning, match="The epoch parameter"):
        schedule.step(1)
    assert schedule.get_last_lr()[0] == pytest.approx(0.05 * 0.75**2)


def height(k, length):
    return (1 + math.cos(math.pi * k / length)) / 2


def test_warm_restarts(lib):
    schedule = lib.optim.lr_scheduler.CosineAnnealingWarmRestarts(two_groups(lib), T_0=2, T_mult=2, eta_min=0.01)
    places = [(0, 2), (1, 2), (0, 4), (1, 4), (2, 4), (3, 4), (0, 8), (1, 8)]
    expected = [[0.01 + (base - 0.01) * height(*place) for base in (0.05, 0.5)] for place in places]
    assert [pytest.approx(row, abs=1e-6) for row in expected] == rates(schedule, 8)
    for epoch, place in ((0.5, (0.5, 2)), (3.25, (1.25, 4)), (7, (1, 8)), (1, (1, 2))):
        schedule.step(epoch)
        assert schedule.get_last_lr()[0] == pytest.approx(0.01 + 0.04 * height(*place))
        assert (schedule.T_cur, schedule.T_i, schedule.last_epoch) == (pytest.approx(place[0]), place[1], int(epoch))
    with pytest.raises(ValueError, match="Expected non-negative epoch, but got -1"):
        schedule.step(-1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"T_0": 0}, "Expected positive integer T_0, but got 0"),
        ({"T_0": 2, "T_mult": 0}, "Expected integer T_mult >= 1, but got 0"),
        ({"T_0": 2, "eta_min": "x"}, "Expected float or int eta_min, but got x of type"),
    ],
)
def test_lengths_of_restarts(lib, options, words):
    with pytest.raises(ValueError, match=words):
        lib.optim.lr_scheduler.CosineAnnealingWarmRestarts(two_groups(lib), **options)


MODES = {
    "triangular": lambda k, cycle: 1.0,
    "triangular2": lambda k, cycle: 0.5 ** (cycle - 1),
    "exp_range": lambda k, cycle: 0.9**k,
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("down", [None, 4])
def test_cycles(lib, mode, down):
    optimizer = two_groups(lib)
    schedule = lib.optim.lr_scheduler.CyclicLR(optimizer, [1, 2], [3, 6], step_size_up=2, step_size_down=down, mode=mode, gamma=0.9,
                                               base_momentum=0.2, max_momentum=0.7)  # fmt: skip
    length = 2 + (down or 2)
    for k in range(11):
        place = k % length
        share = (place / 2 if place <= 2 else (length - place) / (length - 2)) * MODES[mode](k, k // length + 1)
        assert [float(g["lr"]) for g in optimizer.param_groups] == pytest.approx([1 + 2 * share, 2 + 4 * share])
        assert [g["momentum"] for g in optimizer.param_groups] == pytest.approx([0.7 - 0.5 * share] * 2)
        optimizer.step()
        schedule.step()


def test_cycles_of_the_first_beta_and_of_none(lib):
    adam = two_groups(lib, "Adam")
    schedule = lib.optim.lr_scheduler.CyclicLR(adam, 0.1, 0.3, step_size_up=1)
    assert [group["betas"][0] for group in adam.param_groups] == [0.9, 0.9]
    adam.step()
    schedule.step()
    assert [group["betas"][0] for group in adam.param_groups] == pytest.approx([0.8, 0.8])
    plain = lib.optim.lr_scheduler.CyclicLR(two_groups(lib, "Adam"), 0.1, 0.3, cycle_momentum=False)
    assert plain.optimizer.param_groups[0]["betas"][0] == 0.9
    with pytest.raises(ValueError, match="optimizer must support momentum or beta1 with `cycle_momentum` option enabled"):
        lib.optim.lr_scheduler.CyclicLR(two_groups(lib, "Adagrad"), 0.1, 0.3)
    with pytest.raises(ValueError, match="mode is invalid and scale_fn is None"):
        lib.optim.lr_scheduler.CyclicLR(two_groups(lib), 0.1, 0.3, mode="round")


class Half:
    """A scale that has an attribute."""

    def __init__(self):
        self.height = 0.5

    def __call__(self, cycle):
        return self.height


def test_states_of_cycles(lib):
    make = lib.optim.lr_scheduler.CyclicLR
    built_in = make(two_groups(lib), 0.1, 0.3, mode="triangular2")
    assert isinstance(built_in._scale_fn_ref, types.FunctionType)
    assert "_scale_fn_ref" not in built_in.state_dict()
    other = make(two_groups(lib), 0.1, 0.3)
    other.load_state_dict(built_in.state_dict())
    assert other.mode == "triangular2"
    assert other._scale_fn_ref is not None
    assert make(two_groups(lib), 0.1, 0.3, scale_fn=lambda cycle: 0.5).state_dict()["_scale_fn_custom"] is None
    scale = Half()
    scale.height = 0.25
    state = make(two_groups(lib), 0.1, 0.3, scale_fn=scale).state_dict()
    assert state["_scale_fn_custom"] == {"height": 0.25}
    again = Half()
    make(two_groups(lib), 0.1, 0.3, scale_fn=again).load_state_dict(state)
    assert again.height == 0.25


def test_states_are_saved(lib):
    schedules = lib.optim.lr_scheduler
    for schedule in (schedules.MultiStepLR(two_groups(lib), [2, 5, 5]), schedules.CyclicLR(two_groups(lib), 0.1, 0.3),
                     schedules.CosineAnnealingWarmRestarts(two_groups(lib), 3), schedules.PolynomialLR(two_groups(lib))):  # fmt: skip
        file = io.BytesIO()
        lib.save(schedule.state_dict(), file)
        file.seek(0)
        assert str(lib.load(file)) == str(schedule.state_dict())


def test_a_step_overridden_after_the_schedule_was_made(lib):
    optimizer = two_groups(lib)
    schedule = lib.optim.lr_scheduler.StepLR(optimizer, 2)
    old = optimizer.step
    optimizer.step = types.MethodType(lambda self: old(), optimizer)
    optimizer.step()
    with pytest.warns(UserWarning, match=r"`optimizer.step\(\)` has been overridden"):
        schedule.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer.step()
        schedule.step()


def test_one_cycle_from_an_old_state(lib):
    optimizer = two_groups(lib)
    make = lib.optim.lr_scheduler.OneCycleLR
    schedule, reference = make(optimizer, max_lr=1.0, total_steps=8), make(two_groups(lib), max_lr=1.0, total_steps=8)
    del schedule._anneal_func_type
    state = schedule.state_dict()
    state["anneal_func"] = make._annealing_cos
    schedule.load_state_dict(state)
    assert rates(schedule, 8) == [pytest.approx(row) for row in rates(reference, 8)]


def test_the_words_about_epochs(lib):
    schedule = lib.optim.lr_scheduler.StepLR(two_groups(lib), 2)
    schedule.optimizer.step()
    with pytest.warns(UserWarning, match="The epoch parameter") as seen:
        schedule.step(2)
    assert [str(one.message) for one in seen] == [lib.optim.lr_scheduler.EPOCH_DEPRECATION_WARNING]
    assert isinstance(schedule, lib.optim.lr_scheduler._LRScheduler) or lib.__name__ == "torch"
