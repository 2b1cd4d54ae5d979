"""The trace: one real run of the user's function, every op call of which also lands in the graph.

A traced tensor is known by its array. Each array belongs to a `Root`, a piece of memory with a current value; a view is its geometry
within the root's memory. A write gives the root a new value, so the graph itself has no writes. What comes in unseen is captured by
reference if it was there before the run; if it was made during the run by something that is no op, the trace gives up.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from .._core.stream import DEFAULT
from .._engine import modes
from .._expr import var
from .._ops.derived import Map as MapOp
from .._ops.kinds import Adjoint, Linear
from .._ops.maps import Elementwise
from .._tensor.base import AccumulateGrad, TensorBase
from . import lower_losses, lower_places, lower_rows, rearrange  # noqa: F401  (they fill the table)
from .brackets import Brackets
from .draws import drawn
from .kernels import Kernels
from .lower import LOWERINGS, lower_map, reshape
from .memory import Root
from .operations import Source, Unsupported, Update, View, Write, contiguous_strides
from .rearrange import collect, convert

Array = np.ndarray[Any, Any]
_PACKAGE: Final = __name__.partition(".")[0]
_OWN: Final = frozenset({_PACKAGE, *sys.stdlib_module_names}) - {"__main__"}
_FUNCTIONS: Final = (f"{_PACKAGE}.autograd.function", f"{_PACKAGE}.autograd._node")


class LeafGrad:
    """What happened to the `.grad` of a leaf: whether the run first of all cleared it, and what it was before."""

    def __init__(self, node: AccumulateGrad, cleared: bool, before: Any) -> None:
        self.node, self.cleared, self.before = node, cleared, before


def user_line() -> str:
    """File and line of the innermost frame outside the package and the standard library."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _OWN:
        frame = frame.f_back
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def in_function() -> bool:
    """Whether an `autograd.Function` of the user is running."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "") not in _FUNCTIONS:
        frame = frame.f_back
    return frame is not None


class Tracer(Kernels, Brackets):
    """Records a run; `arguments` are its tensors by position. After the run `broken` says why there is nothing to compile, if so."""

    def __init__(self, arguments: Sequence[Any]) -> None:
        super().__init__()
        self.broken = ""
        self.paused = False
        self.leaves: dict[int, LeafGrad] = {}
        self.new_leaves: list[Any] = []  # accumulators of leaves made on the way
        self.recipes: list[Any] = []
        self.read_as: dict[str, View] = {}  # the operands of the elementwise op at hand, in the dtype it computes in
        self.graph.streams[id(DEFAULT)] = DEFAULT.state
        self.count = len(arguments)
        for position, tensor in enumerate(arguments):
            if id(tensor.array) not in self.known:
                self.source(tensor, Source("arg", position, tensor), f"arg{position}")

    def __enter__(self) -> Tracer:
        modes.LOCAL.tracer = self
        modes.enter_special(1)
        return self

    def __exit__(self, *exception: object) -> None:
        modes.LOCAL.tracer = None
        modes.enter_special(-1)

    # ---- hooks of the tensor layer
    def give_up(self, why: str) -> None:
        """Nothing will be compiled; the run goes on as it is."""
        if not self.broken:
            line = user_line()
            self.broken = why + (f" ({line})" if line else "")
            if "needs a value" in why and in_function():
                self.broken += "; write this Function as a jitgrad.jit_function, which is compiled with the rest"

    def active(self) -> bool:
        """Whether calls are recorded."""
        return not (self.broken or self.paused)

    def call(self, run: Callable[..., Any], op: Any, inputs: Any, statics: Any) -> Any:
        """An op call: lowered, then run."""
        if not self.active():
            return run(op, inputs, statics)
        if getattr(op, "variadic", False) and inputs and isinstance(inputs[0], (list, tuple)):
            inputs = tuple(inputs[0])
        self.graph.line = user_line()
        lowered: Any = None
        try:
            lowered = self.lower(op, inputs, statics)
        except Unsupported as why:
            self.give_up(str(why))
        results = run(op, inputs, statics)
        if self.active():
            try:
                self.finish(op, inputs, lowered, results)
            except Unsupported as why:
                self.give_up(f"{getattr(op, 'name', op)}: {why}")
        return results

    def lower(self, op: Any, inputs: Sequence[Any], statics: Sequence[Any]) -> Any:
        """An op's form in the graph; None for a view."""
        graph = self.graph
        if isinstance(op, Elementwise):
            statics = statics or tuple(op.defaults[name] for name in op.statics)
            bound = op.resolve(inputs, statics)
            self.read_as = {}
            read = [self.view(tensor) for tensor in bound.tensors]
            views = [view if view.value.dtype == bound.compute or name in bound.map.conditions else convert(graph, view, bound.compute)
                     for view, name in zip(read, bound.map.inputs, strict=True)]  # fmt: skip
            self.read_as = dict(zip(bound.map.inputs, views, strict=True))
            return lower_map(graph, bound.map, views, bound.params, bound.shape, bound.compute, bound.out)
        if isinstance(op, MapOp):
            views = [self.view(tensor) for tensor in inputs]
            shape = np.broadcast_shapes(*(view.shape for view in views))
            kind = views[0].value.dtype
            return lower_map(graph, op, views, statics, shape, kind, kind)
        given_views = [None if x is None else self.view(x) for x in inputs]
        if op.is_view and not isinstance(op, Adjoint):
            return None
        given = self.statics(op, statics)
        function = LOWERINGS.get(op.name)
        if function is None:
            if isinstance(op, (Adjoint, Linear)):
                return None  # most transposes of views are views
            raise Unsupported(f"{op.name.strip('_')} has no compiled form")
        return function(graph, given_views, given, op)

    def statics(self, op: Any, statics: Sequence[Any]) -> dict[str, Any]:
        """An op's other arguments by name."""
        if isinstance(op, Adjoint):
            call: Any = statics[0]
            given = dict(zip(call.op.statics, call.statics, strict=True))
            given |= {name: self.view(tensor) for name, tensor in call.saved.items() if tensor is not None}
            if op.op.name in ("_index", "_index_put"):
                given["key"] = self.by_tensor(given["key"])
            return {**given, "likes": call.likes, "needs": call.needs, "given": call.given}
        named = {name: op.defaults.get(name) for name in op.statics}
        named |= dict(zip(op.statics, statics, strict=False))
        if op.name in ("_index", "_index_put"):
            named["key"] = self.by_tensor(named["key"])
        return named

    def finish(self, op: Any, inputs: Sequence[Any], lowered: Any, results: Any) -> None:
        """Make the results, and the extras that the node saved, known."""
        outs = results if isinstance(results, (tuple, list)) else (results,)
        found = list(lowered) if isinstance(lowered, (tuple, list)) else [lowered]
        if isinstance(op, (Elementwise, MapOp)):
            self.adopt(outs[0].array, found[0])
            if isinstance(op, Elementwise):
                self.saved(outs[0].fn)
            return
        for place, out in enumerate(outs):
            try:
                self.result(out.array, found[place] if place < len(found) else None, inputs)
            except Unsupported as why:
                raise Unsupported(str(why) if found != [None] else "it has no compiled form") from None
        node = outs[0].fn
        saved = getattr(node, "_saved", None)
        if getattr(op, "extras", ()) and isinstance(saved, dict):
            for name, view in zip(op.extras, found[len(outs) :], strict=False):
                array = saved.get(name)
                if isinstance(array, np.ndarray) and id(array) not in self.known:
                    if math.prod(view.shape) == array.size:
                        self.adopt(array, reshape(self.graph, view, array.shape))
                    elif math.prod(view.shape) == 1:
                        self.adopt(array, reshape(self.graph, view, (1,) * array.ndim).broadcast(array.shape))

    def saved(self, node: Any) -> None:
        """Make operands known that a node saved in another dtype."""
        kept = getattr(node, "_saved", None)
        for name, array in kept.items() if isinstance(kept, dict) else ():
            view = self.read_as.get(name)
            if view is not None and isinstance(array, np.ndarray) and id(array) not in self.known:
                self.adopt(array, view.broadcast(array.shape))

    def wrapped(self, array: Array) -> None:
        """A tensor is being made around an array."""
        if id(array) in self.known or id(array) in self.fresh or self.paused:
            return
        self.keep.append(array)
        frame: Any = sys._getframe(2)
        module, name = frame.f_globals.get("__name__", ""), frame.f_code.co_name
        while name == "leaf":
            frame = frame.f_back
            module, name = frame.f_globals.get("__name__", ""), frame.f_code.co_name
        tail = module.rpartition(".")[2]
        plain = tail in ("creation", "ranges", "new_methods", "backward", "writes", "indexing") and not _holds_array(frame)
        self.fresh[id(array)] = f"constant {name}" if plain else f"{tail}.{name}"

    def drawn(self, kind: str, array: Array, stream: Any, low: float, span: float) -> None:
        """Random numbers were drawn into an array."""
        if self.active():
            try:
                self.adopt(array, drawn(self.graph, kind, array, stream, low, span))
            except Unsupported as why:
                self.give_up(str(why))

    def reseeded(self) -> None:
        """A generator is being set; checkpointing winds it back, which the draws themselves tell."""
        frame: Any = sys._getframe(2)
        while frame is not None and frame.f_globals.get("__name__", "") in ("contextlib", f"{_PACKAGE}._tensor.random"):
            frame = frame.f_back
        if frame is None or not frame.f_globals.get("__name__", "").startswith(f"{_PACKAGE}.utils.checkpoint"):
            self.give_up("the random number generator is set")

    def same(self, copy: Any, original: Any) -> None:
        """A tensor was copied by value."""
        if self.active():
            try:
                self.adopt(copy.array, self.view(original))
            except Unsupported as why:
                self.give_up(str(why))

    def written(self, tensor: Any, other: Any) -> None:
        """The elements of `other`, broadcast and cast, were written into `tensor`."""
        if not self.active():
            return
        try:
            array = tensor.array
            new = convert(self.graph, self.view(other), array.dtype).broadcast(array.shape)
            self.view(tensor)
            self.put(array, new)
        except Unsupported as why:
            self.give_up(str(why))

    def accumulated(self, node: Any, held: Any, grad: Any) -> None:
        """A gradient was added to a leaf's `.grad`."""
        if not self.active():
            return
        self.leaf(node, False, held)
        try:
            if node.grad.meta.dtype != node.meta.dtype:
                raise Unsupported("a gradient of another dtype than its leaf's")
            if held is None:
                if id(node.grad.array) not in self.known:
                    self.adopt(node.grad.array, self.view(grad))
            elif node.grad is held:
                unseen = id(held.array) not in self.known
                before, shape = self.view(held), held.array.shape
                self.known[id(held.array)].count -= unseen  # it was met after this very write
                total = self.graph.map(
                    "grad", var("x") + var("y"), {"x": before, "y": self.view(grad)}, shape, held.array.dtype
                )
                self.put(held.array, total)
        except Unsupported as why:
            self.give_up(str(why))

    def leaf(self, node: Any, cleared: bool, before: Any) -> None:
        """Note what first happened to a leaf's gradient."""
        if id(node) not in self.leaves:
            self.leaves[id(node)] = LeafGrad(node, cleared, before)

    def grad_set(self, tensor: Any, value: Any) -> None:
        """`.grad` is being assigned."""
        if type(tensor.fn) is AccumulateGrad:
            self.leaf(tensor.fn, True, tensor.fn.grad)
        elif value is not None and self.active():
            self.give_up("the .grad of a tensor that takes no gradient is assigned")

    def parted(self, geometry: Any, tensor: Any, array: Array, spread: bool) -> None:
        """The part of a tensor that a view of it covers was taken, or (`spread`) put into zeros."""
        if not self.active():
            return
        try:
            view, width = self.view(tensor), array.itemsize
            strides, offset = tuple(step // width for step in geometry.strides), geometry.offset // width
            if tuple(step // width for step in geometry.base_strides) != contiguous_strides(geometry.base_shape):
                raise Unsupported("a write to a view of a tensor that is not contiguous")
            if spread:
                self.adopt(array, collect(self.graph, geometry.base_shape, None, view, strides, offset))
            else:
                whole = self.graph.value_of(view)
                self.adopt(array, View(whole, geometry.shape, strides, offset))
        except Unsupported as why:
            self.give_up(str(why))

    def observed(self, tensor: Any, what: str) -> None:
        """Python reads a tensor: its values, or (`what` empty) only its memory."""
        if not self.active():
            return
        if what:
            self.give_up(f"{what} needs a value")
            return
        try:
            self.view(tensor)
        except Unsupported as why:
            self.give_up(str(why))

    # ---- optimizers
    def updated(self, optimizer: Any, group: Any) -> None:
        """One group of an optimizer makes its step."""
        recipe = recipe_of(optimizer, group) if self.active() else None
        if recipe is None:
            if self.active():
                self.give_up(f"{type(optimizer).__name__} has its own update, which is not made of ops")
            optimizer._update(group)
            return
        active = [p for p in group["params"] if p.grad is not None]
        try:
            before = [(self.view(p), self.view(p.grad)) for p in active]
        except Unsupported as why:
            self.give_up(str(why))
            before = []
        self.paused = True
        try:
            optimizer._update(group)
        finally:
            self.paused = False
        if not self.broken:
            try:
                self.record_update(optimizer, group, recipe, active, before)
            except Unsupported as why:
                self.give_up(str(why))

    def record_update(self, optimizer: Any, group: Any, recipe: Any, active: Sequence[Any], before: Any) -> None:
        """Put an optimizer's update into the graph."""
        place = len(self.recipes)
        counts = [float(optimizer.state[p]["step"].array) if recipe.counts else 0.0 for p in active]
        classes = list(dict.fromkeys(counts))  # parameters that have made as many steps go on together
        self.recipes.append(
            (
                optimizer,
                group,
                recipe,
                [(classes.index(n), optimizer.state[p].get("step")) for n, p in zip(counts, active, strict=True)],
            )
        )
        outputs = recipe.rule.outputs(recipe.flags)
        for index, (p, (view, grad)) in enumerate(zip(active, before, strict=True)):
            state = [optimizer.state[p][name] for name in recipe.states]
            if not p.meta.plain or any(x.meta is not p.meta for x in (p.grad, *state)):
                raise Unsupported("an optimizer whose tensors differ in layout or dtype")
            views = [view, grad]
            for tensor in state:
                root = self.known.get(id(tensor.array)) or self.source(
                    tensor, Source("captured", tensor=tensor), "state"
                )
                views.append(root.value.whole())
            numbers = {name: f"{name}_{place}_{classes.index(counts[index])}" for name in recipe.rule.params}
            outs = [self.graph.value(p.array.shape, p.array.dtype, name) for name in recipe.rule.written]
            self.graph.add(
                Update(outs, exprs=outputs, operands=dict(zip(recipe.rule.arrays, views, strict=True)), numbers=numbers)
            )
            for tensor, out in zip((p, *state), outs, strict=True):
                root = self.known[id(tensor.array)]
                root.value = out
                root.writes += tensor is p

    # ---- the end
    def writes(self) -> list[Write]:
        """What the run changed for good, in memory that was there before it."""
        return [
            Write(root.source, root.value)
            for root in self.roots
            if root.source is not None and root.value is not root.initial
        ]


def recipe_of(optimizer: Any, group: Any) -> Any:
    """How an optimizer's class describes its update, if the class that updates is the one that describes."""
    for kind in type(optimizer).__mro__:
        if "_update" in kind.__dict__:
            return optimizer._recipe(group) if "_recipe" in kind.__dict__ else None
    return None


def _holds_array(frame: Any) -> bool:
    """Whether a creation function was given a NumPy array or a tensor to copy."""
    return _has_array(frame.f_locals.get("data", frame.f_locals.get("ndarray", frame.f_locals.get("obj"))))


def _has_array(data: Any) -> bool:
    """Whether something is an array, or contains one in nested lists."""
    if isinstance(data, (list, tuple)):
        return any(map(_has_array, data))
    return isinstance(data, (np.ndarray, np.generic, TensorBase)) or hasattr(data, "__array__")


__all__ = ["LeafGrad", "Linear", "Root", "Tracer", "user_line"]
