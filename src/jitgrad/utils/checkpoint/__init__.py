"""Checkpoints: what a part of a model saves for its backward is dropped, and computed once more when the backward asks for it.

In the order in which to read them: `settings.py`, `reentrant.py` (a custom Function), `frames.py` (hooks on saved tensors),
`entry.py` (the functions that users call), `groups.py` and `selective.py` (refinements of the second variant).
"""

from .devices import DefaultDeviceType, _infer_device_type, get_device_states, set_device_states
from .entry import checkpoint, checkpoint_sequential
from .groups import GraphExecGroup
from .reentrant import CheckpointFunction, check_backward_validity, detach_variable
from .selective import CheckpointPolicy, SelectiveCheckpointContext, create_selective_checkpoint_contexts
from .settings import CheckpointError, noop_context_fn, set_checkpoint_debug_enabled, set_checkpoint_early_stop

__all__ = [
    "CheckpointError",
    "CheckpointFunction",
    "CheckpointPolicy",
    "DefaultDeviceType",
    "GraphExecGroup",
    "SelectiveCheckpointContext",
    "_infer_device_type",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]
