"""Kernels of users as ops: `elementwise`, `jit_function`, and `opcheck`, which looks for what is wrong with one."""

from ..._core.errors import KernelError
from .jit_function import JitFunction, jit_function

__all__ = ["JitFunction", "KernelError", "jit_function"]
