"""The one door to Numba: signatures, flags and the compiled entry point.

Flags, each with its reason:
- ``error_model="numpy"``: 1/0 is inf as IEEE says, and loops vectorise (Numba's default raises).
- ``fastmath={"contract"}``: fused multiply-add only. NaN, infinities and the sign of zero mean what IEEE says. A reduction whose
  order may change asks for ``reassoc`` and ``nsz`` by name (a float32 sum is 8x slower without).
- no ``nogil``: small calls keep the GIL (releasing costs 55 ns of the 64 ns call); kernels release it themselves above
  4096 elements (`buffers.release`), so one compiled function serves both.
- no ``parallel``: GNU OpenMP kills a forked child, the workqueue layer aborts on two Python threads.
- ``no_cfunc_wrapper``: saves 10-35 ms of compilation per function; nobody calls these from C.

Beyond Numba's public API this module reads ``Dispatcher.overloads[...].entry_point``: the C wrapper of the one compiled
signature, 2-3x cheaper than the dispatcher. It checks nothing but the number of arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._core.settings import settings

Signature = str  # one letter per parameter, see `registry.kernel`; "->n" for a returned int64


def numba_signature(spec: Signature, dtype: np.dtype[Any]) -> Any:
    """Numba's signature for a parameter spec and the kernel's dtype."""
    import numba

    from .buffers import Buffer

    def buffer(name: str) -> Any:
        return Buffer(numba.from_dtype(np.dtype(name)))

    letters = {
        "b": Buffer(numba.from_dtype(dtype) if dtype != np.bool_ else numba.uint8),
        "i": buffer("i8"), "m": buffer("u1"), "d": buffer("f8"), "u": buffer("u8"),
        "k": buffer("i4"), "g": buffer("i2"), "j": buffer("i1"),
        "n": numba.int64, "s": numba.float64, "w": numba.uint64,
    }  # fmt: skip
    parameters, _, result = spec.partition("->")
    return (letters[result] if result else numba.void)(*[letters[c] for c in parameters])


def jit(
    function: Callable[..., Any], spec: Signature, dtype: np.dtype[Any], fast: frozenset[str], cache: bool
) -> Callable[..., Any]:
    """Compile one signature of a kernel and return its entry point.

    Raises whatever Numba raises for a function that it can't compile.
    """
    import numba

    dispatcher = numba.njit(
        numba_signature(spec, dtype),
        error_model="numpy",
        fastmath={"contract", *fast},
        no_cfunc_wrapper=True,
        boundscheck=settings.bounds_check,
        cache=cache,
    )(function)
    entry: Callable[..., Any] = next(iter(dispatcher.overloads.values())).entry_point
    return entry
