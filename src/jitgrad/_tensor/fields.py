"""`_saved_*` and `_raw_saved_*` of a node: what it saved, under torch's names.

A node gets these attributes when the user first sees it (`grad_fn`, `next_functions`): its class is exchanged for a subclass of the same
name and layout. Having them from the start would slow down every attribute of every node (a class with `__getattr__` loses the
interpreter's attribute caches).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.late import LateModule
from .._engine import versions
from .._engine.extras import NodeExtras
from .._engine.node import LEAF, RELEASED, SECOND_TIME, Node, target
from .base import wrap
from .saved import INDICES, Packed, PackedKey, SavedTensor, living, torch_name

if TYPE_CHECKING:
    import copy

    from . import torch_fields
else:
    copy = LateModule("copy")
    torch_fields = LateModule("jitgrad._tensor.torch_fields")

SAVED, RAW = "_saved_", "_raw_saved_"


class Fields:
    """What a family of nodes tells of its saved values; the mix-in of nodes that are shown.

    `saved_names` maps torch's names to the node's own; `static_values` has what is no tensor; `get_saved` and `put_saved` read and
    exchange a saved value, `edge_of_saved` is the edge that leads to it.
    """

    __slots__ = ()

    def saved_names(self) -> dict[str, str]:
        """Names of the saved tensors: torch's to the node's own."""
        return {}

    def static_values(self) -> dict[str, Any]:
        """Saved values that are no tensors."""
        return {}

    def get_saved(self, name: str) -> Any:
        """The array, a `Packed`, None or RELEASED."""
        raise NotImplementedError

    def put_saved(self, name: str, value: Any) -> None:
        """Exchange a saved value."""
        raise NotImplementedError

    def edge_of_saved(self, name: str) -> Any:
        """The edge that leads to a saved tensor, None where there is none."""
        return None

    def counter_of_saved(self, name: str) -> Any:
        """Its version counter, or None."""
        edge = self.edge_of_saved(name)
        return None if edge is None else edge.vc

    def check_saved(self) -> None:
        """RuntimeError where a saved tensor was written to."""

    def kept_values(self) -> list[tuple[str, Any, Node | None]]:
        """All saved values that are there, under torch's names."""
        found = [(shown, self.get_saved(own), own) for shown, own in self.saved_names().items()]
        return [(shown, value, self.edge_of_saved(own)) for shown, value, own in found if value is not None]

    def made(self: Any, edge: Any) -> bool:
        """Whether an edge leads to the node itself."""
        return edge is not None and target(edge)[0] is self

    def saved_tensor(self, name: str) -> Any:
        """A saved value as the user sees it: an input is itself while it lives, a result is a new tensor with its history."""
        value = self.get_saved(name)
        if value is RELEASED:
            raise RuntimeError(SECOND_TIME)
        if value is None:
            return None
        if type(value) is Packed:
            return value.unpack()
        self.check_saved()
        edge = self.edge_of_saved(name)
        if edge is not None and edge.number == LEAF:
            leaf = edge.owner()
            if leaf is not None and leaf.array is value:
                return leaf
        elif not self.made(edge):
            alive = living(value, edge)
            if alive is not None:
                return alive
        tensor = wrap(value, edge)
        tensor.vc = self.counter_of_saved(name)
        return tensor

    def before_shown(self) -> None:
        """Make the edges what torch's node has, where ours has fewer nodes."""

    def shown(self) -> Any:
        """The node, about to be seen by the user."""
        if not isinstance(self, Shown):
            self.before_shown()
            kind: Any = type(self)
            self.__class__ = shown_class(kind)
        return self


def statics_of(node: Any) -> dict[str, Any]:
    """Saved values that are no tensors, under torch's names."""
    name = type(node).__name__
    own = {key: value for key, value in node.static_values().items() if key not in torch_fields.PRIVATE}
    if name not in torch_fields.SIZED:
        own.pop("self_sym_sizes", None)
    theirs = {shown: key for shown, key in torch_fields.NAMES.get(name, {}).items() if key in own}
    found = torch_fields.FIXED.get(name, {}) | {key: value for key, value in own.items() if key not in theirs.values()}
    found |= {shown: own[key] for shown, key in theirs.items()} | {shown: value(node) for shown, value in torch_fields.VALUES.get(name, {}).items()}
    if name in ("MeanBackward0", "SumBackward0"):
        found["self_sym_sizes"] = node.edges()[0].meta.shape
    if name in ("MeanBackward0", "MeanBackward1"):
        found["self_sym_numel"] = math.prod(found["self_sym_sizes"])
    return found


class Shown:
    """A node that the user has seen."""

    __slots__ = ()

    def __getattr__(self: Any, name: str) -> Any:
        raw = name.startswith(RAW)
        if raw or name.startswith(SAVED):
            theirs, own = name[len(RAW if raw else SAVED) :], self.saved_names()
            if theirs == "indices" and "key" in self.static_values():
                return indices_of(self, raw)
            if theirs not in own:
                theirs = torch_fields.NAMES.get(type(self).__name__, {}).get(theirs, theirs)
            if theirs in own:
                return raw_of(self, own[theirs]) if raw else self.saved_tensor(own[theirs])
            statics = {} if raw else statics_of(self)
            if name[len(SAVED) :] in statics:
                return statics[name[len(SAVED) :]]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __dir__(self: Any) -> list[str]:
        torchs = {own: theirs for theirs, own in torch_fields.NAMES.get(type(self).__name__, {}).items()}
        names = [torchs.get(name, name) for name in self.saved_names()]
        public = ["_input_metadata", "_register_hook_dict", "_sequence_nr", "_set_sequence_nr", "metadata", "name", "next_functions",
                  "register_hook", "register_prehook", "requires_grad"]  # fmt: skip
        return sorted([*public, *(SAVED + name for name in {*names, *statics_of(self)} - {*torchs}), *(RAW + name for name in names)])


def raw_of(node: Any, own: str) -> SavedTensor:
    """A saved value before it is unpacked."""
    return SavedTensor(node, lambda: node.get_saved(own), lambda value: node.put_saved(own, value), lambda: node.saved_tensor(own))


def indices_of(node: Any, raw: bool) -> tuple[Any, ...]:
    """The index tensors in brackets up to the last one, None where an axis has none."""

    def key() -> PackedKey:
        held = node.get_saved(INDICES)
        return held if type(held) is PackedKey else PackedKey(node.static_values()["key"])

    def read(place: int) -> Any:
        return RELEASED if node.get_saved(INDICES) is RELEASED else key().entries[place]

    def tensor(place: int) -> Any:
        entry = read(place)
        return entry.unpack() if type(entry) is Packed else entry if entry is None else wrap(entry)

    def saved(place: int) -> SavedTensor:
        return SavedTensor(node, lambda: read(place), lambda value: node.put_saved(INDICES, key().exchanged(place, value)), lambda: tensor(place))

    if node.get_saved(INDICES) is RELEASED:
        raise RuntimeError(SECOND_TIME)
    count = max(place for place, entry in enumerate(key().entries) if entry is not None) + 1
    return tuple([(saved if raw else tensor)(place) for place in range(count)])


@functools.cache
def shown_class(kind: type[Any]) -> type[Any]:
    """The class of a node of some kind after the user has seen it."""
    return type(kind.__name__, (Shown, kind), {"__slots__": (), "__module__": "jitgrad.autograd"})


def as_tensor(value: Any) -> Any:
    """A number that was an operand: torch saves it as a tensor."""
    return wrap(np.array(value)) if isinstance(value, (int, float, np.number)) else value


class SlotFields(Fields):
    """Nodes whose saved values are in slots of their own: `kept` maps a slot to the op's name for what it holds."""

    __slots__ = ()

    def slot_names(self) -> dict[str, str]:
        """Slots and the op's names for them."""
        raise NotImplementedError

    def saved_names(self) -> dict[str, str]:
        return {torch_name(name): slot for slot, name in self.slot_names().items()}

    def get_saved(self: Any, name: str) -> Any:
        if self.rare is not None and name in self.rare.packed:
            return self.rare.packed[name]
        return getattr(self, name)

    def put_saved(self: Any, name: str, value: Any) -> None:
        """A packed value waits in the extras, which also take the node off the accelerated run."""
        self._extras().packed[name] = value
        object.__setattr__(self, name, None)

    def edge_of_saved(self, name: str) -> Any:
        return self if name == "r" else getattr(self, "e" + name[1])

    def counter_of_saved(self: Any, name: str) -> Any:
        return self.counter(name)

    def check_saved(self: Any) -> None:
        self.check()

    def call_unpacked(self: Any, grads: tuple[Any, ...], keep: bool, create_graph: bool) -> Any:
        """`call` with the packed values unpacked: on a twin, because another thread may run this very node."""
        twin = copy.copy(self)
        twin.rare = NodeExtras()
        twin.rare.origin = self
        for slot, value in self.rare.packed.items():
            object.__setattr__(twin, slot, value.array())
        self.check_saved()  # here, and not by the twin: whoever wrote to a value that was packed did it no harm
        twin.epoch = versions.WRITES
        return twin.call(grads, keep, create_graph)


class TBackward0(Node):
    """Between a linear layer and its weight, as in torch: put there when the user looks at the layer's node, for hooks.

    Hands on the gradient, which has the weight's own shape here.
    """

    __slots__ = ("e0",)
    arity = 1
    e0: Node

    def __init__(self, layer: Node, edge: Node) -> None:
        self.e0, self.meta, self.epoch = edge, edge.meta, layer.epoch
        self.number = layer.number + 0.5  # type: ignore[assignment]  # between the layer and all that is older
        self.buf = self.rare = None

    @property
    def vc(self) -> Any:
        """The weight's."""
        return self.e0.vc

    @vc.setter
    def vc(self, counter: Any) -> None:
        self.e0.vc = counter

    def edges(self) -> tuple[Node]:
        return (self.e0,)

    def apply(self, grad: Any, keep: bool) -> Any:
        return grad

    def call(self, grads: tuple[Any, ...], keep: bool, create_graph: bool) -> Sequence[Any]:
        return grads

    def _sequence_nr(self) -> int:
        return int(-self.number - 1)


def release_slots(node: Any, slots: Any) -> None:
    """Let the values in slots go."""
    for slot in slots:
        object.__setattr__(node, slot, RELEASED)
    if node.rare is not None:
        node.rare.packed.clear()


__all__ = ["Fields", "Node", "Shown", "SlotFields", "TBackward0", "as_tensor", "release_slots", "shown_class"]
