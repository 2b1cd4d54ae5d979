# ruff: noqa: D102  (forward and extra_repr are described by their base)
"""Normalisation over the features of each example."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._core.dtypes import dtype as DType
from ..._tensor import Tensor
from ..._tensor.creation import empty
from .. import functional as F, init
from ..parameter import Parameter
from .module import Module

__all__ = ["GroupNorm", "LayerNorm", "RMSNorm"]


class LayerNorm(Module):
    """Mean 0 and variance 1 over the last dimensions, then a trained scale and shift.

    Shapes: input and output (*, *normalized_shape); weight and bias `normalized_shape`, ones and zeros at first; none
    with `elementwise_affine=False`. RuntimeError for an input that doesn't end in `normalized_shape`.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.LayerNorm(4)(torch.ones(2, 4)).tolist()
    [[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
    """

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        for name, wanted in (("weight", elementwise_affine), ("bias", elementwise_affine and bias)):
            fresh = Parameter(empty(self.normalized_shape, device=device, dtype=dtype)) if wanted else None
            self.register_parameter(name, fresh)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Back to a scale of one and no shift."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """The input over the square root of the mean of its squares over the last dimensions, then a trained scale.

    Shapes: input and output (*, *normalized_shape); weight `normalized_shape`, ones at first; none with
    `elementwise_affine=False`. `eps` is the dtype's own unless given.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.RMSNorm(2, eps=0.0)(torch.tensor([-3.0, 3.0])).tolist()
    [-1.0, 1.0]
    """

    weight: Parameter | None

    def __init__(
        self, normalized_shape: int | Sequence[int], eps: float | None = None, elementwise_affine: bool = True, device: Any = None,
        dtype: DType | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        fresh = Parameter(empty(self.normalized_shape, device=device, dtype=dtype)) if elementwise_affine else None
        self.register_parameter("weight", fresh)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Back to a scale of one."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, input: Tensor) -> Tensor:
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Module):
    """Mean 0 and variance 1 over each group of channels (axis 1) of each example, then a trained scale and shift per channel.

    Shapes: input and output (N, num_channels, *). ValueError unless `num_groups` divides `num_channels`.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.GroupNorm(2, 4)(torch.ones(3, 4, 5)).shape
    torch.Size([3, 4, 5])
    """

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, device: Any = None,
        dtype: DType | None = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(name, Parameter(empty(num_channels, device=device, dtype=dtype)) if wanted else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Back to a scale of one and no shift."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, bias={self.bias is not None}"
