"""Writes that have no out-of-place twin."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.errors import argument_error
from .._engine import modes
from .._ops import casts
from .base import TensorBase, wrap
from .convert import NUMBER_TYPES
from .inplace import check_overlap, check_writable, inplace
from .new_methods import NewMethods
from .views import edge_of

Tensor = Any


class WriteMethods(NewMethods):
    """See the module's docstring."""

    __slots__ = ()

    def copy_(self, other: Any, non_blocking: bool = False) -> Tensor:
        """Write the elements of `other`, broadcast and cast, into this tensor.

        TypeError unless `other` is a tensor or a number; RuntimeError where it doesn't broadcast or writing is refused.
        """
        if not isinstance(other, TensorBase):
            if not isinstance(other, NUMBER_TYPES):
                raise argument_error("copy_", "other", 1, "Tensor", other)
            other = wrap(np.array(other, self.meta.dtype))
        if modes.grad_enabled() and (edge_of(self) is not None or edge_of(other) is not None):
            return inplace(casts.copied, "copy_", self, (other,), {})
        check_writable(self, "copy_")
        check_overlap(self, other)
        casts.check_copied(self, other)
        with np.errstate(all="ignore"):
            np.copyto(self.array, other.array, casting="unsafe")
        if self.rare is None or not self.rare.inference:
            self._bump()
        return self

    def zero_(self) -> Tensor:
        """Write zeros into this tensor."""
        return inplace(casts.zero_op, "zero_", self, (), {})


def zero_(input: Tensor) -> Tensor:
    """Write zeros into a tensor."""
    return input.zero_()
