"""Adagrad."""

from __future__ import annotations

from typing import Any

from .._expr import param
from .._tensor import Tensor
from .._tensor.creation import full_like
from . import rules
from ._update import (
    Recipe,
    advance,
    check_flags,
    check_not_negative,
    check_rate,
    counts_as_tensors,
    fresh_count,
    update,
)
from .optimizer import Group, Optimizer, Params

__all__ = ["Adagrad"]


class Adagrad(Optimizer):
    """Divides by the root of the sum of all squared gradients so far.

    With `g = grad + weight_decay * p`: `sum += g * g`, `p -= lr / (1 + (step - 1) * lr_decay) * g / (sqrt(sum) + eps)`.
    State, made at once: `step`, `sum`.

    Raises ValueError for a negative option.

    >>> import jitgrad as torch
    >>> from jitgrad import optim
    >>> w = torch.tensor([1.0], requires_grad=True)
    >>> optimizer = optim.Adagrad([w], lr=0.5)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.tolist()
    [0.5]
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_rate(lr)
        check_not_negative("lr_decay value", lr_decay)
        check_not_negative("weight_decay value", weight_decay)
        check_not_negative("initial_accumulator_value value", initial_accumulator_value)
        check_not_negative("epsilon value", eps)
        check_flags(fused, foreach, differentiable)
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for p in group["params"]:
                self._start(p)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in (("foreach", None), ("maximize", False), ("differentiable", False), ("fused", None)):
                group.setdefault(name, value)
        counts_as_tensors(self)

    def _begin(self, p: Tensor, group: Group) -> dict[str, float]:
        if not self.state[p]:
            self._start(p)
        return {}

    def _start(self, p: Tensor) -> dict[str, Any]:
        value = self.defaults["initial_accumulator_value"]
        state: dict[str, Any] = self.state[p]
        state["step"] = fresh_count()
        state["sum"] = full_like(p, value)
        return state

    def _recipe(self, group: Group) -> Recipe:
        names = ("lr", "eps", "weight_decay", "lr_decay")
        lr, eps, decay, lr_decay = (param(name) for name in names)
        numbers = (lr / (1.0 + (param("steps") - 1.0) * lr_decay), eps, decay)
        flags = bool(group["maximize"]), bool(group["weight_decay"] != 0)
        return Recipe(rules.adagrad, flags, ("sum",), names, numbers, lambda g: tuple(float(g[name]) for name in names), True)

    def _update(self, group: Group) -> None:
        lr, decay, eps, lr_decay = float(group["lr"]), group["weight_decay"], group["eps"], group["lr_decay"]
        flags = bool(group["maximize"]), decay != 0
        for p in group["params"]:
            g = p.grad
            if g is None:
                continue
            state = self.state[p] or self._start(p)
            rate = lr / (1.0 + (advance(state["step"]) - 1.0) * lr_decay)
            update(rules.adagrad, flags, (p, g, state["sum"]), (rate, eps, decay))
