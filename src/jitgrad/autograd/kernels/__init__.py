"""Kernels of users as ops: `elementwise`, `jit_function`, and `opcheck`, which looks for what is wrong with one."""

from ..._core.errors import KernelError
from .elementwise import ElementwiseFunction, elementwise
from .jit_function import JitFunction, jit_function
from .opcheck import Finding, OpcheckError, Report, opcheck
from .scalar_function import ScalarFunction, scalar_function

__all__ = [
    "ElementwiseFunction",
    "Finding",
    "JitFunction",
    "KernelError",
    "OpcheckError",
    "Report",
    "ScalarFunction",
    "elementwise",
    "jit_function",
    "opcheck",
    "scalar_function",
]
