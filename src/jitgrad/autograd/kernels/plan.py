"""A `jit_function` for one combination of dtypes, ranks and kinds of argument: what to compile, and what to make of the results."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn

import numpy as np

from ..._core.errors import KernelError
from ..._core.meta import Meta, meta_for
from ..._core.settings import settings
from ..._kernels.reasons import definition, place_in_traceback
from ..._kernels.user import Argument, Compiled, Given, compile_function, uncompiled
from .contract import Contract, python_function
from .node import BY_ARITY, KernelNode, ManyEdges, make_class
from .outcome import (
    Array,
    as_tuple,
    given_of,
    gives_of,
    gradient_array,
    is_narrow,
    number,
    output_array,
    scratch,
    separate,
)

FLOATS: Final = frozenset("fd")


class Plan:
    """What calls of one signature share.

    `arrays` are the positions of array arguments, `diff` of those that backward returns a gradient for. `saved_inputs`
    and `saved_outputs` are positions in a node's `values`, `loose` those of saved tensors that take no gradient.
    `simple`: floating-point outputs (`outs` of them), arrays or numbers (`number`: the first is one), nothing that shares memory with an argument;
    `many`: several arrays, which may share memory with each other; `bare`: one array and nothing else; `only` is
    then the position of the one tensor, if there is one. `straight` is the entry of backward where the types say that what it returns is right but
    for the shapes; `back` is the same where it takes nothing but gradients and values.
    """

    def __init__(
        self, contract: Contract, arguments: tuple[Argument, ...], floating: tuple[int, ...], tensors: tuple[int, ...]
    ) -> None:
        self.contract, self.arguments = contract, arguments
        self.count = len(arguments)
        self.arrays = tuple(place for place, argument in enumerate(arguments) if argument.dtype is not None)
        self.tensors = tensors
        allowed = contract.differentiable
        self.diff = floating if allowed is None else allowed
        self.forward: Compiled = compile_function(contract.forward, arguments, mutates=frozenset(contract.mutates))
        self.entry = explained(self.forward.entry, contract.python, self)
        self.mask: tuple[bool, ...] | None = None  # which of the values are saved
        self.fills: tuple[tuple[int, Array], ...] = ()
        self.loose: tuple[int, ...] = ()
        self.blank: Array | None = None
        self.only = -1  # the one tensor of a call, and what is saved in place of the result
        self.saved_inputs: tuple[int, ...] = ()
        self.saved_outputs: tuple[int, ...] = ()
        self.compiled_back: Compiled | None = None
        self.straight: Callable[..., Any] | None = None
        self.back: Callable[..., Any] | None = None
        self.metas: dict[tuple[int, ...], Meta] = {}
        gives = self.forward.gives
        one = gives[0] if gives else None
        self.number = one is not None and one.kind == "number"
        self.simple = gives is not None and self.is_simple(gives)
        self.bare = self.simple and not self.forward.several and not self.number
        self.narrow = tuple((k, given) for k, given in enumerate(gives or ()) if is_narrow(given))
        self.many = sum(given.kind == "array" for given in gives or ()) > 1
        self.outs = contract.outputs or 1
        self.dtype = one.dtype if one is not None and one.dtype is not None else np.dtype(np.float64)
        self.kept_outputs = self.outs if self.simple else 0  # how many of the saved results are outputs
        self.node = self.node_class(1)

    def is_simple(self, gives: Sequence[Given]) -> bool:
        """Whether all outputs are floating-point, and nothing that was returned shares memory with an argument."""
        outs = gives[: self.contract.outputs or 1]
        if self.contract.mutates or len(outs) < (self.contract.outputs or 1):
            return False
        known = all(given.kind in ("array", "number") and given.dtype is not None for given in outs)
        return (
            known
            and all(given.dtype is not None and given.dtype.char in FLOATS for given in outs)
            and all(given.fresh and given.ordered for given in gives if given.kind == "array")
        )

    def node_class(self, outputs: int) -> type[Any]:
        """The class of the nodes of calls with so many results."""
        base: type[KernelNode] = ManyEdges if outputs != 1 else BY_ARITY.get(len(self.diff), ManyEdges)
        return class_of(self.contract.node, base)  # type: ignore[arg-type]

    # ---- forward
    def run(self, call: Sequence[Any]) -> tuple[list[Array], list[Any]]:
        """Call forward: the outputs, and all that it returned as it is to be saved (outputs first, scratch then)."""
        values = as_tuple(self.forward, self.entry(*call))
        gives = gives_of(self.forward, values)
        function = self.contract.python
        wanted = self.contract.outputs
        if wanted is None:
            wanted = 0 if self.contract.mutates and not values else 1
        if len(values) < wanted:
            raise KernelError(
                f"{function.__name__} returned {len(values)} values, but has {wanted} output{'s' * (wanted != 1)}{definition(function)}"
            )
        outs = separate(
            [
                output_array(value, given, call, function, place)
                for place, (value, given) in enumerate(zip(values[:wanted], gives, strict=False))
            ]
        )
        kept = [
            out if given.kind == "array" else number(value, given)
            for out, value, given in zip(outs, values, gives, strict=False)
        ]
        others = [*call, *outs]
        kept += [scratch(value, given, others) for value, given in zip(values[wanted:], gives[wanted:], strict=True)]
        self.kept_outputs = wanted
        return outs, kept

    def output(self, place: int, value: Any) -> Array:
        """An output of a simple call as an array."""
        return value if type(value) is np.ndarray else np.array(value, self.result_dtype(place))

    def output_meta(self, shape: tuple[int, ...]) -> Meta:
        """The Meta of a simple result."""
        if len(self.metas) > 10_000:
            self.metas.clear()
        found = self.metas[shape] = meta_for(shape, self.dtype)
        return found

    def values(self, call: Sequence[Any], kept: Sequence[Any]) -> tuple[Any, ...]:
        """What a node saves of a call: all that backward looks at, stand-ins of the same types for the rest."""
        if self.mask is None:
            self.decide(call, kept)
        if not self.fills:
            return (*call, *kept)
        values = [*call, *kept]
        for place, blank in self.fills:
            values[place] = blank
        return tuple(values)

    def decide(self, call: Sequence[Any], kept: Sequence[Any]) -> None:
        """Which values are saved; known once forward has been seen to return something."""
        contract = self.contract
        grads = len(contract.mutates) + sum(1 for value in kept[: self.kept_outputs] if takes_gradient(value))
        mask = contract.read_by_backward(grads, len(kept))
        values = (*call, *kept)
        self.fills = tuple(
            (place, blank_like(values[place]))
            for place, keep in enumerate(mask)
            if not keep and isinstance(values[place], np.ndarray)
        )
        self.saved_inputs = tuple(place for place in self.tensors if mask[place])
        self.loose = tuple(place for place in self.saved_inputs if place not in self.diff)
        arrays = [self.count + k for k, value in enumerate(kept[: self.kept_outputs]) if isinstance(value, np.ndarray)]
        self.saved_outputs = tuple(place for place in arrays if mask[place])
        self.mask = mask
        filled = [place for place, _ in self.fills]
        if self.bare and len(self.diff) == 1 and self.tensors == self.diff and filled in ([], [self.count]):
            self.only, self.blank = self.diff[0], self.fills[0][1] if filled else None

    def result_dtype(self, index: int) -> np.dtype[Any]:
        """The dtype of a result that is a number."""
        gives = self.forward.gives
        found = gives[index].dtype if gives is not None else None
        return found or np.dtype(np.float64)

    # ---- backward
    def pull(self, node: KernelNode, grads: list[Any], values: tuple[Any, ...]) -> list[Array | None]:
        """Call backward and check what it returns: an array or None per differentiable input."""
        contract = self.contract
        if contract.backward is None:
            raise RuntimeError(contract.refusal())
        arguments = self.incoming(node, grads, values)
        if self.compiled_back is None:
            self.compile_backward(arguments, values, node)
        assert self.compiled_back is not None
        edges = node.edges()
        if contract.wants_needs:
            result = self.compiled_back.entry(*arguments, *values, node.needs())
        else:
            result = self.compiled_back.entry(*arguments, *values)
        if self.straight is not None:
            return self.fitting(result, edges)
        parts = as_tuple(self.compiled_back, result)
        gives = gives_of(self.compiled_back, parts)
        self.check_count(len(parts))
        function = python_function(contract.backward, "backward")
        others = [*arguments, *values] if not all(given.fresh for given in gives) else ()
        return separate(
            [
                gradient_array(part, given, edge.meta, contract.names[place], function, others)
                if edge is not None
                else None
                for part, given, edge, place in zip(parts, gives, edges, self.diff, strict=True)
            ]
        )

    def fitting(self, result: Any, edges: Sequence[Any]) -> list[Array | None]:
        """What a backward returned of which the types say that all but the shapes is right."""
        done: list[Array | None] = []
        starts: list[int] = []
        for place, edge in enumerate(edges):
            if edge is None:
                done.append(None)
                continue
            part = result[place] if len(edges) > 1 else result
            if part.shape != edge.meta.shape:
                self.wrong_shape(place, part, edge.meta)
            start = part.base.data
            done.append(part.copy() if start in starts else part)  # two views of one allocation
            starts.append(start)
        return done

    def incoming(self, node: KernelNode, grads: Sequence[Any], values: Sequence[Any]) -> list[Any]:
        """Gradients as backward wants them: an array, or a number for an output that was one; zeros where none came."""
        done: list[Any] = []
        back, shift = self.compiled_back, len(self.contract.mutates)
        for place, (grad, meta) in enumerate(zip(grads, node.metas(), strict=True)):
            if meta is None:
                continue
            if grad is None:
                grad = np.zeros(meta.shape, meta.dtype)
            elif not grad.flags.c_contiguous:
                grad = np.ascontiguousarray(grad)
            if place >= shift and not isinstance(values[self.count + place - shift], np.ndarray):
                done.append(grad[()])
            elif back is None or back.gives is None or len(done) in back.writes:
                done.append(grad.copy())  # it may be written to
            else:
                done.append(grad)
        return done

    def compile_backward(self, grads: Sequence[Any], values: Sequence[Any], node: KernelNode) -> None:
        """Compile backward for the types at hand."""
        contract = self.contract
        names = contract.grads_first(len(grads), len(values) - self.count)
        arguments = [argument_of(name, value) for name, value in zip(names, (*grads, *values), strict=True)]
        if contract.wants_needs:
            arguments.append(Argument("needs", value=node.needs()))
        compiled = compile_function(contract.backward, arguments, may_write=frozenset(range(len(grads))))
        function = python_function(contract.backward, "backward")
        if settings.bounds_check:
            compiled = Compiled(
                explained(compiled.entry, function, None), compiled.gives, compiled.several, compiled.writes
            )
        self.compiled_back = compiled
        if self.simple and self.may_go_straight(compiled):
            self.straight = compiled.entry
            self.back = None if contract.wants_needs else compiled.entry

    def may_go_straight(self, compiled: Compiled) -> bool:
        """Whether all that is to be checked of a result is its shape."""
        gives = compiled.gives
        if gives is None or compiled.writes or len(gives) != len(self.diff) or compiled.several != (len(gives) > 1):
            return False
        return all(
            given.kind == "array"
            and given.fresh
            and given.ordered
            and given.dtype == self.arguments[place].dtype
            and self.arguments[place].dtype is not None
            for given, place in zip(gives, self.diff, strict=True)
        )

    def check_count(self, found: int) -> None:
        """KernelError unless backward returned a gradient per differentiable input."""
        if found != len(self.diff):
            function = python_function(self.contract.backward, "backward")
            names = ", ".join(self.contract.names[place] for place in self.diff)
            raise KernelError(
                f"{function.__name__} returned {found} gradient{'s' * (found != 1)}, but the inputs that take one are {names}: return one for "
                f"each, in order{definition(function)}"
            )

    def wrong_shape(self, index: int, result: Array, meta: Meta) -> NoReturn:
        """The error for a gradient of another shape."""
        function = python_function(self.contract.backward, "backward")
        gradient_array(result, given_of(result), meta, self.contract.names[self.diff[index]], function, ())
        raise AssertionError("the shape was right after all")


def takes_gradient(value: Any) -> bool:
    """Whether an output is a floating-point array or number."""
    return value.dtype.char in FLOATS if isinstance(value, (np.ndarray, np.generic)) else isinstance(value, float)


def blank_like(array: Array) -> Array:
    """What is saved in place of an array that backward never looks at: one of its type without elements (0-d: a zero)."""
    blank = np.zeros((0,) * array.ndim, array.dtype)
    blank.flags.writeable = False
    return blank


@functools.cache
def class_of(label: str, base: type[KernelNode]) -> type[Any]:
    """The node class of that name."""
    return make_class(label, base)


def argument_of(name: str, value: Any) -> Argument:
    """The type of an argument at hand."""
    if isinstance(value, np.ndarray):
        return Argument(name, value.dtype, value.ndim)
    return Argument(name, value=value)


def explained(entry: Callable[..., Any], function: Any, plan: Plan | None) -> Callable[..., Any]:
    """In bounds-check mode, an entry that says which line of the user's went out of bounds: plain Python is asked, on the same arguments."""
    if not settings.bounds_check or not settings.jit:
        return entry

    def call(*arguments: Any) -> Any:
        copies = [value.copy() if isinstance(value, np.ndarray) else value for value in arguments]
        try:
            return entry(*arguments)
        except IndexError as error:
            place = definition(function)
            try:
                uncompiled(function, [], frozenset())(*copies)
            except IndexError as again:
                place = place_in_traceback(again, function)
            raise KernelError(f"{function.__name__}: {error}{place}") from error

    return call


__all__ = ["Plan"]
