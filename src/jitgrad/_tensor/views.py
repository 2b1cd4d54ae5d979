"""Views: tensors that share another's memory, and the history they share with it.

A view is tied to the tensor at the root of its chain, its base. An in-place write through any of them bumps the one version counter
they share; a view whose `seen` version lags behind gets its edge anew, as a strided view of the base (torch's
`AsStridedBackward0`), the next time somebody asks for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from .._core.late import LateModule
from .._engine import modes, versions
from .._engine.hooks import move_retained
from .._engine.node import LEAF, RELEASED, Node, Nowhere, Port, Undefined, next_number, target
from .._ops.views import memory_of
from .base import TensorBase, own_rare, version_of, wrap
from .nodes import Recorded, second_time, short_name

if TYPE_CHECKING:
    import copy

    from .._engine import anomaly
    from . import replay
else:
    copy, anomaly = LateModule("copy"), LateModule("jitgrad._engine.anomaly")
    replay = LateModule("jitgrad._tensor.replay")

Array = np.ndarray[Any, Any]


def wrap_view(source: Any, array: Array, several: bool = False) -> Any:
    """A tensor around a view of `source`'s memory (of `source` itself when the array is the same)."""
    view = wrap(array)
    rare = own_rare(view)
    of = source.rare
    if of is not None and of.inference:
        rare.inference = True
        return view
    rare.base = of.base if of is not None and of.base is not None else source
    view.vc = version_of(source)
    rare.seen = view.vc.count
    if modes.LOCAL.inference or (of is not None and of.creation == "inference"):
        rare.creation = "inference"
    elif not modes.grad_enabled():
        rare.creation = "no_grad"
    elif several:
        rare.creation = "multi"
    elif of is not None:
        rare.creation = of.creation
    return view


def edge_of(tensor: Any) -> Any:
    """The edge others record, brought up to date if the tensor is a view whose base was written to."""
    rare = tensor.rare
    if rare is None or rare.base is None or (rare.base.fn is None and (tensor.fn is None or tensor.fn.number == LEAF)):
        return tensor.fn
    if tensor.vc.count != rare.seen:
        if rare.creation is not None:
            raise creation_refusal(tensor, "its base or another view of its base has been")
        old, tensor.fn = tensor.fn, strided_edge(tensor, rare.base)
        rare.seen = tensor.vc.count
        if rare.retains is not None:
            move_retained(old, tensor.fn, rare.retains)
    return Nowhere(tensor.meta) if tensor.fn is None else tensor.fn


def only_inference(inputs: Any) -> bool:
    """Whether all inputs of an op are inference tensors: such a call is not recorded, even where they take gradients."""
    return all(x is None or (x.rare is not None and x.rare.inference) for x in inputs)


def creation_refusal(view: Any, what: str) -> RuntimeError:
    """The error for a write that the history of a view, because of how it was made, can't follow."""
    how, edge = view.rare.creation, view.fn
    if edge is not None and edge.number == LEAF:
        edge = None
    if edge is not None and how in _MODES:
        maker, index = target(edge)
        mode = "inference" if how == "inference" else "no_grad"
        text = (f"Output {index} of {short_name(maker)} is a view of a view which was created in {mode} mode and {what} "
                "modified inplace")  # fmt: skip
    elif edge is not None:
        maker, index = target(edge)
        text = f"Output {index} of {short_name(maker)} is a view and {what} modified inplace"
    else:
        mode = "inference" if how == "inference" else "no_grad"
        text = f"A view was created in {mode} mode and {what} modified inplace" + ("" if how in _MODES else " with grad mode enabled")
    if how in _MODES:
        mode, outside = _MODES[how]
        return RuntimeError(f"{text} {outside}. Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your "
                            f"code by moving both the view and the inplace either both inside the {mode} block (if you don't want the inplace "
                            "to be tracked) or both outside (if you want the inplace to be tracked).")  # fmt: skip
    return RuntimeError(f"{text}. {_MULTIPLE if how == 'multi' else _CUSTOM}")


_MODES: Final = {"no_grad": ("no_grad", "with grad mode enabled"), "inference": ("inference_mode", "in normal mode")}
_MULTIPLE: Final = (
    "This view is the output of a function that returns multiple views. Such functions do not allow the output views to be modified inplace. "
    "You should replace the inplace operation by an out-of-place one."
)
_CUSTOM: Final = (
    "This view was created inside a custom Function (or because an input was returned as-is) and the autograd logic to handle view+inplace would "
    "override the custom backward associated with the custom Function, leading to incorrect gradients. This behavior is forbidden. You can fix this "
    "by cloning the output of the custom Function."
)


def mark_inference(tensor: Any) -> Any:
    """Make a fresh result an inference tensor."""
    own_rare(tensor).inference = True
    return tensor


def place(array: Array) -> int:
    """Where an array begins in its memory, in bytes."""
    return address(array) - address(memory_of(array))


def address(array: Array) -> int:
    """Where the first element lies."""
    found: int = array.__array_interface__["data"][0]  # 0.6 us
    return found


class Geometry:
    """Where a view lies in its base: offset in bytes, shape and strides; on arrays that are laid out as the base is."""

    __slots__ = ("base_shape", "base_strides", "dtype", "offset", "shape", "strides")

    def __init__(self, view: Array, base: Array) -> None:
        together = memory_of(view) is memory_of(base)
        self.offset = address(view) - address(base) if together else place(view) - place(base)
        self.shape, self.strides = view.shape, view.strides
        self.base_shape, self.base_strides, self.dtype = base.shape, base.strides, base.dtype

    def fresh(self, fill: Array | None) -> Array:
        """A new array laid out as the base is, zero or a copy of `fill`."""
        extent = sum((n - 1) * abs(step) for n, step in zip(self.base_shape, self.base_strides, strict=True)) // self.dtype.itemsize + 1
        flat = np.zeros(extent, self.dtype)
        full = np.lib.stride_tricks.as_strided(flat, self.base_shape, self.base_strides)
        if fill is not None:
            full[...] = fill
        return full

    def part(self, full: Array) -> Array:
        """The view's elements of an array made by `fresh`."""
        flat = full.base if full.base is not None else full
        while flat.base is not None:
            flat = flat.base
        try:
            return np.ndarray(self.shape, self.dtype, flat, self.offset, self.strides)
        except ValueError:  # the base was given other memory (`.data =`)
            unit = self.dtype.itemsize
            steps = [step // unit for step in self.strides]
            raise RuntimeError(f"setStorage: sizes {list(self.shape)}, strides {steps}, storage offset {self.offset // unit}, and itemsize {unit} "
                               f"are out of bounds for storage of size {flat.nbytes}") from None  # fmt: skip

    def spread(self, grad: Array) -> Array:
        """The transpose of taking the part: zeros with `grad` added at its places."""
        full = self.fresh(None)
        part = self.part(full)
        if any(step == 0 and n > 1 for n, step in zip(self.shape, self.strides, strict=True)):
            for place in np.ndindex(self.shape):
                part[place] += grad[place]
        else:
            part[...] = grad
        return full


class AsStridedBackward0(Recorded):
    """The edge of a view whose base was written to."""

    __slots__ = ("geometry",)
    geometry: Geometry

    def pull(self, grads: list[Any]) -> list[Any]:
        return [self.geometry.spread(grads[0])]

    def pull_recorded(self, grads: list[Any]) -> list[Any]:
        return [spread_recorded(self.geometry, grads[0])]


class CopySlices(Recorded):
    """The history of a base after an in-place op on a view of it: the view's part of the gradient goes through the op's own node.

    Where several nodes stand between the op's result and the view's old value (an op made of others), `inner` is None and the second
    edge leads to the result: the part goes there.
    """

    __slots__ = ("geometry", "inner")
    geometry: Geometry
    inner: Any

    def pull(self, grads: list[Any]) -> list[Any]:
        if self._saved is RELEASED:
            second_time()
        full = self.geometry.fresh(grads[0])
        part = self.geometry.part(full)
        if self.inner is None:
            taken = np.array(part, order="C", copy=True)
            part[...] = 0
            return [full, taken]
        try:
            results = self.inner.apply(np.array(part, order="C", copy=True), True)
            results = [results] if self.inner.arity == 1 else list(results)
        except Undefined as stop:
            results = list(stop.results)
        part[...] = 0 if results[0] is None else results[0]
        return [full, *results[1:]]

    def pull_recorded(self, grads: list[Any]) -> list[Any]:
        if self._saved is RELEASED:
            second_time()
        part = part_recorded(self.geometry, grads[0])
        if self.inner is None:
            return [overlaid(self.geometry, grads[0], None), part]
        # a twin, because what the op saved of its own result leads back to its node, which would then be released twice
        inner = copy.copy(self.inner)
        inner.rare = None
        if self.inner.rare is not None and self.inner.rare.duals:
            inner._extras().duals = self.inner.rare.duals
        results = list(inner.call((part,), True, True))
        return [overlaid(self.geometry, grads[0], results[0]), *results[1:]]

    def release(self) -> None:
        self._saved = RELEASED
        if self.inner is not None:
            self.inner.release()

    def kept_values(self) -> list[tuple[str, Any, Node | None]]:
        return [] if self.inner is None else self.inner.kept_values()

    def check_saved(self) -> None:
        if self.inner is not None:
            self.inner.check_saved()


class PartBackward0(Recorded):
    """A part of a gradient, recorded; the transpose of `SpreadBackward0`."""

    __slots__ = ("geometry",)
    geometry: Geometry

    def pull(self, grads: list[Any]) -> list[Any]:
        return [self.geometry.spread(grads[0])]

    def pull_recorded(self, grads: list[Any]) -> list[Any]:
        return [spread_recorded(self.geometry, grads[0])]


class SpreadBackward0(Recorded):
    """A part of a gradient put in its place, recorded."""

    __slots__ = ("geometry",)
    geometry: Geometry

    def pull(self, grads: list[Any]) -> list[Any]:
        return [np.array(self.geometry.part(self.geometry.fresh(grads[0])), order="C", copy=True)]

    def pull_recorded(self, grads: list[Any]) -> list[Any]:
        return [part_recorded(self.geometry, grads[0])]


def part_recorded(geometry: Geometry, tensor: Any) -> Any:
    """The view's part of a tensor that has the base's shape."""
    array = np.array(geometry.part(geometry.fresh(tensor.array)), order="C", copy=True)
    return _linked(PartBackward0, geometry, tensor, array, False)


def spread_recorded(geometry: Geometry, tensor: Any) -> Any:
    """A tensor of the view's shape put into zeros of the base's."""
    return _linked(SpreadBackward0, geometry, tensor, np.array(geometry.spread(tensor.array), order="C", copy=True), True)


def overlaid(geometry: Geometry, tensor: Any, part: Any) -> Any:
    """A tensor of the base's shape with `part` (zeros for None) in the view's place, recorded: the writing of a slice, as in torch."""
    if modes.followed():
        rest = tensor - spread_recorded(geometry, part_recorded(geometry, tensor))
        return rest if part is None else rest + spread_recorded(geometry, part)
    full = geometry.fresh(tensor.array)
    geometry.part(full)[...] = 0 if part is None else part.array
    result = wrap(np.array(full, order="C", copy=True))
    edges = (edge_of(tensor), None if part is None else edge_of(part))
    if edges != (None, None) and modes.grad_enabled():
        result.fn = strided_node(CopySlices, geometry, edges, result.meta)
        result.fn.inner = None
    return result


def _linked(kind: Any, geometry: Geometry, tensor: Any, array: Array, spread: bool) -> Any:
    if modes.SPECIAL and modes.LOCAL.tracer is not None:
        modes.LOCAL.tracer.parted(geometry, tensor, array, spread)
    result = wrap(array)
    if modes.SPECIAL and modes.LOCAL.level is not None:
        remake = spread_recorded if kind is SpreadBackward0 else part_recorded
        modes.LOCAL.level.applied(lambda tangent: remake(geometry, tangent), tensor, result)
    if tensor.fn is not None and modes.grad_enabled():
        result.fn = strided_node(kind, geometry, (tensor.fn,), result.meta)
    return result


def strided_node(kind: Any, geometry: Geometry, edges: tuple[Node | None, ...], meta: Any) -> Any:
    """A node that works by a view's geometry."""
    node = kind()
    node.geometry = geometry
    node._edges, node._saved, node._counters, node.statics = edges, {}, (), ()
    node.outputs, node.meta, node.epoch, node.number = 1, meta, versions.WRITES, next_number()
    node.buf = node.rare = node.vc = None
    return node


def strided_edge(view: Any, base: Any, geometry: Geometry | None = None) -> Any:
    """A new edge for a view, from the base's present history."""
    if view.rare.replay is not None:
        return replay.edge(view, base)
    node = strided_node(AsStridedBackward0, geometry or Geometry(view.array, base.array), (base.fn,), view.meta)
    node.vc = view.vc
    return node


def rebase(view: Any, base: Any, inner: Any, old: Any) -> None:
    """After an in-place op on a view: the base's history goes on through `CopySlices` around the op's node.

    `inner` is the edge of the op's result, `old` that of the view's value before.
    """
    ends = list(inner.edges())
    direct = type(inner) is not Port and bool(ends) and ends[0] is old
    edges = (base.fn, *ends[1:]) if direct else (base.fn, inner)
    geometry = Geometry(view.array, base.array)
    node = strided_node(CopySlices, geometry, edges, base.meta)
    node.inner = inner if direct else None
    node.vc = base.vc
    if base.rare is not None and base.rare.retains is not None:
        move_retained(base.fn, node, base.rare.retains)
    if modes.SPECIAL and modes.LOCAL.anomaly is not None:
        anomaly.note(node)
    base.fn = node
    view.fn = strided_edge(view, base, geometry)
    view.rare.seen = view.vc.count


__all__ = ["CopySlices", "TensorBase", "edge_of", "mark_inference", "rebase", "wrap_view"]
