"""Inputs that a kernel writes to: checked before, counted and linked after, as in-place ops are."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._engine.node import Port
from ..._tensor.base import TensorBase, version_of
from ..._tensor.inplace import adopt, check_overlap, check_writable


def before_writing(name: str, args: tuple[Any, ...], place: int) -> None:
    """Refuse what must not be written to: a leaf that requires grad, memory shared with another argument. TypeError for what is no tensor."""
    written = args[place]
    if not isinstance(written, TensorBase):
        raise TypeError(
            f"{name}() writes to its argument {place}, which must be a Tensor, not {type(written).__name__}"
        )
    check_writable(written, name)
    for other, x in enumerate(args):
        if other == place:
            continue
        if x is written:
            raise RuntimeError(
                f"{name}() writes to its argument {place}, which is also its argument {other}; clone() one of them"
            )
        if isinstance(x, TensorBase) and np.may_share_memory(x.array, written.array):
            check_overlap(written, x)
            raise RuntimeError(
                f"{name}() writes to its argument {place}, which shares memory with its argument {other}; clone() one of them"
            )


def write_back(tensor: Any, array: np.ndarray[Any, Any]) -> None:
    """Count the write; bring it home where the kernel worked on a copy."""
    if array is not tensor.array and not np.shares_memory(array, tensor.array):
        np.copyto(tensor.array, array)
    if tensor.rare is None or not tensor.rare.inference:
        version_of(tensor)
        tensor._bump()


def link_written(name: str, tensor: Any, edge: Any, several: bool) -> None:
    """Let the history of a written tensor go on from the node."""
    if edge is None:
        return
    rare = tensor.rare
    if several and rare is not None and rare.base is not None and isinstance(edge, Port):
        raise RuntimeError(
            f"{name}() wrote to a view and has other outputs beside it, whose histories can't be told apart; clone() the view first"
        )
    adopt(tensor, edge)
