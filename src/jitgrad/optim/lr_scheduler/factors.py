# ruff: noqa: D102  (get_lr is described by its base)
"""Schedules that multiply the learning rate by a factor."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from typing import Any

from ..optimizer import Optimizer
from .base import FunctionSchedule, LRScheduler, Rates

__all__ = ["ConstantLR", "ExponentialLR", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "PolynomialLR", "StepLR"]


class LambdaLR(FunctionSchedule):
    """The initial rate times `lr_lambda(epoch)`.

    >>> import jitgrad as torch
    >>> from jitgrad import optim
    >>> optimizer = optim.SGD([torch.ones(1)], lr=1.0)
    >>> schedule = optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.5**epoch)
    >>> optimizer.step(); schedule.step(); schedule.get_last_lr()
    [0.5]
    """

    def get_lr(self) -> Rates:
        self._warn_outside_step()
        return [base * by(self.last_epoch) for by, base in zip(self.lr_lambdas, self.base_lrs, strict=True)]


class MultiplicativeLR(FunctionSchedule):
    """The present rate times `lr_lambda(epoch)`, at every step. TypeError for what can't be called."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        for function in lr_lambda if isinstance(lr_lambda, list | tuple) else [lr_lambda]:
            if not callable(function):
                raise TypeError(f"lr_lambda should be a function, but got {type(function).__name__}")
        super().__init__(optimizer, lr_lambda, last_epoch)

    def get_lr(self) -> Rates:
        self._warn_outside_step()
        if self._is_initial:
            return self._present()
        groups = self.optimizer.param_groups
        return [group["lr"] * by(self.last_epoch) for by, group in zip(self.lr_lambdas, groups, strict=True)]


class StepLR(LRScheduler):
    """Times `gamma` every `step_size` epochs.

    >>> import jitgrad as torch
    >>> from jitgrad import optim
    >>> optimizer = optim.SGD([torch.ones(1)], lr=1.0)
    >>> schedule = optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates += schedule.get_last_lr()
    ...     optimizer.step(); schedule.step()
    >>> rates
    [1.0, 1.0, 0.5, 0.5]
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        self._warn_outside_step()
        due = self.last_epoch != 0 and self.last_epoch % self.step_size == 0
        return self._present(self.gamma if due else None)

    def _get_closed_form_lr(self) -> Rates:
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Times `gamma` at each epoch in `milestones`."""

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        self._warn_outside_step()
        times = self.milestones[self.last_epoch]
        return self._present(self.gamma**times if times else None)

    def _get_closed_form_lr(self) -> Rates:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base * self.gamma**passed for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """Times `factor` for the first `total_iters` epochs. ValueError unless 0 <= factor <= 1."""

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if factor > 1.0 or factor < 0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        self._warn_outside_step()
        if self.last_epoch == 0:
            return self._present(self.factor)
        return self._present(1.0 / self.factor if self.last_epoch == self.total_iters else None)

    def _get_closed_form_lr(self) -> Rates:
        factor = 1 if self.last_epoch >= self.total_iters else self.factor
        return [base * factor for base in self.base_lrs]


class LinearLR(LRScheduler):
    """Times a factor that goes from `start_factor` to `end_factor` in `total_iters` epochs.

    Raises ValueError unless 0 < start_factor <= 1 and 0 <= end_factor <= 1.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        self._warn_outside_step()
        if self.last_epoch == 0:
            return self._present(self.start_factor)
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._present()
        slope = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * slope
        return self._present(1.0 + slope / before)

    def _get_closed_form_lr(self) -> Rates:
        done = min(self.total_iters, self.last_epoch) / self.total_iters
        factor = self.start_factor + (self.end_factor - self.start_factor) * done
        return [base * factor for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Times `gamma` at every step."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        self._warn_outside_step()
        return self._present(None if self._is_initial else self.gamma)

    def _get_closed_form_lr(self) -> Rates:
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """Times (1 - epoch / total_iters) ** power: down to zero in `total_iters` epochs."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        self._warn_outside_step()
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._present()
        left = self.total_iters - self.last_epoch
        return self._present((left / (left + 1)) ** self.power)

    def _get_closed_form_lr(self) -> Rates:
        factor = (1.0 - min(self.total_iters, self.last_epoch) / self.total_iters) ** self.power
        return [base * factor for base in self.base_lrs]
