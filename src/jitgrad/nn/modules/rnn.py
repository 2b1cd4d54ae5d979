# ruff: noqa: D102  (forward and extra_repr are described by their base)
"""Recurrent layers, made of recorded ops step by step."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any, ClassVar

from ..._core.dtypes import dtype as DType
from ..._tensor import Tensor, _functions as T
from ..._tensor.creation import empty, zeros
from .. import functional as F, init
from ..parameter import Parameter
from .cells import GRUCell, LSTMCell, RNNCell, gru_step, lstm_step, simple_step
from .module import Module

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNCell"]


class _Layers(Module):
    """Layers of cells over a sequence, in one direction or both."""

    _gates: ClassVar[int]
    _takes_projection: ClassVar[bool] = False

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._check_settings()
        for layer in range(num_layers):
            for end in self._ends():
                for name, shape in self._shapes(layer):
                    self.register_parameter(f"{name}_l{layer}{end}", Parameter(empty(shape, device=device, dtype=dtype)))
        self.reset_parameters()

    def _check_settings(self) -> None:
        for name, kind in (("input_size", int), ("hidden_size", int), ("bias", bool), ("batch_first", bool)):
            if not isinstance(self.__dict__[name], kind):
                raise TypeError(f"{name} should be of type {kind.__name__}, got: {type(self.__dict__[name]).__name__}")
        if not 0 <= self.dropout <= 1:
            raise ValueError("dropout should be a number in range [0, 1] representing the probability of an element being zeroed")
        if self.dropout > 0 and self.num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers greater than 1, but got "
                f"dropout={self.dropout} and num_layers={self.num_layers}",
                stacklevel=4,
            )
        for name in ("input_size", "hidden_size", "num_layers"):
            if self.__dict__[name] <= 0:
                raise ValueError(f"{name} must be greater than zero")
        if self.proj_size and not self._takes_projection:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if self.proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if self.proj_size >= self.hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")

    def _ends(self) -> tuple[str, ...]:
        return ("", "_reverse") if self.bidirectional else ("",)

    def _width(self) -> int:
        return self.proj_size or self.hidden_size

    def _shapes(self, layer: int) -> list[tuple[str, tuple[int, ...]]]:
        rows, inputs = self._gates * self.hidden_size, self.input_size if layer == 0 else self._width() * len(self._ends())
        found: list[tuple[str, tuple[int, ...]]] = [("weight_ih", (rows, inputs)), ("weight_hh", (rows, self._width()))]
        if self.bias:
            found += [("bias_ih", (rows,)), ("bias_hh", (rows,))]
        return [*found, ("weight_hr", (self.proj_size, self.hidden_size))] if self.proj_size else found

    def reset_parameters(self) -> None:
        """Draw all weights afresh from U(-1/sqrt(hidden_size), 1/sqrt(hidden_size))."""
        bound = 1 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def flatten_parameters(self) -> None:
        """Nothing to do: a matter of other devices."""

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The weights of each layer and direction."""
        found = []
        for layer in range(self.num_layers):
            for end in self._ends():
                own = [self._parameters[f"{name}_l{layer}{end}"] for name, _ in self._shapes(layer)]
                found.append([weight for weight in own if weight is not None])
        return found

    # ---- running
    def _step(self, x: Tensor, states: tuple[Tensor, ...], weights: Sequence[Any], projection: Any) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _run(self, input: Tensor, states: tuple[Tensor, ...] | None, widths: Sequence[int]) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Outputs of the last layer, and the final states of all."""
        if input.dim() not in (2, 3):
            raise ValueError(f"{self._get_name()}: Expected input to be 2D or 3D, got {input.dim()}D tensor instead")
        alone = input.dim() == 2
        x = input.unsqueeze(1) if alone else input.transpose(0, 1) if self.batch_first else input
        self._check_input(input, x, states)
        rows = self.num_layers * len(self._ends())
        if states is None:
            states = tuple([zeros(rows, x.size(1), width, dtype=x.dtype) for width in widths])
        else:
            states = tuple([state.unsqueeze(1) for state in states]) if alone else states
            for k, (state, width) in enumerate(zip(states, widths, strict=True)):
                wanted = (rows, x.size(1), width)
                if tuple(state.shape) != wanted:
                    what = "hidden size" if len(widths) == 1 else f"hidden[{k}] size"
                    raise RuntimeError(f"Expected {what} {wanted}, got {list(state.shape)}")
        x, finals = self._run_layers(x, states)
        if alone:
            return x.squeeze(1), tuple([final.squeeze(1) for final in finals])
        return (x.transpose(0, 1) if self.batch_first else x), finals

    def _check_input(self, input: Tensor, x: Tensor, states: tuple[Tensor, ...] | None) -> None:
        alone = input.dim() == 2
        own = self._parameters["weight_ih_l0"]
        if own is not None and own.dtype is not x.dtype:
            raise ValueError(
                f"RNN input dtype ({x.dtype}) does not match weight dtype ({own.dtype}). Convert input: input.to({own.dtype}), or convert "
                f"model: model.to({x.dtype})"
            )
        if states is not None and any(state.dim() != input.dim() for state in states):
            found = [f"{state.dim()}-D" for state in states]
            given = f"{found[0]} tensor" if len(found) == 1 else f"({', '.join(found)}) tensors"
            raise RuntimeError(
                f"For {'un' if alone else ''}batched {input.dim()}-D input, {'hx' if len(found) == 1 else 'hx and cx'} should also be "
                f"{input.dim()}-D but got {given}"
            )
        if x.size(-1) != self.input_size:
            raise RuntimeError(f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {x.size(-1)}")
        if x.size(0) == 0:
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")

    def _run_layers(self, x: Tensor, states: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        finals: list[tuple[Tensor, ...]] = []
        for layer in range(self.num_layers):
            outputs = []
            for end in self._ends():
                own = self._parameters
                weights = [own.get(f"{name}_l{layer}{end}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
                projection = own.get(f"weight_hr_l{layer}{end}")
                state = tuple([one[len(finals)] for one in states])
                steps: list[Tensor] = []
                for step in x.unbind(0)[:: -1 if end else 1]:
                    state = self._step(step, state, weights, projection)
                    steps.append(state[0])
                outputs.append(T.stack(steps[:: -1 if end else 1]))
                finals.append(state)
            x = T.cat(outputs, -1) if len(outputs) > 1 else outputs[0]
            if self.dropout and layer < self.num_layers - 1:
                x = F.dropout(x, self.dropout, self.training)
        return x, tuple([T.stack(list(one)) for one in zip(*finals, strict=True)])

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        for name, usual in (("proj_size", 0), ("num_layers", 1), ("bias", True), ("batch_first", False), ("dropout", 0.0), ("bidirectional", False)):
            if self.__dict__[name] != usual:
                text += f", {name}={self.__dict__[name]}"
        return text


class RNN(_Layers):
    """Layers of `RNNCell` over a sequence; gives the outputs of the last layer and the final hidden states of all.

    Shapes: input (L, N, input_size), (N, L, input_size) with `batch_first`, or (L, input_size); hidden (layers * directions, N,
    hidden_size), zeros if left out; output (L, N, directions * hidden_size). `dropout` acts between layers, in training.
    RuntimeError for shapes that don't fit, ValueError for settings that don't.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> out, h = nn.RNN(2, 3, num_layers=2)(torch.ones(5, 1, 2))
    >>> out.shape, h.shape
    (torch.Size([5, 1, 3]), torch.Size([2, 1, 3]))
    """

    _gates = 1

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh", bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, device: Any = None, dtype: DType | None = None, proj_size: int = 0,
    ) -> None:  # fmt: skip
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size, device, dtype)
        self.nonlinearity = nonlinearity

    def _step(self, x: Tensor, states: tuple[Tensor, ...], weights: Sequence[Any], projection: Any) -> tuple[Tensor, ...]:
        return (simple_step(x, states[0], weights, self.nonlinearity == "relu"),)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> tuple[Tensor, Tensor]:
        out, (h,) = self._run(input, None if hx is None else (hx,), (self.hidden_size,))
        return out, h


class LSTM(_Layers):
    """Layers of `LSTMCell` over a sequence; gives the outputs of the last layer and the final `(hidden, cell)` states of all.

    Shapes as for `RNN`; with `proj_size` hidden states and outputs are projected to that size.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> out, (h, c) = nn.LSTM(2, 3, bidirectional=True)(torch.ones(5, 1, 2))
    >>> out.shape, h.shape, c.shape
    (torch.Size([5, 1, 6]), torch.Size([2, 1, 3]), torch.Size([2, 1, 3]))
    """

    _gates = 4
    _takes_projection = True

    def _step(self, x: Tensor, states: tuple[Tensor, ...], weights: Sequence[Any], projection: Any) -> tuple[Tensor, ...]:
        return lstm_step(x, states[0], states[1], weights, projection)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        out, (h, c) = self._run(input, hx, (self._width(), self.hidden_size))
        return out, (h, c)


class GRU(_Layers):
    """Layers of `GRUCell` over a sequence; gives the outputs of the last layer and the final hidden states of all. Shapes as for `RNN`.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> out, h = nn.GRU(2, 3, batch_first=True)(torch.ones(1, 5, 2))
    >>> out.shape, h.shape
    (torch.Size([1, 5, 3]), torch.Size([1, 1, 3]))
    """

    _gates = 3

    def _step(self, x: Tensor, states: tuple[Tensor, ...], weights: Sequence[Any], projection: Any) -> tuple[Tensor, ...]:
        return (gru_step(x, states[0], weights),)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> tuple[Tensor, Tensor]:
        out, (h,) = self._run(input, None if hx is None else (hx,), (self.hidden_size,))
        return out, h
