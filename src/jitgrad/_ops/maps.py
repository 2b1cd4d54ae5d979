"""Elementwise ops: one scalar expression, from which kernels and all derivatives follow.

An `Elementwise` op is the face (operands may be tensors or Python numbers, flags choose the expression); for each combination of
those it has a `Map`: an expression over variables (tensor operands) and params (numbers, passed at run time, so that no kernel is
compiled per number). The partial derivative of a Map is a Map again, with the incoming gradient as one more input.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from .._core.dtypes import Category, default_dtype, dtype, float32, result_dtype, scalar_dtype
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

    `saves[i]` names what the gradient of input i reads: inputs, or `result`. `backward(needs)` is the kernel pair that computes the
    needed gradients in one pass, `partial(i)` one of them as a Map, for a recorded backward.
    """

    def __init__(self, name: str, node: str, inputs: tuple[str, ...], params: tuple[str, ...], output: Expr, *,
                 conditions: frozenset[str] = frozenset(), keep_result: bool = False,
                 explicit: dict[str, Expr] | None = None, fixed: frozenset[str] = frozenset()) -> None:  # fmt: skip
        self.name, self.node, self.inputs, self.params, self.output = name, node, inputs, params, output
        self.conditions = conditions
        self.is_condition = is_condition(output)
        self._keep_result = keep_result
        self._explicit = explicit or {}
        self._fixed = fixed | conditions

    @functools.cached_property
    def kernels(self) -> Pair:
        """The forward."""
        return Pair(self.name, (self.output,), self.inputs, self.params, self.conditions)

    @functools.cached_property
    def differentiable(self) -> tuple[int, ...]:
        """Which inputs a gradient can flow to."""
        return () if self.is_condition else tuple(i for i, name in enumerate(self.inputs) if name not in self._fixed)

    @functools.cached_property
    def partials(self) -> tuple[Expr, ...]:
        """The derivative by each differentiable input, over the inputs and `result`."""
        return tuple(self._partial(self.inputs[i]) for i in self.differentiable)

    def _partial(self, name: str) -> Expr:
        if name in self._explicit:
            return self._explicit[name]
        found = derivative(self.output, var(name))
        return substitute(found, {self.output: var(RESULT)}) if self._keep_result and self.output.args else found

    @functools.cached_property
    def saves(self) -> tuple[tuple[str, ...], ...]:
        order = (*self.inputs, RESULT)
        return tuple(tuple(name for name in order if name in free_variables(partial)) for partial in self.partials)

    def saved(self, needs: Sequence[bool]) -> tuple[str, ...]:
        """The union of what the needed gradients read, in the order inputs, result. `needs` is per differentiable input."""
        wanted = {name for names, need in zip(self.saves, needs, strict=True) if need for name in names}
        return tuple(name for name in (*self.inputs, RESULT) if name in wanted)

    def cotangent(self, place: int) -> Expr:
        """grad times the partial; a gradient of zero stays zero where the partial may be infinite or NaN."""
        partial, grad = self.partials[place], var("grad")
        if partial.op == "const" and partial.value in (0, 1):
            return grad if partial.value == 1 else const(0.0)
        return grad * partial if stays_finite(partial) else scalar.zmul(grad, partial)

    @functools.lru_cache(maxsize=None)  # noqa: B019  (Maps live as long as the process)
    def backward(self, needs: tuple[bool, ...]) -> Pair:
        """One kernel for all needed gradients; inputs grad and what is saved for them."""
        places = [place for place, need in enumerate(needs) if need]
        outputs = tuple(self.cotangent(place) for place in places)
        tag = "_".join(self.inputs[self.differentiable[place]] for place in places)
        inputs = ("grad", *self.saved(needs))
        return Pair(f"{self.name}_backward_{tag}", outputs, inputs, self.params, self.conditions & set(inputs))

    @functools.lru_cache(maxsize=None)  # noqa: B019
    def partial(self, place: int) -> Map:
        """The gradient of one input as a Map over grad and what it reads."""
        inputs = ("grad", *self.saves[place])
        name = f"{self.name}_backward_{self.inputs[self.differentiable[place]]}"
        return Map(name, self.node.removesuffix("0") + "Backward0", inputs, self.params, self.cotangent(place), conditions=self.conditions & set(inputs))

    def __repr__(self) -> str:
        return f"<map {self.name}({', '.join((*self.inputs, *self.params))})>"


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
        shape, kind = outs[0].shape, arrays[0].dtype if arrays else outs[0].dtype
        for array in arrays:
            if array.dtype.kind != "b":
                kind = array.dtype
            if array.shape != shape or not array.flags.c_contiguous:
                break
        else:
            self.flat[kind](*arrays, *params, *outs)
            return
        kind = next((array.dtype for array in arrays if array.dtype.kind != "b"), kind)
        self.strided[kind](*arrays, *params, *outs)


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
    those are flags, which choose the expression. `promote` is "default", "float" (integers become the default float) or "same"
    (no promotion check). `keep_result` lets the backward read the result instead of recomputing it.
    """

    kind = "elementwise"

    def __init__(self, function: Function, *, node: str | None = None, name: str | None = None, promote: str = "default",
                 keep_result: bool = False, conditions: Sequence[str] = (), check: Callable[..., None] | None = None,
                 operator: str = "", aliases: Sequence[str] = (), method: bool = True, public: bool = True,
                 inplace: bool = True) -> None:  # fmt: skip
        super().__init__(function, node=node, name=name)
        parameters = inspect.signature(function).parameters.values()
        self.inputs = tuple(p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD)
        keyword = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
        self.params = tuple(p.name for p in keyword if not isinstance(p.default, (str, bool, type(None))))
        self.flags = tuple(p.name for p in keyword if p.name not in self.params)
        self.statics = self.params + self.flags
        self.defaults = {p.name: p.default for p in keyword if p.default is not p.empty}
        self.differentiable = tuple(range(len(self.inputs)))
        self.promote, self.keep_result, self.check = promote, keep_result, check
        self.conditions = frozenset(conditions)
        self.explicit: dict[str, Callable[..., Expr]] = {}
        self.operator, self.aliases, self.method, self.public = operator, tuple(aliases), method, public
        self.inplace = inplace
        self.module = function.__module__.rpartition(".")[2]

    def reserve(self, spec: str, needs: tuple[bool, ...] | None = None) -> int:
        """Register the flat kernel of the plain call, or of its backward, before anything is derived; returns its number."""
        name = self.name if needs is None else f"{self.name}_backward_" + "_".join(n for n, need in zip(self.inputs, needs, strict=True) if need)

        def flat() -> Kernel:
            found = self.map((True,) * len(self.inputs))
            return (found.kernels if needs is None else found.backward(needs)).flat

        return reserve_kernel(name, spec, flat).index

    def partial(self, name: str) -> Callable[[Function], Function]:
        """Decorator: the derivative by an input, given instead of derived; called like the op, plus `result`."""

        def declare(function: Function) -> Function:
            self.explicit[name] = function
            return function

        return declare

    @functools.lru_cache(maxsize=None)  # noqa: B019  (ops live as long as the process)
    def map(self, tensors: tuple[bool, ...], flags: tuple[Any, ...] = ()) -> Map:
        """The Map for operands that are tensors (True) or numbers (False), and given flags."""
        inputs = tuple(name for name, is_tensor in zip(self.inputs, tensors, strict=True) if is_tensor)
        numbers = tuple(name for name, is_tensor in zip(self.inputs, tensors, strict=True) if not is_tensor)
        chosen = dict(zip(self.flags, flags or [self.defaults.get(name) for name in self.flags], strict=True))
        params = (*numbers, *self.params)
        (output,) = trace(self.function, inputs, params, **chosen)
        explicit = {}
        for name, function in self.explicit.items():
            if name in inputs:
                wanted = set(inspect.signature(function).parameters)
                (explicit[name],) = trace(function, [n for n in (*inputs, RESULT) if n in wanted], [n for n in params if n in wanted],
                                          **{k: v for k, v in chosen.items() if k in wanted})  # fmt: skip
        suffix = "" if all(tensors) else "_" + "".join("ts"[not t] for t in tensors)
        suffix += "".join(f"_{value}" for value in chosen.values() if isinstance(value, str))
        return Map(self.name + suffix, self.node, inputs, params, output, conditions=self.conditions & set(inputs),
                   keep_result=self.keep_result, explicit=explicit)  # fmt: skip

    def resolve(self, operands: Sequence[Any], statics: Sequence[Any]) -> Bound:
        """Promotion, casts and the broadcast shape of a call.

        Operands are tensors or numbers. Raises TypeError for others, RuntimeError where the shapes don't broadcast.
        """
        mask = tuple(hasattr(x, "meta") for x in operands)
        tensors = tuple(x for x, is_tensor in zip(operands, mask, strict=True) if is_tensor)
        numbers = tuple(x for x, is_tensor in zip(operands, mask, strict=True) if not is_tensor)
        for number in numbers:
            if not isinstance(number, NUMBERS):
                raise TypeError(f"{self.name}(): argument must be Tensor or a number, not {type(number).__name__}")
        if self.check is not None:
            self.check(self, operands, statics)
        count = len(self.params)
        shape = tensors[0].meta.shape if len(tensors) == 1 else broadcast_shapes(*(t.meta.shape for t in tensors))
        compute = self.compute_dtype(operands, statics[:count])
        found = self.map(mask, tuple(statics[count:]))
        kind = compute.numpy
        arrays = tuple(t.array if t.array.dtype == kind or name in found.conditions else t.array.astype(kind) for t, name in zip(tensors, found.inputs, strict=True))
        out = np.dtype(bool) if found.is_condition else kind
        return Bound(found, tensors, arrays, (*numbers, *statics[:count]), shape, kind, out)

    def compute_dtype(self, operands: Sequence[Any], params: Sequence[Any]) -> dtype:
        """The dtype the expression is computed in."""
        pairs = []
        for operand, name in zip(operands, self.inputs, strict=True):
            if name in self.conditions:
                continue
            if hasattr(operand, "meta"):
                pairs.append((operand.meta.kind, Category.DIM if operand.meta.shape else Category.ZERO_DIM))
            else:
                pairs.append((scalar_dtype(operand), Category.NUMBER))
        kind = pairs[0][0] if len(pairs) == 1 else result_dtype(pairs)
        if self.promote == "float" and not kind.is_floating_point:
            return default_dtype()
        return kind


HALF: Final = np.dtype(np.float16)


def compute(pair: Pair, arrays: Sequence[Array], params: Sequence[Any], shape: tuple[int, ...], dtypes: Sequence[np.dtype[Any]]) -> list[Array]:
    """Run a kernel pair into new arrays. float16 is stored only: it is computed in float32."""
    if any(array.dtype == HALF for array in arrays):
        wide = [array.astype(np.float32) if array.dtype == HALF else array for array in arrays]
        outs = [np.empty(shape, np.float32 if kind == HALF else kind) for kind in dtypes]
        pair(wide, params, outs)
        return [out.astype(kind) if kind == HALF else out for out, kind in zip(outs, dtypes, strict=True)]
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
