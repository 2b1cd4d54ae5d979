"""The scalar language: what an elementwise op is declared in, and what its kernels and derivatives come from.

`scalar` is the namespace ops are written with, `atoms` the table of primitives, `derive` the calculus, `emit` the way
to kernels. `interpret` evaluates with NumPy and is imported on its own: this package needs the standard library only.
"""

from typing import TYPE_CHECKING

from .._core.late import LateModule
from . import scalar
from .atoms import ATOMS, Atom, is_condition, stays_finite
from .derive import derivative, derivatives
from .node import (
    Expr,
    Number,
    Scalar,
    apply,
    const,
    describe,
    free_params,
    free_variables,
    lift,
    param,
    substitute,
    topological,
    var,
)
from .trace import trace

if TYPE_CHECKING:
    from . import emit
else:
    emit = LateModule("jitgrad._expr.emit")  # asked for by the first kernel

__all__ = [
    "ATOMS",
    "Atom",
    "Expr",
    "Number",
    "Scalar",
    "apply",
    "const",
    "derivative",
    "derivatives",
    "describe",
    "emit",
    "free_params",
    "free_variables",
    "is_condition",
    "lift",
    "param",
    "scalar",
    "stays_finite",
    "substitute",
    "topological",
    "trace",
    "var",
]
