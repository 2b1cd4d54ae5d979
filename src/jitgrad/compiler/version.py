"""One compiled version of a function: the program of one trace, the tensors it works on, and the way in."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from .._core.locks import BUILDING
from .._engine.versions import Together
from .._kernels import store
from .._tensor.base import AccumulateGrad, version_of, wrap
from .._tensor.saved import count_of
from . import entry
from .derivative import Derivative
from .entry import FAILED
from .guards import Guards
from .history import hooks_of
from .operations import Source, Unsupported
from .program import Program
from .reasons import explained
from .results import Results
from .trace import Tracer


class Version:
    """See the module's docstring. `refresh` makes the entry anew when a captured tensor got other memory."""

    def __init__(
        self,
        name: str,
        tracer: Tracer,
        arguments: Sequence[Any],
        result: Any,
        guards: Guards,
        spec: Any,
        derivative: Derivative | None,
    ) -> None:
        self.group = Together()
        self.derivative = derivative
        self.name, self.spec, self.guards = name, spec, guards
        self.argument_count = len(arguments)
        self.keep = tracer.keep
        self.lock = threading.Lock()
        outside = {id(x.fn) for x in arguments} | {
            id(v.source.tensor.fn) for v in tracer.graph.sources if v.source is not None and v.source.kind == "captured"
        }
        made = {id(node) for node in tracer.new_leaves}
        leaves = [leaf for leaf in tracer.leaves.values() if id(leaf.node) not in made]
        if any(id(leaf.node) not in outside and leaf.node.grad is not None for leaf in leaves):
            raise Unsupported("a gradient flows to a tensor that the function does not read")
        nodes = [x.fn for x in arguments]
        cleared = [leaf.node for leaf in leaves if leaf.cleared and leaf.node.grad is None]
        self.cleared = [node for node in cleared if not any(node is fn for fn in nodes)]
        self.cleared_arguments = [k for k, fn in enumerate(nodes) if any(fn is node for node in cleared)]
        self.leaves = [leaf for leaf in leaves if leaf.node.grad is not None and leaf.node.grad is not leaf.before]
        self.added = [
            (leaf.node, self.grad_source(tracer, leaf))
            for leaf in leaves
            if leaf.node.grad is not None and leaf.node.grad is leaf.before
        ]
        self.arguments_of(arguments)
        self.results = Results(tracer, arguments, result, derivative is not None and not tracer.leaves)
        grads = [tracer.view(leaf.node.grad) for leaf in self.leaves]
        self.program = Program(tracer, [made.view for made in self.results.made], grads)
        self.text = self.program.write(name)
        self.drawn: list[tuple[int, int]] = []
        if derivative is not None:
            derivative.finish(tracer, f"{name}_backward")
        self.handed = [v.source.position for v in self.program.arguments() if v.source is not None]
        self.sources = [
            v.source for v in self.program.graph.sources if v.source is not None and v.source.kind == "captured"
        ]
        for tensor in [source.tensor for source in self.sources]:
            if tensor.fn is not None and type(tensor.fn) is not AccumulateGrad:
                raise Unsupported("a tensor from outside has a history of its own")
        self.note_histories()
        self.writes = self.writes_of(tracer)
        self.kernel: Callable[..., int] = lambda *_: -1
        self.numbers = np.zeros(max(len(self.program.numbers), 1))
        self.arena = np.empty(self.program.arena + 64, np.uint8)
        self.table = np.zeros(max(len(self.program.table.entries), 1), np.int64)
        self.hyper = [(options_read(*made), made[1]) for made in self.program.recipes]
        self.hyper_last: list[Any] = [None] * len(self.hyper)
        self.read_hyper()
        self.bumped: list[Any] = []

    def note_histories(self) -> None:
        """Edges and hooks as the trace saw them: when memory moves, these have to be the same."""
        fns = [source.tensor.fn for source in self.sources]
        self.histories = [(fn, None if fn is None else fn.rare) for fn in fns]
        self.hooks = [None if fn is None else hooks_of(fn.rare) for fn in fns]

    def writes_of(self, tracer: Tracer) -> list[tuple[Source, int]]:
        """How often each tensor from outside was written; all of it must have been seen by the tracer."""
        outside = [(root.source, root) for root in tracer.roots if root.source is not None and root.source.tensor is not None]
        if any(count_of(source.tensor) != root.count + root.writes for source, root in outside):
            raise Unsupported("a tensor is written by something that is no op")
        return [(source, root.writes) for source, root in outside if root.writes]

    def grad_source(self, tracer: Tracer, leaf: Any) -> Source:
        """Where the gradient that a leaf had before, and that was added to, is read."""
        root = tracer.known.get(id(leaf.before.array))
        if root is None or root.source is None or root.source.kind != "captured":
            raise Unsupported("a gradient is added to an argument's or another's memory")
        return root.source

    def arguments_of(self, arguments: Sequence[Any]) -> None:
        """What is checked of the arguments."""
        for x in arguments:
            if x.fn is not None and type(x.fn) is not AccumulateGrad and self.derivative is None:
                raise Unsupported("an argument has a history")
            if type(x.fn) is AccumulateGrad and x.fn.rare is not None and self.derivative is None:
                raise Unsupported("an argument has hooks")
        self.argument_nodes = [x.fn for x in arguments]
        self.argument_metas = [x.meta for x in arguments]
        self.argument_strides = [None if x.array.flags.c_contiguous else x.array.strides for x in arguments]
        self.argument_leaf = [x.fn is not None for x in arguments]
        same = [[(j, False) for j in range(k) if arguments[j] is arguments[k]] for k in range(len(arguments))]
        self.argument_same = [[(j, True) for j, _ in row] for row in same]

    def odd(self, tensor: Any) -> bool:
        """Whether a tensor is more unusual than a view of one without history."""
        rare = tensor.rare
        return rare.inference or (rare.base is not None and rare.base.fn is not None)

    # ---- memory
    def compile(self) -> None:
        """Compile the program, or load it from the store."""
        with BUILDING:
            from .._kernels import forks, program  # noqa: F401  (numba enters here)

            self.kernel = program.build(self.name, self.text, self.program.spec())
            if self.derivative is not None:
                self.derivative.compile(program.build)
        self.refresh()

    def attach(self, arguments: Sequence[Any], results: Sequence[Any]) -> None:
        """Give live results their history."""
        assert self.derivative is not None
        self.derivative.attach(arguments, results, self.drawn)

    def refresh(self) -> None:
        """Look up the memory of everything that is captured and make the entry."""
        for node, source in self.added:
            if node.grad is not None and node.grad.meta is source.tensor.meta:
                source.tensor = node.grad
        self.captured = [
            (source.tensor, source.tensor.array, *rest) for source, rest in zip(self.sources, self.histories, strict=True)
        ]
        self.guard_entries = [(item.holder, item.value) for item in self.guards.entries]
        self.guard_sizes = [sized for sized, _, _ in self.guards.sizes]
        self.guard_held = [
            (held.value if held.flat else held, list(held.value) if held.flat else None) for held in self.guards.held
        ]
        self.captured_metas = [t.meta for t, _, _, _ in self.captured]
        self.count_together([version_of(source.tensor) for source, writes in self.writes if source.kind == "captured" for _ in range(writes)])
        self.bumped_arguments = [
            source.position for source, writes in self.writes if source.kind == "arg" for _ in range(writes)
        ]
        for k, (kind, what) in enumerate(self.program.table.entries):
            self.table[k] = self.address(kind, what)
        self.new_grads()

    def count_together(self, counters: list[Any]) -> None:
        """Let counters of storages that each call writes share a count; one is there as often as its storage is written."""
        if counters != self.bumped:
            self.group.retired = True
            self.group, self.bumped = Together(), counters
            for counter in counters:
                counter.join(self.group)

    def __del__(self) -> None:
        self.group.retired = True

    def address(self, kind: str, what: Any) -> int:
        """Where an element of a stored value lies."""
        if kind == "size":
            return int(what)
        if kind == "grad":
            return 0
        array = self.arena if kind == "arena" else what.array if kind in ("tensor", "constant") else what.tensor.array
        at = int(array.__array_interface__["data"][0])
        return (at + 63) // 64 * 64 if kind == "arena" else at

    def new_grads(self) -> None:
        """Fresh memory for the gradients, and an entry that knows it."""
        grads = [wrap(np.empty(leaf.node.meta.shape, leaf.node.meta.dtype)) for leaf in self.leaves]
        self.marks = [[0, 0] for _ in grads]
        self.grad_tensors = [(x, x.array, mark) for x, mark in zip(grads, self.marks, strict=True)]
        for k, (kind, what) in enumerate(self.program.table.entries):
            if kind == "grad":
                self.table[k] = grads[what].array.__array_interface__["data"][0]
        module, _ = store.load("entry", entry.entry_source(self))
        self.enter, self.counts, self.hang = module.make(self)
        self.grad_tensors = []
        del grads
        found = self.counts()
        for k, mark in enumerate(self.marks):
            mark[:] = found[2 * k] + 1, found[2 * k + 1]  # one more when it hangs on its leaf

    def renew(self, nodes: tuple[Any, ...]) -> bool:
        """Some gradient of the last call doesn't hang on its leaf, or somebody else sees it; if there have to be new ones, the
        entry is another now (True); else all hang on their leaves.
        """
        for node in nodes:
            node.grad = None
        found = self.counts()
        seen = any(found[2 * k] != mark[0] - 1 or found[2 * k + 1] != mark[1] for k, mark in enumerate(self.marks))
        if seen:
            self.new_grads()
        else:
            self.hang(nodes)
        return seen

    def leaf_name(self, node: Any) -> str:
        """How the entry spells the accumulator of a leaf."""
        for place, fn in enumerate(self.argument_nodes):
            if fn is node:
                return f"x{place}.fn"
        for place, (_, _, fn, _) in enumerate(self.captured):
            if fn is node:
                return f"f{place}"
        raise Unsupported("a gradient of a tensor that is neither an argument nor read")

    plain_arguments = -1  # how many there are, where the function takes tensors by position and nothing else

    def moved(self) -> bool:
        """Whether a captured tensor has other memory of the same form than before."""
        if any(
            node.grad is not None and node.grad is not source.tensor and node.grad.meta is source.tensor.meta
            for node, source in self.added
        ):
            return True
        return any(
            t.array is not a and t.meta is m for (t, a, _, _), m in zip(self.captured, self.captured_metas, strict=True)
        )

    def explain(self) -> str:
        """What this version is made of."""
        return "\n".join(explained(self))

    def grad_tests(self) -> list[str]:
        """What must not be true of gradients that the function does not clear first."""
        tests = [
            f"{self.leaf_name(leaf.node)}.grad is not None"
            for leaf in self.leaves
            if not leaf.cleared and leaf.before is None
        ]
        places = {id(source): k for k, source in enumerate(self.sources)}
        return tests + [f"{self.leaf_name(node)}.grad is not t{places[id(source)]}" for node, source in self.added]

    def bump(self, tensor: Any) -> None:
        """Count a write to an argument."""
        tensor._bump()

    def read_hyper(self) -> bool:
        """Read the options of the optimizers; False where they ask for another rule."""
        place = 0
        for k, (optimizer, group, recipe, _) in enumerate(self.program.recipes):
            now = optimizer._recipe(group)
            if now.rule is not recipe.rule or now.flags != recipe.flags:
                return False
            values = recipe.read(group)
            self.numbers[place : place + len(values)] = values
            self.hyper_last[k] = self.hyper[k][0](group)
            place += len(values)
        return True

    def draw(self) -> None:
        """Reserve the random numbers of a call."""
        self.drawn = [stream.take(blocks) for _, stream, blocks in self.program.drawn]
        for (place, _, _), taken in zip(self.program.drawn, self.drawn, strict=True):
            self.table[place : place + 2] = np.array(taken, np.uint64).view(np.int64)

    def failed(self, status: int, arguments: Sequence[Any], nodes: Sequence[Any]) -> Any:
        """The program refused: an exception, or a reason to run eagerly this time."""
        self.dropped(nodes)
        if status >= 0:
            raise self.program.failed(status, self.table)
        for (_, stream, _), taken in zip(reversed(self.program.drawn), reversed(self.drawn), strict=True):
            stream.state = taken
        return FAILED

    def dropped(self, nodes: Sequence[Any]) -> None:
        """The program ended early: the gradients it has begun are nobody's."""
        for node in nodes:
            node.grad = None

    @property
    def digest(self) -> str:
        """A short name for the program."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:12]


class Noted(dict[str, Any]):
    """A copy of an optimizer's group that notes which options are read."""

    def __init__(self, group: dict[str, Any]) -> None:
        super().__init__(group)
        self.read: dict[str, None] = {}

    def __getitem__(self, key: str) -> Any:
        self.read[key] = None
        return super().__getitem__(key)


def options_read(optimizer: Any, group: dict[str, Any], recipe: Any, _: Any) -> Callable[[dict[str, Any]], Any]:
    """What gets, out of a group, the options that the update rule and its numbers depend on."""
    noted = Noted(group)
    optimizer._recipe(noted)
    recipe.read(noted)
    return itemgetter(*noted.read)


__all__ = ["Source", "Version"]
