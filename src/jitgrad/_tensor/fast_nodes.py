"""What the generated nodes of the elementwise ops' common case share.

Slots: `e0`, `e1` edges; `s0`, `s1` the inputs that are saved, `r` the result; `c0`, `c1` the version counter of an input that no edge leads
to. `kept` names the saved ones. Everything but `apply` is asked for rarely and goes by those names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from .._engine import modes, versions
from .._engine.node import RELEASED, Node, target
from .._ops.derived import Map
from .._ops.kinds import Dispatch
from .._ops.maps import Elementwise
from .base import wrap
from .fields import SlotFields, release_slots
from .nodes import contiguous, modified, second_time


class FastNode(SlotFields, Node):
    """An elementwise op of one or two plain tensors of equal Meta."""

    __slots__ = ()
    e0: Any
    e1: Any
    s0: Any
    s1: Any
    c0: Any
    c1: Any
    r: Any
    op: ClassVar[Elementwise]
    kept: ClassVar[tuple[str, ...]]

    @property
    def map(self) -> Map:
        """The op's expression for tensor operands."""
        return self.op.map("t" * self.arity)

    def edges(self) -> tuple[Node | None, ...]:
        return (self.e0,) if self.arity == 1 else (self.e0, self.e1)

    def counter(self, slot: str) -> Any:
        """The version counter of a saved value, or None as long as nobody wrote to it."""
        if slot == "r":
            return self.vc
        edge = getattr(self, "e" + slot[1])
        return edge.vc if edge is not None else getattr(self, "c" + slot[1])

    def check(self) -> None:
        """Something was written since the op was recorded; was it one of ours?"""
        for slot in self.kept:
            array = getattr(self, slot)
            if array is None or array is RELEASED:
                continue
            if slot != "r":
                versions.check_attached(getattr(self, "e" + slot[1]))
            counter = self.counter(slot)
            if counter is not None and counter.last > self.epoch:
                maker = self if slot == "r" else getattr(self, "e" + slot[1])
                raise modified(self.epoch, counter, array, None if maker is None or maker.number == 0 else target(maker), maker is self)

    def release(self) -> None:
        release_slots(self, self.kept)

    def slot_names(self) -> dict[str, str]:
        return {slot: "result" if slot == "r" else self.op.inputs[int(slot[1])] for slot in self.kept}

    def saved(self) -> dict[str, Any]:
        """Saved tensors by the op's names, with their edges."""
        found = {}
        for slot in self.kept:
            array = getattr(self, slot)
            if array is RELEASED:
                second_time()
            if array is not None:
                edge = (self if self.rare is None else self.rare.origin or self) if slot == "r" else getattr(self, "e" + slot[1])
                tensor = wrap(array, edge)
                tensor.vc = self.counter(slot)
                found["result" if slot == "r" else self.op.inputs[int(slot[1])]] = tensor
        if self.epoch != versions.WRITES:
            self.check()
        return found

    def call(self, grads: tuple[Any, ...], keep: bool, create_graph: bool) -> Sequence[Any]:
        (grad,) = grads
        if grad is None:
            return (None,) * self.arity
        if self.rare is not None and self.rare.packed:
            return self.call_unpacked(grads, keep, create_graph)  # type: ignore[no-any-return]
        if not create_graph and not modes.followed():
            array = contiguous(grad.array)  # a name of its own, so that `apply` does not take it for unshared
            results = self.apply(array, True)
            return [None if part is None else wrap(part) for part in ((results,) if self.arity == 1 else results)]
        saved, found = self.saved(), self.map
        done: list[Any] = []
        for place, edge in enumerate(self.edges()):
            if edge is None:
                done.append(None)
                continue
            part = found.partial(place)
            named = [saved[name] for name in found.saves[place]]
            done.append(grad if part.output.op == "var" else Dispatch.invoke(part, (grad, *named), ()))
        return done
