"""RMSprop."""

from __future__ import annotations

from typing import Any

from .._expr import param
from .._tensor import Tensor
from .._tensor.creation import zeros_like
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

__all__ = ["RMSprop"]

# by (centered, with momentum): the rule, and the state it works on
_RULES = {
    (False, False): (rules.rmsprop, ("square_avg",)),
    (False, True): (rules.rmsprop_momentum, ("square_avg", "momentum_buffer")),
    (True, False): (rules.rmsprop_centered, ("square_avg", "grad_avg")),
    (True, True): (rules.rmsprop_centered_momentum, ("square_avg", "grad_avg", "momentum_buffer")),
}


class RMSprop(Optimizer):
    """Divides by the root of a running mean of the squared gradients.

    With `g = grad + weight_decay * p`: `square_avg = alpha * square_avg + (1 - alpha) * g * g`; with `centered` the
    square of the running mean of g is taken off; then `p -= lr * g / (sqrt(square_avg) + eps)`, by way of a buffer with
    momentum. State: `step`, `square_avg`, `momentum_buffer`, `grad_avg`.

    Raises ValueError for a negative option.

    >>> import jitgrad as torch
    >>> from jitgrad import optim
    >>> w = torch.tensor([1.0], requires_grad=True)
    >>> optimizer = optim.RMSprop([w], lr=0.05, alpha=0.99)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> round(w.item(), 4)
    0.5
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_rate(lr)
        check_not_negative("epsilon value", eps)
        check_not_negative("momentum value", momentum)
        check_not_negative("weight_decay value", weight_decay)
        check_not_negative("alpha value", alpha)
        check_flags(False, foreach, differentiable)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("momentum", 0)
            group.setdefault("foreach", None)
            for name in ("centered", "maximize", "differentiable", "capturable"):
                group.setdefault(name, False)
        counts_as_tensors(self)

    def _recipe(self, group: Group) -> Recipe:
        rule, states = _RULES[bool(group["centered"]), group["momentum"] > 0]
        flags = bool(group["maximize"]), bool(group["weight_decay"] != 0)
        names = ("lr", "eps", "weight_decay", "alpha", *(("momentum",) if group["momentum"] > 0 else ()))
        lr, eps, decay, alpha, *momentum = (param(name) for name in names)
        numbers = (lr, eps, decay, alpha, 1.0 - alpha, *momentum)
        return Recipe(rule, flags, tuple(states), names, numbers, lambda g: tuple(float(g[name]) for name in names), True)

    def _begin(self, p: Tensor, group: Group) -> dict[str, float]:
        state = self.state[p]
        if not state:
            names = _RULES[bool(group["centered"]), group["momentum"] > 0][1]
            state["step"] = fresh_count()
            for name in ("square_avg", "momentum_buffer", "grad_avg"):
                if name in names:
                    state[name] = zeros_like(p)
        return {}

    def _update(self, group: Group) -> None:
        lr, decay, alpha, momentum = float(group["lr"]), group["weight_decay"], group["alpha"], group["momentum"]
        rule, names = _RULES[bool(group["centered"]), momentum > 0]
        flags = bool(group["maximize"]), decay != 0
        numbers = lr, group["eps"], decay, alpha, 1.0 - alpha, *([momentum] if momentum > 0 else [])
        for p in group["params"]:
            g = p.grad
            if g is None:
                continue
            state = self.state[p]
            if not state:
                self._begin(p, group)
            advance(state["step"])
            update(rule, flags, (p, g, *[state[name] for name in names]), numbers)
