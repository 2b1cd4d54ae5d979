"""`to_jax`: an op as a JAX function: a host callback with a custom derivative."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._tensor.creation import from_numpy
from ..autograd import no_grad
from .pullback import as_tuple, pullback, refuse_mutating


def to_jax(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of JAX arrays that calls `function` on the host, under `jit`, `grad` and `vmap` as well, to every order that it has derivatives of.

    Arguments that are no arrays are handed on as they are and have no gradient. The shapes of the results are found by a call with arrays of
    ones, so they must depend on the shapes of the arguments alone. ImportError where JAX is not installed, TypeError for an op that
    writes into its inputs.
    """
    refuse_mutating(function)

    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        places = tuple(place for place, x in enumerate(args) if is_array(x))
        outs = bridged(
            Static(functools.partial(function, **named) if named else function, args, places),
            [args[place] for place in places],
        )
        return outs[0] if len(outs) == 1 else outs

    return call


def is_array(x: Any) -> bool:
    """Whether an argument is an array, or what JAX has in place of one while it traces."""
    return hasattr(x, "shape") and hasattr(x, "dtype") and not isinstance(x, np.generic)


class Static:
    """A function with all arguments that are no arrays filled in."""

    def __init__(self, function: Callable[..., Any], args: Sequence[Any], places: tuple[int, ...]) -> None:
        self.function, self.places = function, places
        self.args = [None if place in places else x for place, x in enumerate(args)]

    def __call__(self, *tensors: Any) -> Any:
        """Call with tensors in the places of the arrays."""
        args = list(self.args)
        for place, x in zip(self.places, tensors, strict=True):
            args[place] = x
        return self.function(*args)

    def run(self, *arrays: Any) -> tuple[np.ndarray[Any, Any], ...]:
        """On NumPy arrays, without a graph."""
        with no_grad():
            outs = as_tuple(self(*[from_numpy(np.array(x)) for x in arrays]))
        return tuple(out.numpy() for out in outs)


def bridged(static: Callable[..., Any], arrays: Sequence[Any], shapes: Sequence[Any] | None = None) -> tuple[Any, ...]:
    """Call a function of tensors on JAX arrays. `shapes` are those of the results where they are known."""
    import jax

    whole = static if isinstance(static, Static) else Static(static, [None] * len(arrays), tuple(range(len(arrays))))
    run = whole.run
    struct: Any = jax.ShapeDtypeStruct
    known = shapes
    if known is None:
        known = [
            struct(out.shape, jax.dtypes.canonicalize_dtype(out.dtype))
            for out in run(*[np.ones(x.shape, x.dtype) for x in arrays])
        ]
    result = tuple(known)

    def host(*given: Any) -> tuple[Any, ...]:
        return tuple(out.astype(like.dtype, copy=False) for out, like in zip(run(*given), result, strict=True))

    @jax.custom_vjp
    def call(*given: Any) -> Any:
        return jax.pure_callback(host, result, *given, vmap_method="sequential")

    def forward(*given: Any) -> Any:
        return call(*given), given

    def backward(given: Any, grads: Any) -> Any:
        floating = [np.issubdtype(one.dtype, np.floating) for one in result]
        wanted = [np.issubdtype(x.dtype, np.floating) for x in given]
        likes = [struct(x.shape, x.dtype) for x, want in zip(given, wanted, strict=True) if want]
        back = pullback(static, len(given), floating)
        parts = iter(bridged(back, [*given, *[one for one, take in zip(grads, floating, strict=True) if take]], likes))
        return tuple(
            next(parts) if want else np.zeros(x.shape, jax.dtypes.float0) for x, want in zip(given, wanted, strict=True)
        )

    call.defvjp(forward, backward)
    return tuple(call(*arrays))
