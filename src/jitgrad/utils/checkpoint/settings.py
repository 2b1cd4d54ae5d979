"""What is set for all checkpoints of a block, and what both variants need."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

from ..._tensor import Tensor
from ..._tensor.random import fork_rng, set_rng_state

Contexts = tuple[AbstractContextManager[Any, bool | None], AbstractContextManager[Any, bool | None]]

_debug: bool | None = None
_early_stop: bool | None = None


class CheckpointError(RuntimeError):
    """The function did something else when it was run again, or a tensor was asked for twice."""


def noop_context_fn() -> Contexts:
    """Two contexts that do nothing."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def debug_or(given: bool) -> bool:
    """Whether errors are to show logs: what the block says, or else the argument."""
    return given if _debug is None else _debug


def early_stop_or(given: bool) -> bool:
    """Whether a second run ends early: what the block says, or else the argument."""
    return given if _early_stop is None else _early_stop


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Checkpoints whose forward runs inside do, or don't, stop running again once they have all that is needed."""
    global _early_stop
    before, _early_stop = _early_stop, enable
    try:
        yield
    finally:
        _early_stop = before


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Overrules the argument `debug` of checkpoints inside; with None it does not."""
    global _debug
    before, _debug = _debug, enabled
    try:
        yield
    finally:
        _debug = before


@contextlib.contextmanager
def rewound(state: Tensor | None) -> Iterator[None]:
    """Inside, the default generator goes on from `state`, and afterwards from where it was; with None it is left alone."""
    with fork_rng(enabled=state is not None):
        if state is not None:
            set_rng_state(state)
        yield
