"""`allow_mutation_on_saved_tensors`: a saved tensor that is about to be written to is copied first."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator
from typing import Any

from .._engine import modes
from .._ops.views import memory_of
from .._tensor.base import wrap
from .._tensor.saved import pop_hooks, push_hooks

_OUTSIDE = (
    "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context"
    "in which the graph was originally recorded."
)


class Kept:
    """A saved tensor: its memory until somebody writes to it, then a copy."""

    __slots__ = ("__weakref__", "array")

    def __init__(self, array: Any) -> None:
        self.array = array


class _AllowMutationOnSavedContext:
    """What was saved in the block, by the memory it lies in; `cloned` has what was written to since, with its copy."""

    def __init__(self) -> None:
        self.kept: dict[int, weakref.WeakSet[Kept]] = {}
        self.cloned: weakref.WeakKeyDictionary[Kept, Any] = weakref.WeakKeyDictionary()
        self.open = True

    @property
    def tid_to_weakhandle(self) -> dict[int, Kept]:
        """What is saved and was not written to, a number each: as programs count it in torch."""
        return dict(enumerate(x for there in self.kept.values() for x in there))

    def pack(self, tensor: Any) -> Kept:
        """Note a tensor that is saved; one that is saved already and was not written to since is the same entry."""
        there = self.kept.setdefault(id(memory_of(tensor.array)), weakref.WeakSet())
        kept = next((kept for kept in there if kept.array is tensor.array), None)
        if kept is None:
            kept = Kept(tensor.array)
            there.add(kept)
        return kept

    def unpack(self, kept: Kept) -> Any:
        """The tensor as it was when it was saved. AssertionError after the end of the block."""
        if not self.open:
            raise AssertionError(_OUTSIDE)
        return wrap(kept.array)

    def before_write(self, tensor: Any) -> None:
        """Copy what shares the memory that is about to be written to."""
        for kept in self.kept.pop(id(memory_of(tensor.array)), ()):
            kept.array = kept.array.copy(order="K")
            self.cloned[kept] = wrap(kept.array)

    def clear(self) -> None:
        """Let go of everything."""
        self.kept.clear()
        self.cloned.clear()
        self.open = False


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[_AllowMutationOnSavedContext]:
    """Inside, tensors may be written to after an op saved them: the op's backward uses the old value. Backward has to run inside too."""
    if modes.LOCAL.before_write is not None:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    context = _AllowMutationOnSavedContext()
    push_hooks(context.pack, context.unpack)
    modes.LOCAL.before_write = context.before_write
    try:
        yield context
    finally:
        modes.LOCAL.before_write = None
        pop_hooks()
        context.clear()
