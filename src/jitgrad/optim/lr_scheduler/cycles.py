# ruff: noqa: D102  (get_lr is described by its base)
"""Schedules along a cosine, and the one cycle."""

from __future__ import annotations

import math
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler, Rates, expect_optimizer, per_group

__all__ = ["CosineAnnealingLR", "OneCycleLR"]


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


class OneCycleLR(LRScheduler):
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
            self._start_momentum(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def _start_momentum(self, base: Any, largest: Any, last_epoch: int) -> None:
        optimizer = self.optimizer
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.use_beta1 = "betas" in optimizer.defaults
        tops, bottoms = per_group("max_momentum", optimizer, largest), per_group("base_momentum", optimizer, base)
        if last_epoch == -1:
            for group, top, bottom in zip(optimizer.param_groups, tops, bottoms, strict=True):
                self._set_momentum(group, top)
                group.update(max_momentum=top, base_momentum=bottom)

    def _set_momentum(self, group: dict[str, Any], value: Any) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value

    def _between(self, start: Any, end: Any, part: float) -> Any:
        if self._anneal_func_type == "linear":
            return (end - start) * part + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)

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
