"""Helpers around training: data in batches, hooks, checkpoints."""

from . import checkpoint, data, hooks

__all__ = ["checkpoint", "data", "hooks"]
