"""`FunctionCtx`: what a custom Function's `forward` leaves for its `backward`.

The context belongs to the node and knows it only weakly. Inputs are kept as the tensors they are, outputs as arrays, so that neither
`save_for_backward(output)` nor `ctx.y = output` makes a circle of output, node and context.
"""

from __future__ import annotations

import functools
import gc
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from .._engine import anomaly, modes, versions
from .._engine.node import RELEASED, SECOND_TIME, Node, Port, target
from .._tensor.base import TensorBase, version_of, wrap
from .._tensor.nodes import modified
from .._tensor.saved import Packed, SavedTensor, inference_refusal, pack
from .._tensor.views import CopySlices

__all__ = ["OWN", "FunctionCtx"]


REWRITTEN = -1  # in place of an output's number: a view whose base got its history from the node


class Output:
    """A saved output: its memory, its counter and its place, without the tensor itself."""

    __slots__ = ("array", "counter", "index", "owner")

    def __init__(self, tensor: Any, index: int) -> None:
        self.array = tensor.array
        self.counter = version_of(tensor)
        self.index = index
        self.owner = weakref.ref(tensor)

    def tensor(self, node: Any) -> Any:
        """The output itself while it lives, else another tensor over the same memory with the same edge."""
        alive = self.owner()
        if alive is not None and alive.array is self.array:
            return alive
        lost = node is None or self.index == REWRITTEN
        edge = None if lost else node if node.outputs == 1 else Port(node, self.index, node.likes[self.index])
        result = wrap(self.array, edge)
        result.vc = self.counter
        if edge is not None:
            edge.vc = self.counter
        self.owner = weakref.ref(result)
        return result


class FunctionCtx:
    """The first argument of `forward` (or `setup_context`) and of `backward`; attributes of any other name are the user's.

    Read in `backward`: `saved_tensors`, `needs_input_grad` (a bool per argument).
    """

    requires_grad = True  # as torch's contexts say
    needs_input_grad: tuple[bool, ...]
    to_save: Any = None
    saved_for_forward: Any = None
    dirty_tensors: Any = None
    non_differentiable: Any = None
    materialize_grads: bool = True
    _materialize_non_diff_grads: bool = True
    _is_pure_view: bool = False  # set by the user: the one output is a view of the one input and may be written to
    _kept: Any = None  # None before the end of forward, then the saved tensors, then RELEASED
    _plain: bool = True  # whether `_kept` is what `saved_tensors` returns, as it stands
    _clears: bool = False  # whether they are let go when they are first asked for
    _cleared: bool = False  # whether they were
    _epoch: int = 0  # the last write anywhere before they were saved
    _node: Any = None  # a weak reference to the node, where one is needed
    _outputs: Any = None  # outputs assigned to attributes: name -> Output
    _inputs: Any = None  # what forward was called with, where the context may hold intermediates

    # ---- called in forward
    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors (or None) for `backward`, which finds them in `saved_tensors`. A write to one of them is noticed there."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep tensors (or None) for `jvp`, which finds them in `saved_tensors`."""
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, TensorBase):
                raise AssertionError("save_for_forward expects all arguments to be tensors; you should save non-tensors as attributes on ctx.")
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Any) -> None:
        """Name the inputs that `forward` writes to; they have to be returned."""
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args: Any) -> None:
        """Name the outputs that take no gradient; `backward` gets zeros for them."""
        self.non_differentiable = args

    def mark_shared_storage(self, *pairs: Any) -> None:
        """Does nothing, with a FutureWarning: shared memory is noticed without it."""
        warnings.warn(_SHARED, FutureWarning, stacklevel=2)

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` gets zeros (True, the default) or None for an output that no gradient reached."""
        self.materialize_grads = value

    # ---- called in backward
    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What `save_for_backward` was given. RuntimeError after the graph was freed, or when one of them was written to."""
        kept = self._kept
        if kept is None:
            return ()
        if kept is RELEASED:
            raise RuntimeError(_ONCE if self._cleared else SECOND_TIME)
        if self._epoch != versions.WRITES:
            self._check(kept)
        found: tuple[Any, ...] = kept if self._plain else tuple(self._unpack(entry) for entry in kept)
        if self._clears:
            self._kept = RELEASED
            self._cleared = True
        return found

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """The old name of `saved_tensors`."""
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors

    @property
    def _raw_saved_tensors(self) -> tuple[Any, ...]:
        if self._kept is RELEASED:
            raise RuntimeError(SECOND_TIME)
        kept = () if self._kept is None else self._kept
        return tuple([SavedTensor(self, *self._access(place)) for place in range(len(kept))])

    def _access(self, place: int) -> tuple[Any, Any, Any]:
        """How `_raw_saved_tensors` reads one of them, exchanges it, and makes it a tensor."""

        def write(value: Any) -> None:
            self._kept = (*self._kept[:place], value, *self._kept[place + 1 :])
            self._plain = False

        def read() -> Any:
            return RELEASED if self._kept is RELEASED else self._kept[place]

        return read, write, lambda: self._unpack(self._kept[place])

    # ---- what torch's context, which is the node itself, tells besides
    def name(self) -> str:
        """The name of the node's class."""
        return type(self).__name__

    @property
    def next_functions(self) -> Any:
        """Those of the node; there is none before the end of `forward`."""
        return self._own_node().next_functions

    @property
    def metadata(self) -> dict[Any, Any]:
        """The node's."""
        return self._own_node().metadata  # type: ignore[no-any-return]

    @property
    def _input_metadata(self) -> Any:
        return self._own_node()._input_metadata

    def _sequence_nr(self) -> int:
        return self._own_node()._sequence_nr()  # type: ignore[no-any-return]

    def _set_sequence_nr(self, number: int) -> None:
        self._own_node()._set_sequence_nr(number)

    def _register_hook_dict(self, tensor: Any) -> None:
        if not isinstance(tensor, TensorBase):
            raise RuntimeError("_register_hook_dict expected a Tensor")
        self._own_node()._register_hook_dict(tensor)

    def register_hook(self, fn: Callable[..., Any]) -> Any:
        """Call `fn(grad_inputs, grad_outputs)` after the node was run."""
        return self._own_node().register_hook(fn)

    def register_prehook(self, fn: Callable[..., Any]) -> Any:
        """Call `fn(grad_outputs)` before the node is run."""
        return self._own_node().register_prehook(fn)

    def _own_node(self) -> Any:
        """The node, which knows its context, and not the other way round: who asks pays for the search. RuntimeError before the end of `forward`."""
        node = None if self._node is None else self._node()
        if node is None:
            node = next((x for x in gc.get_referrers(self) if isinstance(x, Node)), None)
        if node is None:
            raise RuntimeError("the context of a custom Function has no node before the end of forward, or where nothing is recorded")
        return node

    # ---- called by the node
    def _keep(self, node: Any) -> None:
        """Take over what `save_for_backward` was given, at the end of forward."""
        kept = self.to_save
        self.to_save = None
        self._epoch = versions.WRITES
        for tensor in kept:
            if isinstance(tensor, TensorBase):
                fn = tensor.fn
                if fn is node or (type(fn) is Port and fn.e0 is node):
                    self._plain = False
                if tensor.rare is not None:
                    if tensor.rare.inference:
                        raise inference_refusal()
                    if is_rewritten(tensor, node):
                        self._plain = False
            elif tensor is not None:
                place = [x is tensor for x in kept].index(True)
                raise TypeError(f"save_for_backward can only save variables, but argument {place} is of type {type(tensor).__name__}")
        if modes.SPECIAL and modes.LOCAL.saved_hooks:
            self._plain = False
            kept = tuple(None if t is None else pack(t, node) for t in kept)
        elif not self._plain:
            self._node = weakref.ref(node)
            kept = tuple(self._entry(tensor, node) for tensor in kept)
        self._kept = kept
        if modes.SPECIAL and modes.LOCAL.anomaly is not None and isinstance(node, Node):
            anomaly.seal(node)

    def _entry(self, tensor: Any, node: Node) -> Any:
        if tensor is None or tensor.fn is None:
            return tensor
        if is_rewritten(tensor, node):
            return Output(tensor, REWRITTEN)
        maker, index = target(tensor.fn)
        return Output(tensor, index) if maker is node else tensor

    def _unpack(self, entry: Any) -> Any:
        if type(entry) is Output:
            return entry.tensor(self._node())
        return entry.unpack() if isinstance(entry, Packed) else entry

    def _all_kept(self) -> list[tuple[str, Any, Node | None]]:
        """What the node keeps alive by way of the context: name, array or `Packed`, edge; tensors in attributes too."""
        if self._kept is RELEASED:
            found: list[tuple[str, Any, Node | None]] = [("saved_tensors", RELEASED, None)]
        else:
            found = [(f"saved_tensors[{k}]", *_kept_entry(entry)) for k, entry in enumerate(self._kept or ()) if entry is not None]
        more = {**{name: x for name, x in self.__dict__.items() if name not in OWN}, **(self._outputs or {})}
        return found + [(f"ctx.{name}", *_kept_entry(x)) for name, x in more.items() if isinstance(x, (TensorBase, Output, np.ndarray))]

    def _check(self, kept: Sequence[Any]) -> None:
        """Something was written since; was it one of ours?"""
        for entry in kept:
            if entry is None or isinstance(entry, Packed):
                continue
            if type(entry) is Output:
                counter, edge = entry.counter, self._node()
            else:
                edge = entry.fn
                counter = entry.vc if entry.vc is not None or edge is None else edge.vc
            if counter is not None and counter.last > self._epoch:
                _refuse(self._epoch, counter, entry, edge)

    def _hide_outputs(self, tensors: Sequence[Any], node: Any) -> None:
        """Hold outputs that were assigned to attributes as arrays, so that the context does not keep its own node alive."""
        attributes = self.__dict__
        if attributes.keys() <= OWN:
            return
        for name, value in list(attributes.items()):
            if isinstance(value, TensorBase):
                for index, output in enumerate(tensors):
                    if value is output and value.fn is not None:
                        self._outputs = self._outputs or {}
                        self._outputs[name] = Output(value, REWRITTEN if is_rewritten(value, node) else index)
                        self._node = weakref.ref(node)
                        del attributes[name]
                        if not isinstance(self, _WithOutputs):
                            kind: Any = type(self)
                            self.__class__ = with_outputs(kind)
                        break


def is_rewritten(tensor: Any, node: Any) -> bool:
    """Whether a tensor is a view that the node's `forward` wrote to: its history goes by way of its base's."""
    base = None if tensor.rare is None else tensor.rare.base
    return base is not None and type(base.fn) is CopySlices and (base.fn.inner is node or node in base.fn.edges())


class _WithOutputs:
    """A context with outputs as attributes. A class of its own, because `__getattr__` slows down every attribute of the class that has it."""

    _outputs: Any
    _node: Any

    def __getattr__(self, name: str) -> Any:
        if name in self._outputs:
            return self._outputs[name].tensor(self._node())
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")


@functools.cache
def with_outputs(kind: Any) -> type[Any]:
    """The class of a context of some Function that has outputs as attributes."""
    return type(kind.__name__, (_WithOutputs, kind), {"__module__": kind.__module__})


_SHARED = (
    "`mark_shared_storage` is deprecated. Tensors with shared storages are automatically tracked. Note that calls to `set_()` are not tracked"
)
_ONCE = (
    "saved_tensors can only be accessed once when clear_saved_tensors_on_access=True is set on the autograd.Function. "
    "Either access saved_tensors only once, or set clear_saved_tensors_on_access=False."
)
OWN = {"needs_input_grad", "to_save", "saved_for_forward", "dirty_tensors", "non_differentiable", "materialize_grads",
       "_materialize_non_diff_grads", "_is_pure_view", "_clears", "_cleared", "_kept", "_plain", "_epoch", "_node",
       "_outputs", "_inputs"}  # fmt: skip


def _kept_entry(entry: Any) -> tuple[Any, Node | None]:
    """The array of a tensor that the context holds, and its edge; a `Packed` and an array are what they are."""
    if isinstance(entry, TensorBase):
        return entry.array, entry.fn
    return (entry.array, None) if type(entry) is Output else (entry, None)


def _refuse(epoch: int, counter: Any, entry: Any, edge: Any) -> NoReturn:
    maker = None if edge is None or edge.number == 0 else (edge, entry.index) if type(entry) is Output else target(edge)
    raise modified(epoch, counter, entry.array, maker, type(entry) is Output)
