"""Views made again from another base: by the ops that made them where `_force_original_view_tracking` had these noted, else by their place.

What is noted is in `rare.replay`; nothing is while the mode is off.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from .._engine import modes
from .dual import same_layout
from .general import call_general

Visitor = Callable[[int], int]

# the statics of an op that say where a view lies, rather than which axis is meant: what a visitor may change
_PLACES: Final = {
    "_as_strided": ("size", "steps", "start"), "_expand": ("shape",), "_reshape_alias": ("shape",), "_select": ("index",),
    "_slice": ("start", "stop", "step"), "_split": ("sizes",), "_split_with_sizes": ("sizes",), "_view": ("shape",),
}  # fmt: skip


class Replay:
    """The call that made a view: the op, its statics, which of its results; `source` is what it was called on where that was a view itself."""

    __slots__ = ("index", "op", "source", "statics")

    def __init__(self, op: Any, statics: tuple[Any, ...], index: int, source: Any) -> None:
        self.op, self.statics, self.index, self.source = op, statics, index, source

    def visited(self, visit: Visitor | None) -> tuple[Any, ...]:
        """The statics, after a visitor saw each number among them that says where the view lies."""
        places = _PLACES.get(self.op.name, ())
        if visit is None or not places:
            return self.statics
        return tuple(
            value if name not in places else tuple(map(visit, value)) if isinstance(value, tuple) else visit(value)
            for name, value in zip(self.op.statics, self.statics, strict=True)
        )


def note(op: Any, statics: tuple[Any, ...], source: Any, views: Sequence[Any]) -> None:
    """Let views know the call that made them."""
    for index, view in enumerate(views):
        if view._is_view():
            view.rare.replay = Replay(op, statics, index, source if source._is_view() else None)


def replayed(view: Any, base: Any, visit: Visitor | None = None) -> Any:
    """The view of another base that `view` is of its own."""
    made = view.rare.replay
    if made is None:
        return base.as_strided(view.meta.shape, view.stride(), view.storage_offset())
    source = base if made.source is None else replayed(made.source, base, visit)
    results = call_general(made.op, (source,), made.visited(visit))
    return results[made.index] if isinstance(results, tuple) else results


def edge(view: Any, base: Any) -> Any:
    """A new edge for a view whose base was written to: the ops that made it, once more."""
    recording, inference = modes.set_grad(True), modes.set_inference(False)
    try:
        found = replayed(view, base).fn
    finally:
        modes.set_inference(inference)
        modes.set_grad(recording)
    found.vc = view.vc
    return found


def view_of(view: Any, new_base: Any, visit: Visitor | None, checked: bool) -> Any:
    """What `view` is of its base, of another one. None for what is no view and, if checked, where the new base is laid out in another way."""
    if not view._is_view():
        return None
    base = view._base
    if checked and not (base.meta.kind is new_base.meta.kind and same_layout(base, new_base)):
        return None
    return replayed(view, new_base, visit)


def base_of(view: Any, new_view: Any) -> Any:
    """What the base of `view` is of that, of `new_view`, which lies in such a memory; None for what is no view."""
    if not view._is_view():
        return None
    base = view._base
    return new_view.as_strided(base.meta.shape, base.stride(), base.storage_offset())
