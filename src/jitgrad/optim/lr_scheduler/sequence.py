"""Schedules one after the other, or all at once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler, set_option
from .plateau import ReduceLROnPlateau

__all__ = ["ChainedScheduler", "SequentialLR"]


class _Several(LRScheduler):
    """What is made of other schedules of one optimizer."""

    _schedulers: Sequence[LRScheduler]

    def _take(self, optimizer: Optimizer | None, schedulers: Sequence[LRScheduler], what: str) -> None:
        name = type(self).__name__
        if len(schedulers) < 1:
            raise ValueError(f"{name} expects at least one scheduler{what}, but got no scheduler.")
        optimizer = optimizer or schedulers[0].optimizer
        for place, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(f"{name} at index {place} should have `optimizer` as its attribute.")
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be "
                    f"specified when calling `step`, but got one at index {place} in the given schedulers sequence."
                )
            if scheduler.optimizer is not optimizer:
                raise ValueError(
                    f"{name} expects all schedulers to belong to the same optimizer, but got scheduler "
                    f"{type(scheduler).__name__} at index {place} has {scheduler.optimizer}, which is different from "
                    f"{type(optimizer).__name__}."
                )
        self._schedulers = schedulers
        self.optimizer = optimizer

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer, the schedules as their own state dicts."""
        return {**super().state_dict(), "_schedulers": [scheduler.state_dict() for scheduler in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        super().load_state_dict({name: value for name, value in state_dict.items() if name != "_schedulers"})
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(state)


class SequentialLR(_Several):
    """Each schedule up to its milestone, then the next one from its own beginning.

    Raises ValueError unless there is one milestone less than schedules, all of the same optimizer.

    >>> import jitgrad as torch
    >>> from jitgrad import optim
    >>> optimizer = optim.SGD([torch.ones(1)], lr=1.0)
    >>> warm = optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=10)
    >>> cool = optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> schedule = optim.lr_scheduler.SequentialLR(optimizer, [warm, cool], milestones=[2])
    >>> rates = []
    >>> for _ in range(4):
    ...     rates += schedule.get_last_lr()
    ...     optimizer.step(); schedule.step()
    >>> rates
    [0.5, 0.5, 1.0, 0.5]
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int], last_epoch: int = -1
    ) -> None:
        self._take(optimizer, schedulers, "")
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of "
                f"milestone points, but got number of schedulers {len(schedulers)} and the number of milestones to be "
                f"equal to {len(milestones)}"
            )
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        for group in optimizer.param_groups:  # the schedules have all made their first step already
            set_option(group, "lr", group["initial_lr"])
        _undo(self)
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def step(self) -> None:  # type: ignore[override]
        """Go on by one epoch."""
        self.last_epoch += 1
        place = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[place]
        if place > 0 and self._milestones[place - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


def _undo(scheduler: Any) -> None:
    """Take the first step back, of the schedules inside a sequence too."""
    inner = getattr(scheduler, "_schedulers", None)
    if inner is None:
        scheduler.last_epoch -= 1
    else:
        for one in inner:
            _undo(one)


class ChainedScheduler(_Several):
    """All schedules at every step; each must be in its chainable form."""

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        self._take(optimizer, schedulers, " to be chained")
        self._last_lr = self._present()

    def step(self) -> None:  # type: ignore[override]
        """Go on by one epoch."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._present()
