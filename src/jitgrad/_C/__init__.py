"""The names below `torch._C` that programs and test suites reach for; each stands here for something that has a home elsewhere.

>>> import jitgrad as torch
>>> torch._C.is_grad_enabled()
True
>>> x = torch.ones(2, requires_grad=True)
>>> torch._C._functions.UndefinedGrad()(x).grad_fn.name()
'UndefinedGradBackward'
"""

import weakref
from typing import Any

from .._engine.modes import (
    grad_enabled as is_grad_enabled,
    set_grad as _set_grad_enabled,
    set_tangents as _set_fwd_grad_enabled,
)
from ..autograd.forward_ad import _is_fwd_grad_enabled
from . import _autograd, _functions

__all__ = [
    "_WeakTensorRef",
    "_autograd",
    "_functions",
    "_is_fwd_grad_enabled",
    "_set_fwd_grad_enabled",
    "_set_grad_enabled",
    "has_lapack",
    "is_grad_enabled",
]

has_lapack = True


class _WeakTensorRef:
    """Tells whether a tensor is still there, without keeping it."""

    def __init__(self, tensor: Any) -> None:
        self._tensor = weakref.ref(tensor)

    def expired(self) -> bool:
        """Whether it is gone."""
        return self._tensor() is None
