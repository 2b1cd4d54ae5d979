"""The update rules of the optimizers, as mathematics: what one element of a parameter and of the state becomes.

A rule is a function over scalars. Its first arguments are the arrays it works on (the parameter, its gradient, the
state), then come the numbers that may change from step to step, then, by keyword, the flags that choose between forms
of the rule. It returns the new values of all arrays but the gradient, in the order of the arguments. Each combination
of flags in use becomes one kernel per dtype; the same expressions are what the compiler fuses and what the tests
evaluate with NumPy.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from .._expr import Expr, scalar as s, trace
from .._expr.interpret import evaluate
from .._kernels.registry import Kernel
from .._kernels.updates import update_kernel

GRADIENT = "g"
X = Any  # a scalar: an expression while a rule is traced
Step = Any  # one, or a tuple of several


class Rule:
    """An update rule and its kernels: `rule.numbers[flags]` is the number in `Meta.k` of the one for these flags.

    `arrays` and `params` name the arguments, `written` those that the outputs go to, `places` says where these stand.
    """

    def __init__(self, function: Callable[..., Any], states: int) -> None:
        parameters = inspect.signature(function).parameters.values()
        given = tuple(x.name for x in parameters if x.kind is x.POSITIONAL_OR_KEYWORD)
        self.name = function.__name__
        self.flags = tuple(x.name for x in parameters if x.kind is x.KEYWORD_ONLY)
        self.arrays, self.params = given[: 2 + states], given[2 + states :]
        self.written = tuple(name for name in self.arrays if name != GRADIENT)
        self.places = tuple(self.arrays.index(name) for name in self.written)
        self.function = function
        self.numbers = _Numbers(self)

    def __repr__(self) -> str:
        return f"<rule {self.name}({', '.join((*self.arrays, *self.params))})>"

    def kernel(self, flags: tuple[bool, ...]) -> Kernel:
        """A kernel for a combination of flags, in the order of the function's keywords."""
        words = [self.name, *(name for name, on in zip(self.flags, flags, strict=True) if on)]
        return update_kernel("_".join(words), self.outputs(flags), self.arrays, self.written, self.params)

    def outputs(self, flags: tuple[bool, ...]) -> tuple[Expr, ...]:
        """The rule as expressions over `arrays` and `params`."""
        return trace(self.function, self.arrays, self.params, **dict(zip(self.flags, flags, strict=True)))

    def evaluate(self, flags: tuple[bool, ...], arrays: Sequence[Any], numbers: Sequence[float]) -> tuple[Any, ...]:
        """New values of the arrays `written`, by interpretation: any dtype and strides, nothing changed in place."""
        named = dict(zip((*self.arrays, *self.params), (*arrays, *numbers), strict=True))
        return evaluate(self.outputs(flags), named, arrays[0].dtype)


class _Numbers(dict[tuple[bool, ...], int]):
    """The numbers of a rule's kernels, each registered when it is first asked for."""

    def __init__(self, rule: Rule) -> None:
        super().__init__()
        self._rule = rule

    def __missing__(self, flags: tuple[bool, ...]) -> int:
        return self.setdefault(flags, self._rule.kernel(flags).index)


def rule(states: int) -> Callable[[Callable[..., Any]], Rule]:
    """Declare an update rule with so many arrays of state."""
    return lambda function: Rule(function, states)


def _direction(p: X, g: X, weight_decay: X, maximize: bool, decay: bool) -> X:
    """The gradient as it is used: turned round, and with the pull of the weights towards zero."""
    if maximize:
        g = -g
    return g + weight_decay * p if decay else g


@rule(states=0)
def sgd(p: X, g: X, lr: X, weight_decay: X, *, maximize: bool, decay: bool) -> Step:
    """Plain gradient descent."""
    return p - lr * _direction(p, g, weight_decay, maximize, decay)


@rule(states=1)
def sgd_momentum(
    p: X, g: X, momentum_buffer: X, lr: X, weight_decay: X, momentum: X, share: X, *, maximize: bool, decay: bool,
    nesterov: bool,
) -> Step:  # fmt: skip
    """Gradient descent with momentum; `share` of the gradient (1 - dampening, all of the first) enters the buffer."""
    g = _direction(p, g, weight_decay, maximize, decay)
    buffer = momentum * momentum_buffer + share * g
    return p - lr * (g + momentum * buffer if nesterov else buffer), buffer


def _moments(g: X, exp_avg: X, exp_avg_sq: X, rest1: X, beta2: X, rest2: X) -> tuple[X, X]:
    """The running means of the gradient and of its square; `rest1` and `rest2` are 1 - beta."""
    return exp_avg + rest1 * (g - exp_avg), beta2 * exp_avg_sq + rest2 * (g * g)


@rule(states=2)
def adam(
    p: X, g: X, exp_avg: X, exp_avg_sq: X, lr: X, eps: X, weight_decay: X, rest1: X, beta2: X, rest2: X, *,
    maximize: bool, decay: bool,
) -> Step:  # fmt: skip
    """Adam. `rest1` and `rest2` are 1 - beta, in double precision. `lr` and `eps` come multiplied by the root of the correction of the square,
    `lr` also divided by that of the mean: lr m / (sqrt(v) / root + eps) with one division less (Kingma and Ba, 2015, end of section 2).
    """
    g = _direction(p, g, weight_decay, maximize, decay)
    mean, square = _moments(g, exp_avg, exp_avg_sq, rest1, beta2, rest2)
    return p - lr * mean / (s.sqrt(square) + eps), mean, square


@rule(states=3)
def amsgrad(
    p: X, g: X, exp_avg: X, exp_avg_sq: X, max_exp_avg_sq: X, lr: X, eps: X, weight_decay: X, rest1: X, beta2: X,
    rest2: X, *, maximize: bool, decay: bool,
) -> Step:  # fmt: skip
    """Adam with the largest second moment so far."""
    g = _direction(p, g, weight_decay, maximize, decay)
    mean, square = _moments(g, exp_avg, exp_avg_sq, rest1, beta2, rest2)
    largest = s.maximum(max_exp_avg_sq, square)
    return p - lr * mean / (s.sqrt(largest) + eps), mean, square, largest


@rule(states=2)
def adamw(
    p: X, g: X, exp_avg: X, exp_avg_sq: X, lr: X, eps: X, shrink: X, rest1: X, beta2: X, rest2: X, *,
    maximize: bool,
) -> Step:  # fmt: skip
    """Adam whose weights shrink by themselves: `shrink` is 1 - lr * weight_decay."""
    return adam.function(
        p * shrink, g, exp_avg, exp_avg_sq, lr, eps, 0, rest1, beta2, rest2, maximize=maximize, decay=False
    )


@rule(states=3)
def adamw_amsgrad(
    p: X, g: X, exp_avg: X, exp_avg_sq: X, max_exp_avg_sq: X, lr: X, eps: X, shrink: X, rest1: X, beta2: X, rest2: X,
    *, maximize: bool,
) -> Step:  # fmt: skip
    """AdamW with the largest second moment so far."""
    return amsgrad.function(
        p * shrink, g, exp_avg, exp_avg_sq, max_exp_avg_sq, lr, eps, 0, rest1, beta2, rest2,
        maximize=maximize, decay=False,
    )  # fmt: skip


@rule(states=1)
def rmsprop(
    p: X, g: X, square_avg: X, lr: X, eps: X, weight_decay: X, alpha: X, rest: X, *, maximize: bool, decay: bool,
) -> Step:  # fmt: skip
    """RMSprop; `rest` is 1 - alpha."""
    g = _direction(p, g, weight_decay, maximize, decay)
    square = alpha * square_avg + rest * (g * g)
    return p - lr * g / (s.sqrt(square) + eps), square


@rule(states=2)
def rmsprop_momentum(
    p: X, g: X, square_avg: X, momentum_buffer: X, lr: X, eps: X, weight_decay: X, alpha: X, rest: X, momentum: X, *,
    maximize: bool, decay: bool,
) -> Step:  # fmt: skip
    """RMSprop with momentum."""
    g = _direction(p, g, weight_decay, maximize, decay)
    square = alpha * square_avg + rest * (g * g)
    buffer = momentum * momentum_buffer + g / (s.sqrt(square) + eps)
    return p - lr * buffer, square, buffer


@rule(states=2)
def rmsprop_centered(
    p: X, g: X, square_avg: X, grad_avg: X, lr: X, eps: X, weight_decay: X, alpha: X, rest: X, *, maximize: bool,
    decay: bool,
) -> Step:  # fmt: skip
    """RMSprop by the variance of the gradient instead of its second moment."""
    g = _direction(p, g, weight_decay, maximize, decay)
    square = alpha * square_avg + rest * (g * g)
    mean = grad_avg + rest * (g - grad_avg)
    return p - lr * g / (s.sqrt(square - mean * mean) + eps), square, mean


@rule(states=3)
def rmsprop_centered_momentum(
    p: X, g: X, square_avg: X, grad_avg: X, momentum_buffer: X, lr: X, eps: X, weight_decay: X, alpha: X, rest: X,
    momentum: X, *, maximize: bool, decay: bool,
) -> Step:  # fmt: skip
    """RMSprop by the variance of the gradient, with momentum."""
    g = _direction(p, g, weight_decay, maximize, decay)
    square = alpha * square_avg + rest * (g * g)
    mean = grad_avg + rest * (g - grad_avg)
    buffer = momentum * momentum_buffer + g / (s.sqrt(square - mean * mean) + eps)
    return p - lr * buffer, square, mean, buffer


@rule(states=1)
def adagrad(p: X, g: X, sum: X, lr: X, eps: X, weight_decay: X, *, maximize: bool, decay: bool) -> Step:
    """Adagrad: the steps shrink with the sum of all squared gradients."""
    g = _direction(p, g, weight_decay, maximize, decay)
    total = sum + g * g
    return p - lr * g / (s.sqrt(total) + eps), total
