"""Handles by which registered hooks are removed: shared by tensors, nodes, modules and optimizers."""

from __future__ import annotations

import warnings
import weakref
from _thread import allocate_lock
from collections import OrderedDict
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, TypeVar

Hook = TypeVar("Hook", bound=Callable[..., Any])

_NUMBERING = allocate_lock()


class RemovableHandle:
    """Takes one hook out of the table it was put into.

    The table is held weakly, so that a handle keeps nothing alive: it has to be a dictionary that weak references can
    point to (`collections.OrderedDict`). `extra_dict`, one such table or a list of them, loses the same key.
    Used as a context manager the hook lives as long as the block. A pickled handle brings its tables along.

    >>> from collections import OrderedDict
    >>> table = OrderedDict()
    >>> handle = RemovableHandle(table)
    >>> table[handle.id] = print
    >>> handle.remove()
    >>> len(table)
    0
    """

    id: int
    next_id: int = 0

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        with _NUMBERING:
            self.id = RemovableHandle.next_id
            RemovableHandle.next_id += 1
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        self.extra_dict_ref: tuple[weakref.ref[Any], ...] = _references(extra_dict)

    def remove(self) -> None:
        """Remove the hook; a second call, or a table that is gone, does nothing."""
        for reference in (self.hooks_dict_ref, *self.extra_dict_ref):
            table = reference()
            if table is not None:
                table.pop(self.id, None)

    def __getstate__(self) -> tuple[Any, int, tuple[Any, ...]]:
        return self.hooks_dict_ref(), self.id, tuple(reference() for reference in self.extra_dict_ref)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        table = state[0]
        # A handle whose table had died comes back pointing at a table that dies at once.
        self.hooks_dict_ref = weakref.ref(OrderedDict() if table is None else table)
        self.id = state[1]
        with _NUMBERING:
            RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)
        self.extra_dict_ref = _references([d for d in state[2] if d is not None]) if len(state) > 2 else ()

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()


def _references(tables: Any) -> tuple[weakref.ref[Any], ...]:
    if tables is None:
        return ()
    listed: Iterable[Any] = tables if isinstance(tables, list | tuple) else (tables,)
    return tuple(weakref.ref(table) for table in listed)


def warn_if_has_hooks(tensor: Any) -> None:
    """A UserWarning for each hook of a tensor that is about to be saved without it, but for those marked as `unserializable_hook`."""
    for hook in (tensor._backward_hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can decorate the function with "
                          "@torch.utils.hooks.unserializable_hook to suppress this warning", stacklevel=2)  # fmt: skip


def add_hook(
    table: OrderedDict[int, Hook], hook: Hook, *marks: OrderedDict[int, bool], prepend: bool = False
) -> RemovableHandle:
    """Put `hook` into `table` under a fresh id, note the id in each table of `marks`, and give the handle.

    Hooks run in the order of the table; with `prepend` this one runs first.
    """
    handle = RemovableHandle(table, extra_dict=list(marks))
    table[handle.id] = hook
    for mark in marks:
        mark[handle.id] = True
    if prepend:
        table.move_to_end(handle.id, last=False)
    return handle
