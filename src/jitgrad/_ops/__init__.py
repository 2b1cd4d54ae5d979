"""The declarations of all ops, by family."""

from . import arithmetic, casts, indexing, matmul, shaping, splitting, views

__all__ = ["arithmetic", "casts", "indexing", "matmul", "shaping", "splitting", "views"]
