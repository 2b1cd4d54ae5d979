"""The part of `gradcheck` about outputs that no gradient comes to."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .._tensor.backward import grad
from .._tensor.base import wrap
from ._jacobians import GradcheckError, differentiable, tensors_in
from .function import Function


class _NoGradient(Function):
    """Hands its input through and no gradient back."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> None:
        return None


def check_undefined(func: Callable[..., Any], inputs: tuple[Any, ...]) -> None:
    """A backward must handle outputs that no gradient comes to: all of them, and each alone."""
    targets = list(tensors_in(inputs, True))
    count = len(differentiable(func(*inputs)))
    for missing in [range(count), *([k] for k in range(count) if count > 1)]:
        outputs = [_NoGradient.apply(x) if k in missing else x for k, x in enumerate(differentiable(func(*inputs)))]
        zeros = [wrap(np.zeros(x.array.shape, x.array.dtype)) for x in outputs]
        try:
            found = grad(outputs, targets, zeros, allow_unused=True)
        except RuntimeError as error:
            warn_undefined()
            raise GradcheckError("Expected backward function to handle undefined output grads.") from error
        if any(part is not None and not (part.array == 0).all() for part in found):
            warn_undefined()
            raise GradcheckError("Expected all input grads to be undefined or zero when all output grads are undefined or zero.")


def warn_undefined() -> None:
    """Tell how this check is switched off."""
    warnings.warn("Backwards compatibility: New undefined gradient support checking feature is enabled by default, but it may break existing "
                  'callers of this function. If this is true for you, you can call this function with "check_undefined_grad=False" to disable the '
                  "feature",
                  stacklevel=4)  # fmt: skip
