"""Adam and AdamW."""

from __future__ import annotations

import math
from typing import Any

from .._engine.versions import bump
from .._expr import param, scalar
from .._tensor import Tensor
from .._tensor.base import version_of
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
    update_anyway,
)
from .optimizer import Group, Optimizer, Params

__all__ = ["Adam", "AdamW"]


class Adam(Optimizer):
    """Steps by the mean of the gradients over the root of the mean of their squares.

    With `g = grad + weight_decay * p`: `exp_avg += (1 - beta1) * (g - exp_avg)`,
    `exp_avg_sq = beta2 * exp_avg_sq + (1 - beta2) * g * g`, both divided by `1 - beta ** step` to make up for their
    start at zero; then `p -= lr * mean / (sqrt(square) + eps)`. With `amsgrad` the largest square so far is used.
    State: `step`, `exp_avg`, `exp_avg_sq`, `max_exp_avg_sq`.

    Raises ValueError for a negative option or betas outside [0, 1).

    >>> import jitgrad as torch
    >>> from jitgrad import optim
    >>> w = torch.tensor([1.0], requires_grad=True)
    >>> optimizer = optim.Adam([w], lr=0.25)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.tolist()
    [0.75]
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and foreach and not capturable:
            raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
        check_rate(lr)
        check_not_negative("epsilon value", eps)
        _check_betas(betas, bool(foreach) and not capturable)
        check_not_negative("weight_decay value", weight_decay)
        check_flags(fused, foreach, differentiable)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name in ("amsgrad", "maximize", "capturable", "differentiable", "decoupled_weight_decay"):
                group.setdefault(name, False)
            for name in ("foreach", "fused"):
                group.setdefault(name, None)
        counts_as_tensors(self)

    def _recipe(self, group: Group) -> Recipe:
        rule, flags, _ = _chosen(group, float(group["lr"]), group["weight_decay"])
        lr, eps, decay, beta1, beta2, steps = (param(name) for name in (*_HYPER, "steps"))
        extra = 1.0 - lr * decay if rule in (rules.adamw, rules.adamw_amsgrad) else decay
        root = scalar.sqrt(1.0 - beta2**steps)
        numbers = (lr / (1.0 - beta1**steps) * root, eps * root, extra, 1.0 - beta1, beta2, 1.0 - beta2)
        states = ("exp_avg", "exp_avg_sq", *(("max_exp_avg_sq",) if group["amsgrad"] else ()))
        return Recipe(rule, flags, states, _HYPER, numbers, _hyper, True)

    def _begin(self, p: Tensor, group: Group) -> dict[str, float]:
        state = self.state[p]
        if not state:
            _start(state, p, group["amsgrad"])
        return {}

    def _update(self, group: Group) -> None:
        lr, eps, decay = float(group["lr"]), group["eps"], group["weight_decay"]
        beta1, beta2 = map(float, group["betas"])
        rest1, rest2 = 1.0 - beta1, 1.0 - beta2
        rule, flags, extra = _chosen(group, lr, decay)
        amsgrad = group["amsgrad"]
        kernel = rule.numbers[flags]
        last = rate = small = 0.0
        for p in group["params"]:
            g = p.grad
            if g is None:
                continue
            state = self.state[p]
            if not state:
                _start(state, p, amsgrad)
            steps = advance(state["step"])
            if steps != last:  # mostly all parameters have made the same number of steps
                last, root = steps, math.sqrt(1.0 - beta2**steps)
                rate, small = lr / (1.0 - beta1**steps) * root, eps * root
            mean, square = state["exp_avg"], state["exp_avg_sq"]
            meta = p.meta
            numbers = rate, small, extra, rest1, beta2, rest2
            if amsgrad:
                update(rule, flags, (p, g, mean, square, state["max_exp_avg_sq"]), numbers)
            elif g.meta is meta and mean.meta is meta and square.meta is meta and meta.plain:
                meta.k[kernel](p.array, g.array, mean.array, square.array, *numbers)
                bump(p.vc or version_of(p))
            else:
                update_anyway(rule, flags, (p, g, mean, square), numbers)


def _chosen(group: Group, lr: float, decay: float) -> tuple[rules.Rule, tuple[bool, ...], float]:
    """The rule for a group's options, its flags, and the number by which it decays the weights."""
    maximize, amsgrad = bool(group["maximize"]), group["amsgrad"]
    decays = bool(decay != 0)
    if group["decoupled_weight_decay"] and decays:
        return (rules.adamw_amsgrad if amsgrad else rules.adamw), (maximize,), 1.0 - lr * decay
    return (rules.amsgrad if amsgrad else rules.adam), (maximize, decays), decay


_HYPER = ("lr", "eps", "weight_decay", "beta1", "beta2")


def _hyper(group: Group) -> tuple[float, ...]:
    return float(group["lr"]), float(group["eps"]), float(group["weight_decay"]), *map(float, group["betas"])


def _start(state: dict[str, Any], p: Tensor, amsgrad: bool) -> None:
    state["step"] = fresh_count()
    state["exp_avg"] = zeros_like(p)
    state["exp_avg_sq"] = zeros_like(p)
    if amsgrad:
        state["max_exp_avg_sq"] = zeros_like(p)


def _check_betas(betas: tuple[Any, Any], foreach: bool) -> None:
    for place, beta in enumerate(betas):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {place}: {beta}")
    tensors = [isinstance(beta, Tensor) for beta in betas]
    if any(tensors) != all(tensors):
        raise ValueError("betas must be either both floats or both Tensors")
    for place, beta in enumerate(betas):
        if isinstance(beta, Tensor) and foreach:
            raise ValueError(f"betas[{place}] as a Tensor is not supported for capturable=False and foreach=True")
        if isinstance(beta, Tensor) and beta.numel() != 1:
            raise ValueError(f"Tensor betas[{place}] must be 1-element")


class AdamW(Adam):
    """Adam whose weights decay by themselves, `p *= 1 - lr * weight_decay`, instead of through the gradient.

    >>> import jitgrad as torch
    >>> from jitgrad import optim
    >>> w = torch.tensor([1.0], requires_grad=True)
    >>> optimizer = optim.AdamW([w], lr=0.25, weight_decay=0.0)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.tolist()
    [0.75]
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True
