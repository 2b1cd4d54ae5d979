"""Helpers for tests: `assert_close` and `make_tensor`."""

from ._closeness import assert_allclose, assert_close
from ._making import make_tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]
