"""Elementwise ops: one scalar expression, from which kernels and all derivatives follow.

An `Elementwise` op is the face (operands may be tensors or Python numbers, flags choose the expression); for each combination of
those it has a `Map`: an expression over variables (tensor operands) and params (numbers, passed at run time, so that no kernel is
compiled per number). The partial derivative of a Map is a Map again, with the incoming gradient as one more input.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from .._core.dtypes import Category, default_dtype, dtype, float32, int64, result_dtype, scalar_dtype
from .._core.meta import Meta, meta_for
from .._core.shapes import broadcast_shapes
from .._expr import Expr, const, derivative, free_params, free_variables, is_condition, scalar, stays_finite, substitute, trace, var
from .._kernels.maps import map_kernel, reserve_kernel
from .._kernels.registry import Kernel
from .kinds import OPS, Function, Op, camel

Array = np.ndarray[Any, Any]
NUMBERS: Final = (int, float, bool, np.number, np.bool_)
RESULT: Final = "result"


class Map:
    """An elementwise function of fixed inputs and params.

    `saves[i]` names what the gradient of differentiable input i reads: inputs, or `result`. `backward(needs)` is the kernel pair that
    computes the needed gradients in one pass, `partial(i)` one of them as a Map, for a recorded backward. A node has `width` edges, of
    which input k has number `slots[k]`; the others belong to operands that are numbers, which torch counts too.
    """

    def __init__(self, name: str, node: str, inputs: tuple[str, ...], params: tuple[str, ...], output: Expr, *,
                 conditions: frozenset[str] = frozenset(), keep_result: bool = False,
                 explicit: dict[str, Expr] | None = None, edges: Sequence[str] | None = None, refuses: str = "",
                 order: int = 0) -> None:  # fmt: skip
        self.order = order
        self.name, self.node, self.inputs, self.params, self.output = name, node, inputs, params, output
        self.conditions = conditions
        self.is_condition = is_condition(output) or (output.op == "var" and output.name in conditions)
        self._keep_result = keep_result
        self._explicit = explicit or {}
        self._refuses = refuses
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
        return () if self.is_condition else tuple(i for i, name in enumerate(self.inputs) if name not in self.conditions)

    @functools.cached_property
    def partials(self) -> tuple[Expr, ...]:
        """The derivative by each differentiable input, over the inputs and `result`."""
        if self._refuses:
            raise RuntimeError(f"derivative for aten::{self._refuses} is not implemented")
        return tuple(self._partial(self.inputs[i]) for i in self.differentiable)

    def _partial(self, name: str) -> Expr:
        if name in self._explicit:
            return self._explicit[name]
        found = derivative(self.output, var(name))
        return substitute(found, {self.output: var(RESULT)}) if self._keep_result and self.output.args else found

    @functools.cached_property
    def saves(self) -> tuple[tuple[str, ...], ...]:
        if self._refuses:
            return ((),) * len(self.differentiable)
        order = (*self.inputs, RESULT)
        return tuple(tuple(name for name in order if name in free_variables(partial)) for partial in self.partials)

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

    @functools.lru_cache(maxsize=None)  # noqa: B019  (Maps live as long as the process)
    def backward(self, needs: tuple[bool, ...]) -> Pair:
        """One kernel for all needed gradients; inputs grad and what is saved for them."""
        places = [place for place, need in enumerate(needs) if need]
        outputs = tuple(self.cotangents[place] for place in places)
        tag = "_".join(self.inputs[self.differentiable[place]] for place in places)
        inputs = (self.incoming, *self.saved(needs))
        return Pair(f"{self.name}_backward_{tag}", outputs, inputs, self.params, self.conditions & set(inputs))

    @functools.lru_cache(maxsize=None)  # noqa: B019
    def partial(self, place: int) -> Map:
        """The gradient of one input as a Map over grad and what it reads."""
        held = f"{RESULT}{self.order}"  # this Map's result is an ordinary input of its derivative
        inputs = (self.incoming, *(held if name == RESULT else name for name in self.saves[place]))
        output = substitute(self.cotangents[place], {var(RESULT): var(held)})
        name = f"{self.name}_backward_{self.inputs[self.differentiable[place]]}"
        return Map(name, self.node.removesuffix("0") + "Backward0", inputs, self.params, output, conditions=self.conditions & set(inputs), order=self.order + 1)

    def __repr__(self) -> str:
        return f"<map {self.name}({', '.join((*self.inputs, *self.params))})>"


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
    inputs, params, outputs; outputs are C-contiguous and of the full shape."""

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


class Bound:
    """A call of an elementwise op after promotion: the Map, its tensors and arrays, the params, shape and dtypes."""

    __slots__ = ("arrays", "compute", "map", "out", "params", "shape", "tensors")

    def __init__(self, map: Map, tensors: tuple[Any, ...], arrays: tuple[Array, ...], params: tuple[Any, ...],
                 shape: tuple[int, ...], compute: np.dtype[Any], out: np.dtype[Any]) -> None:  # fmt: skip
        self.map, self.tensors, self.arrays, self.params = map, tensors, arrays, params
        self.shape, self.compute, self.out = shape, compute, out


class Elementwise(Op):
    """An op declared by a scalar expression.

    Positional parameters are operands, keyword-only ones are numbers (params) unless their default is a string, a bool or None:
    those are flags, which choose the expression. Operands named in `numbers` may be Python numbers. `promote` is "default", "float"
    (integers become the default float), "first" (the dtype of the first operand) or "compare" (a number that an integer dtype can't
    hold is compared as int64). `keep_result` lets the backward read the result instead of recomputing it.

    `nodes` gives the node's name for a combination of operands, a letter each, t a tensor and s a number; its edges are then the
    tensors', else one per operand as torch has it, or per name in `edges`. `constants` are values of a number operand that go into the expression, because it
    gets simpler by them. `refuses` is what torch calls an op that has no derivative; `floats` is False for an op of integers alone.
    """

    kind = "elementwise"

    def __init__(self, function: Function, *, node: str | None = None, name: str | None = None, promote: str = "default",
                 keep_result: bool = False, conditions: Sequence[str] = (), check: Callable[..., None] | None = None,
                 numbers: Sequence[str] = (), nodes: Mapping[str, str] | None = None, refuses: str = "",
                 edges: Sequence[str] = (), constants: Mapping[str, Sequence[float]] | None = None, operator: str = "", aliases: Sequence[str] = (),
                 method: bool = True, public: bool = True, inplace: bool = True, floats: bool = True) -> None:  # fmt: skip
        super().__init__(function, node=node, name=name)
        parameters = inspect.signature(function).parameters.values()
        self.inputs = tuple(p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD)
        keyword = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
        self.params = tuple(p.name for p in keyword if not isinstance(p.default, (str, bool, type(None))))
        self.flags = tuple(p.name for p in keyword if p.name not in self.params)
        self.statics = self.params + self.flags
        self.defaults = {p.name: p.default for p in keyword if p.default is not p.empty}
        self.differentiable = tuple(range(len(self.inputs)))
        self.promote, self.keep_result, self.check, self.refuses = promote, keep_result, check, refuses
        self.conditions, self.numbers = frozenset(conditions), frozenset(numbers)
        self.nodes, self.edges = dict(nodes or {}), tuple(edges) or self.inputs
        self.constants = {name: {float(value): spell_number(value) for value in values} for name, values in (constants or {}).items()}
        self.explicit: dict[str, Callable[..., Expr]] = {}
        self.operator, self.aliases, self.method, self.public = operator, tuple(aliases), method, public
        self.inplace, self.floats = inplace, floats
        self.module = function.__module__.rpartition(".")[2]

    def reserve(self, spec: str, needs: tuple[bool, ...] | None = None) -> int:
        """Register the flat kernel of the plain call, or of its backward, before anything is derived; returns its number."""
        name = self.name if needs is None else f"{self.name}_backward_" + "_".join(n for n, need in zip(self.inputs, needs, strict=True) if need)

        def flat() -> Kernel:
            found = self.map("t" * len(self.inputs))
            return (found.kernels if needs is None else found.backward(needs)).flat

        return reserve_kernel(name, spec, flat).index

    def partial(self, name: str) -> Callable[[Function], Function]:
        """Decorator: the derivative by an input, given instead of derived; called like the op, plus `result`."""

        def declare(function: Function) -> Function:
            self.explicit[name] = function
            return function

        return declare

    @functools.lru_cache(maxsize=None)  # noqa: B019  (ops live as long as the process)
    def map(self, form: str, fixed: tuple[str, ...] = (), flags: tuple[Any, ...] = ()) -> Map:
        """The Map for operands that are tensors (t), numbers (s) or constants (c, whose spellings are in `fixed`), and given flags."""
        kinds = dict(zip(self.inputs, form, strict=True))
        inputs = tuple(name for name, kind in kinds.items() if kind == "t")
        params = (*(name for name, kind in kinds.items() if kind == "s"), *self.params)
        given: dict[str, Any] = dict(zip(self.flags, flags or [self.defaults.get(name) for name in self.flags], strict=True))
        given |= {name: const(read_number(text)) for name, text in zip((n for n, kind in kinds.items() if kind == "c"), fixed, strict=True)}
        (output,) = trace(self.function, inputs, params, **given)
        explicit = {}
        for name, function in self.explicit.items():
            if name in inputs:
                wanted = set(inspect.signature(function).parameters)
                (explicit[name],) = trace(function, [n for n in (*inputs, RESULT) if n in wanted], [n for n in params if n in wanted],
                                          **{k: v for k, v in given.items() if k in wanted})  # fmt: skip
        node = self.nodes.get(form.replace("c", "s"))
        return Map(self.name + self._suffix(form, fixed, flags), node or self.node, inputs, params, output, keep_result=self.keep_result,
                   conditions=self.conditions & set(inputs), explicit=explicit, refuses=self.refuses,
                   edges=[name for name in self.edges if name not in self.conditions and (node is None or name in inputs)])  # fmt: skip

    def _suffix(self, form: str, fixed: tuple[str, ...], flags: tuple[Any, ...]) -> str:
        """What tells the kernels of one op apart."""
        words = [] if form == "t" * len(form) else [form]
        words += [text.replace("-", "m").replace(".", "p") for text in fixed]
        words += [str(value) for value in flags if value is not None]
        return "".join("_" + word for word in words)

    def resolve(self, operands: Sequence[Any], statics: Sequence[Any]) -> Bound:
        """Promotion, casts and the broadcast shape of a call.

        Operands are tensors or numbers. Raises TypeError for others, RuntimeError where the shapes don't broadcast.
        """
        form, fixed, numbers, tensors = "", (), (), ()
        for place, (operand, name) in enumerate(zip(operands, self.inputs, strict=True)):
            if hasattr(operand, "meta"):
                form += "t"
                tensors += (operand,)
                continue
            if name not in self.numbers or not isinstance(operand, NUMBERS):
                raise wrong_operand(self, place, operand)
            known = self.constants[name].get(operand) if name in self.constants else None
            form += "s" if known is None else "c"
            if known is None:
                numbers += (operand,)
            else:
                fixed += (known,)
        if self.check is not None:
            self.check(self, operands, statics)
        count = len(self.params)
        shape = tensors[0].meta.shape if len(tensors) == 1 else broadcast_shapes(*(t.meta.shape for t in tensors))
        kind = self.compute_dtype(operands).numpy
        found = self.map(form, fixed, tuple(statics[count:]))
        arrays = tuple(t.array if t.array.dtype == kind or name in found.conditions else cast(t.array, kind) for t, name in zip(tensors, found.inputs, strict=True))
        out = np.dtype(bool) if found.is_condition else kind
        return Bound(found, tensors, arrays, (*numbers, *statics[:count]), shape, kind, out)

    def compute_dtype(self, operands: Sequence[Any]) -> dtype:
        """The dtype the expression is computed in."""
        pairs = []
        for operand, name in zip(operands, self.inputs, strict=True):
            if name in self.conditions:
                continue
            if hasattr(operand, "meta"):
                pairs.append((operand.meta.kind, Category.DIM if operand.meta.shape else Category.ZERO_DIM))
            else:
                pairs.append((scalar_dtype(operand), Category.NUMBER))
        kind: dtype = pairs[0][0] if len(pairs) == 1 or self.promote == "first" else result_dtype(pairs)
        if kind.is_floating_point:
            return kind
        if self.promote == "compare" and any(not hasattr(x, "meta") and not fits(x, kind) for x in operands):
            return int64
        return default_dtype() if self.promote == "float" else kind


def spell_number(value: float) -> str:
    """A constant as part of a key, which must tell 1 from True."""
    return str(int(value)) if float(value).is_integer() else str(float(value))


def read_number(text: str) -> int | float:
    """The number that `spell_number` wrote."""
    return float(text) if "." in text else int(text)


def fits(number: Any, kind: dtype) -> bool:
    """Whether an integer dtype can hold a number."""
    if kind.kind == "b" or not float(number).is_integer():
        return True
    limits = np.iinfo(kind.numpy)
    return bool(limits.min <= number <= limits.max)


def wrong_operand(op: Elementwise, place: int, operand: Any) -> TypeError:
    """The error for an operand that is no tensor, nor a number where one is allowed."""
    return TypeError(f"{op.name.lstrip('_')}(): argument '{op.inputs[place]}' (position {place + 1}) must be Tensor, not {type(operand).__name__}")


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


def elementwise(*function: Function, **options: Any) -> Any:
    """Declare an elementwise op; see `Elementwise`."""

    def make(function: Function) -> Elementwise:
        op = Elementwise(function, **options)
        OPS[op.name] = op
        return op

    return make(function[0]) if function else make


__all__ = ["Bound", "Elementwise", "Map", "Pair", "camel", "compute", "elementwise", "float32", "meta_for", "Meta", "free_params"]
