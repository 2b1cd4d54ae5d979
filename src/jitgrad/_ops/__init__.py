"""The declarations of all ops, by family."""

from . import arithmetic, indexing, views

__all__ = ["arithmetic", "indexing", "views"]
