# ruff: noqa: D102  (forward and extra_repr are described by their base)
"""Affine maps."""

from __future__ import annotations

import math
from typing import Any

from ..._core.dtypes import dtype as DType
from ..._tensor import Tensor
from ..._tensor.creation import empty
from .. import functional as F, init
from ..parameter import Parameter
from .module import Module

__all__ = ["Bilinear", "Identity", "Linear"]


class Identity(Module):
    """Gives back what it is given; takes any arguments and ignores them.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.Identity(54, unused=True)(torch.ones(2)).shape
    torch.Size([2])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    """`x @ weight.T + bias`.

    Shapes: input (*, in_features), output (*, out_features); weight (out_features, in_features), bias (out_features).
    Both are drawn from U(-1/sqrt(in_features), 1/sqrt(in_features)).

    Raises RuntimeError when the input has another number of features or another dtype than the weight.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.Linear(3, 2)(torch.ones(5, 3)).shape
    torch.Size([5, 2])
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: DType | None = None
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(empty((out_features, in_features), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias afresh."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Bilinear(Module):
    """`x1 @ weight[k] @ x2 + bias[k]` for each feature k of the output.

    Shapes: inputs (*, in1_features) and (*, in2_features), output (*, out_features); weight (out_features, in1_features,
    in2_features), bias (out_features). Both are drawn from U(-1/sqrt(in1_features), 1/sqrt(in1_features)).

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.Bilinear(3, 4, 2)(torch.ones(5, 3), torch.ones(5, 4)).shape
    torch.Size([5, 2])
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, device: Any = None,
        dtype: DType | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got (in1_features={in1_features})")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = Parameter(empty((out_features, in1_features, in2_features), device=device, dtype=dtype))
        self.register_parameter("bias", Parameter(empty(out_features, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias afresh."""
        bound = 1 / math.sqrt(self.in1_features)
        for part in self.parameters():
            init.uniform_(part, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )
