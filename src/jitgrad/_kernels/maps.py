"""Kernels of elementwise expressions: `elementwise.py` writes the source, `registry.py` compiles it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.late import LateModule
from .._expr import Expr
from .registry import Function, Kernel, header

if TYPE_CHECKING:
    from . import elementwise
else:
    elementwise = LateModule("jitgrad._kernels.elementwise")

FLOATS = "fd"  # other dtypes are interpreted: integers wrap and check divisors, halves are computed in float32


def map_kernel(name: str, outputs: tuple[Expr, ...], inputs: tuple[str, ...], params: tuple[str, ...], conditions: frozenset[str], *,
               strided: bool) -> Kernel:  # fmt: skip
    """The kernel of an elementwise expression: arguments are inputs, params, outputs."""
    write = elementwise.strided_source if strided else elementwise.flat_source
    name = f"map_{name}"  # the kernel of tanh must not hide the function tanh that it calls

    def source(dtype: np.dtype[Any]) -> str:
        from .opaque import definitions  # as late as numba itself: `import jitgrad` does without

        text, words = write(name, outputs, inputs, params, conditions)
        return header(name, dtype, words) + definitions(words) + text

    def plain(dtype: np.dtype[Any]) -> Function:
        return elementwise.interpreted(outputs, inputs, params)

    return Kernel(name, elementwise.spec_of(outputs, inputs, params, conditions), source, plain, compiles=FLOATS)


def reserve_kernel(name: str, spec: str, kernel: Callable[[], Kernel]) -> Kernel:
    """A kernel whose expression is asked for only when it is first called; `spec` has to be the one it will have."""
    return Kernel(f"map_{name}", spec, lambda dtype: kernel().write(dtype), lambda dtype: kernel().plain(dtype), compiles=FLOATS)
