# ruff: noqa: D102  (get_lr is described by its base)
"""Schedules along a cosine, and in cycles."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler, Rates, expect_optimizer, per_group, saved_function, set_option

__all__ = ["CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "OneCycleLR"]


class CosineAnnealingLR(LRScheduler):
    """Down from the initial rate to `eta_min` along half a cosine of `T_max` epochs, and up again.

    >>> import jitgrad as torch
    >>> from jitgrad import optim
    >>> optimizer = optim.SGD([torch.ones(1)], lr=1.0)
    >>> schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)
    >>> rates = []
    >>> for _ in range(3):
    ...     rates += schedule.get_last_lr()
    ...     optimizer.step(); schedule.step()
    >>> [round(rate, 4) for rate in rates]
    [1.0, 0.5, 0.0]
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def _height(self, epoch: int) -> float:
        return 1 + math.cos(math.pi * epoch / self.T_max)

    def get_lr(self) -> Rates:
        self._warn_outside_step()
        if self._is_initial:
            return self._present()
        epoch, low = self.last_epoch, self.eta_min
        if self._step_count == 1 and epoch > 0:
            return self._get_closed_form_lr()
        if (epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # just past the bottom, where the ratio is 0/0
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            pairs = zip(self.base_lrs, self.optimizer.param_groups, strict=True)
            return [group["lr"] + (base - low) * rise for base, group in pairs]
        ratio = self._height(epoch) / self._height(epoch - 1)
        return [ratio * (group["lr"] - low) + low for group in self.optimizer.param_groups]

    def _get_closed_form_lr(self) -> Rates:
        low, height = self.eta_min, self._height(self.last_epoch)
        return [low + (base - low) * height / 2 for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Down from the initial rate to `eta_min` along half a cosine of `T_0` epochs, again and again, each time `T_mult` times as long.

    `step(epoch)` takes parts of an epoch, too: `step(epoch + batch / batches)`. ValueError for lengths that are no positive integers.
    """

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        self._warn_outside_step()
        low, height = self.eta_min, 1 + math.cos(math.pi * self.T_cur / self.T_i)
        return [low + (base - low) * height / 2 for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Go on by one epoch, or to a given one, in parts if it is a float. ValueError for a negative one."""
        if epoch is None and self.last_epoch >= 0:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur, self.T_i = self.T_cur % self.T_i, self.T_i * self.T_mult
        else:
            epoch = epoch or 0
            if epoch < 0:
                raise ValueError(f"Expected non-negative epoch, but got {epoch}")
            self._go_to(epoch)
        self.last_epoch = math.floor(epoch)
        with self._marked("_get_lr_called_within_step"):
            rates = self.get_lr()
        self._set(rates)

    def _go_to(self, epoch: float) -> None:
        """Which cycle an epoch is in, and how far."""
        if epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            passed = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**passed - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**passed


class MomentumSchedule(LRScheduler):
    """A schedule that moves the momentum, or the first beta, against the rate."""

    use_beta1: bool

    def _expect_momentum(self) -> None:
        defaults = self.optimizer.defaults
        if "momentum" not in defaults and "betas" not in defaults:
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.use_beta1 = "betas" in defaults

    def _start_momentum(self, bottoms: list[Any], tops: list[Any], last_epoch: int) -> None:
        if last_epoch == -1:
            for group, top, bottom in zip(self.optimizer.param_groups, tops, bottoms, strict=True):
                self._set_momentum(group, top)
                group.update(max_momentum=top, base_momentum=bottom)

    def _set_momentum(self, group: dict[str, Any], value: Any) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


class CyclicLR(MomentumSchedule):
    """Up and down between `base_lr` and `max_lr`, in `step_size_up` and `step_size_down` batches; momentum the other way round.

    mode: "triangular"; "triangular2", each cycle half as high; or "exp_range", times gamma ** batches. A `scale_fn` of the number of
    the cycle, or with `scale_mode="iterations"` of the batch, takes its place. To be stepped after every batch.

    Raises ValueError for another mode, or an optimizer without momentum unless `cycle_momentum` is off.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        self.optimizer = expect_optimizer(optimizer)
        base_lrs = per_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, base_lrs, strict=True):
                set_option(group, "lr", rate)
        self.max_lrs = per_group("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        self._init_scale_fn()
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._expect_momentum()
            self.base_momentums = per_group("base_momentum", optimizer, base_momentum)
            self.max_momentums = per_group("max_momentum", optimizer, max_momentum)
            self._start_momentum(self.base_momentums, self.max_momentums, last_epoch)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def _init_scale_fn(self) -> None:
        if self._scale_fn_custom is None:
            self._scale_fn_ref, self.scale_mode = _SCALES[self.mode]

    def scale_fn(self, x: float) -> float:
        """How high the cycle, or the batch, of that number is."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        return float(self._scale_fn_ref(self.gamma, x))

    def get_lr(self) -> Rates:
        self._warn_outside_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        height *= self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, low, high in zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True):
                self._set_momentum(group, high - (high - low) * height)
        return [low + (high - low) * height for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and functions; of a `scale_fn` that is an object, its attributes."""
        state = super().state_dict()
        state.pop("_scale_fn_ref", None)
        custom = state.pop("_scale_fn_custom")
        state["_scale_fn_custom"] = None if custom is None else saved_function(custom)
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave; a `scale_fn` stays, with the attributes that were saved."""
        super().load_state_dict({name: value for name, value in state_dict.items() if name != "_scale_fn_custom"})
        attributes = state_dict.get("_scale_fn_custom")
        if attributes is not None and self._scale_fn_custom is not None:
            self._scale_fn_custom.__dict__.update(attributes)
        self._init_scale_fn()


_SCALES: dict[str, tuple[Callable[[float, float], float], str]] = {
    "triangular": (lambda gamma, cycle: 1.0, "cycle"),
    "triangular2": (lambda gamma, cycle: 1 / (2.0 ** (cycle - 1)), "cycle"),
    "exp_range": (lambda gamma, batch: gamma**batch, "iterations"),
}


class OneCycleLR(MomentumSchedule):
    """Up to `max_lr` within `pct_start` of all steps, then down far below the start; momentum the other way round.

    To be stepped after every batch, `total_steps` (or `epochs * steps_per_epoch`) times; ValueError beyond. The cycle
    starts at `max_lr / div_factor` and ends at that divided by `final_div_factor`; with `three_phase` the way down
    first mirrors the way up. Momentum (or the first beta) goes from `max_momentum` to `base_momentum` and back.

    Raises ValueError for options that make no cycle, or an optimizer without momentum unless `cycle_momentum` is off.

    >>> import jitgrad as torch
    >>> from jitgrad import optim
    >>> optimizer = optim.SGD([torch.ones(1)], lr=1.0, momentum=0.9)
    >>> schedule = optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=10)
    >>> round(schedule.get_last_lr()[0], 4)
    0.04
    """

    total_steps: int

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        self.optimizer = expect_optimizer(optimizer)
        self.total_steps = _count_steps(total_steps, epochs, steps_per_epoch)
        self._schedule_phases = _phases(self.total_steps, pct_start, three_phase)
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_func_type = anneal_strategy
        rates = per_group("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, rates, strict=True):
                start = rate / div_factor
                group.update(initial_lr=start, max_lr=rate, min_lr=start / final_div_factor)
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._expect_momentum()
            bottoms, tops = (per_group(name, optimizer, value) for name, value in
                             (("base_momentum", base_momentum), ("max_momentum", max_momentum)))  # fmt: skip
            self._start_momentum(bottoms, tops, last_epoch)
        super().__init__(optimizer, last_epoch)

    @staticmethod
    def _annealing_linear(start: Any, end: Any, part: float) -> Any:
        return (end - start) * part + start

    @staticmethod
    def _annealing_cos(start: Any, end: Any, part: float) -> Any:
        return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)

    def _between(self, start: Any, end: Any, part: float) -> Any:
        kind = self.__dict__.get("_anneal_func_type")
        if kind is None:  # a state that an old version of torch saved has the function itself
            return self.__dict__["anneal_func"](start, end, part)
        return self._annealing_linear(start, end, part) if kind == "linear" else self._annealing_cos(start, end, part)

    def get_lr(self) -> Rates:
        self._warn_outside_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        begin = 0.0
        for phase in self._schedule_phases:
            end = phase["end_step"]
            if step <= end or phase is self._schedule_phases[-1]:
                break
            begin = end
        part = (step - begin) / (end - begin)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._between(group[phase["start_lr"]], group[phase["end_lr"]], part))
            if self.cycle_momentum:
                start, stop = group[phase["start_momentum"]], group[phase["end_momentum"]]
                self._set_momentum(group, self._between(start, stop, part))
        return rates


def _count_steps(total_steps: Any, epochs: Any, steps_per_epoch: Any) -> int:
    if total_steps is not None:
        given = {"total_steps": total_steps}
    elif epochs is not None and steps_per_epoch is not None:
        given = {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
    else:
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    for name, value in given.items():
        if not isinstance(value, int) or value <= 0:
            raise ValueError(f"Expected positive integer {name}, but got {value}")
    return math.prod(given.values())


def _phases(steps: int, share: float, three: bool) -> list[dict[str, Any]]:
    """Where each phase ends, and between which entries of a group it takes rate and momentum."""
    up = float(share * steps) - 1
    rows = [(up, "initial_lr", "max_lr", "max_momentum", "base_momentum")]
    if three:
        rows.append((float(2 * share * steps) - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum"))
        rows.append((steps - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum"))
    else:
        rows.append((steps - 1, "max_lr", "min_lr", "base_momentum", "max_momentum"))
    names = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")
    return [dict(zip(names, row, strict=True)) for row in rows]
