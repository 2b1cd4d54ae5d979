"""All parameters of a model as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from ..._tensor import Tensor, _functions as T

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements, one parameter after the other: shape (total,). Gradients flow through it.

    >>> from jitgrad import nn, utils
    >>> nn.utils.parameters_to_vector(nn.Linear(3, 2).parameters()).shape
    torch.Size([8])
    """
    return T.cat([param.view(-1) for param in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Let the parameters have the slices of `vec` (total,) as their data, whose memory they then share.

    Raises TypeError if `vec` is no tensor, RuntimeError if it is too short.
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    start = 0
    for param in parameters:
        count = param.numel()
        param.data = vec[start : start + count].view_as(param).data
        start += count
