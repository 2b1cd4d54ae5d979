"""`LRScheduler`, the base of the schedules."""

from __future__ import annotations

import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

from ..._tensor import Tensor
from ..optimizer import Optimizer

__all__ = ["LRScheduler"]

Rates = list[Any]  # a number or a tensor of one element per parameter group

_ORDER = (
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you should call "
    "them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  Failure to do this will result in "
    "PyTorch skipping the first value of the learning rate schedule. See more details at "
    "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
)
_OVERRIDDEN = (
    "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. Please, make sure "
    "to call `optimizer.step()` before `lr_scheduler.step()`. See more details at "
    "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
)
EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed "
    "form is used instead of the new chainable form, where available. Please open an issue if you are unable to "
    "replicate your use case: https://github.com/pytorch/pytorch/issues/new/choose."
)


def copied(value: Any) -> Any:
    """A tensor's clone; a number as it is."""
    return value.clone() if isinstance(value, Tensor) else value


def set_option(group: dict[str, Any], name: str, value: Any) -> None:
    """Set an option of a group, in place where it is a tensor."""
    if isinstance(group[name], Tensor):
        group[name].fill_(float(value))
    else:
        group[name] = value


class LRScheduler:
    """Base class: `step()` sets the learning rate of every parameter group to what `get_lr()` says.

    A subclass defines `get_lr` in its chainable form, which works on the present rates, and where it can
    `_get_closed_form_lr`, which works on `base_lrs` and `last_epoch` alone.

    Args:
        last_epoch: -1 starts a schedule; another number goes on with one whose `initial_lr` the groups hold
            (KeyError if they don't).
    """

    last_epoch: int
    base_lrs: Rates
    _step_count: int
    _last_lr: Rates
    _get_lr_called_within_step = False
    _is_initial = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = expect_optimizer(optimizer)
        for place, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{place}] when resuming scheduler with "
                    "last_epoch >= 0.\nThis typically happens when:\n1. You're trying to resume training from a "
                    "checkpoint but haven't properly loaded the optimizer state\n2. You're using last_epoch >= 0 for a "
                    "fresh training run (not recommended)"
                )
        self.base_lrs = [copied(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        if "_scheduled_step" not in optimizer.__dict__:  # only steps from here on count for the order of calls
            optimizer.__dict__.update(_scheduled_step=optimizer.__dict__.get("step"), _opt_called=False)
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        with self._marked("_is_initial"):
            self.step()

    @contextmanager
    def _marked(self, flag: str) -> Iterator[None]:
        self.__dict__[flag] = True
        try:
            yield
        finally:
            self.__dict__[flag] = False

    # ---- the rates ----
    def get_last_lr(self) -> Rates:
        """The learning rate of each group, as the last `step` left it."""
        return self._last_lr

    def get_lr(self) -> Rates:
        """The learning rate of each group at `last_epoch`; for `step` to call."""
        raise NotImplementedError

    def _warn_outside_step(self) -> None:
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
                UserWarning,
                stacklevel=3,
            )

    def _present(self, factor: float | None = None) -> Rates:
        """The present rates, times a factor if there is one."""
        groups = self.optimizer.param_groups
        return [copied(group["lr"]) if factor is None else group["lr"] * factor for group in groups]

    # ---- the step ----
    def step(self, epoch: int | None = None) -> None:
        """Go on by one epoch (or whatever is counted); to be called after the optimizer's step."""
        if self._step_count == 1:
            own = self.optimizer.__dict__
            overridden = own.get("step") is not own.get("_scheduled_step")
            if overridden or not self.optimizer._opt_called:
                warnings.warn(_OVERRIDDEN if overridden else _ORDER, UserWarning, stacklevel=2)
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        with self._marked("_get_lr_called_within_step"):
            self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
            closed: Callable[[], Rates] | None = getattr(self, "_get_closed_form_lr", None)
            rates = self.get_lr() if epoch is None or closed is None else closed()
        self._set(rates)

    def _set(self, rates: Sequence[Any]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            set_option(group, "lr", rate)
        self._last_lr = self._present()

    # ---- saving ----
    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer."""
        return {name: value for name, value in self.__dict__.items() if name != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self.__dict__.update(state_dict)


def expect_optimizer(optimizer: object) -> Optimizer:
    """The argument, if it is an optimizer; TypeError otherwise."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
    return optimizer


def per_group(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """One value per parameter group; a list must have that length."""
    count = len(optimizer.param_groups)
    if not isinstance(value, list | tuple):
        return [copied(value) for _ in range(count)]
    if len(value) != count:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. "
            f"{name} has {len(value)} values, param_groups has {count}."
        )
    return [copied(one) for one in value]


def saved_function(function: Any) -> dict[str, Any] | None:
    """What a state dict keeps of a function: the attributes of a callable object, of a plain function nothing."""
    return None if isinstance(function, types.FunctionType) else function.__dict__.copy()


class FunctionSchedule(LRScheduler):
    """A schedule by functions of the epoch, one per parameter group or one for all."""

    lr_lambdas: list[Callable[[int], float]]

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        count = len(optimizer.param_groups)
        if not isinstance(lr_lambda, list | tuple):
            self.lr_lambdas = [lr_lambda] * count
        elif len(lr_lambda) != count:
            raise ValueError(f"Expected {count} lr_lambdas, but got {len(lr_lambda)}")
        else:
            self.lr_lambdas = list(lr_lambda)
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and plain functions; of other callables, their attributes."""
        state = super().state_dict()
        state["lr_lambdas"] = [saved_function(function) for function in self.lr_lambdas]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        super().load_state_dict({name: value for name, value in state_dict.items() if name != "lr_lambdas"})
        for function, attributes in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=True):
            if attributes is not None:
                cast(Any, function).__dict__.update(attributes)
