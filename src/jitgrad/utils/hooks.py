"""What is needed to register and remove hooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from .._core.hooks import RemovableHandle, warn_if_has_hooks
from ..autograd._module_hooks import BackwardHook

__all__ = ["BackwardHook", "RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]

_Function = TypeVar("_Function", bound=Callable[..., Any])


def unserializable_hook(f: _Function) -> _Function:
    """Mark a hook as one that need not be saved with its tensor, and give it back."""
    f.__torch_unserializable__ = True  # type: ignore[attr-defined]  # the mark that torch uses
    return f
