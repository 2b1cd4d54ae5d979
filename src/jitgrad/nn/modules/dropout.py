# ruff: noqa: D102  (forward and extra_repr are described by their base)
"""Noise that keeps a network from relying on single features."""

from __future__ import annotations

from ..._tensor import Tensor
from .. import functional as F
from .module import Module

__all__ = ["Dropout"]


class Dropout(Module):
    """In training, each element is set to 0 with probability `p`, the others are divided by `1 - p`.

    Raises ValueError for a `p` that is no probability.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.Dropout(0.5).eval()(torch.ones(3)).tolist()
    [1.0, 1.0, 1.0]
    """

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"
