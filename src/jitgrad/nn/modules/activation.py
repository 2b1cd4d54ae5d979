# ruff: noqa: D102  (forward and extra_repr are described by their base)
"""Nonlinearities."""

from __future__ import annotations

from ..._tensor import Tensor, _functions as T
from .. import functional as F
from .module import Module

__all__ = [
    "ELU",
    "GELU",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "ReLU",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "Tanh",
]


class ReLU(Module):
    """`max(x, 0)` of each element, any shape; NaN stays NaN.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.ReLU()(torch.tensor([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return T.relu_(input) if self.inplace else T.relu(input)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class LeakyReLU(Module):
    """Each element, multiplied by `negative_slope` where it is negative.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.LeakyReLU(0.5)(torch.tensor([-1.0, 2.0])).tolist()
    [-0.5, 2.0]
    """

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


class ELU(Module):
    """Each element, `alpha * (exp(x) - 1)` where it is negative.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.ELU()(torch.tensor([0.0, 2.0])).tolist()
    [0.0, 2.0]
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class GELU(Module):
    """`x * P(N(0, 1) <= x)` of each element; `approximate="tanh"` takes a cheaper curve.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.GELU()(torch.tensor([0.0, 20.0])).tolist()
    [0.0, 20.0]
    """

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class SiLU(Module):
    """`x * sigmoid(x)` of each element.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.SiLU()(torch.tensor([0.0])).tolist()
    [0.0]
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, self.inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class Sigmoid(Module):
    """`1 / (1 + exp(-x))` of each element.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.Sigmoid()(torch.tensor([0.0])).tolist()
    [0.5]
    """

    def forward(self, input: Tensor) -> Tensor:
        return T.sigmoid(input)  # type: ignore[no-any-return]  # elementwise functions take numbers too


class Tanh(Module):
    """Hyperbolic tangent of each element.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.Tanh()(torch.tensor([0.0])).tolist()
    [0.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        return T.tanh(input)  # type: ignore[no-any-return]


class Softplus(Module):
    """`log(1 + exp(beta * x)) / beta` of each element; x itself where `beta * x` is above `threshold`.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.Softplus()(torch.tensor([30.0])).tolist()
    [30.0]
    """

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class LogSigmoid(Module):
    """Logarithm of the sigmoid of each element, without overflow.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.LogSigmoid()(torch.tensor([1000.0, -1000.0])).tolist()
    [0.0, -1000.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class Softmax(Module):
    """`exp(x) / sum(exp(x))` along `dim`, without overflow.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.Softmax(dim=1)(torch.zeros(1, 4)).tolist()
    [[0.25, 0.25, 0.25, 0.25]]
    """

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim, _stacklevel=5)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class LogSoftmax(Module):
    """Logarithm of the softmax along `dim`.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.LogSoftmax(dim=0)(torch.zeros(1)).tolist()
    [0.0]
    """

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim, _stacklevel=5)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"
