"""Scalar functions of users that elementwise kernels call as they are, without knowing their expression.

A function gets a name that holds the digest of all that its machine code depends on. A kernel that calls it carries that name in its own
text, so the content-addressed store stays right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np

from .._core.errors import KernelError
from .._core.settings import settings
from .captures import Function
from .digests import Unknown, digest, recursive
from .reasons import compile_error, definition
from .user import linked, options_of, uncompiled

_DEFINED: Final[dict[str, tuple[Any, Function]]] = {}


def define(function: Any, plain: Function) -> str:
    """Register a scalar function, plain or made by njit; returns the word that kernels call it by.

    Raises KernelError where it reads something that has no digest.
    """
    try:
        name = f"u_{plain.__name__.strip('_<>').lower()}_{digest(plain, sorted((key, repr(value)) for key, value in options_of(function).items()))}"
    except Unknown as what:
        raise KernelError(
            f"{plain.__name__} reads '{what}', which is neither a number, a string, a tuple, a small array nor a function: pass it as an "
            f"argument{definition(plain)}"
        ) from None
    _DEFINED[name] = (function, plain)
    return name


def definitions(words: Iterable[str], maker: str = "compiled") -> str:
    """The lines of a kernel's source that make the functions among `words` known to it, by `compiled` or `whole`."""
    used = sorted(word for word in words if word in _DEFINED)
    if not used:
        return ""
    lines = [f'{name} = {maker}("{name}")\n' for name in used]
    if any(recursive(_DEFINED[name][1]) for name in used):
        lines.append("in_memory = True\n")
    return f"from jitgrad._kernels.opaque import {maker}\n\n" + "".join(lines) + "\n\n"


def compiled(name: str) -> Any:
    """The function to be called by compiled kernels."""
    import numba

    function, plain = _DEFINED[name]
    options = options_of(function) | ({"boundscheck": True} if settings.bounds_check else {})
    dispatcher = numba.njit(**options)(linked(plain))
    typed = dispatcher.get_call_template

    def explained(args: Any, kws: Any) -> Any:
        """What Numba asks of a callee when it types a call; what is wrong with the callee is said here, in its own lines."""
        spelled = ", ".join(map(str, args))
        try:
            found = typed(args, kws)
        except KernelError:
            raise
        except Exception as error:
            raise compile_error(plain, spelled, error) from error
        for compiled_form in dispatcher.overloads.values():
            result = compiled_form.signature.return_type
            if not isinstance(result, (numba.types.Number, numba.types.Boolean)):
                raise KernelError(
                    f"{plain.__name__} must return one number, not {result}, for {spelled}{definition(plain)}"
                )
        return found

    dispatcher.get_call_template = explained
    return dispatcher


def whole(name: str) -> Any:
    """The function for compiled code that takes whatever it returns: arrays, numbers, tuples."""
    import numba

    function, plain = _DEFINED[name]
    return numba.njit(**options_of(function))(linked(plain))


def interpreted(name: str) -> Callable[..., Any]:
    """The function on NumPy arrays, one element at a time, for `JITGRAD_JIT=0`."""
    plain = uncompiled(_DEFINED[name][1], [], frozenset())

    def call(*arrays: Any) -> Any:
        kind = np.result_type(*arrays)
        return np.asarray(np.frompyfunc(plain, len(arrays), 1)(*arrays)).astype(kind)

    return call
