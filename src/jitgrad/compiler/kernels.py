"""Kernels of users (`jit_function`) in a trace: a call of the forward, later one of the backward, both inside the generated function.

The program calls the jitted function on arrays over its own memory and copies what it returns to where it belongs. What the forward
hands to the backward alone - scratch, of any shape - stays in variables of the program.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from .._core.errors import KernelError
from .._core.settings import settings
from .._engine.node import target
from .._kernels.opaque import define
from .._tensor.base import TensorBase
from .memory import Memory
from .operations import Argument, Call, Unsupported, Value

Array = np.ndarray[Any, Any]
_NUMBERS: Final = {np.float32: "f4", np.float64: "f8", np.int64: "i8"}


def spelled_number(value: Any) -> str:
    """A number, string or tuple of those as it stands in a source."""
    if isinstance(value, tuple):
        return "(" + "".join(f"{spelled_number(item)}, " for item in value) + ")"
    if type(value) in (bool, int, str, type(None)):
        return repr(value)
    if type(value) is float:
        return repr(value) if math.isfinite(value) else "np.nan" if math.isnan(value) else "np.inf" if value > 0 else "-np.inf"
    if type(value) in _NUMBERS:
        return f"{_NUMBERS[type(value)]}({spelled_number(value.item())})"
    if type(value) is np.bool_:
        return repr(bool(value))
    raise Unsupported(f"a kernel is called with a {type(value).__name__}")


def word_of(function: Any, plan: Any) -> str:
    """The name that the program knows a user's function by."""
    if settings.bounds_check:
        raise Unsupported(f"the indices of {plan.contract.name} are checked (JITGRAD_BOUNDSCHECK)")
    if (getattr(function, "targetoptions", None) or {}).get("parallel"):
        raise Unsupported(f"{plan.contract.name} is a kernel with parallel=True")
    try:
        return define(function, getattr(function, "py_func", function))
    except KernelError as why:
        raise Unsupported(str(why)) from None


def results_of(name: str, gives: Sequence[Any], targets: Sequence[Value | None]) -> list[tuple[str, Any]]:
    """What becomes of each value that a kernel returns."""
    done: list[tuple[str, Any]] = []
    for place, given in enumerate(gives):
        if given.kind not in ("array", "number", "none"):
            raise Unsupported(f"a kernel returns a value of type {given.kind}")
        if place < len(targets):
            target = targets[place]
            done.append(("none", "") if target is None else ("scalar" if given.kind == "number" else "out", target))
        else:
            loose = given.kind == "array" and not (given.fresh and given.ordered)
            done.append(("copied" if loose else given.kind, f"{name}_{place}"))
    return done


def blank_text(array: Array) -> str:
    """An array that stands in for one that is never looked at."""
    return f"np.empty({array.shape!r}, np.{'bool_' if array.dtype == np.bool_ else array.dtype.name})"


class Note:
    """What a trace remembers of a call: the arguments that stand for what its node saved, in order, and the operation."""

    def __init__(self, saved: list[Argument], op: Call) -> None:
        self.saved, self.op = saved, op


class Kernels(Memory):
    """See the module's docstring; a part of `trace.Tracer`."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: dict[int, Note] = {}  # by identity of the node
        self.contracts: dict[int, Any] = {}  # of the kernels that were called

    def active(self) -> bool:
        """Whether calls are recorded."""
        raise NotImplementedError

    def give_up(self, why: str) -> None:
        """Nothing will be compiled."""
        raise NotImplementedError

    # ---- forward
    def kernel_called(self, plan: Any, args: Sequence[Any], call: Sequence[Any], outs: Sequence[Array], kept: Sequence[Any]) -> Note | None:
        """A kernel has run and has not brought home yet what it wrote; returns what `kernel_linked` wants."""
        if not self.active():
            return None
        try:
            return self.forward_call(plan, args, call, outs, kept)
        except Unsupported as why:
            self.give_up(str(why))
            return None

    def forward_call(self, plan: Any, args: Sequence[Any], call: Sequence[Any], outs: Sequence[Array], kept: Sequence[Any]) -> Note | None:
        """Put a forward into the graph."""
        contract, graph = plan.contract, self.graph
        saved = [self.argument(x, seen, contract.names[place]) for place, (x, seen) in enumerate(zip(args, call, strict=True))]
        label = "".join(c if c.isalnum() else "_" for c in contract.name).strip("_") or "kernel"
        mutated = {place: graph.value(args[place].array.shape, args[place].array.dtype, label) for place in contract.mutates}
        targets = [graph.value(out.shape, out.dtype, label) for out in outs]
        if not targets and not mutated:
            return None
        name = f"{label}_call{len(graph.operations)}"
        results = results_of(name, plan.forward.gives if kept else (), targets)
        op = Call([*mutated.values(), *targets], word=word_of(contract.forward, plan), arguments=list(saved), results=results, variable=name,
                  several=plan.forward.several, mutated=mutated)  # fmt: skip
        graph.add(op)
        self.contracts[id(contract)] = contract
        for place, value in mutated.items():
            self.put(args[place].array, value.whole())
            saved[place] = Argument("array", value.whole())
        for place, (how, what) in enumerate(results):
            if isinstance(what, str):
                saved.append(Argument("text", None, what or "None"))
                continue
            self.adopt(outs[place], what.whole())
            saved.append(Argument("text", None, f"{name}_{place}") if how == "scalar" else Argument("array", what.whole()))
        return Note(saved, op)

    def argument(self, x: Any, seen: Any, name: str) -> Argument:
        """An argument: an array over a contiguous value, or the text of a number."""
        if isinstance(x, TensorBase):
            view = self.graph.value_of(self.view(x)).whole()
            if seen is not x.array and id(seen) not in self.known:
                self.adopt(seen, view)
            return Argument("array", view)
        if isinstance(seen, np.ndarray):
            raise Unsupported(f"a kernel is given a NumPy array as '{name}' (make it a tensor outside)")
        return Argument("text", None, spelled_number(seen))

    def kernel_linked(self, note: Note | None, results: Sequence[Any]) -> None:
        """The results of a recorded call have their history."""
        if note is not None:
            for result in results:
                node = None if result.fn is None else target(result.fn)[0]
                if hasattr(node, "plan"):
                    self.notes[id(node)] = note
                    self.keep.append(node)

    # ---- backward
    def kernel_pulled(self, node: Any, grads: Sequence[Any], values: Sequence[Any], parts: Sequence[Any]) -> None:
        """The backward of a kernel has run."""
        if self.active():
            try:
                self.backward_call(node, grads, values, parts)
            except Unsupported as why:
                self.give_up(str(why))

    def backward_call(self, node: Any, grads: Sequence[Any], values: Sequence[Any], parts: Sequence[Any]) -> None:
        """Put a backward into the graph."""
        plan, graph = node.plan, self.graph
        contract, compiled, note = plan.contract, plan.compiled_back, self.notes.get(id(node))
        if note is None:
            raise Unsupported(f"the backward of a call of {contract.name} that was made elsewhere")
        arguments = self.incoming(node, grads, values, compiled.writes)
        blanks = dict(plan.fills)
        for place, argument in enumerate(note.saved):
            blank = blanks.get(place)
            arguments.append(argument if blank is None else Argument("text", None, blank_text(blank)))
        if contract.wants_needs:
            arguments.append(Argument("text", None, spelled_number(tuple(node.needs()))))
        targets = [None if part is None else graph.value(part.array.shape, part.array.dtype, "grad") for part in parts]
        outs = [value for value in targets if value is not None]
        if outs:
            name = f"{note.op.variable}_back{len(graph.operations)}"
            graph.add(Call(outs, word=word_of(contract.backward, plan), arguments=arguments, results=results_of(name, compiled.gives, targets),
                           variable=name, several=compiled.several, after=[out.whole() for out in note.op.outs]))  # fmt: skip
        for part, value in zip(parts, targets, strict=True):
            if part is not None and value is not None:
                self.adopt(part.array, value.whole())

    def incoming(self, node: Any, grads: Sequence[Any], values: Sequence[Any], writes: frozenset[int]) -> list[Argument]:
        """The gradients as the backward wants them: see `Plan.incoming`."""
        plan, done = node.plan, list[Argument]()
        for place, (grad, meta) in enumerate(zip(grads, node.metas(), strict=True)):
            if meta is None:
                continue
            view = self.graph.number(0.0, meta.shape, meta.dtype) if grad is None else self.view(grad)
            result = place - len(plan.contract.mutates)
            number = result >= 0 and not isinstance(values[plan.count + result], np.ndarray)
            kind = "element" if number else "copy" if len(done) in writes else "array"
            done.append(Argument(kind, self.graph.value_of(view).whole()))
        return done
