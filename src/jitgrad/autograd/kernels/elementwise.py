"""`elementwise`: a scalar Python function as a differentiable, broadcasting op.

The function is traced at its declaration, so what it can't mean is refused there. Behind it stands the class of the built-in elementwise
ops (`_ops/maps.py`), one object for each combination of the numbers that the function reads from outside: those are constants
of its kernels, and when one changes the function is traced anew.
"""

from __future__ import annotations

import functools
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from ..._engine import modes
from ..._expr import Expr, param, var
from ..._expr.interpret import evaluate
from ..._kernels.captures import Read, all_reads, changed, frozen
from ..._kernels.reasons import definition
from ..._ops.kinds import Dispatch, camel
from ..._ops.maps import Bound, Elementwise
from ..._tensor.base import TensorBase
from ..._tensor.inplace import inplace
from .check import check_edges
from .contract import global_name, python_function
from .quick import Quick, quick_of
from .several import Together, call_together
from .source import source_of
from .tracing import Signature, Static, given_partial, promotion, tracer, with_partials
from .writing import write_out

NUMBERS: Final = (int, float, bool, np.number, np.bool_)
_MANY: Final = 32  # tracings of one function after which a warning says what is going on


class Version:
    """What was made of a function for one set of captured values: an op per result, and, where there are several, all of them together.

    The values are kept, so that their identities, which tell versions apart, are not given to others.
    """

    def __init__(self, ops: list[Elementwise], reads: Sequence[Read]) -> None:
        self.ops, self.reads = ops, reads
        self.op = ops[0]
        self.together: dict[tuple[Any, ...], Together] = {}

    @functools.cached_property
    def quick(self) -> Quick | None:
        """The common call, where the function has one."""
        return quick_of(self.op) if len(self.ops) == 1 else None

    def several(self, bound: Bound, flags: tuple[Any, ...], name: str, node: str) -> Together:
        """The results of a call as one; kept for the next."""
        key = (bound.form, flags)
        found = self.together.get(key)
        if found is None:
            maps = [op.map(bound.form, (), flags) for op in self.ops]
            suffix = self.ops[0].map(bound.form, (), flags).name.removeprefix(self.ops[0].name)
            found = self.together[key] = Together(name + suffix, node, maps)
        return found


class ElementwiseFunction:
    """A user's scalar function as an op; made by `elementwise`.

    Call it with tensors and numbers; with numbers alone it gives a number, with elements of another elementwise function it becomes part
    of that. `py_func` is the function itself.
    """

    traceable = True

    def __init__(self, function: Any, name: str | None, options: dict[str, Any]) -> None:
        self.py_func = self.__wrapped__ = python_function(function, "an elementwise function")
        self.name = self.__name__ = name or self.py_func.__name__
        self.__doc__, self.__module__ = self.py_func.__doc__, self.py_func.__module__
        self._word = "".join(c if c.isalnum() else "_" for c in self.name).strip("_") or "function"
        self._node = camel(self._word) + "Backward"
        self._options = options
        self._signature = Signature(self.py_func)
        self._partials: dict[str, Any] = {}
        self.partial_functions: tuple[Any, ...] = ()  # what other functions that call this one have to watch
        self._watched: list[Read] = []
        self._versions: dict[Any, Version] = {}
        self._current: Version | None = None
        self._guard = threading.RLock()
        _ALL.add(self)
        if self._signature.complete:
            self._version()  # refuses what can't be expressed, at the declaration

    def __repr__(self) -> str:
        return f"<elementwise {self.name}({', '.join((*self._signature.operands, *self._signature.params, *self._signature.statics))})>"

    def __reduce__(self) -> str:
        return global_name(self)

    # ---- declaration
    def partial(self, name: str) -> Callable[[Any], Any]:
        """Decorator: the derivative by an operand, given instead of derived; called with operands by name, and `result`."""
        if name not in self._signature.operands:
            raise ValueError(
                f"{self.name} has no operand {name!r}; its operands are {', '.join(self._signature.operands)}"
            )

        def declare(function: Any) -> Any:
            if self._signature.complete and len(self._version().ops) > 1:
                raise TypeError(f"{self.name} has several results, whose derivatives can't be given by one partial")
            with self._guard:
                self._partials[name] = python_function(function, "a partial")
                self.partial_functions = tuple(self._partials.values())
                self._versions, self._current = {}, None
            if self._signature.complete:
                self._version()
            return function

        return declare

    def _version(self) -> Version:
        """What belongs to the values that the function reads now."""
        current = self._current
        if current is not None and not (self._watched and changed(self._watched)):
            return current
        with self._guard:
            self._watched = all_reads(self.py_func, *self.partial_functions)
            key = tuple((read.name, identity(read.value)) for read in self._watched)
            found = self._versions.get(key)
            if found is None:
                found = self._versions[key] = self._trace()
                if len(self._versions) == _MANY:
                    names = ", ".join(read.name for read in self._watched)
                    warnings.warn(
                        f"{self.name} was traced and compiled {_MANY} times because a value that it reads from outside changes ({names}): make it a "
                        "keyword-only argument with a float as default, which is passed at run time",
                        RuntimeWarning,
                        stacklevel=4,
                    )
            self._current = found
            return found

    def _trace(self) -> Version:
        trace = tracer(self.py_func, self._signature)
        statics = {
            name: Static(self._signature.defaults[name])
            for name in self._signature.statics
            if name in self._signature.defaults
        }
        if not self._signature.complete:
            return Version([self._op(trace, 0, 1, "float")], self._watched)
        symbols = {name: var(name) for name in self._signature.inputs} | {
            name: param(name) for name in self._signature.params
        }
        outputs = trace(**symbols, **statics)
        kind = promotion(outputs)
        return Version([self._op(trace, index, len(outputs), kind) for index in range(len(outputs))], self._watched)

    def _op(self, trace: Callable[..., tuple[Expr, ...]], index: int, count: int, promote: str) -> Elementwise:
        """The op of one result."""

        def expression(**named: Any) -> Expr:
            found = trace(**named)
            if len(found) != count:
                raise TypeError(
                    f"{self.name} returned {len(found)} results, then {count}: their number can't depend on an argument{definition(self.py_func)}"
                )
            return found[index]

        expression.__signature__ = self._signature.for_op()  # type: ignore[attr-defined]
        expression.__doc__ = self.__doc__
        options = {"promote": promote} | self._options
        op = Elementwise(
            expression,
            name=self._word if count == 1 else f"{self._word}_{index}",
            node=self._node,
            numbers=self._signature.inputs,
            **options,
        )
        op.params, op.flags = self._signature.params, self._signature.statics
        op.statics = op.params + op.flags
        op.defaults = {
            name: Static(value) if name in op.flags else value
            for name, value in self._signature.defaults.items()
            if name in op.statics
        }
        for name, function in self._partials.items():
            op.explicit[self._signature.inputs[self._signature.operands.index(name)]] = given_partial(
                function, self._signature
            )
        return op

    # ---- calls
    def __call__(self, *args: Any, out: Any = None, **named: Any) -> Any:
        """Operands by position or name, keyword-only numbers by name; `out` a tensor (a tuple of them) to write to."""
        version = self._current
        if version is None or (self._watched and changed(self._watched)):
            version = None if any(isinstance(x, Expr) for x in args) else self._version()
        if version is not None and version.quick is not None and not named and out is None and not modes.SPECIAL:
            x = args[0] if args else None
            if isinstance(x, TensorBase) and x.meta.plain and x.rare is None:
                if len(args) == 1 and version.quick.count == 1:
                    return version.quick.one(x)
                y = args[1] if len(args) == 2 else None
                if version.quick.count == 2 and isinstance(y, TensorBase) and y.meta is x.meta and y.rare is None:
                    return version.quick.two(x, y)
        if version is None or any([isinstance(x, Expr) for x in args]):  # noqa: C419  (faster than a generator)
            return self._inline(args, named)
        op = version.op
        if len(args) != len(op.inputs):
            args, named = self._bind(args, named)
        statics = self._statics(op, named) if named or op.statics else ()
        if not any([isinstance(x, TensorBase) for x in args]):  # noqa: C419
            return self._numbers(version, args, statics)
        if out is not None:
            return write_out(self.name, version.ops, args, lambda: self._compute(version, args, statics), out)
        return Dispatch.invoke(op, args, statics) if len(version.ops) == 1 else self._compute(version, args, statics)

    def _compute(self, version: Version, args: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
        """The results for tensors."""
        op = version.op
        if len(version.ops) == 1:
            return Dispatch.invoke(op, args, statics)
        if modes.followed():  # the compiler fuses them itself, forward mode wants them one by one
            return tuple(Dispatch.invoke(one, args, statics) for one in version.ops)
        if not statics and op.statics:
            statics = tuple(op.defaults[name] for name in op.statics)
        bound = op.resolve(args, statics)
        return call_together(version.several(bound, statics[len(op.params) :], self._word, self._node), bound)

    def _bind(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Operands in order, by position or name, defaults filled in."""
        operands, defaults = self._signature.operands, self._signature.defaults
        if len(args) > len(operands):
            raise TypeError(f"{self.name}() takes {len(operands)} operands but {len(args)} were given")
        values = list(args)
        for name in operands[len(args) :]:
            if name not in named and name not in defaults:
                raise TypeError(f"{self.name}() missing operand '{name}'")
            values.append(named.pop(name) if name in named else defaults[name])
        return tuple(values), named

    def _statics(self, op: Elementwise, named: dict[str, Any]) -> tuple[Any, ...]:
        """Keyword-only arguments in the op's order."""
        values: list[Any] = []
        for name in op.statics:
            if name in named:
                value = named.pop(name)
                if isinstance(value, TensorBase):
                    raise TypeError(
                        f"{self.name}(): '{name}' is keyword-only, so it is a number without gradient, not a Tensor"
                    )
                if name in op.params and not isinstance(value, NUMBERS):
                    raise TypeError(f"{self.name}(): '{name}' must be a number, not {type(value).__name__}")
                values.append(Static(value, name) if name in op.flags else value)
            elif name in op.defaults:
                values.append(op.defaults[name])
            else:
                raise TypeError(f"{self.name}() missing keyword-only argument '{name}'")
        if named:
            raise TypeError(f"{self.name}() got an unexpected keyword argument '{next(iter(named))}'")
        return tuple(values)

    def _inline(self, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """The function inside another elementwise function: its expressions, over the given ones."""
        if any(isinstance(x, TensorBase) for x in args):
            raise TypeError(
                f"{self.name}() got a tensor and an element of another elementwise function: make the tensor an operand of that"
            )
        values, named = self._bind(args, named)
        given = {
            name: named.get(name, default)
            for name, default in self._signature.defaults.items()
            if name not in self._signature.operands
        } | named
        statics = {
            name: Static(value, name) if name in self._signature.statics else value for name, value in given.items()
        }
        trace = tracer(self.py_func, self._signature)
        found = trace(**dict(zip(self._signature.inputs, values, strict=True)), **statics)
        if self._partials:
            return with_partials(self._signature, self._partials, trace, values, statics, found[0])
        return found[0] if len(found) == 1 else found

    def _numbers(self, version: Version, args: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
        """The value for numbers."""
        for place, x in enumerate(args):
            if not isinstance(x, NUMBERS):
                raise TypeError(
                    f"{self.name}(): argument '{self._signature.operands[place]}' must be Tensor or number, not {type(x).__name__}"
                )
        op = version.op
        env = dict(zip((*op.inputs, *op.params), (*args, *statics[: len(op.params)]), strict=True))
        outputs = tuple(one.map("s" * len(args), (), statics[len(op.params) :]).output for one in version.ops)
        found = [value.item() for value in evaluate(outputs, env, "float64")]
        return found[0] if len(found) == 1 else tuple(found)

    def inplace(self, input: Any, *args: Any, **named: Any) -> Any:
        """The op written over its first operand, which is returned; recorded as in-place ops are. Refused for several results."""
        version = self._version()
        if len(version.ops) > 1:
            raise TypeError(f"{self.name} has {len(version.ops)} results, so there is no in-place form")
        args, named = self._bind((input, *args), named)
        statics = self._statics(version.op, named)
        return inplace(
            version.op, self.name + "_", args[0], args[1:], dict(zip(version.op.statics, statics, strict=True))
        )

    # ---- what is in it
    def source(self, which: str = "forward", dtype: Any = None) -> str:
        """The kernel that is compiled: of the "forward", the "backward" or the "double_backward", for a dtype (float32)."""
        return source_of(self._version().ops, which, dtype)

    def check(self, *, points: Sequence[float] | None = None, **statics: Any) -> bool:
        """Compare the derivatives with finite differences at edge values: signs, zeros, ties, large and tiny numbers. True, or AssertionError."""
        version = self._version()
        return check_edges(self, version.ops, self._statics(version.op, statics), points)


_ALL: Final[weakref.WeakSet[ElementwiseFunction]] = weakref.WeakSet()


def _after_fork() -> None:
    """In a child: no lock is held by a thread that stayed behind."""
    for function in list(_ALL):
        function._guard = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def identity(value: Any) -> Any:
    """What tells a captured value from another: itself with its type, or the object where it is no value."""
    snapshot = frozen(value)
    if snapshot is not None:
        return type(value).__name__, snapshot
    if isinstance(value, (int, float, str, tuple, np.number)):
        return type(value), repr(value)
    return id(value)


def elementwise(
    function: Any = None, *, name: str | None = None, keep_result: bool = False, conditions: Sequence[str] = ()
) -> Any:
    """Make a differentiable, broadcasting op of a scalar function; all its derivatives are derived from it.

    Positional parameters are operands: tensors or numbers. Keyword-only ones are numbers without gradient: passed at run time where the default or
    annotation is a float, else known to the function (an `if`, a `range`), which is then traced for each value. The function may use
    arithmetic, comparisons (joined by &, |, ~), `jitgrad.where`, functions of one element of jitgrad, math and NumPy, other functions, and numbers
    from outside. It returns one result or a tuple. What it can't express raises TypeError here, with the line.

    name: of the op and its node. keep_result: let the backward read the result, where that saves computing it again; writing over the result
    is then an error. conditions: operands that are bool tensors.

    >>> import jitgrad
    >>> @jitgrad.elementwise
    ... def softclip(x, *, width=1.0):
    ...     return jitgrad.where(abs(x) < width, x, width * jitgrad.tanh(x / width))
    >>> x = jitgrad.tensor([0.5, 2.0], requires_grad=True)
    >>> softclip(x, width=1.5).sum().backward()
    >>> x.grad
    tensor([1.0000, 0.2430])
    """

    def make(function: Any) -> ElementwiseFunction:
        return ElementwiseFunction(function, name, {"keep_result": keep_result, "conditions": tuple(conditions)})

    return make if function is None else make(function)


__all__ = ["ElementwiseFunction", "elementwise"]
