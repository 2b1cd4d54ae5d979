"""Keeping gradients from growing too large."""

from __future__ import annotations

import math
import types
import warnings
from collections.abc import Iterable

from ..._tensor import Tensor, _functions as T
from ..._tensor.creation import tensor
from ...autograd import no_grad

__all__ = ["clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]

Tensors = Tensor | Iterable[Tensor]


def _listed(tensors: Tensors) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _gradients(parameters: Tensors) -> list[Tensor]:
    return [p.grad for p in _listed(parameters) if p.grad is not None]


def get_total_norm(
    tensors: Tensors, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """Norm of all elements of all tensors together, a tensor of shape (); `norm_type` may be `inf`.

    With `error_if_nonfinite` a norm that is NaN or infinite raises RuntimeError. `foreach` is accepted and ignored.
    """
    listed = _listed(tensors)
    norm_type = float(norm_type)
    total: Tensor = tensor(0.0)
    if not listed:
        return total
    with no_grad():
        total = T.stack([tensor.norm(norm_type) for tensor in listed]).norm(norm_type)
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total


def clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Multiply the gradients by `max_norm / total_norm`, in place, if that is below 1."""
    gradients = _gradients(parameters)
    with no_grad():
        scale = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        for grad in gradients:
            grad.mul_(scale)


def clip_grad_norm_(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale the gradients down, in place, so that their common norm is at most `max_norm`; gives the norm before.

    >>> import jitgrad as torch
    >>> from jitgrad import nn, utils
    >>> weight = nn.Parameter(torch.tensor([3.0, 4.0]))
    >>> (weight * weight / 2).sum().backward()
    >>> nn.utils.clip_grad_norm_([weight], max_norm=1.0)
    tensor(5.)
    """
    generated = isinstance(parameters, types.GeneratorType)
    parameters = _listed(parameters)
    if generated and not parameters:
        warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=2)
    total = get_total_norm(_gradients(parameters), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(parameters, max_norm, total, foreach)
    return total


def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Clamp every element of the gradients, in place, to [-clip_value, clip_value]."""
    limit = float(clip_value)
    with no_grad():
        for grad in _gradients(parameters):
            grad.clamp_(min=-limit, max=limit)
