"""`scalar_function`: a scalar kernel of the user's - a branch, a loop, a special function - as a word of elementwise functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from ..._expr import Expr, apply
from ..._expr.foreign import add_atom, called
from ..._kernels import opaque
from ..._kernels.captures import all_reads, changed, plain_function
from ..._kernels.reasons import definition
from .contract import global_name, parameters_of, python_function
from .tracing import call_traced
from .words import traced_copy

Function = Callable[..., Any]


class ScalarFunction:
    """A function of numbers that elementwise functions may call; made by `scalar_function`. With numbers it is the Python function."""

    traceable = True

    def __init__(self, function: Any, partials: Sequence[Function | None] | None) -> None:
        self.py_func = self.__wrapped__ = python_function(function, "a scalar function")
        self.__name__, self.__doc__, self.__module__ = (
            self.py_func.__name__,
            self.py_func.__doc__,
            self.py_func.__module__,
        )
        self.arity = len(parameters_of(self.py_func))
        if partials is not None and len(partials) != self.arity:
            raise ValueError(
                f"{self.__name__} has {self.arity} arguments, but {len(partials)} partials were given{definition(self.py_func)}"
            )
        self._function, self._partials = function, partials
        self.partial_functions = tuple(part for part in map(plain_function, partials or ()) if part is not None)
        self._declare()

    def __call__(self, *args: Any) -> Any:
        """The value for numbers; an expression for elements of an elementwise function."""
        if any(isinstance(x, Expr) for x in args):
            if len(args) != self.arity:
                raise TypeError(f"{self.__name__}() takes {self.arity} arguments but {len(args)} were given")
            if changed(self._watched):
                self._declare()
            return apply(self._word, *args)
        return self.py_func(*args)

    def _declare(self) -> None:
        """Make a word for the function as it is now, with all that it reads."""
        self._watched = all_reads(self.py_func, *self.partial_functions)
        word = opaque.define(self._function, self.py_func)
        rules = [
            None if self._partials is not None and self._partials[place] is None else self._rule(place)
            for place in range(self.arity)
        ]
        self._word = add_atom(self.__name__, called(word, self.arity), rules, opaque.interpreted(word))

    def __repr__(self) -> str:
        return f"<scalar_function {self.__name__}>"

    def __reduce__(self) -> str:
        return global_name(self)

    def _rule(self, place: int) -> Callable[..., Expr]:
        """The partial by one argument: traced when a derivative is wanted, with the values that it reads now."""
        if self._partials is None:
            return self._refuse
        given: Any = self._partials[place]
        copy = given if getattr(given, "traceable", False) else traced_copy(python_function(given, "a partial"))
        wants_result = "result" in inspect.signature(given).parameters

        def partial(result: Expr, *args: Expr) -> Expr:
            found = call_traced(copy, given, args, {"result": result} if wants_result else {})
            if len(found) != 1:
                raise TypeError(
                    f"a partial is one derivative, but {given.__name__} returned {len(found)} results{definition(given)}"
                )
            return found[0]

        return partial

    def _refuse(self, *_: Expr) -> NoReturn:
        raise TypeError(
            f"no derivative of {self.__name__} was given: scalar_function(..., partials=(...)) takes a function per argument, or None "
            f"for one that is zero{definition(self.py_func)}"
        )


def scalar_function(function: Any = None, *, partials: Sequence[Function | None] | None = None) -> Any:
    """Let elementwise functions call a scalar function that can't be traced: one with branches or loops, plain or made by `numba.njit`.

    partials: for each argument a function of the arguments (and of `result`, if it has a parameter of that name), itself in terms of elementwise
    functions and scalar functions, or None where the derivative is zero. Without it no gradient can be asked. Raises KernelError
    where the function reads something from outside that can't be frozen.
    """

    def make(function: Any) -> ScalarFunction:
        return ScalarFunction(function, partials)

    return make if function is None else make(function)
