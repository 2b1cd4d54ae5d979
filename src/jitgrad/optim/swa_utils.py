"""The schedule of stochastic weight averaging."""

from __future__ import annotations

import math
from typing import Any

from .lr_scheduler.base import LRScheduler, Rates, per_group
from .optimizer import Optimizer

__all__ = ["SWALR"]


class SWALR(LRScheduler):
    """From the present rate to `swa_lr`, one or one per group, in `anneal_epochs` epochs, along half a cosine or a line; then constant.

    ValueError for another strategy, a negative number of epochs, or rates that are not as many as the groups.
    """

    def __init__(
        self, optimizer: Optimizer, swa_lr: Any, anneal_epochs: int = 10, anneal_strategy: str = "cos", last_epoch: int = -1
    ) -> None:
        for group, rate in zip(optimizer.param_groups, per_group("swa_lr", optimizer, swa_lr), strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, step: int) -> float:
        """How much of the way has been gone."""
        done = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return done if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * done)) / 2

    def get_lr(self) -> Rates:
        """The rate of each group: its start is what the present rate would come from."""
        self._warn_outside_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        rates = []
        for group in self.optimizer.param_groups:
            goal = group["swa_lr"]
            start = goal if before == 1 else (group["lr"] - before * goal) / (1 - before)
            rates.append(goal * now + start * (1 - now))
        return rates
