# ruff: noqa: D102  (forward and extra_repr are described by their base)
"""Parameters and buffers: tensors that a module takes in when they are assigned to one of its attributes."""

from __future__ import annotations

from typing import Any

from .._tensor import Tensor
from .._tensor.creation import empty

__all__ = ["Buffer", "Parameter"]


class Parameter(Tensor):
    """A tensor that counts as a parameter of the module it is assigned to.

    Args:
        data: tensor of any shape, whose memory the parameter shares; an empty tensor if left out.
        requires_grad: whether it is trained; only floating point tensors can be.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> layer = nn.Module()
    >>> layer.scale = nn.Parameter(torch.ones(2))
    >>> [name for name, _ in layer.named_parameters()]
    ['scale']
    """

    __slots__ = ()

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            data = empty(0)
        return Tensor._make_subclass(cls, data, requires_grad)  # type: ignore[no-any-return]

    def __repr__(self) -> str:  # type: ignore[override]
        return "Parameter containing:\n" + super().__repr__()

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        if id(self) in memo:
            return memo[id(self)]  # type: ignore[no-any-return]
        result = type(self)(self.data.clone(), self.requires_grad)
        memo[id(self)] = result
        return result

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        state = dict(self.__dict__) if getattr(self, "__dict__", None) else None
        return _rebuild_parameter, (self.data, self.requires_grad, state)


def _rebuild_parameter(data: Tensor, requires_grad: bool, state: dict[str, Any] | None) -> Parameter:
    """Make a parameter out of its pickled parts. Hooks aren't pickled, as in torch."""
    parameter = Parameter(data, requires_grad)
    if state:
        parameter.__dict__.update(state)
    return parameter


class Buffer(Tensor):
    """A tensor that counts as a buffer of the module it is assigned to: part of its state, but not trained.

    Args:
        data: tensor of any shape, whose memory the buffer shares; an empty tensor if left out.
        persistent: whether `state_dict` holds it.
    """

    persistent: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        if data is None:
            data = empty(0)
        buffer = Tensor._make_subclass(cls, data, data.requires_grad)
        buffer.persistent = persistent
        return buffer  # type: ignore[no-any-return]
