"""Maps: an elementwise function of fixed inputs, and all that is derived from its expression.

The partial derivative of a Map is a Map again, with the incoming gradient as one more input. A `Pair` is the two kernels of one, a `Recipe`
what a node of one saves and computes.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from .._expr import (
    Expr,
    const,
    derivative,
    free_params,
    free_variables,
    is_condition,
    scalar,
    stays_finite,
    substitute,
    var,
)
from .._kernels.maps import map_kernel
from .._kernels.registry import Kernel

Array = np.ndarray[Any, Any]
RESULT: Final = "result"


# whose backward is an op of its own in torch; all others are spelled out there, most as products
_OWN_BACKWARD: Final = frozenset({
    "BinaryCrossEntropyBackward0", "EluBackward0", "GeluBackward0", "HardshrinkBackward0", "HardsigmoidBackward0",
    "HardswishBackward0", "HardtanhBackward0", "HuberLossBackward0", "LeakyReluBackward0", "LogSigmoidBackward0",
    "MseLossBackward0", "SigmoidBackward0", "SmoothL1LossBackward0", "SoftplusBackward0", "SoftshrinkBackward0", "TanhBackward0",
    "ThresholdBackward0",
})  # fmt: skip
_OTHER_BACKWARD: Final = {
    "CeluBackward0": "EluBackwardBackward0", "ClampBackward0": "WhereBackward0", "ClampBackward1": "WhereBackward0",
    "LogitBackward0": "WhereBackward0", "MaskedFillBackward0": "MaskedFillBackward0", "MaximumBackward0": "MaskedFillBackward0",
    "MinimumBackward0": "MaskedFillBackward0", "PowBackward1": "WhereBackward0", "ReluBackward0": "ThresholdBackwardBackward0",
    "SincBackward0": "WhereBackward0", "WhereBackward0": "WhereBackward0", "XlogyBackward0": "MaskedFillBackward0",
}  # fmt: skip


def partial_node(node: str, factor: Expr) -> str:
    """What torch calls the node of a recorded backward: the last op there, where ours is one node for all of them. `factor` times the gradient."""
    if node in _OWN_BACKWARD:
        return node.removesuffix("0") + "Backward0"
    if node in _OTHER_BACKWARD:
        return _OTHER_BACKWARD[node]
    if factor is const(-1.0):
        return "NegBackward0"
    return "DivBackward0" if factor.op == "div" or (node == "DivBackward0" and factor.op == "const") else "MulBackward0"


class Map:
    """An elementwise function of fixed inputs and params.

    `saves[i]` names what the gradient of differentiable input i reads: inputs, or `result`. `backward(needs)` is the kernel pair that
    computes the needed gradients in one pass, `partial(i)` one of them as a Map, for a recorded backward. A node has `width` edges, of
    which input k has number `slots[k]`, -1 if it takes no gradient; the others belong to operands that are numbers, which torch counts too.
    `known` are the constants and flags that the expression was chosen by; `masks` says that the gradient reads the inputs through masks
    alone, so that it takes no gradient from them. `keeps` has for the gradient of an input others that are saved with it.
    """

    is_view = variadic = False

    def __init__(self, name: str, node: str, inputs: tuple[str, ...], params: tuple[str, ...], output: Expr, *,
                 conditions: frozenset[str] = frozenset(), keep_result: bool = False,
                 explicit: dict[str, Expr] | None = None, edges: Sequence[str] | None = None, refuses: str = "",
                 known: dict[str, Any] | None = None, masks: bool = False, order: int = 0,
                 keeps: Mapping[str, Sequence[str]] | None = None) -> None:  # fmt: skip
        self.order, self.known, self.masks, self.keeps = order, known or {}, masks, keeps or {}
        self.name, self.node, self.inputs, self.params, self.output = name, node, inputs, params, output
        self.conditions = conditions
        self.is_condition = is_condition(output) or (output.op == "var" and output.name in conditions)
        self._keep_result = keep_result
        self._explicit = explicit or {}
        self.refuses = refuses
        self._recipes: dict[tuple[bool, ...], Recipe] = {}
        named = [name for name in inputs if name not in conditions] if edges is None else list(edges)
        self.width = len(named)
        self.slots = tuple(named.index(name) if name in named else -1 for name in inputs)

    @functools.cached_property
    def kernels(self) -> Pair:
        """The forward."""
        return Pair(self.name, (self.output,), self.inputs, self.params, self.conditions)

    @functools.cached_property
    def differentiable(self) -> tuple[int, ...]:
        """Which inputs a gradient can flow to."""
        return () if self.is_condition else tuple(place for place, slot in enumerate(self.slots) if slot >= 0)

    @functools.cached_property
    def partials(self) -> tuple[Expr, ...]:
        """The derivative by each differentiable input, over the inputs and `result`."""
        if self.refuses:
            raise RuntimeError(f"derivative for aten::{self.refuses} is not implemented")
        return tuple(self._partial(self.inputs[i]) for i in self.differentiable)

    def _partial(self, name: str) -> Expr:
        if name in self._explicit:
            return self._explicit[name]
        found = derivative(self.output, var(name))
        return substitute(found, {self.output: var(RESULT)}) if self._keep_result and self.output.args else found

    @functools.cached_property
    def saves(self) -> tuple[tuple[str, ...], ...]:
        if self.refuses:
            return ((),) * len(self.differentiable)
        order = (*self.inputs, RESULT)
        keeps = [self.keeps.get(self.inputs[place], ()) for place in self.differentiable]
        return tuple(tuple(name for name in order if name in free_variables(partial) or name in kept)
                     for partial, kept in zip(self.partials, keeps, strict=True))  # fmt: skip

    def saved(self, needs: Sequence[bool]) -> tuple[str, ...]:
        """The union of what the needed gradients read, in the order inputs, result. `needs` is per differentiable input."""
        wanted = {name for names, need in zip(self.saves, needs, strict=True) if need for name in names}
        return tuple(name for name in (*self.inputs, RESULT) if name in wanted)

    @functools.cached_property
    def cotangents(self) -> tuple[Expr, ...]:
        """For each differentiable input grad times the partial; see `times`."""
        # the result stands for the expression it came from, which tells whether it may be infinite
        written = {var(RESULT): self.output}
        return tuple(times(var(self.incoming), partial, written) for partial in self.partials)

    @property
    def incoming(self) -> str:
        """The name of the incoming gradient: `grad`, or, of a derivative that has one already, `grad1` ..."""
        return f"grad{self.order or ''}"

    @functools.cache  # noqa: B019  (Maps live as long as the process)
    def backward(self, needs: tuple[bool, ...]) -> Pair:
        """One kernel for all needed gradients; inputs grad and what is saved for them."""
        places = [place for place, need in enumerate(needs) if need]
        outputs = tuple(self.cotangents[place] for place in places)
        tag = "_".join(self.inputs[self.differentiable[place]] for place in places)
        inputs = (self.incoming, *self.saved(needs))
        return Pair(f"{self.name}_backward_{tag}", outputs, inputs, self.params, self.conditions & set(inputs))

    def recipe(self, needs: tuple[bool, ...]) -> Recipe:
        """How to record and to go back; `needs` is per differentiable input."""
        found = self._recipes.get(needs)
        if found is None:
            found = self._recipes[needs] = Recipe(self, needs)
        return found

    @functools.cache  # noqa: B019
    def partial(self, place: int) -> Map:
        """The gradient of one input as a Map over grad and what it reads."""
        held = f"{RESULT}{self.order}"  # this Map's result is an ordinary input of its derivative
        inputs = (self.incoming, *(held if name == RESULT else name for name in self.saves[place]))
        output = substitute(self.cotangents[place], {var(RESULT): var(held)})
        # linear in the gradient, also where a gradient of zero is handed through as it is: never derived from that choice
        factor = substitute(self.partials[place], {var(RESULT): var(held)})
        name = f"{self.name}_backward_{self.inputs[self.differentiable[place]]}"
        node = partial_node(self.node, self.partials[place])
        return Map(name, node, inputs, self.params, output, conditions=self.conditions & set(inputs), order=self.order + 1,
                   explicit={self.incoming: factor}, edges=[self.incoming] if self.masks else None)  # fmt: skip

    @functools.cache  # noqa: B019
    def push(self, needs: tuple[bool, ...]) -> Map:
        """The tangent of the output, a Map over the tangents of the needed inputs and what their partials read."""
        held = f"{RESULT}{self.order}"
        names: list[str] = []
        explicit: dict[str, Expr] = {}
        total: Expr | None = None
        for place, need in enumerate(needs):
            if need:
                name = f"tangent{self.order}_{self.inputs[self.differentiable[place]]}"
                names.append(name)
                term = times(var(name), self.partials[place], {var(RESULT): self.output})
                total = term if total is None else total + term
                explicit[name] = substitute(self.partials[place], {var(RESULT): var(held)})
        output = substitute(const(0.0) if total is None else total, {var(RESULT): var(held)})
        inputs = (*names, *(held if name == RESULT else name for name in self.saved(needs)))
        tag = "_".join(self.inputs[self.differentiable[place]] for place, need in enumerate(needs) if need)
        return Map(f"{self.name}_tangent_{tag}", self.node, inputs, self.params, output, conditions=self.conditions & set(inputs),
                   explicit=explicit, edges=names if self.masks else None, order=self.order + 1)  # fmt: skip

    def __repr__(self) -> str:
        return f"<map {self.name}({', '.join((*self.inputs, *self.params))})>"


class Recipe:
    """What a node of a Map saves and computes when some of the inputs take a gradient.

    `saving` has for each saved value its name, which input it is (-1: the result) and which edge leads to that (-1: none); `slots` for each
    edge which differentiable input it belongs to, or None where that is the identity; `targets` the edges that get a gradient. `cls` is the
    node's class, which the tensor layer puts here.
    """

    def __init__(self, found: Map, needs: tuple[bool, ...]) -> None:
        self.map, self.needs = found, needs
        self.cls: Any = None
        places = [found.inputs.index(name) if name != RESULT else -1 for name in found.saved(needs)]
        self.saving = tuple((name, place, found.slots[place] if place >= 0 else -1) for name, place in zip(found.saved(needs), places, strict=True))
        ends = {found.slots[place]: k for k, place in enumerate(found.differentiable)}
        slots = tuple(ends.get(slot, -1) for slot in range(found.width))
        self.slots = None if slots == tuple(range(len(needs))) else slots
        self.targets = tuple(found.slots[place] for place, need in zip(found.differentiable, needs, strict=True) if need)

    @functools.cached_property
    def reads_operand(self) -> bool:
        """Whether a gradient reads an operand that is a number: torch saves it as a tensor, and so refuses a second backward."""
        found = self.map
        places = [k for k, need in enumerate(self.needs) if need]
        read = {name for k in places for name in (*free_params(found.partials[k]), *found.keeps.get(found.inputs[found.differentiable[k]], ()))}
        return not read.isdisjoint({"input", "other"}.intersection(found.params))

    @functools.cached_property
    def passes(self) -> bool:
        """Whether all gradients are the incoming one."""
        return all(self.map.cotangents[k].op == "var" for k, need in enumerate(self.needs) if need)

    @functools.cached_property
    def singles(self) -> tuple[Recipe, ...]:
        """A recipe for each needed gradient alone."""
        places = range(len(self.needs))
        return tuple(self.map.recipe(tuple([k == place for k in places])) for place in places if self.needs[place])

    @functools.cached_property
    def pair(self) -> Pair:
        """The kernels of the backward."""
        return self.map.backward(self.needs)

    @functools.cached_property
    def index(self) -> int:
        """The number of the kernel for contiguous arrays of one shape."""
        return self.pair.flat.index


def is_zero(expr: Expr) -> bool:
    """Whether an expression is the constant zero."""
    return expr.op == "const" and expr.value == 0


def times(grad: Expr, partial: Expr, written: dict[Expr, Expr]) -> Expr:
    """The product of the incoming gradient and a partial, as one would write it by hand.

    A choice stays a choice, so that a gradient that does not pass is zero whatever it was; a gradient of zero stays zero where the
    partial may be infinite or NaN; a division by y divides the gradient.
    """
    if partial.op == "const" and partial.value in (0, 1):
        return grad if partial.value == 1 else const(0.0)
    if partial.op == "where":
        condition, yes, no = partial.args
        return scalar.where(condition, times(grad, yes, written), times(grad, no, written))
    if stays_finite(substitute(partial, written)):
        return grad * partial
    if partial.op == "div" and partial.args[0].op == "const" and partial.args[0].value == 1:
        return scalar.where(grad == 0, grad, grad / partial.args[1])
    return scalar.zmul(grad, partial)


class Pair:
    """The two kernels of a Map: for C-contiguous operands of one shape, and for all others. The arguments are the same:
    inputs, params, outputs; outputs are C-contiguous and of the full shape.
    """

    __slots__ = ("flat", "outputs", "strided")

    def __init__(self, name: str, outputs: tuple[Expr, ...], inputs: tuple[str, ...], params: tuple[str, ...], conditions: frozenset[str]) -> None:
        self.outputs = outputs
        self.flat: Kernel = map_kernel(name, outputs, inputs, params, conditions, strided=False)
        self.strided: Kernel = map_kernel(name + "_strided", outputs, inputs, params, conditions, strided=True)

    def __call__(self, arrays: Sequence[Array], params: Sequence[Any], outs: Sequence[Array]) -> None:
        """Run on arrays of one dtype (conditions bool) that broadcast to the shape of `outs`."""
        shape, kind = outs[0].shape, outs[0].dtype
        if kind.kind == "b":
            kind = next((array.dtype for array in arrays if array.dtype.kind != "b"), kind)
        for array in arrays:
            if array.shape != shape or not array.flags.c_contiguous:
                self.strided[kind](*arrays, *params, *outs)
                return
        self.flat[kind](*arrays, *params, *outs)


HALF: Final = np.dtype(np.float16)


def cast(array: Array, kind: np.dtype[Any]) -> Array:
    """The array in another dtype, without a warning for what does not fit."""
    with np.errstate(all="ignore"):
        return array.astype(kind)


def compute(pair: Pair, arrays: Sequence[Array], params: Sequence[Any], shape: tuple[int, ...], dtypes: Sequence[np.dtype[Any]]) -> list[Array]:
    """Run a kernel pair into new arrays. float16 is stored only: it is computed in float32."""
    if any(array.dtype == HALF for array in arrays):
        wide = [array.astype(np.float32) if array.dtype == HALF else array for array in arrays]
        outs = [np.empty(shape, np.float32 if kind == HALF else kind) for kind in dtypes]
        pair(wide, params, outs)
        return [cast(out, kind) if kind == HALF else out for out, kind in zip(outs, dtypes, strict=True)]
    outs = [np.empty(shape, kind) for kind in dtypes]
    pair(arrays, params, outs)
    return outs
