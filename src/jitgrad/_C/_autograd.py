"""`torch._C._autograd`: saved tensors made by hand, the saved-tensor hooks as functions, version counters by number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._engine import modes
from .._engine.node import next_number
from .._tensor.base import version_of
from .._tensor.saved import (
    Packed,
    SavedTensor,
    pack,
    pop_hooks as _pop_saved_tensors_default_hooks,
    push_hooks as _push_saved_tensors_default_hooks,
)

__all__ = [
    "SavedTensor",
    "_get_current_graph_task_keep_graph",
    "_get_sequence_nr",
    "_make_saved_tensor",
    "_pop_saved_tensors_default_hooks",
    "_push_saved_tensors_default_hooks",
    "_saved_tensors_hooks_disable",
    "_saved_tensors_hooks_enable",
    "_saved_tensors_hooks_get_disabled_error_message",
    "_saved_tensors_hooks_is_enabled",
    "_top_saved_tensors_default_hooks",
    "_unsafe_set_version_counter",
]


class _Slot:
    """Where a saved tensor without a node keeps its value."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def read(self) -> Any:
        """The value, maybe packed."""
        return self.value

    def write(self, value: Any) -> None:
        """Exchange the value."""
        self.value = value

    def tensor(self) -> Any:
        """The tensor."""
        return self.value.unpack() if isinstance(self.value, Packed) else self.value


def _make_saved_tensor(tensor: Any, is_output: bool = False) -> SavedTensor:
    """A tensor saved as an op would save it, through the hooks that are set. An output is kept without its history."""
    if is_output:
        tensor = tensor.detach()
    slot = _Slot(pack(tensor, None) if modes.LOCAL.saved_hooks else tensor)
    return SavedTensor(slot, slot.read, slot.write, slot.tensor)


def _saved_tensors_hooks_is_enabled() -> bool:
    """Whether hooks may be set in this thread."""
    return modes.LOCAL.saved_hooks_disabled is None


def _saved_tensors_hooks_get_disabled_error_message() -> str | None:
    """What setting hooks raises, or None where it is allowed."""
    return modes.LOCAL.saved_hooks_disabled


def _saved_tensors_hooks_disable(error_message: str, fail_if_non_empty: bool = True) -> None:
    """Make setting hooks a RuntimeError with this message. RuntimeError at once where some are set already."""
    if fail_if_non_empty and modes.LOCAL.saved_hooks:
        raise RuntimeError(error_message)
    modes.LOCAL.saved_hooks_disabled = error_message


def _saved_tensors_hooks_enable() -> None:
    """Allow hooks again."""
    modes.LOCAL.saved_hooks_disabled = None


def _top_saved_tensors_default_hooks(ignore_is_tracing: bool) -> tuple[Callable[[Any], Any], Callable[[Any], Any]] | None:
    """The innermost pair of hooks, or None."""
    hooks = modes.LOCAL.saved_hooks
    return hooks[-1] if hooks else None


def _get_current_graph_task_keep_graph() -> bool:
    """Whether the backward that runs in this thread keeps the graph; True where none runs."""
    run = modes.LOCAL.run
    return True if run is None else run.keep


def _get_sequence_nr() -> int:
    """The number that the next recorded op gets."""
    return -next_number() - 1


def _unsafe_set_version_counter(tensors: Sequence[Any], versions: Sequence[int]) -> None:
    """Say how often each of several tensors was written to; what was saved at a version that is set again counts as unchanged.

    RuntimeError for a number below 0.
    """
    for tensor, version in zip(tensors, versions, strict=True):
        if version < 0:
            raise RuntimeError(f"Cannot set a version_counter to a value below 0: {version}")
        version_of(tensor).set(version)
