"""`scalar_function`: a scalar kernel of the user's - a branch, a loop, a special function - as a word of elementwise functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from ..._expr import Expr, apply, const
from ..._expr.foreign import add_atom
from ..._kernels import opaque
from ..._kernels.captures import all_reads, changed, plain_function
from ..._kernels.reasons import definition
from .contract import parameters_of, python_function
from .tracing import call_traced
from .words import traced_copy

Function = Callable[..., Any]


class ScalarFunction:
    """A function of numbers that elementwise functions may call; made by `scalar_function`. With numbers it is the Python function."""

    traceable = True

    def __init__(self, function: Any, partials: Sequence[Function | None] | None) -> None:
        self.py_func = python_function(function, "a scalar function")
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
        given = [part for part in self._partials or () if part is not None]
        self._watched = all_reads(self.py_func, *(part for part in map(plain_function, given) if part is not None))
        self._word = opaque.define(self._function, self.py_func)
        rules = [
            None if self._partials is not None and self._partials[place] is None else self._rule(place)
            for place in range(self.arity)
        ]
        add_atom(self._word, self.arity, rules, opaque.interpreted(self._word))

    def __repr__(self) -> str:
        return f"<scalar_function {self.__name__}>"

    def _rule(self, place: int) -> Callable[..., Expr]:
        """The partial by one argument, traced when a derivative is wanted."""

        def partial(result: Expr, *args: Expr) -> Expr:
            if self._partials is None:
                raise TypeError(
                    f"no derivative of {self.__name__} was given: scalar_function(..., partials=(...)) takes a function per argument, or None "
                    f"for one that is zero{definition(self.py_func)}"
                )
            given = self._partials[place]
            assert given is not None
            names = inspect.signature(given).parameters
            (found,) = call_traced(traced_copy(given), given, args, {"result": result} if "result" in names else {})
            return found if isinstance(found, Expr) else const(found)

        return partial


def scalar_function(function: Any = None, *, partials: Sequence[Function | None] | None = None) -> Any:
    """Let elementwise functions call a scalar function that can't be traced: one with branches or loops, plain or made by `numba.njit`.

    partials: for each argument a function of the arguments (and of `result`, if it has a parameter of that name), itself in terms of elementwise
    functions and scalar functions, or None where the derivative is zero. Without it no gradient can be asked. Raises KernelError
    where the function reads something from outside that can't be frozen.
    """

    def make(function: Any) -> ScalarFunction:
        return ScalarFunction(function, partials)

    return make if function is None else make(function)
