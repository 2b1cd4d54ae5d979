# ruff: noqa: D102  (forward and extra_repr are described by their base)
"""Recurrent cells: one step of a recurrent layer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from ..._core.dtypes import dtype as DType
from ..._tensor import Tensor
from ..._tensor.creation import empty, zeros
from .. import functional as F, init
from ..parameter import Parameter
from .module import Module

__all__ = ["GRUCell", "LSTMCell", "RNNCell"]


# ---- one step; gates stand below one another in the weights
def simple_step(x: Tensor, h: Tensor, weights: Sequence[Any], relu: bool) -> Tensor:
    w_ih, w_hh, b_ih, b_hh = weights
    total: Tensor = F.linear(x, w_ih, b_ih) + F.linear(h, w_hh, b_hh)
    result: Tensor = total.relu() if relu else total.tanh()
    return result


def lstm_step(x: Tensor, h: Tensor, c: Tensor, weights: Sequence[Any], projection: Any = None) -> tuple[Tensor, Tensor]:
    w_ih, w_hh, b_ih, b_hh = weights
    into, forget, new, out = (F.linear(x, w_ih, b_ih) + F.linear(h, w_hh, b_hh)).chunk(4, -1)
    c = forget.sigmoid() * c + into.sigmoid() * new.tanh()
    h = out.sigmoid() * c.tanh()
    return h if projection is None else F.linear(h, projection), c


def gru_step(x: Tensor, h: Tensor, weights: Sequence[Any]) -> Tensor:
    w_ih, w_hh, b_ih, b_hh = weights
    reset_x, update_x, new_x = F.linear(x, w_ih, b_ih).chunk(3, -1)
    reset_h, update_h, new_h = F.linear(h, w_hh, b_hh).chunk(3, -1)
    new = (new_x + (reset_x + reset_h).sigmoid() * new_h).tanh()
    update = (update_x + update_h).sigmoid()
    result: Tensor = (1 - update) * new + update * h
    return result


class _Cell(Module):
    """Weights of one step; all are drawn from U(-1/sqrt(hidden_size), 1/sqrt(hidden_size))."""

    _gates: ClassVar[int]
    weight_ih: Parameter
    weight_hh: Parameter
    bias_ih: Parameter | None
    bias_hh: Parameter | None

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: DType | None = None) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = self._gates * hidden_size
        for name, shape in (("weight_ih", (rows, input_size)), ("weight_hh", (rows, hidden_size)), ("bias_ih", (rows,)), ("bias_hh", (rows,))):
            wanted = bias or name.startswith("weight")
            self.register_parameter(name, Parameter(empty(shape, device=device, dtype=dtype)) if wanted else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights afresh."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")

    def _weights(self) -> tuple[Any, ...]:
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def _batched(self, input: Tensor, *states: Tensor | None) -> tuple[bool, Tensor, list[Tensor]]:
        """Whether there is one example only, and everything with an axis for examples. Zeros stand for states that are left out."""
        name = self._get_name()
        if input.dim() not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        for state in states:
            if state is not None and state.dim() not in (1, 2):
                raise ValueError(f"{name}: Expected hidden to be 1D or 2D, got {state.dim()}D instead")
        alone = input.dim() == 1
        x = input.unsqueeze(0) if alone else input
        if x.size(1) != self.input_size:
            raise RuntimeError(f"input has inconsistent input_size: got {x.size(1)} expected {self.input_size}")
        found = []
        for k, state in enumerate(states):
            h = zeros(x.size(0), self.hidden_size, dtype=x.dtype) if state is None else state.unsqueeze(0) if alone else state
            if h.size(0) != x.size(0):
                raise RuntimeError(f"Input batch size {x.size(0)} doesn't match hidden{k} batch size {h.size(0)}")
            if h.size(1) != self.hidden_size:
                raise RuntimeError(f"hidden{k} has inconsistent hidden_size: got {h.size(1)}, expected {self.hidden_size}")
            found.append(h)
        return alone, x, found


class RNNCell(_Cell):
    """`tanh(W_ih x + b_ih + W_hh h + b_hh)`, or relu instead of tanh: the next hidden state.

    Shapes: input (N, input_size) or (input_size), hidden (N, hidden_size) or (hidden_size), zeros if left out; output as hidden.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.RNNCell(2, 3)(torch.ones(5, 2)).shape
    torch.Size([5, 3])
    """

    _gates = 1

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", device: Any = None, dtype: DType | None = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        alone, x, (h,) = self._batched(input, hx)
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        found = simple_step(x, h, self._weights(), self.nonlinearity == "relu")
        return found.squeeze(0) if alone else found

    def extra_repr(self) -> str:
        return super().extra_repr() + (f", nonlinearity={self.nonlinearity}" if self.nonlinearity != "tanh" else "")


class LSTMCell(_Cell):
    """One step of a long short-term memory: the next hidden state and the next cell state.

    Shapes: input (N, input_size) or (input_size), each state (N, hidden_size) or (hidden_size), zeros if left out.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> h, c = nn.LSTMCell(2, 3)(torch.ones(5, 2))
    >>> h.shape, c.shape
    (torch.Size([5, 3]), torch.Size([5, 3]))
    """

    _gates = 4

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        alone, x, (h, c) = self._batched(input, *((None, None) if hx is None else hx))
        h, c = lstm_step(x, h, c, self._weights())
        return (h.squeeze(0), c.squeeze(0)) if alone else (h, c)


class GRUCell(_Cell):
    """One step of a gated recurrent unit: the next hidden state.

    Shapes: input (N, input_size) or (input_size), hidden (N, hidden_size) or (hidden_size), zeros if left out; output as hidden.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.GRUCell(2, 3)(torch.ones(2)).shape
    torch.Size([3])
    """

    _gates = 3

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        alone, x, (h,) = self._batched(input, hx)
        found = gru_step(x, h, self._weights())
        return found.squeeze(0) if alone else found
