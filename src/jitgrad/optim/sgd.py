"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from .._engine.versions import bump
from .._expr import param
from .._tensor import Tensor
from .._tensor.base import version_of
from .._tensor.creation import zeros_like
from . import rules
from ._update import Recipe, check_flags, check_not_negative, check_rate, update_anyway
from .optimizer import Group, Optimizer, Params

__all__ = ["SGD"]


class SGD(Optimizer):
    """Gradient descent, with momentum and Nesterov's look-ahead if asked.

    `g = grad + weight_decay * p`; with momentum `buffer = momentum * buffer + (1 - dampening) * g` (the first time
    `buffer = g`), and `g` becomes the buffer, or `g + momentum * buffer` with `nesterov`; then `p -= lr * g`
    (`+=` with `maximize`, in that the gradient is turned round at the start). State: `momentum_buffer`.

    Raises ValueError for a negative option, or for `nesterov` without momentum or with dampening.

    >>> import jitgrad as torch
    >>> from jitgrad import optim
    >>> w = torch.tensor([1.0], requires_grad=True)
    >>> optimizer = optim.SGD([w], lr=0.5)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.tolist()
    [0.0]
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_rate(lr)
        check_not_negative("momentum value", momentum)
        check_not_negative("weight_decay value", weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        check_flags(fused, foreach, differentiable)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in (("nesterov", False), ("maximize", False), ("foreach", None)):
                group.setdefault(name, value)
            for name in ("differentiable", "fused"):
                group.setdefault(name, False)

    def _recipe(self, group: Group) -> Recipe:
        lr, decay, momentum, share = (param(name) for name in ("lr", "weight_decay", "momentum", "share"))
        flags = bool(group["maximize"]), float(group["weight_decay"]) != 0
        if group["momentum"] == 0:
            return Recipe(rules.sgd, flags, (), ("lr", "weight_decay"), (lr, decay), lambda g: (float(g["lr"]), float(g["weight_decay"])))

        def read(g: Group) -> tuple[float, ...]:
            return float(g["lr"]), float(g["weight_decay"]), float(g["momentum"]), 1.0 - float(g["dampening"])

        names = ("lr", "weight_decay", "momentum", "share")
        return Recipe(rules.sgd_momentum, (*flags, bool(group["nesterov"])), ("momentum_buffer",), names, (lr, decay, momentum, share), read)

    def _begin(self, p: Tensor, group: Group) -> dict[str, float]:
        state = self.state[p]
        if group["momentum"] == 0 or state.get("momentum_buffer") is not None:
            return {}
        state["momentum_buffer"] = zeros_like(p)
        return {"share": 1.0}  # the first gradient goes in as a whole

    def _update(self, group: Group) -> None:
        if group["momentum"] != 0:
            self._update_with_momentum(group)
            return
        lr = float(group["lr"])
        weight_decay = float(group["weight_decay"])
        flags = bool(group["maximize"]), weight_decay != 0
        kernel = rules.sgd.numbers[flags]
        for p in group["params"]:
            g = p.grad
            if g is None:
                continue
            meta = p.meta
            if g.meta is meta and meta.plain:
                meta.k[kernel](p.array, g.array, lr, weight_decay)
                bump(p.vc or version_of(p))
            else:
                update_anyway(rules.sgd, flags, (p, g), (lr, weight_decay))

    def _update_with_momentum(self, group: Group) -> None:
        lr = float(group["lr"])
        weight_decay = float(group["weight_decay"])
        momentum = float(group["momentum"])
        rest = 1.0 - float(group["dampening"])
        flags = bool(group["maximize"]), weight_decay != 0, bool(group["nesterov"])
        kernel = rules.sgd_momentum.numbers[flags]
        for p in group["params"]:
            g = p.grad
            if g is None:
                continue
            state = self.state[p]
            buffer = state.get("momentum_buffer")
            share = rest
            if buffer is None:
                share = self._begin(p, group)["share"]
                buffer = state["momentum_buffer"]
            meta = p.meta
            if g.meta is meta and buffer.meta is meta and meta.plain:
                meta.k[kernel](p.array, g.array, buffer.array, lr, weight_decay, momentum, share)
                bump(p.vc or version_of(p))
            else:
                update_anyway(rules.sgd_momentum, flags, (p, g, buffer), (lr, weight_decay, momentum, share))
