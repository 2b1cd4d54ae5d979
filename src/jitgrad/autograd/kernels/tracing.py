"""From a user's scalar function to expressions: signature, trace, and errors that point at the line."""

from __future__ import annotations

import inspect
import re
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from ..._core.errors import KernelError
from ..._expr import Expr, apply, const, derivative, lift, substitute, topological, var
from ..._expr.foreign import add_atom
from ..._kernels.reasons import definition, line_of
from .words import traced_copy

_PACKAGE: Final = str(Path(__file__).parents[2])
_TAKEN: Final = re.compile(r"(grad|result)_?\d*")  # names that the derivatives of an op use themselves
# atoms that stay among the integers; all others make integers into floats, as torch does
_WHOLE: Final = {
    *("var", "param", "const", "add", "sub", "mul", "neg", "abs", "sign", "square", "maximum", "minimum", "clamp"),
    *(
        "where",
        "floor",
        "ceil",
        "round",
        "trunc",
        "floor_divide",
        "fmod",
        "remainder",
        "lt",
        "le",
        "gt",
        "ge",
        "eq",
        "ne",
    ),
    *("logical_and", "logical_or", "logical_xor", "logical_not", "isnan", "isinf", "isfinite"),
}


class Static:
    """A keyword-only argument that chooses the expression. Equal only to one of the same type and spelling: True is not 1, -0.0 not 0.0.

    TypeError for a value that can't be told from another.
    """

    __slots__ = ("key", "value")

    def __init__(self, value: Any, name: str = "") -> None:
        self.value = value
        self.key = type(value), repr(value) if isinstance(value, (float, tuple)) else value
        try:
            hash(self.key)
        except TypeError:
            raise TypeError(
                f"keyword-only argument '{name}' must be a number, a bool, a string or a tuple of those, not {type(value).__name__}"
            ) from None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        return re.sub(r"\W", "_", str(self.value))


class Signature:
    """The parameters of an elementwise function.

    Positional ones are operands (`inputs` their names in expressions, `defaults` the numbers they default to); keyword-only ones are `params`,
    passed at run time, where the default or the annotation is a float, else `statics`.
    """

    def __init__(self, function: Any) -> None:
        self.operands: tuple[str, ...] = ()
        self.params: tuple[str, ...] = ()
        self.statics: tuple[str, ...] = ()
        self.defaults: dict[str, Any] = {}
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise TypeError(
                    f"{function.__name__} takes a variable number of arguments (*{parameter.name}): name them{definition(function)}"
                )
            if parameter.kind is not parameter.KEYWORD_ONLY:
                self.operands += (parameter.name,)
            elif is_number(parameter):
                self.params += (parameter.name,)
            else:
                self.statics += (parameter.name,)
            if parameter.default is not parameter.empty:
                self.defaults[parameter.name] = parameter.default
        if not self.operands:
            raise TypeError(
                f"{function.__name__} has no operand: an elementwise function takes at least one positional argument{definition(function)}"
            )
        self.inputs = tuple(spelled(name) for name in self.operands)

    @property
    def complete(self) -> bool:
        """Whether the function can be traced without knowing a call: all statics have a default."""
        return all(name in self.defaults for name in self.statics)

    def for_op(self) -> inspect.Signature:
        """The signature that the op class reads."""
        kinds = inspect.Parameter
        positional = [kinds(name, kinds.POSITIONAL_OR_KEYWORD) for name in self.inputs]
        numbers = [
            kinds(name, kinds.KEYWORD_ONLY, default=self.defaults.get(name, kinds.empty)) for name in self.params
        ]
        flags = [kinds(name, kinds.KEYWORD_ONLY, default=None) for name in self.statics]
        return inspect.Signature([*positional, *numbers, *flags])


def is_number(parameter: inspect.Parameter) -> bool:
    """Whether a keyword-only parameter is a number passed at run time: its default or annotation is a float."""
    if parameter.annotation in (float, "float"):
        return True
    return isinstance(parameter.default, (float, np.floating)) and parameter.annotation in (
        parameter.empty,
        float,
        "float",
    )


def spelled(name: str) -> str:
    """The name of an operand inside expressions."""
    return f"{name}_in" if _TAKEN.fullmatch(name) else name


def tracer(function: Any, signature: Signature) -> Callable[..., tuple[Expr, ...]]:
    """The function over expressions: called by the names of `signature.for_op()`, it gives its results. Errors name the user's line."""
    copy = traced_copy(function)
    back = dict(zip(signature.inputs, signature.operands, strict=True))

    def trace(**named: Any) -> tuple[Expr, ...]:
        given = {
            back.get(name, name): value.value if isinstance(value, Static) else value for name, value in named.items()
        }
        positional = [given.pop(name) for name in signature.operands]
        return call_traced(copy, function, positional, given)

    return trace


def given_partial(function: Any, signature: Signature) -> Callable[..., Expr]:
    """A derivative given by the user: named after the operands (and `result`), called by the names inside expressions."""
    copy = traced_copy(function)
    known = dict(zip(signature.operands, signature.inputs, strict=True)) | {
        name: name for name in ("result", *signature.params, *signature.statics)
    }
    names = tuple(inspect.signature(function).parameters)
    for name in names:
        if name not in known:
            raise TypeError(
                f"a partial takes operands, keyword-only arguments and 'result' by name; there is no {name!r}{definition(function)}"
            )

    def partial(**named: Any) -> Expr:
        values = {name: named[known[name]] for name in names}
        (found,) = call_traced(
            copy,
            function,
            (),
            {name: value.value if isinstance(value, Static) else value for name, value in values.items()},
        )
        return found

    kinds = inspect.Parameter
    partial.__signature__ = inspect.Signature([kinds(known[name], kinds.KEYWORD_ONLY) for name in names])  # type: ignore[attr-defined]
    return partial


def with_partials(
    signature: Signature,
    given: dict[str, Any],
    trace: Callable[..., tuple[Expr, ...]],
    args: Sequence[Any],
    statics: dict[str, Any],
    value: Expr,
) -> Expr:
    """`value`, the result for `args` inside another function, with the derivatives that are given for it, the others derived."""
    symbols = {name: var(name) for name in signature.inputs}
    (output,) = trace(**symbols, **statics)
    known = dict(zip(signature.inputs, args, strict=True)) | statics

    def rule(name: str, operand: str) -> Callable[..., Expr]:
        if operand in given:
            partial = given_partial(given[operand], signature)
            names = inspect.signature(partial).parameters
            return lambda result, *_: partial(**{one: result if one == "result" else known[one] for one in names})
        images = {symbol: lift(known[one]) for one, symbol in symbols.items()}
        return lambda *_: substitute(derivative(output, symbols[name]), images)

    rules = [None, *(rule(*names) for names in zip(signature.inputs, signature.operands, strict=True))]
    return apply(add_atom("given", "{0}", rules, lambda value, *_: value), value, *args)


def call_traced(copy: Any, function: Any, args: Sequence[Any], named: dict[str, Any]) -> tuple[Expr, ...]:
    """Call a copy made for tracing; its results as expressions."""
    try:
        result = copy(*args, **named)
    except Exception as error:
        raise located(error, function) from error
    results = tuple(result) if isinstance(result, (tuple, list)) else (result,)
    try:
        return tuple(item if isinstance(item, Expr) else const(item) for item in results)
    except TypeError:
        wrong = next(item for item in results if not isinstance(item, (Expr, bool, int, float, np.number)))
        raise TypeError(
            f"{function.__name__} must return elements or numbers, not {type(wrong).__name__}{definition(function)}"
        ) from None


def located(error: Exception, function: Any) -> Exception:
    """The error with the line of the user's source it came from, and in words for users."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(_PACKAGE)]
    place = line_of(frames[-1].filename, frames[-1].lineno or 0, frames[-1].name) if frames else definition(function)
    text = str(error).replace("'Expr'", "'element'")
    if "\n  File " in text:
        place = ""
    kind: type[Exception] = (
        type(error)
        if type(error) in (TypeError, ValueError, NameError, ZeroDivisionError, OverflowError, KernelError)
        else TypeError
    )
    if isinstance(error, AttributeError) and isinstance(error.obj, Expr):
        text = f"an element has no '{error.name}': write jitgrad.{error.name}(x) instead of x.{error.name}(), if there is such a function"
    elif "no value while it is being recorded" in text:
        text = (
            "an element has no value while the function is traced, so it can't be an int, a float or an index here. Use jitgrad's functions, "
            "and jitgrad.where(condition, a, b) for a choice; an argument that has to be known (a count, a choice) is keyword-only, with an "
            "int, bool or str as default or annotation"
        )
    elif isinstance(error, RecursionError):
        text = "the function calls itself without an end: a condition that depends on an element can't stop it"
    return kind(f"{function.__name__}: {text}{place}")


def promotion(outputs: Sequence[Expr]) -> str:
    """Whether integers stay integers ("default") or become floats."""
    for node in topological(*outputs):
        if node.op == "pow" and node.args[1].op == "const" and isinstance(node.args[1].value, int):
            continue
        if node.op not in _WHOLE or (
            node.op == "const" and isinstance(node.value, float) and not isinstance(node.value, bool)
        ):
            return "float"
    return "default"


__all__ = ["Signature", "Static", "call_traced", "given_partial", "located", "promotion", "tracer"]
