"""The public face of autograd."""

from .._tensor.backward import backward, grad

__all__ = ["backward", "grad"]
