"""Kernels that change arrays in place by a scalar rule: the update rules of optimizers.

One pass over memory per parameter: each element of the parameter, of its gradient and of the optimizer's state is read
once and written at most once. (Adam on 1e6 float32: 0.39 ms, on 16 elements 0.19 us.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._expr import Expr
from .._expr.emit import emit_body, spelling
from .._expr.interpret import evaluate
from .registry import Function, Kernel, header

FLOATS = "fd"


def update_kernel(
    name: str, outputs: Sequence[Expr], arrays: Sequence[str], written: Sequence[str], params: Sequence[str]
) -> Kernel:
    """The kernel that puts `outputs` into the arrays named `written`; arguments are arrays, then params.

    All arrays are C-contiguous and of one size and dtype; none may overlap another. The plain form, for other dtypes
    and `JITGRAD_JIT=0`, takes arrays of any strides.
    """
    name = f"update_{name}"

    def write(dtype: np.dtype[Any]) -> str:
        body = emit_body(outputs)
        lines = [
            f"def {name}({', '.join([*(f'b_{x}' for x in arrays), *(f's_{x}' for x in params)])}):",
            f"    n = size(b_{arrays[0]})",
            *(f"    p_{x} = data(b_{x})" for x in arrays),
            *(f"    {spelling(x)} = real(s_{x})" for x in params),
            "    token = release(n)",
            "    for k in range(n):",
            *(f"        {spelling(x)} = p_{x}[k]" for x in arrays),
            *(f"        {statement}" for statement in body.statements),
            *(f"        p_{x}[k] = {value}" for x, value in zip(written, body.results, strict=True)),
            "    restore(token)",
        ]
        return header(name, dtype, {*body.functions, "data", "size", "release", "restore"}) + "\n".join(lines) + "\n"

    def plain(dtype: np.dtype[Any]) -> Function:
        return lambda *arguments: interpreted(outputs, arrays, written, params, arguments)

    return Kernel(name, "b" * len(arrays) + "s" * len(params), write, plain, compiles=FLOATS)


def interpreted(
    outputs: Sequence[Expr],
    arrays: Sequence[str],
    written: Sequence[str],
    params: Sequence[str],
    arguments: Sequence[Any],
) -> None:
    """What the kernel does, by interpretation; nothing is written before everything is computed."""
    named = dict(zip((*arrays, *params), arguments, strict=True))
    results = evaluate(outputs, named, named[arrays[0]].dtype)
    for name, result in zip(written, results, strict=True):
        np.copyto(named[name], result)
