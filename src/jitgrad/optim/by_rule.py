"""The rarer optimizers: each a rule of `more_rules.py`, the numbers that go into it, and checks of its options."""

from __future__ import annotations

from typing import Any

from .._expr import Expr, param, scalar
from .._tensor import Tensor
from .._tensor.creation import full_like, tensor, zeros_like
from . import more_rules as rules
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
from .optimizer import Group, Optimizer, Params, Plan
from .rules import Rule

__all__ = ["ASGD", "Adadelta", "Adamax", "NAdam", "RAdam", "Rprop"]


class RuleOptimizer(Optimizer):
    """An optimizer that is its rule and the numbers that go into it.

    A subclass defines `_start` and `_numbers`; where the numbers depend on options and the count of steps alone, `_rule`, `_states`, `_options`
    and `_formula` in the place of `_numbers`, so that the compiler can follow.
    """

    _rule: Rule
    _states: tuple[str, ...]  # the arrays of the state, in the rule's order
    _options: tuple[str, ...] = ()  # what goes into the formula after the count of steps; none: only Python can make the numbers

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

    @staticmethod
    def _formula(steps: Any, *options: Any) -> tuple[Any, ...]:
        """The numbers of a step, out of numbers, of tensors with a history, or of expressions."""
        raise NotImplementedError

    def _flags(self, group: Group) -> tuple[bool, ...]:
        """The flags of the rule."""
        return _flags(group)

    def _numbers(self, group: Group, state: dict[str, Any], steps: float) -> Plan:
        """The rule of a step, its flags, the names of its state, and its numbers: tensors where an option is one."""
        return self._rule, self._flags(group), self._states, self._formula(steps, *self._read(group))

    def _read(self, group: Group) -> list[Any]:
        """The options of the formula, one after the other."""
        values: list[Any] = []
        for name in self._options:
            value = group[name]
            values.extend(value if isinstance(value, tuple | list) else (value,))
        return values

    def _update_by_formula(self, group: Group) -> None:
        rule, flags, names = self._rule, self._flags(group), self._states
        options = [float(option) for option in self._read(group)]
        last, numbers = 0.0, ()
        for p in group["params"]:
            g = p.grad
            if g is not None:
                state = self._begun(p, group)
                steps = advance(state["step"])
                if steps != last:  # mostly all parameters have made the same number of steps
                    last, numbers = steps, self._formula(steps, *options)
                update(rule, flags, (p, g, *[state[name] for name in names]), numbers)

    def _recipe(self, group: Group) -> Recipe | None:
        if not self._options:
            return None
        names = tuple(f"option{k}" for k in range(len(self._read(group))))
        numbers = self._formula(param("steps"), *map(param, names))

        def read(group: Group) -> tuple[float, ...]:
            return tuple(map(float, self._read(group)))

        return Recipe(self._rule, self._flags(group), self._states, names, numbers, read, True)

    def _begun(self, p: Tensor, group: Group) -> dict[str, Any]:
        """The state of a parameter, in its first step a fresh one."""
        state: dict[str, Any] = self.state[p]
        if not state:
            state.update({"step": fresh_count(), **self._start(p, group)})
        return state

    def _plan(self, p: Tensor, group: Group) -> Plan:
        state = self._begun(p, group)
        return self._numbers(group, state, advance(state["step"]))

    def _update(self, group: Group) -> None:
        if self._options:
            self._update_by_formula(group)
            return
        for p in group["params"]:
            g = p.grad
            if g is not None:
                rule, flags, names, numbers = self._plan(p, group)
                update(rule, flags, (p, g, *[self.state[p][name] for name in names]), [float(number) for number in numbers])


def _flags(group: Group) -> tuple[bool, bool]:
    return bool(group["maximize"]), bool(group["weight_decay"] != 0)


def _put(held: Tensor, value: float) -> Any:
    """Write a number into a state's tensor; returns what it is in the tensor's precision."""
    array = held.array
    array.fill(value)
    return array.item()


def _moments(p: Tensor) -> dict[str, Any]:
    return {"exp_avg": zeros_like(p), "exp_avg_sq": zeros_like(p)}


class Adadelta(RuleOptimizer):
    """Steps as long as those of late, by the ratio of the root mean squares of steps and gradients.

    With `g = grad + weight_decay * p`: `square_avg = rho * square_avg + (1 - rho) * g * g`,
    `delta = sqrt(acc_delta + eps) / sqrt(square_avg + eps) * g`, `acc_delta = rho * acc_delta + (1 - rho) * delta * delta`, `p -= lr * delta`
    (Zeiler, ADADELTA: an adaptive learning rate method, 2012, algorithm 1). State: `step`, `square_avg`, `acc_delta`.

    Raises ValueError for a negative option or a `rho` outside [0, 1].

    >>> import jitgrad as torch
    >>> w = torch.tensor([1.0], requires_grad=True)
    >>> optimizer = torch.optim.Adadelta([w])
    >>> (w * w).sum().backward(); optimizer.step()
    >>> round(1 - w.item(), 5)
    0.00316
    """

    _rule, _states = rules.adadelta, ("square_avg", "acc_delta")
    _options = "lr", "rho", "eps", "weight_decay"

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

    @staticmethod
    def _formula(steps: Any, *options: Any) -> tuple[Any, ...]:
        lr, rho, eps, weight_decay = options
        return lr, rho, 1 - rho, eps, weight_decay


class Adamax(RuleOptimizer):
    """Adam by the largest gradient of late instead of the mean square.

    With `g = grad + weight_decay * p`: `exp_avg += (1 - beta1) * (g - exp_avg)`, `exp_inf = max(beta2 * exp_inf, |g| + eps)`,
    `p -= lr / (1 - beta1 ** step) * exp_avg / exp_inf` (Kingma and Ba, Adam: a method for stochastic optimization, 2015, section 7.1; `eps`
    keeps the divisor from zero). State: `step`, `exp_avg`, `exp_inf`.

    Raises ValueError for a negative option or betas outside [0, 1).

    >>> import jitgrad as torch
    >>> w = torch.tensor([1.0], requires_grad=True)
    >>> optimizer = torch.optim.Adamax([w], lr=0.25)
    >>> (w * w).sum().backward(); optimizer.step()
    >>> w.tolist()
    [0.75]
    """

    _rule, _states = rules.adamax, ("exp_avg", "exp_inf")
    _options = "lr", "betas", "eps", "weight_decay"

    def __init__(
        self, params: Params, lr: float | Tensor = 2e-3, betas: tuple[Any, Any] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0,
        foreach: bool | None = None, *, maximize: bool = False, differentiable: bool = False, capturable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, foreach=foreach, maximize=maximize,
                         differentiable=differentiable, capturable=capturable)  # fmt: skip

    def _start(self, p: Tensor, group: Group) -> dict[str, Any]:
        return {"exp_avg": zeros_like(p), "exp_inf": zeros_like(p)}

    @staticmethod
    def _formula(steps: Any, *options: Any) -> tuple[Any, ...]:
        lr, beta1, beta2, eps, weight_decay = options
        return lr / (1 - beta1**steps), eps, weight_decay, 1 - beta1, beta2


class NAdam(RuleOptimizer):
    """Adam with Nesterov's look-ahead.

    The means are Adam's. Momentum grows with the steps, `mu(k) = beta1 * (1 - 0.96 ** (k * momentum_decay) / 2)`, and with `product` that of
    all up to this step, `p -= lr * ((1 - mu(k)) / (1 - product) * g + mu(k + 1) / (1 - product * mu(k + 1)) * exp_avg) / (sqrt(square) + eps)`
    (Dozat, Incorporating Nesterov momentum into Adam, 2016, algorithm 2). `decoupled_weight_decay` shrinks the weights as in AdamW instead of
    adding to `g`. State: `step`, `mu_product`, `exp_avg`, `exp_avg_sq`.

    Raises ValueError for a negative option or betas outside [0, 1).

    >>> import jitgrad as torch
    >>> w = torch.tensor([1.0], requires_grad=True)
    >>> optimizer = torch.optim.NAdam([w], lr=0.25)
    >>> (w * w).sum().backward(); optimizer.step()
    >>> round(w.item(), 4)
    0.7359
    """

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
        held = state["mu_product"]
        if held.requires_grad or isinstance(mu, Tensor):
            product = held.mul_(mu).clone()  # it is written to in the next step
        else:
            product = _put(held, held.array.item() * mu)
        numbers = (lr * (1 - mu) / (1 - product), lr * after / (1 - product * after), group["eps"], group["weight_decay"],
                   1 - lr * group["weight_decay"], 1 - beta1, beta2, 1 - beta2, (1 - beta2**steps) ** 0.5)  # fmt: skip
        flags = *_flags(group), bool(group["decoupled_weight_decay"])
        return rules.nadam, flags, ("exp_avg", "exp_avg_sq"), numbers


class RAdam(RuleOptimizer):
    """Adam whose second moment counts only when enough steps have been made to know it.

    The means are Adam's. With `longest = 2 / (1 - beta2) - 1` and `known = longest - 2 * step * beta2 ** step / (1 - beta2 ** step)`, the step is
    by the mean alone while `known <= 5`, and after that divided by the root of the square and multiplied by
    `sqrt((known - 4) * (known - 2) * longest / ((longest - 4) * (longest - 2) * known))` (Liu and others, On the variance of the adaptive
    learning rate and beyond, 2020, algorithm 2). `decoupled_weight_decay` shrinks the weights as in AdamW instead of adding to `g`.
    State: `step`, `exp_avg`, `exp_avg_sq`.

    Raises ValueError for a negative option or betas outside [0, 1).

    >>> import jitgrad as torch
    >>> w = torch.tensor([1.0], requires_grad=True)
    >>> optimizer = torch.optim.RAdam([w], lr=0.25)
    >>> (w * w).sum().backward(); optimizer.step()
    >>> w.tolist()
    [0.5]
    """

    _rule, _states = rules.radam, ("exp_avg", "exp_avg_sq")
    _options = "lr", "betas", "eps", "weight_decay"

    def __init__(
        self, params: Params, lr: float | Tensor = 1e-3, betas: tuple[Any, Any] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0,
        decoupled_weight_decay: bool = False, *, foreach: bool | None = None, maximize: bool = False, capturable: bool = False,
        differentiable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, maximize=maximize, foreach=foreach,
                         capturable=capturable, decoupled_weight_decay=decoupled_weight_decay, differentiable=differentiable)  # fmt: skip

    def _start(self, p: Tensor, group: Group) -> dict[str, Any]:
        return _moments(p)

    def _flags(self, group: Group) -> tuple[bool, ...]:
        return *_flags(group), bool(group["decoupled_weight_decay"])

    @staticmethod
    def _formula(steps: Any, *options: Any) -> tuple[Any, ...]:
        lr, beta1, beta2, eps, weight_decay = options
        correction = 1 - beta2**steps
        longest = 2 / (1 - beta2) - 1
        known = longest - 2 * steps * beta2**steps / correction  # how many steps the second moment is worth
        enough = known > 5
        rectified: Any = 0.0
        plain: Any = 1.0
        if isinstance(enough, Expr):
            rectified, plain = scalar.where(enough, _rectified(known, longest, correction), 0.0), scalar.where(enough, 0.0, 1.0)
        elif enough:
            rectified, plain = _rectified(known, longest, correction), 0.0
        shrink = 1 - lr * weight_decay
        return lr / (1 - beta1**steps), rectified, plain, eps, weight_decay, shrink, 1 - beta1, beta2, 1 - beta2


def _rectified(known: Any, longest: Any, correction: Any) -> Any:
    return ((known - 4) * (known - 2) * longest / ((longest - 4) * (longest - 2) * known) * correction) ** 0.5


class ASGD(RuleOptimizer):
    """Gradient descent with falling rates, and beside it the mean of the parameters from step `t0` on.

    With `g = grad + weight_decay * p`: `p = p * (1 - lambd * eta) - eta * g`, `ax += mu * (p - ax)`, then for the next step
    `eta = lr / (1 + lambd * lr * step) ** alpha` and `mu = 1 / max(1, step - t0)` (Polyak and Juditsky, Acceleration of stochastic
    approximation by averaging, 1992; the rates are those of Bottou, Stochastic gradient descent tricks, 2012, section 5). The first `eta` is
    `lr`. State: `step`, `eta`, `mu`, `ax`.

    Raises ValueError for a negative learning rate or weight decay.

    >>> import jitgrad as torch
    >>> w = torch.tensor([1.0], requires_grad=True)
    >>> optimizer = torch.optim.ASGD([w], lr=0.25, lambd=0.0)
    >>> (w * w).sum().backward(); optimizer.step()
    >>> w.tolist(), optimizer.state[w]["ax"].tolist()
    ([0.5], [0.5])
    """

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
        eta, mu, lr = state["eta"].array.item(), state["mu"].array.item(), float(group["lr"])
        _put(state["eta"], lr / (1 + group["lambd"] * lr * steps) ** group["alpha"])
        _put(state["mu"], 1 / max(1, steps - group["t0"]))
        numbers = eta, 1 - group["lambd"] * eta, mu, group["weight_decay"]
        return rules.asgd, (*_flags(group), mu != 1), ("ax",), numbers


class Rprop(RuleOptimizer):
    """Steps by the sign of the gradient alone, each element with a size of its own.

    While `grad * prev > 0`, `step_size` is multiplied by `etas[1]`; where it is negative, by `etas[0]`, and the gradient counts as zero; within
    `step_sizes` always. Then `p -= sign(grad) * step_size`, and `prev = grad` (Riedmiller and Braun, A direct adaptive method for faster
    backpropagation learning, 1993, section 3; without the step back). The first size is `lr`. State: `step`, `prev`, `step_size`.

    Raises ValueError for a negative learning rate or etas that are not on both sides of 1.

    >>> import jitgrad as torch
    >>> w = torch.tensor([1.0], requires_grad=True)
    >>> optimizer = torch.optim.Rprop([w], lr=0.25)
    >>> (w * w).sum().backward(); optimizer.step()
    >>> w.tolist()
    [0.75]
    """

    _rule, _states = rules.rprop, ("prev", "step_size")
    _options = "etas", "step_sizes"

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

    def _flags(self, group: Group) -> tuple[bool, ...]:
        return (bool(group["maximize"]),)

    @staticmethod
    def _formula(steps: Any, *options: Any) -> tuple[Any, ...]:
        return options
