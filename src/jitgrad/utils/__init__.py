"""Helpers around training: data in batches, hooks."""

from . import data, hooks

__all__ = ["data", "hooks"]
