"""`Tensor`, the functions over it, and how they are recorded."""

from ._methods import Tensor

__all__ = ["Tensor"]
