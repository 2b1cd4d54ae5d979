"""The rarer optimizers: each a rule of `more_rules.py`, the numbers that go into it, and checks of its options."""

from __future__ import annotations

from typing import Any

from .._tensor import Tensor
from .._tensor.creation import full_like, tensor, zeros_like
from . import more_rules as rules
from ._update import advance, check_flags, check_not_negative, check_rate, counts_as_tensors, fresh_count, update
from .optimizer import Group, Optimizer, Params, Plan

__all__ = ["ASGD", "Adadelta", "Adamax", "NAdam", "RAdam", "Rprop"]


class RuleOptimizer(Optimizer):
    """An optimizer that is its rule and the numbers that go into it: a subclass defines `_start` and `_numbers`."""

    def __init__(self, params: Params, **options: Any) -> None:
        check_rate(options["lr"])
        for name, what in (("eps", "epsilon"), ("weight_decay", "weight_decay"), ("momentum_decay", "momentum_decay")):
            check_not_negative(f"{what} value", options.get(name, 0))
        for place, beta in enumerate(options.get("betas", ())):
            if not 0.0 <= beta < 1.0:
                raise ValueError(f"Invalid beta parameter at index {place}: {beta}")
        check_flags(False, options["foreach"], options["differentiable"])
        super().__init__(params, options)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name in ("maximize", "differentiable", "capturable", "decoupled_weight_decay"):
                if name in self.defaults:
                    group.setdefault(name, False)
            group.setdefault("foreach", None)
        counts_as_tensors(self)

    def _start(self, p: Tensor, group: Group) -> dict[str, Any]:
        """The state of a parameter that has none."""
        raise NotImplementedError

    def _numbers(self, group: Group, state: dict[str, Any], steps: float) -> Plan:
        """The rule of a step, its flags, the names of its state, and its numbers: tensors where an option is one."""
        raise NotImplementedError

    def _plan(self, p: Tensor, group: Group) -> Plan:
        state = self.state[p]
        if not state:
            state.update({"step": fresh_count(), **self._start(p, group)})
        return self._numbers(group, state, advance(state["step"]))

    def _update(self, group: Group) -> None:
        for p in group["params"]:
            g = p.grad
            if g is not None:
                rule, flags, names, numbers = self._plan(p, group)
                update(rule, flags, (p, g, *[self.state[p][name] for name in names]), [float(number) for number in numbers])


def _flags(group: Group) -> tuple[bool, bool]:
    return bool(group["maximize"]), bool(group["weight_decay"] != 0)


def _moments(p: Tensor) -> dict[str, Any]:
    return {"exp_avg": zeros_like(p), "exp_avg_sq": zeros_like(p)}


class Adadelta(RuleOptimizer):
    """Steps by the ratio of the root mean squares of late steps and gradients. State: `square_avg`, `acc_delta`.

    >>> import jitgrad as torch
    >>> w = torch.tensor([1.0], requires_grad=True)
    >>> optimizer = torch.optim.Adadelta([w])
    >>> (w * w).sum().backward(); optimizer.step()
    >>> round(1 - w.item(), 5)
    0.00316
    """

    def __init__(
        self, params: Params, lr: float | Tensor = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0,
        foreach: bool | None = None, *, capturable: bool = False, maximize: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        super().__init__(params, lr=lr, rho=rho, eps=eps, weight_decay=weight_decay, maximize=maximize, capturable=capturable,
                         foreach=foreach, differentiable=differentiable)  # fmt: skip

    def _start(self, p: Tensor, group: Group) -> dict[str, Any]:
        return {"square_avg": zeros_like(p), "acc_delta": zeros_like(p)}

    def _numbers(self, group: Group, state: dict[str, Any], steps: float) -> Plan:
        numbers = group["lr"], group["rho"], 1 - group["rho"], group["eps"], group["weight_decay"]
        return rules.adadelta, _flags(group), ("square_avg", "acc_delta"), numbers


class Adamax(RuleOptimizer):
    """Adam by the largest gradient of late instead of the mean square. State: `exp_avg`, `exp_inf`."""

    def __init__(
        self, params: Params, lr: float | Tensor = 2e-3, betas: tuple[Any, Any] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0,
        foreach: bool | None = None, *, maximize: bool = False, differentiable: bool = False, capturable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, foreach=foreach, maximize=maximize,
                         differentiable=differentiable, capturable=capturable)  # fmt: skip

    def _start(self, p: Tensor, group: Group) -> dict[str, Any]:
        return {"exp_avg": zeros_like(p), "exp_inf": zeros_like(p)}

    def _numbers(self, group: Group, state: dict[str, Any], steps: float) -> Plan:
        beta1, beta2 = group["betas"]
        numbers = group["lr"] / (1 - beta1**steps), group["eps"], group["weight_decay"], 1 - beta1, beta2
        return rules.adamax, _flags(group), ("exp_avg", "exp_inf"), numbers


class NAdam(RuleOptimizer):
    """Adam with Nesterov's look-ahead. State: `mu_product`, `exp_avg`, `exp_avg_sq`."""

    def __init__(
        self, params: Params, lr: float | Tensor = 2e-3, betas: tuple[Any, Any] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0,
        momentum_decay: float = 4e-3, decoupled_weight_decay: bool = False, *, foreach: bool | None = None, maximize: bool = False,
        capturable: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, momentum_decay=momentum_decay,
                         decoupled_weight_decay=decoupled_weight_decay, maximize=maximize, foreach=foreach, capturable=capturable,
                         differentiable=differentiable)  # fmt: skip

    def _start(self, p: Tensor, group: Group) -> dict[str, Any]:
        return {"mu_product": fresh_count().fill_(1.0), **_moments(p)}

    def _numbers(self, group: Group, state: dict[str, Any], steps: float) -> Plan:
        (beta1, beta2), lr, decay = group["betas"], group["lr"], group["momentum_decay"]
        mu, after = (beta1 * (1.0 - 0.5 * 0.96 ** (k * decay)) for k in (steps, steps + 1))
        held = state["mu_product"].mul_(mu)
        product = held.clone() if held.requires_grad else float(held)  # it is written to in the next step
        numbers = (lr * (1 - mu) / (1 - product), lr * after / (1 - product * after), group["eps"], group["weight_decay"],
                   1 - lr * group["weight_decay"], 1 - beta1, beta2, 1 - beta2, (1 - beta2**steps) ** 0.5)  # fmt: skip
        flags = *_flags(group), bool(group["decoupled_weight_decay"])
        return rules.nadam, flags, ("exp_avg", "exp_avg_sq"), numbers


class RAdam(RuleOptimizer):
    """Adam whose second moment counts only when enough steps have been made to know it. State: `exp_avg`, `exp_avg_sq`."""

    def __init__(
        self, params: Params, lr: float | Tensor = 1e-3, betas: tuple[Any, Any] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0,
        decoupled_weight_decay: bool = False, *, foreach: bool | None = None, maximize: bool = False, capturable: bool = False,
        differentiable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, maximize=maximize, foreach=foreach,
                         capturable=capturable, decoupled_weight_decay=decoupled_weight_decay, differentiable=differentiable)  # fmt: skip

    def _start(self, p: Tensor, group: Group) -> dict[str, Any]:
        return _moments(p)

    def _numbers(self, group: Group, state: dict[str, Any], steps: float) -> Plan:
        (beta1, beta2), lr = group["betas"], group["lr"]
        correction = 1 - beta2**steps
        longest = 2 / (1 - beta2) - 1
        known = longest - 2 * steps * beta2**steps / correction  # how many steps the second moment is worth
        rectified: Any = 0.0
        if known > 5:
            share = (known - 4) * (known - 2) * longest / ((longest - 4) * (longest - 2) * known)
            rectified = share**0.5 * correction**0.5
        numbers = (lr / (1 - beta1**steps), rectified, float(not known > 5), group["eps"], group["weight_decay"],
                   1 - lr * group["weight_decay"], 1 - beta1, beta2, 1 - beta2)  # fmt: skip
        flags = *_flags(group), bool(group["decoupled_weight_decay"])
        return rules.radam, flags, ("exp_avg", "exp_avg_sq"), numbers


class ASGD(RuleOptimizer):
    """Gradient descent with falling rates, and in the state `ax` the mean of the parameters from step `t0` on."""

    def __init__(
        self, params: Params, lr: float | Tensor = 1e-2, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6, weight_decay: float = 0,
        foreach: bool | None = None, maximize: bool = False, differentiable: bool = False, capturable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, lr=lr, lambd=lambd, alpha=alpha, t0=t0, weight_decay=weight_decay, foreach=foreach, maximize=maximize,
                         differentiable=differentiable, capturable=capturable)  # fmt: skip

    def _start(self, p: Tensor, group: Group) -> dict[str, Any]:
        kind = fresh_count().dtype
        return {"eta": tensor(float(group["lr"]), dtype=kind), "mu": tensor(1.0, dtype=kind), "ax": zeros_like(p)}

    def _numbers(self, group: Group, state: dict[str, Any], steps: float) -> Plan:
        eta, mu, lr = float(state["eta"]), float(state["mu"]), float(group["lr"])
        state["eta"].fill_(lr / (1 + group["lambd"] * lr * steps) ** group["alpha"])
        state["mu"].fill_(1 / max(1, steps - group["t0"]))
        numbers = eta, 1 - group["lambd"] * eta, mu, group["weight_decay"]
        return rules.asgd, (*_flags(group), mu != 1), ("ax",), numbers


class Rprop(RuleOptimizer):
    """Steps by the sign of the gradient, longer by `etas[1]` while it stays and shorter by `etas[0]` where it changes, within `step_sizes`.

    State: `prev`, `step_size`.
    """

    def __init__(
        self, params: Params, lr: float | Tensor = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50), *, capturable: bool = False, foreach: bool | None = None, maximize: bool = False,
        differentiable: bool = False,
    ) -> None:  # fmt: skip
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, lr=lr, etas=etas, step_sizes=step_sizes, foreach=foreach, maximize=maximize,
                         differentiable=differentiable, capturable=capturable)  # fmt: skip

    def _start(self, p: Tensor, group: Group) -> dict[str, Any]:
        return {"prev": zeros_like(p), "step_size": full_like(p, float(group["lr"]))}

    def _numbers(self, group: Group, state: dict[str, Any], steps: float) -> Plan:
        return rules.rprop, (bool(group["maximize"]),), ("prev", "step_size"), (*group["etas"], *group["step_sizes"])
