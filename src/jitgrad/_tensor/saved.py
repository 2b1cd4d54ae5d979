"""Saved values that pass through a pair of hooks: packed when an op is recorded, unpacked when its backward asks for them.

Only nodes recorded while hooks were set, or whose `_raw_saved_*` got hooks afterwards, hold a `Packed`; all others hold the array.
"""

from __future__ import annotations

import functools
import gc
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from .._core.late import LateModule
from .._core.shapes import check_broadcastable
from .._engine import modes
from .._engine.node import RELEASED, SECOND_TIME, Port, target
from .base import TensorBase, version_of, wrap

if TYPE_CHECKING:
    from .._engine import anomaly
else:
    anomaly = LateModule("jitgrad._engine.anomaly")

Array = np.ndarray[Any, Any]
Pack = Callable[[Any], Any]
Unpack = Callable[[Any], Any]

_MODIFIES: Final = (
    "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook cannot be modified by in-place operations as "
    "this can lead to unexpected side-effects. Please open an issue if you need to perform in-place operations on the input to a pack hook."
)
_NOT_CALLABLE: Final = (
    "_push_saved_tensors_default_hooks(): incompatible function arguments. The following argument types are supported:\n"
    "    1. (arg0: collections.abc.Callable, arg1: collections.abc.Callable) -> None\n\nInvoked with: {!r}, {!r}"
)
_INFERENCE: Final = (
    "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in computation tracked by autograd. To work "
    "around this, you can make a clone to get a normal tensor and use it in autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`."
)


def inference_refusal() -> RuntimeError:
    """The error for an inference tensor that an op would have to save."""
    return RuntimeError(_INFERENCE)


def count_of(tensor: Any) -> int:
    """How often a tensor was written to, without making a counter."""
    counter = tensor.vc if tensor.vc is not None or tensor.fn is None else tensor.fn.vc
    return 0 if counter is None else counter.count


class Packed:
    """What a pack hook returned for a saved tensor, and the way back to that tensor's place in the graph."""

    __slots__ = ("_edge", "_like", "_maker", "unpacker", "value")

    def __init__(self, value: Any, unpacker: Unpack, like: Array, edge: Any, maker: Any) -> None:
        self.value, self.unpacker = value, unpacker
        self._like = (like.shape, like.dtype, like.flags.c_contiguous)
        self._edge: Any = edge
        self._maker: Any = maker  # (weak reference to the node, output number): the saved tensor is a result of the node that saves it

    def unpacked(self) -> Any:
        """What the unpack hook gives back."""
        tensor = self.unpacker(self.value)
        if not isinstance(tensor, TensorBase):
            raise TypeError(f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(tensor).__name__}")
        return tensor

    def unpack(self) -> Any:
        """The saved tensor as the unpack hook gives it back, with the edge of the one that was packed."""
        tensor = self.unpacked()
        edge = self._edge
        if self._maker is not None:
            node, index = self._maker[0](), self._maker[1]
            edge = node if node is None or node.outputs == 1 else Port(node, index, tensor.meta)
        if edge is None:
            return tensor
        result = wrap(tensor.array, edge)
        result.vc = version_of(tensor)  # not the edge's counter: what was packed need not be what comes back
        return result

    def array(self) -> Array:
        """The saved array, in the shape, dtype and layout that the backward relies on. RuntimeError where it doesn't broadcast to that."""
        array = self.unpacked().array
        shape, dtype, is_contiguous = self._like
        if array.shape != shape:
            check_broadcastable(shape, array.shape)
            array = np.broadcast_to(array, shape)
        if array.dtype != dtype:
            array = array.astype(dtype)
        return np.ascontiguousarray(array) if is_contiguous and not array.flags.c_contiguous else array  # which makes 0-d arrays 1-d


class PackedKey:
    """What stands in brackets, where some of its index arrays went through hooks: an entry per axis, packed, as it is, or None."""

    __slots__ = ("entries",)

    def __init__(self, entries: tuple[Any, ...]) -> None:
        self.entries = entries

    def arrays(self) -> tuple[Any, ...]:
        """The key that a backward uses."""
        return tuple([entry.array() if type(entry) is Packed else entry for entry in self.entries])

    def exchanged(self, place: int, entry: Any) -> PackedKey:
        """The same with another entry."""
        return PackedKey((*self.entries[:place], entry, *self.entries[place + 1 :]))


def pack(tensor: Any, node: Any) -> Packed:
    """Send a tensor that `node` saves through the innermost pair of hooks."""
    packer, unpacker = modes.LOCAL.saved_hooks[-1]
    return pack_with(packer, unpacker, tensor, tensor, node)


def pack_with(packer: Pack, unpacker: Unpack, tensor: Any, shown: Any, node: Any) -> Packed:
    """Send a tensor (the hook sees it as `shown`) through a pair of hooks."""
    before = count_of(tensor)
    was = modes.set_grad(False)
    try:
        value = packer(shown)
    finally:
        modes.set_grad(was)
    if count_of(tensor) != before:
        raise RuntimeError(_MODIFIES)
    edge = tensor.fn
    if edge is not None:
        maker, index = target(edge)
        if maker is node:
            return Packed(value, unpacker, tensor.array, None, (weakref.ref(node), index))
    return Packed(value, unpacker, tensor.array, edge, None)


def push_hooks(packer: Pack, unpacker: Unpack) -> None:
    """Set a pair of hooks for this thread until `pop_hooks`; the innermost pair counts.

    TypeError where one isn't callable; RuntimeError where `disable_saved_tensors_hooks` forbids them.
    """
    if not (callable(packer) and callable(unpacker)):
        raise TypeError(_NOT_CALLABLE.format(packer, unpacker))
    if modes.LOCAL.saved_hooks_disabled is not None:
        raise RuntimeError(modes.LOCAL.saved_hooks_disabled)
    modes.enter_special(1)
    modes.LOCAL.saved_hooks = (*modes.LOCAL.saved_hooks, (packer, unpacker))


def pop_hooks() -> None:
    """Take the innermost pair away. RuntimeError where there is none."""
    if not modes.LOCAL.saved_hooks:
        raise RuntimeError("no saved-tensor hooks are set in this thread")
    modes.set_saved_hooks(modes.LOCAL.saved_hooks[:-1])


class PackedValues(dict[str, Any]):
    """Saved values by name, some of them packed: a type of its own, so that a node sees it at a glance."""


def torch_name(name: str) -> str:
    """What torch calls a saved value."""
    return _TORCH_NAMES.get(name, name)


INDICES: Final = "indices"  # the name under which an indexing op counts its key among the saved values
_TORCH_NAMES: Final = {"input": "self", "dims": "dim"}


@functools.cache
def order_of(names: tuple[str, ...]) -> tuple[str, ...]:
    """Names in the order in which torch packs and unpacks them: inputs by name, then results."""
    return tuple(sorted(names, key=lambda name: (name.startswith("result"), torch_name(name))))


def unpacked(saved: dict[str, Any]) -> dict[str, Any]:
    """The arrays of saved values, some of them packed."""
    found = dict(saved)
    for name in order_of(tuple(saved)):
        value = saved[name]
        if type(value) is Packed:
            found[name] = value.array()
        elif type(value) is PackedKey:
            found[name], found["key"] = None, value.arrays()
    return found


def watch(node: Any, tensors: dict[str, Any]) -> None:
    """What the special modes do with a node that was just recorded; `tensors` are the saved tensors by name, None where there is none."""
    if modes.LOCAL.anomaly is not None:
        anomaly.note(node)
    if modes.LOCAL.saved_hooks and node._saved:
        packed = PackedValues(node._saved)
        for name in order_of(tuple(packed)):
            array, tensor = packed[name], tensors.get(name)
            if array is not None:
                packed[name] = pack(tensor if tensor is not None and tensor.array is array else wrap(array), node)
            elif name == INDICES:
                packed[name] = PackedKey(tuple([entry if entry is None else pack(wrap(entry), node) for entry in node.static_values()["key"]]))
        node._saved = packed


def living(array: Array, edge: Any) -> Any:
    """The tensor over an array with a certain edge, if it is still there, else None.

    A node keeps arrays only. So the interpreter is asked who refers to the array, which takes milliseconds, but costs the ops nothing.
    """
    for holder in gc.get_referrers(array):
        if isinstance(holder, TensorBase) and holder.array is array and holder.fn is edge:
            return holder
    return None


class SavedTensor:
    """`_raw_saved_*` of a node: a saved value before it is unpacked, to which a pair of hooks can be given.

    `read` and `write` get and set the value where the node keeps it; `tensor` makes the saved tensor.
    """

    __slots__ = ("_node", "_read", "_tensor", "_write")
    _node: Any
    _read: Callable[[], Any]
    _write: Callable[[Any], None]
    _tensor: Callable[[], Any]

    def __init__(self, *parts: Any) -> None:
        if len(parts) != 4:
            raise RuntimeError("Trying to create a SavedTensor object from Python is forbidden.")
        self._node, self._read, self._write, self._tensor = parts

    @property
    def data(self) -> Any:
        """The packed object, or the saved tensor where there are no hooks."""
        value = self._read()
        if value is RELEASED:
            raise RuntimeError(SECOND_TIME)
        if type(value) is Packed:
            return value.value
        tensor = self._tensor()
        return tensor.detach() if tensor is not None and tensor.grad_fn is self._node else tensor

    @property
    def unpack_hook(self) -> Any:
        """The hook that unpacks the value, or None."""
        value = self._read()
        return value.unpacker if type(value) is Packed else None

    def unpack(self) -> Any:
        """The saved tensor."""
        return self._tensor()

    def register_hooks(self, *hooks: Any) -> None:
        """`register_hooks(pack_hook, unpack_hook)`: pack the value now with one hook; unpack it with the other whenever it is asked for."""
        if len(hooks) != 2 or not callable(hooks[0]) or not callable(hooks[1]):
            raise TypeError("register_hooks(): incompatible function arguments. The following argument types are supported:\n    "
                            "1. (self: SavedTensor, arg0: collections.abc.Callable, arg1: collections.abc.Callable) -> None\n\n"
                            f"Invoked with: {', '.join(map(repr, (self, *hooks)))}")  # fmt: skip
        pack_hook, unpack_hook = hooks
        value = self._read()
        if value is RELEASED:
            raise RuntimeError("Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph are freed "
                               "when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the graph a "
                               "second time or if you need to access saved variables after calling backward.")  # fmt: skip
        if value is None:
            raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden")
        if type(value) is Packed:
            raise RuntimeError("Calling register_hooks on a saved tensor whose hooks have already been set. "
                               "Hint: only one pair of hooks is allowed at a time.")  # fmt: skip
        tensor = self._tensor()
        self._write(pack_with(pack_hook, unpack_hook, tensor, tensor.detach(), self._node))
