"""The update rules of the optimizers, as mathematics: what one element of a parameter and of the state becomes.

A rule is a function over scalars. Its first arguments are the arrays it works on (the parameter, its gradient, the state), then
come the numbers that may change from step to step, then, by keyword, the flags that choose between forms of the rule. It returns
the new values of all arrays but the gradient, in the order of the arguments. Each combination of flags in use becomes one kernel
per dtype; the same expressions are what the compiler fuses and what the tests evaluate with NumPy.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from .._expr import Expr, trace
from .._expr import scalar as s
from .._expr.interpret import evaluate
from .._kernels.registry import Kernel
from .._kernels.updates import update_kernel

GRADIENT = "g"


class Rule:
    """An update rule and its kernels: `rule[flags]` is the number of the kernel in `Meta.k`.

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
        self._kernels: dict[tuple[bool, ...], Kernel] = {}

    def __repr__(self) -> str:
        return f"<rule {self.name}({', '.join((*self.arrays, *self.params))})>"

    def __getitem__(self, flags: tuple[bool, ...]) -> int:
        kernel = self._kernels.get(flags)
        return (self.kernel(flags) if kernel is None else kernel).index

    def kernel(self, flags: tuple[bool, ...]) -> Kernel:
        """The kernel for a combination of flags, in the order of the function's keywords."""
        kernel = self._kernels.get(flags)
        if kernel is None:
            words = [self.name, *(name for name, on in zip(self.flags, flags, strict=True) if on)]
            fresh = update_kernel("_".join(words), self.outputs(flags), self.arrays, self.written, self.params)
            kernel = self._kernels.setdefault(flags, fresh)
        return kernel

    def outputs(self, flags: tuple[bool, ...]) -> tuple[Expr, ...]:
        """The rule as expressions over `arrays` and `params`."""
        return trace(self.function, self.arrays, self.params, **dict(zip(self.flags, flags, strict=True)))

    def evaluate(self, flags: tuple[bool, ...], arrays: Sequence[Any], numbers: Sequence[float]) -> tuple[Any, ...]:
        """The new values of the arrays `written`, by interpretation: any dtype and strides, nothing changed in place."""
        named = dict(zip((*self.arrays, *self.params), (*arrays, *numbers), strict=True))
        return evaluate(self.outputs(flags), named, arrays[0].dtype)


def rule(states: int) -> Callable[[Callable[..., Any]], Rule]:
    """Declare an update rule with so many arrays of state."""
    return lambda function: Rule(function, states)


def _direction(p: Any, g: Any, weight_decay: Any, maximize: bool, decay: bool) -> Any:
    """The gradient as it is used: turned round, and with the pull of the weights towards zero."""
    if maximize:
        g = -g
    return g + weight_decay * p if decay else g


@rule(states=0)
def sgd(p: Any, g: Any, lr: Any, weight_decay: Any, *, maximize: bool, decay: bool) -> Any:
    """Plain gradient descent."""
    return p - lr * _direction(p, g, weight_decay, maximize, decay)


@rule(states=1)
def sgd_momentum(
    p: Any, g: Any, momentum_buffer: Any, lr: Any, weight_decay: Any, momentum: Any, share: Any,
    *, maximize: bool, decay: bool, nesterov: bool,
) -> Any:  # fmt: skip
    """Gradient descent with momentum; `share` of the gradient enters the buffer (1 - dampening; all of the first one)."""
    g = _direction(p, g, weight_decay, maximize, decay)
    buffer = momentum * momentum_buffer + share * g
    return p - lr * (g + momentum * buffer if nesterov else buffer), buffer


@rule(states=2)
def adam(
    p: Any, g: Any, exp_avg: Any, exp_avg_sq: Any, lr: Any, eps: Any, weight_decay: Any, rest1: Any, beta2: Any, rest2: Any,
    root: Any, *, maximize: bool, decay: bool,
) -> Any:  # fmt: skip
    """Adam. `rest1` and `rest2` are 1 - beta (taken in double precision); `lr` is divided by the correction of the first
    moment, `root` is the root of that of the second."""
    g = _direction(p, g, weight_decay, maximize, decay)
    mean = exp_avg + rest1 * (g - exp_avg)
    square = beta2 * exp_avg_sq + rest2 * (g * g)
    return p - lr * mean / (s.sqrt(square) / root + eps), mean, square


@rule(states=3)
def amsgrad(
    p: Any, g: Any, exp_avg: Any, exp_avg_sq: Any, max_exp_avg_sq: Any, lr: Any, eps: Any, weight_decay: Any, rest1: Any,
    beta2: Any, rest2: Any, root: Any, *, maximize: bool, decay: bool,
) -> Any:  # fmt: skip
    """Adam with the largest second moment so far."""
    g = _direction(p, g, weight_decay, maximize, decay)
    mean = exp_avg + rest1 * (g - exp_avg)
    square = beta2 * exp_avg_sq + rest2 * (g * g)
    largest = s.maximum(max_exp_avg_sq, square)
    return p - lr * mean / (s.sqrt(largest) / root + eps), mean, square, largest


@rule(states=2)
def adamw(
    p: Any, g: Any, exp_avg: Any, exp_avg_sq: Any, lr: Any, eps: Any, shrink: Any, rest1: Any, beta2: Any, rest2: Any,
    root: Any, *, maximize: bool,
) -> Any:  # fmt: skip
    """Adam whose weights shrink by themselves: `shrink` is 1 - lr * weight_decay."""
    return adam.function(
        p * shrink, g, exp_avg, exp_avg_sq, lr, eps, 0, rest1, beta2, rest2, root, maximize=maximize, decay=False
    )


@rule(states=3)
def adamw_amsgrad(
    p: Any, g: Any, exp_avg: Any, exp_avg_sq: Any, max_exp_avg_sq: Any, lr: Any, eps: Any, shrink: Any, rest1: Any,
    beta2: Any, rest2: Any, root: Any, *, maximize: bool,
) -> Any:  # fmt: skip
    """AdamW with the largest second moment so far."""
    return amsgrad.function(
        p * shrink, g, exp_avg, exp_avg_sq, max_exp_avg_sq, lr, eps, 0, rest1, beta2, rest2, root,
        maximize=maximize, decay=False,
    )  # fmt: skip


@rule(states=1)
def rmsprop(
    p: Any, g: Any, square_avg: Any, lr: Any, eps: Any, weight_decay: Any, alpha: Any, rest: Any,
    *, maximize: bool, decay: bool,
) -> Any:  # fmt: skip
    """RMSprop; `rest` is 1 - alpha."""
    g = _direction(p, g, weight_decay, maximize, decay)
    square = alpha * square_avg + rest * (g * g)
    return p - lr * g / (s.sqrt(square) + eps), square


@rule(states=2)
def rmsprop_momentum(
    p: Any, g: Any, square_avg: Any, momentum_buffer: Any, lr: Any, eps: Any, weight_decay: Any, alpha: Any, rest: Any,
    momentum: Any, *, maximize: bool, decay: bool,
) -> Any:  # fmt: skip
    """RMSprop with momentum."""
    g = _direction(p, g, weight_decay, maximize, decay)
    square = alpha * square_avg + rest * (g * g)
    buffer = momentum * momentum_buffer + g / (s.sqrt(square) + eps)
    return p - lr * buffer, square, buffer


@rule(states=2)
def rmsprop_centered(
    p: Any, g: Any, square_avg: Any, grad_avg: Any, lr: Any, eps: Any, weight_decay: Any, alpha: Any, rest: Any,
    *, maximize: bool, decay: bool,
) -> Any:  # fmt: skip
    """RMSprop by the variance of the gradient instead of its second moment."""
    g = _direction(p, g, weight_decay, maximize, decay)
    square = alpha * square_avg + rest * (g * g)
    mean = grad_avg + rest * (g - grad_avg)
    return p - lr * g / (s.sqrt(square - mean * mean) + eps), square, mean


@rule(states=3)
def rmsprop_centered_momentum(
    p: Any, g: Any, square_avg: Any, grad_avg: Any, momentum_buffer: Any, lr: Any, eps: Any, weight_decay: Any, alpha: Any,
    rest: Any, momentum: Any, *, maximize: bool, decay: bool,
) -> Any:  # fmt: skip
    """RMSprop by the variance of the gradient, with momentum."""
    g = _direction(p, g, weight_decay, maximize, decay)
    square = alpha * square_avg + rest * (g * g)
    mean = grad_avg + rest * (g - grad_avg)
    buffer = momentum * momentum_buffer + g / (s.sqrt(square - mean * mean) + eps)
    return p - lr * buffer, square, mean, buffer


@rule(states=1)
def adagrad(
    p: Any, g: Any, sum: Any, lr: Any, eps: Any, weight_decay: Any, *, maximize: bool, decay: bool
) -> Any:
    """Adagrad: the steps shrink with the sum of all squared gradients."""
    g = _direction(p, g, weight_decay, maximize, decay)
    total = sum + g * g
    return p - lr * g / (s.sqrt(total) + eps), total
