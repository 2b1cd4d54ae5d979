"""Ops of jitgrad in other libraries: `to_torch` and `to_jax`. The other library is imported when one of them is called."""

from .to_jax import to_jax
from .to_torch import to_torch

__all__ = ["to_jax", "to_torch"]
