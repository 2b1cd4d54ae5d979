"""The declarations of all ops, by family."""

from . import activations, arithmetic, casts, comparisons, indexing, matmul, shaping, splitting, views

__all__ = ["activations", "arithmetic", "casts", "comparisons", "indexing", "matmul", "shaping", "splitting", "views"]
