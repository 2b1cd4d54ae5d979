"""Filling tensors with the values that training starts from: in place, outside the graph; the tensor is returned."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .._tensor import Tensor, _functions as T, creation
from .._tensor.creation import empty, empty_like, from_numpy
from .._tensor.random import randperm
from ..autograd import no_grad

__all__ = [
    "calculate_gain",
    "constant",
    "constant_",
    "dirac",
    "dirac_",
    "eye",
    "eye_",
    "kaiming_normal",
    "kaiming_normal_",
    "kaiming_uniform",
    "kaiming_uniform_",
    "normal",
    "normal_",
    "ones_",
    "orthogonal",
    "orthogonal_",
    "sparse",
    "sparse_",
    "trunc_normal_",
    "uniform",
    "uniform_",
    "xavier_normal",
    "xavier_normal_",
    "xavier_uniform",
    "xavier_uniform_",
    "zeros_",
]

_CONVOLUTIONS = (f"conv{kind}{n}d" for kind in ("", "_transpose") for n in (1, 2, 3))
_GAIN_ONE = frozenset(("linear", "sigmoid", *_CONVOLUTIONS))


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which weights before `nonlinearity` should be wider; `param` is the slope of a leaky ReLU.

    Raises ValueError for an unknown nonlinearity or a slope that is no number.

    >>> from jitgrad import nn
    >>> nn.init.calculate_gain("relu") ** 2
    2.0000000000000004
    """
    if nonlinearity in _GAIN_ONE:
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "selu":
        return 3.0 / 4
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, int | float):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Values from U(a, b)."""
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Values from N(mean, std ** 2)."""
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Tensor:
    """Values from N(mean, std ** 2), those outside [a, b] drawn again until they are within."""
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. "
            "The distribution of values may be incorrect.",
            stacklevel=2,
        )
    within = _normal_cdf((b - mean) / std) - _normal_cdf((a - mean) / std)
    draw = _from_normal if within > 0.3 else _from_uniform  # each keeps at least about a third of what it draws
    with no_grad():
        values, wrong = draw(tensor, mean, std, a, b, generator)
        while wrong.any():
            again, still_wrong = draw(tensor, mean, std, a, b, generator)
            values = T.where(wrong, again, values)
            wrong = wrong & still_wrong
        tensor.copy_(values)
    return tensor


Draws = tuple[Tensor, Tensor]  # values, and a mask of those to be drawn again


def _normal_cdf(x: float) -> float:
    return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0


def _from_normal(like: Tensor, mean: float, std: float, a: float, b: float, generator: Any) -> Draws:
    values = empty_like(like).normal_(mean, std, generator=generator)
    return values, (values < a) | (values > b)


def _from_uniform(like: Tensor, mean: float, std: float, a: float, b: float, generator: Any) -> Draws:
    """Draws from [a, b], kept with a probability proportional to the normal density; for narrow intervals and tails."""
    values = empty_like(like).uniform_(a, b, generator=generator)
    mode = max(a, min(mean, b))
    keep = (((mode - mean) / std) ** 2 - ((values - mean) / std) ** 2) * 0.5
    return values, empty_like(like).uniform_(generator=generator).log() > keep


def constant_(tensor: Tensor, val: float) -> Tensor:
    """The same value everywhere."""
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Zeros."""
    with no_grad():
        return tensor.zero_()


def eye_(tensor: Tensor) -> Tensor:
    """Ones on the diagonal of a matrix (n, m), zeros elsewhere. Raises ValueError for another number of dimensions."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with no_grad():
        tensor.copy_(creation.eye(*tensor.shape))
    return tensor


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Values from U(-a, a), a = gain * sqrt(6 / (fan_in + fan_out)): variances keep their size both ways."""
    bound = gain * math.sqrt(6.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Values from N(0, s ** 2), s = gain * sqrt(2 / (fan_in + fan_out))."""
    std = gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return normal_(tensor, 0.0, std, generator)


def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Values from U(-b, b), b = gain * sqrt(3 / fan): variances keep their size through the nonlinearity.

    `a` is the slope of a leaky ReLU, `mode` says whether it is the forward (fan_in) or the backward that is kept.
    """
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Values from N(0, s ** 2), s = gain / sqrt(fan); see `kaiming_uniform_`."""
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """A random matrix with orthonormal rows or columns, whichever are fewer, times `gain`.

    More than two dimensions count as a matrix of the first against all others; ValueError for fewer.
    """
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.shape[0]
    columns = tensor.numel() // rows
    with no_grad():
        flat = empty((rows, columns), dtype=tensor.dtype).normal_(0, 1, generator=generator)
        draws = flat.numpy()
        q, r = np.linalg.qr(draws if rows >= columns else draws.T)
        q = q * np.sign(np.diagonal(r))  # makes the distribution uniform
        matrix = np.ascontiguousarray(q if rows >= columns else q.T)
        tensor.copy_(from_numpy(matrix).view(tensor.shape)).mul_(gain)
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Weights of a convolution that hands on as many channels as it can: 1 in the middle of the window of channel k to channel k.

    tensor: (out, in, *window) with a window of 1, 2 or 3 axes; each of the `groups` of outputs begins again with the first channel.
    ValueError for another rank, or where the groups don't divide the outputs.
    """
    if tensor.ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.shape[0] % groups:
        raise ValueError("dim 0 must be divisible by groups")
    outputs, inputs, *window = tensor.shape
    each = outputs // groups
    middle = tuple([n // 2 for n in window])
    with no_grad():
        tensor.zero_()
        for start in range(0, outputs, each):
            for channel in range(min(each, inputs)):
                tensor[(start + channel, channel, *middle)] = 1
    return tensor


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Values of a matrix from N(0, std ** 2), a share `sparsity` of each column, rounded up, set to zero. ValueError for another rank."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            tensor[randperm(rows, generator=generator)[:zeros], column] = 0
    return tensor


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan = _calculate_fan_in_and_fan_out(tensor)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """How many inputs an output has, and how many outputs an input has, for weights (out, in, *window)."""
    if tensor.ndim < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    outputs, inputs, *window = tensor.shape
    size = math.prod(window)
    return inputs * size, outputs * size


def _former(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A function under its old name, without the underscore; warns."""
    new = function.__name__
    old = new.removesuffix("_")

    @functools.wraps(function)
    def called(*args: Any, **named: Any) -> Tensor:
        warnings.warn(f"`nn.init.{old}` is now deprecated in favor of `nn.init.{new}`.", FutureWarning, stacklevel=2)
        return function(*args, **named)

    called.__name__ = called.__qualname__ = old
    called.__doc__ = f"The old name of `{new}`; deprecated."
    return called


uniform, normal, constant = _former(uniform_), _former(normal_), _former(constant_)
eye, dirac, sparse, orthogonal = _former(eye_), _former(dirac_), _former(sparse_), _former(orthogonal_)
xavier_uniform, xavier_normal = _former(xavier_uniform_), _former(xavier_normal_)
kaiming_uniform, kaiming_normal = _former(kaiming_uniform_), _former(kaiming_normal_)
