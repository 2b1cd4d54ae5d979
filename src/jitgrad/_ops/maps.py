"""Elementwise ops: one scalar expression, from which kernels and all derivatives follow.

An `Elementwise` op is the face (operands may be tensors or Python numbers, flags choose the expression); for each combination of
those it has a `Map` (`derived.py`): an expression over variables (tensor operands) and params (numbers, passed at run time, so that
no kernel is compiled per number).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, overload

import numpy as np

from .._core.dtypes import Category, default_dtype, dtype, int64, result_dtype, scalar_dtype
from .._core.shapes import broadcast_shapes
from .._expr import Expr, const, trace
from .._kernels.maps import reserve_kernel
from .._kernels.registry import Kernel
from .derived import RESULT, Array, Map, cast
from .kinds import OPS, Dispatch, Function, Op
from .parameters import EMPTY, names, parameters

NUMBERS: Final = (int, float, bool, np.number, np.bool_)


class Bound:
    """A call of an elementwise op after promotion: the Map, a letter per operand, its tensors and arrays, the params, shape and dtypes."""

    __slots__ = ("arrays", "compute", "form", "map", "out", "params", "shape", "tensors")

    def __init__(self, map: Map, form: str, tensors: tuple[Any, ...], arrays: tuple[Array, ...], params: tuple[Any, ...],
                 shape: tuple[int, ...], compute: np.dtype[Any], out: np.dtype[Any]) -> None:  # fmt: skip
        self.map, self.form, self.tensors, self.arrays, self.params = map, form, tensors, arrays, params
        self.shape, self.compute, self.out = shape, compute, out


class Elementwise(Op):
    """An op declared by a scalar expression.

    Positional parameters are operands, keyword-only ones are numbers (params) unless their default is a string, a bool or None:
    those are flags, which choose the expression. Operands named in `numbers` may be Python numbers. `promote` is "default", "float"
    (integers become the default float), "first" (the dtype of the first operand) or "compare" (a number that an integer dtype can't
    hold is compared as int64). `keep_result` lets the backward read the result instead of recomputing it.

    `nodes` gives the node's name for a combination of operands, a letter each, t a tensor and s a number; its edges are then the
    tensors', else one per operand as torch has it, or per name in `edges`. `constants` are values of a number operand that go into the
    expression, because it gets simpler by them. `refuses` is what torch calls an op that has no derivative; `floats` is False for an op
    of integers alone. `masks`: the gradient reads the operands through masks alone, so that it does not depend on them. `keeps` has for the
    gradient of an operand others that are saved for it because torch saves them, though it does not read them.
    """

    kind = "elementwise"

    def __init__(self, function: Function, *, node: str | None = None, name: str | None = None, promote: str = "default",
                 keep_result: bool = False, conditions: Sequence[str] = (), check: Callable[..., None] | None = None,
                 numbers: Sequence[str] = (), nodes: Mapping[str, str] | None = None, refuses: str = "",
                 edges: Sequence[str] = (), constants: Mapping[str, Sequence[float]] | None = None, operator: str = "", aliases: Sequence[str] = (),
                 method: bool = True, public: bool = True, inplace: bool = True, floats: bool = True, masks: bool = False,
                 keeps: Mapping[str, Sequence[str]] | None = None) -> None:  # fmt: skip
        super().__init__(function, node=node, name=name)
        declared = parameters(function)
        self.inputs = tuple(p.name for p in declared if not p.keyword)
        keyword = [p for p in declared if p.keyword]
        self.params = tuple(p.name for p in keyword if not isinstance(p.default, (str, bool, type(None))))
        self.flags = tuple(p.name for p in keyword if p.name not in self.params)
        self.statics = self.params + self.flags
        self.defaults = {p.name: p.default for p in keyword if p.default is not EMPTY}
        self.differentiable = tuple(range(len(self.inputs)))
        self.promote, self.keep_result, self.check, self.refuses = promote, keep_result, check, refuses
        self.conditions, self.numbers = frozenset(conditions), frozenset(numbers)
        self.nodes, self.edges = dict(nodes or {}), tuple(edges) or self.inputs
        self.constants = {name: {float(value): spell_number(value) for value in values} for name, values in (constants or {}).items()}
        self.explicit: dict[str, Callable[..., Expr]] = {}
        self.plans: dict[tuple[Any, ...], Any] = {}  # calls seen before, kept by the tensor layer
        self.operator, self.aliases, self.method, self.public = operator, tuple(aliases), method, public
        self.inplace, self.floats, self.masks, self.keeps = inplace, floats, masks, keeps or {}
        self.module = function.__module__.rpartition(".")[2]

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the op on operands, by position, and numbers and flags, by name."""
        if len(arguments) != len(self.inputs) or not named.keys() <= set(self.statics):
            return super().__call__(*arguments, **named)
        statics = tuple([named[name] if name in named else self.defaults[name] for name in self.statics]) if named else ()
        return Dispatch.invoke(self, arguments, statics)

    def reserve(self, spec: str, needs: tuple[bool, ...] | None = None) -> int:
        """Register the flat kernel of the plain call, or of its backward, before anything is derived; returns its number."""
        name = self.name
        if needs is not None:
            name += "_backward_" + "_".join(n for n, need in zip(self.inputs, needs, strict=True) if need)

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

    @functools.cache  # noqa: B019  (ops live as long as the process)
    def map(self, form: str, fixed: tuple[str, ...] = (), flags: tuple[Any, ...] = ()) -> Map:
        """The Map for operands that are tensors (t), numbers (s) or constants (c, whose spellings are in `fixed`), and given flags."""
        kinds = dict(zip(self.inputs, form, strict=True))
        inputs = tuple(name for name, kind in kinds.items() if kind == "t")
        params = (*(name for name, kind in kinds.items() if kind == "s"), *self.params)
        given: dict[str, Any] = dict(zip(self.flags, flags or [self.defaults.get(name) for name in self.flags], strict=True))
        given |= {name: const(read_number(text)) for name, text in zip((n for n, kind in kinds.items() if kind == "c"), fixed, strict=True)}
        known = {name: value.value if isinstance(value, Expr) else value for name, value in given.items() if value is not None}
        (output,) = trace(self.function, inputs, params, **given)
        explicit = {}
        for name, function in self.explicit.items():
            if name in inputs:
                wanted = set(names(function))
                (explicit[name],) = trace(function, [n for n in (*inputs, RESULT) if n in wanted], [n for n in params if n in wanted],
                                          **{k: v for k, v in given.items() if k in wanted})  # fmt: skip
        node = self.nodes.get(form.replace("c", "s"))
        return Map(self.name + self._suffix(form, fixed, flags), node or self.node, inputs, params, output, keep_result=self.keep_result,
                   conditions=self.conditions & set(inputs), explicit=explicit, refuses=self.refuses, known=known, masks=self.masks, keeps=self.keeps,
                   edges=[name for name in self.edges if name not in self.conditions and (node is None or name in inputs)])  # fmt: skip

    def _suffix(self, form: str, fixed: tuple[str, ...], flags: tuple[Any, ...]) -> str:
        """What tells the kernels of one op apart."""
        words = [] if form == "t" * len(form) else [form]
        words += [text.replace("-", "m").replace(".", "p") for text in fixed]
        words += [str(value) for value in flags if value is not None]
        return "".join("_" + word for word in words)

    def key_of(self, place: int, number: Any) -> Any:
        """What a call depends on of a number: its type, or its spelling where the expression has it."""
        known = self.constants.get(self.inputs[place]) if self.constants else None
        return known.get(number, type(number)) if known else type(number)

    def resolve(self, operands: Sequence[Any], statics: Sequence[Any]) -> Bound:
        """Promotion, casts and the broadcast shape of a call.

        Operands are tensors or numbers. Raises TypeError for others, RuntimeError where the shapes don't broadcast.
        """
        form = ""
        fixed: tuple[str, ...] = ()
        numbers: tuple[Any, ...] = ()
        tensors: tuple[Any, ...] = ()
        for place, (operand, name) in enumerate(zip(operands, self.inputs, strict=True)):
            if hasattr(operand, "meta"):
                form += "t"
                tensors += (operand,)
                continue
            if name not in self.numbers or not isinstance(operand, NUMBERS):
                raise wrong_operand(self, place, operand)
            known = self.constants[name].get(operand) if name in self.constants else None  # type: ignore[arg-type]
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
        fixed_kind = [name in found.conditions for name in found.inputs]
        arrays = tuple(t.array if keep or t.array.dtype == kind else cast(t.array, kind) for t, keep in zip(tensors, fixed_kind, strict=True))
        out = np.dtype(bool) if found.is_condition else kind
        return Bound(found, form, tensors, arrays, (*numbers, *statics[:count]), shape, kind, out)

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


@overload
def elementwise(function: Function, /) -> Elementwise: ...
@overload
def elementwise(**options: Any) -> Callable[[Function], Elementwise]: ...
def elementwise(*function: Function, **options: Any) -> Any:
    """Declare an elementwise op; see `Elementwise`."""

    def make(function: Function) -> Elementwise:
        op = Elementwise(function, **options)
        OPS[op.name] = op
        return op

    return make(function[0]) if function else make
