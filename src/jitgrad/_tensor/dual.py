"""Forward mode: levels, and the tangents that tensors have at them.

A `Level` is a mode of `invoke`: while one is entered every op call goes through `Level.call`, which runs the op one level further out
and computes the tangents of its results there too, by the rule of the op's kind (`dual_rules.py`). So levels nest, tangents are
recorded like anything else, and no op knows of any of it. Outside of all levels nothing but the flag `modes.SPECIAL` is read.

A tensor's tangents are in `rare.dual`. A view's tangent is the same view of its base's tangent, and a write to a tensor is a write to
its tangent, so that views and bases agree about tangents as they agree about elements.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from .._core.dtypes import from_numpy
from .._engine import modes
from .._engine.node import target
from .._ops import views
from .base import TensorBase, own_rare, wrap
from .views import address

SEVERED: Final = object()  # for `stem`: the tangent is nobody else's, although the memory is


class Dual:
    """The tangents of a tensor by level; `stem` is the tensor that its tangents are views of, where that is not its base."""

    __slots__ = ("__weakref__", "stem", "tangents")

    def __init__(self, stem: Any = None) -> None:
        self.tangents: dict[Level, Any] = {}
        self.stem = stem


class Level:
    """One forward derivative. `outer` is the level around it, or None; `duals` those to be cleared at the end.

    `rule` makes a call and returns the results and their tangents.
    """

    __slots__ = ("duals", "number", "outer", "rule")

    def __init__(self, rule: Callable[..., tuple[Any, Sequence[Any]]], number: int) -> None:
        self.duals: weakref.WeakSet[Dual] = weakref.WeakSet()
        self.outer: Any = None
        self.number = number
        self.rule = rule

    # ---- entering and leaving
    def enter(self) -> None:
        """Make this the innermost level of the thread."""
        self.outer, modes.LOCAL.level = modes.LOCAL.level, self
        modes.enter_special(1)

    def leave(self) -> None:
        """Go back to the level around it; all tangents of this level are forgotten."""
        modes.LOCAL.level = self.outer
        modes.enter_special(-1)
        for dual in list(self.duals):
            dual.tangents.pop(self, None)

    def outwards(self) -> Iterator[Level]:
        """This level and those around it; while one is handed out, the level around it is the thread's innermost."""
        local = modes.LOCAL
        was = local.level
        level: Any = self
        try:
            while level is not None:
                local.level = level.outer
                yield level
                level = level.outer
        finally:
            local.level = was

    # ---- tangents
    def of(self, tensor: Any) -> Any:
        """The tensor's tangent at this level, or None; a view's is found through what it is a view of."""
        rare = tensor.rare
        if rare is None:
            return None
        dual = rare.dual
        if dual is not None:
            found = dual.tangents.get(self)
            if found is not None:
                return found
        stem = stem_of(rare)
        whole = None if stem is None else self.of(stem)
        if whole is None:
            return None
        was, modes.LOCAL.level = modes.LOCAL.level, self.outer
        recording = modes.set_grad(True)  # as when the view was made; or else it could not be written to
        try:
            self.hold(tensor, part_of(whole, tensor, stem))
        finally:
            modes.set_grad(recording)
            modes.LOCAL.level = was
        return tensor.rare.dual.tangents[self]

    def hold(self, tensor: Any, tangent: Any) -> None:
        """Let a tensor have a tangent."""
        rare = own_rare(tensor)
        if rare.dual is None:
            rare.dual = Dual()
        rare.dual.tangents[self] = tangent
        self.duals.add(rare.dual)

    def give(self, tensor: Any, tangent: Any, written: bool = False) -> None:
        """Give a tensor a tangent, laid out as the tensor is; called one level further out.

        `written`: it comes from a write, so what the tensor is a view of gets one too, of zeros elsewhere.
        """
        stem = stem_of(tensor.rare) if written and tensor.rare is not None else None
        if stem is not None and same_layout(tensor, stem):  # all of it, so they share the tangent
            self.give(stem, tangent, True)
            tangent = self.of(stem)
        elif stem is not None:
            self.give(stem, zeros_like(stem), True)
            part = part_of(self.of(stem), tensor, stem)
            part.copy_(tangent)
            tangent = part
        elif not same_layout(tensor, tangent):
            laid = zeros_like(tensor, tangent.meta.dtype)
            laid.copy_(tangent)
            tangent = laid
        self.hold(tensor, tangent)

    # ---- the stages of a call
    def call(self, op: Any, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
        """An op call: the op itself and its tangents, one level further out."""
        if op.variadic and inputs and isinstance(inputs[0], (list, tuple)):
            inputs = tuple(inputs[0])
        tangents = [self.of(x) if isinstance(x, TensorBase) else None for x in inputs]
        local = modes.LOCAL
        local.level = self.outer
        try:
            results, found = self.rule(op, inputs, statics, tangents)
            outs = results if isinstance(results, (tuple, list)) else (results,)
            if op.is_view:
                inherit(outs, inputs[0])
            for out, tangent in zip(outs, found, strict=False):
                if tangent is not None:
                    self.give(out, tangent)
            self.note(op, inputs, outs)
        finally:
            local.level = self
        return results

    def note(self, op: Any, inputs: Sequence[Any], outs: Sequence[Any]) -> None:
        """Let the node that was recorded know the tangents of what it saved, for a backward that is differentiated forward."""
        edge: Any = next((out.fn for out in outs if out.fn is not None), None)
        node: Any = None if edge is None else target(edge)[0]
        saved = getattr(node, "_saved", None)
        if not saved or op.is_view:
            return
        named = dict(zip(op.inputs, inputs, strict=False))
        if len(outs) == 1:
            named["result"] = outs[0]
        named |= {f"result{index}": out for index, out in enumerate(outs)}
        for name, value in saved.items():
            x = named.get(name)
            tangent = self.of(x) if isinstance(x, TensorBase) else None
            if tangent is not None:
                cast = isinstance(value, np.ndarray) and value.dtype != tangent.meta.dtype  # saved in the dtype the op is computed in
                self.note_one(node, name, tangent.to(from_numpy(value.dtype)) if cast else tangent)

    def note_one(self, node: Any, name: Any, tangent: Any) -> None:
        """The tangent of one saved value."""
        dual = node._extras().duals.setdefault(name, Dual())
        dual.tangents[self] = tangent
        self.duals.add(dual)

    # ---- writes
    def copied(self, copy: Any, original: Any) -> None:
        """`copy` holds the elements that `original` had: its tangents too."""
        for level in self.outwards():
            tangent = level.of(original)
            if tangent is not None:
                level.give(copy, tangent.clone())

    def stored(self, tensor: Any, result: Any) -> None:
        """The elements of `result`, broadcast and cast, were written into `tensor`."""
        for level in self.outwards():
            old, new = level.of(tensor), level.of(result)
            if old is not None:
                old.copy_(zeros_like(old) if new is None else new)
            elif new is not None:
                level.give(tensor, zeros_like(tensor).copy_(new), True)

    def applied(self, function: Any, tensor: Any, result: Any) -> None:
        """`result` is `function(tensor)`, which is linear."""
        for level in self.outwards():
            tangent = level.of(tensor)
            if tangent is not None:
                level.give(result, function(tangent))

    def became(self, tensor: Any, result: Any) -> None:
        """`tensor` is another view of its memory from now on, as `result` is."""
        for level in self.outwards():
            tangent = level.of(result)
            if tangent is not None:
                level.hold(tensor, tangent)


def stem_of(rare: Any) -> Any:
    """The tensor that a tensor's tangents are views of, or None."""
    stem = rare.base if rare.dual is None or rare.dual.stem is None else rare.dual.stem
    return None if stem is SEVERED else stem


def inherit(outs: Sequence[Any], source: Any) -> None:
    """Views of a tensor that has a tangent of its own, or of a view of one, are tied to that."""
    dual = None if source.rare is None else source.rare.dual
    if dual is None or dual.stem is None:
        return
    for out in outs:
        rare = own_rare(out)
        if rare.dual is None:
            rare.dual = Dual()
        rare.dual.stem = source if dual.stem is SEVERED else dual.stem


def alias(tensor: Any) -> Any:
    """A view of the whole tensor whose tangents are its own; made without looking at those of the tensor."""
    local = modes.LOCAL
    level, local.level = local.level, local.level.outer
    try:
        result = views.view_op(tensor, tensor.meta.shape)
    finally:
        local.level = level
    rare = own_rare(result)
    rare.dual = rare.dual or Dual()
    rare.dual.stem = SEVERED
    return result


def check_size(tensor: Any, tangent: Any) -> None:
    """RuntimeError for a tangent of another shape."""
    if tensor.meta.shape != tangent.meta.shape:
        raise RuntimeError("Trying to set a forward gradient that has a different size than that of the original Tensor, this is not supported. "
                           f"Tensor is of size {list(tensor.meta.shape)} while the given forward gradient is of size "
                           f"{list(tangent.meta.shape)}.")  # fmt: skip


# ---- layout
def start_of(array: np.ndarray[Any, Any]) -> tuple[int, int]:
    """How many bytes into its memory an array starts, and how many that memory has."""
    owner: Any = array
    while True:
        below = owner.base
        if below is not None and not isinstance(below, np.ndarray):  # what a view was made by, with other strides
            below = getattr(below, "owner", getattr(below, "base", None))
        if not isinstance(below, np.ndarray):
            break
        owner = below
    return address(array) - address(owner), owner.nbytes


def same_layout(tensor: Any, tangent: Any) -> bool:
    """Whether views of one are views of the other: shape, strides, start and size of the memory."""
    a, b = tensor.array, tangent.array
    if a.base is None and b.base is None and tensor.meta is tangent.meta and tensor.meta.plain:
        return True
    if a.shape != b.shape:
        return False
    if a.size == 0:
        return True
    if a.dtype == b.dtype and any(n > 1 and one != other for n, one, other in zip(a.shape, a.strides, b.strides, strict=True)):
        return False
    if a.dtype != b.dtype:
        return bool(a.flags.c_contiguous and b.flags.c_contiguous and a.base is None and b.base is None)
    return start_of(a) == start_of(b)


def zeros_like(tensor: Any, dtype: Any = None) -> Any:
    """Zeros in a memory that is laid out as the tensor's is."""
    array, dtype = tensor.array, dtype or tensor.array.dtype
    unit = array.itemsize
    start, size = start_of(array)
    if min(array.strides, default=0) < 0 or any(step % unit for step in array.strides) or start % unit:
        return wrap(np.zeros(array.shape, dtype))
    flat = np.zeros(size // unit, dtype)
    if array.flags.c_contiguous and size == array.nbytes:
        return wrap(flat.reshape(array.shape) if array.ndim != 1 else flat)
    steps = tuple(step // unit * dtype.itemsize for step in array.strides)
    return wrap(np.ndarray(array.shape, dtype, flat, start // unit * dtype.itemsize, steps))


def part_of(whole: Any, tensor: Any, stem: Any) -> Any:
    """The part of a tangent that `tensor` is of `stem`; a view."""
    if tensor.meta.shape == stem.meta.shape and tensor.array.strides == stem.array.strides:
        return views.view_op(whole, whole.meta.shape)
    unit = stem.array.itemsize
    begin = (address(tensor.array) - address(stem.array)) // unit
    steps = tuple([step // unit for step in tensor.array.strides])
    layout = tuple([step // whole.array.itemsize for step in whole.array.strides])
    span = 1 + sum([(n - 1) * step for n, step in zip(whole.meta.shape, layout, strict=True)]) if whole.meta.numel else 0
    return views.as_strided_op(whole, tensor.meta.shape, steps, begin, 0, layout, span)


__all__ = ["SEVERED", "Dual", "Level", "alias", "check_size", "inherit", "same_layout", "zeros_like"]
