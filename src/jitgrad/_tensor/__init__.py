"""`Tensor`, the functions over it, and how they are recorded."""

from ._functions import *  # noqa: F403
from ._methods import Tensor

__all__ = ["Tensor"]
