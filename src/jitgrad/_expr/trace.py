"""From a Python function over scalars to expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .node import Expr, Scalar, const, param, var


def trace(
    function: Callable[..., object], inputs: Sequence[str], params: Sequence[str] = (), **static: object
) -> tuple[Expr, ...]:
    """Calls `function` once on symbols and returns what it computed, one expression per output.

    Every argument is passed by name: `inputs` become vars, `params` become params, `static` values are handed over as
    they are. TypeError if the result is neither a number, an expression nor a tuple or list of them, or if the function
    asks for the value of a symbol.
    """
    symbols: dict[str, Expr] = {name: var(name) for name in inputs}
    symbols.update((name, param(name)) for name in params)
    twice = [name for name in static if name in symbols]
    if twice or len(symbols) != len(inputs) + len(params):
        raise ValueError(f"argument named twice: {', '.join(twice) or [*inputs, *params]}")
    result = function(**symbols, **static)
    results = result if isinstance(result, (tuple, list)) else (result,)
    return tuple(_checked(item, function) for item in results)


def _checked(item: object, function: Callable[..., object]) -> Expr:
    if isinstance(item, Expr):
        return item
    try:
        return const(item)
    except TypeError:
        name = getattr(function, "__name__", "the function")
        raise TypeError(f"{name} must return scalar expressions or numbers, not {type(item).__name__}") from None


__all__ = ["Scalar", "trace"]
