"""Sums of elementwise expressions over whole arrays: what a loss or a norm is, in one pass and without a temporary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._expr import Expr, emit_body, spelling
from .._expr.interpret import evaluate
from .registry import REASSOCIATE, Function, Kernel, header

FLOATS = "fd"


def sum_source(name: str, output: Expr, inputs: Sequence[str], params: Sequence[str]) -> tuple[str, set[str]]:
    """The kernel's text and its words. Arguments: inputs, params, divisor, out; inputs C-contiguous and of one size."""
    body = emit_body([output])
    lines = [f"def {name}({', '.join([*(f'in_{x}' for x in inputs), *(f's_{x}' for x in params), 'divisor', 'out0'])}):"]
    lines += [f"    p_{x} = data(in_{x})" for x in inputs]
    lines += [f"    {spelling(x)} = real(s_{x})" for x in params]
    lines += [f"    n = size(in_{inputs[0]})", "    q0 = data(out0)", "    token = release(n)", "    total_ = np.float64(0.0)", "    for k in range(n):"]
    lines += [f"        {spelling(x)} = p_{x}[k]" for x in inputs]
    lines += [f"        {statement}" for statement in body.statements]
    lines += [f"        total_ += np.float64({body.results[0]})", "    restore(token)", "    q0[0] = real(total_ / divisor)"]
    return "\n".join(lines) + "\n", body.functions | {"data", "size", "release", "restore"}


def sum_kernel(name: str, output: Expr, inputs: Sequence[str], params: Sequence[str] = ()) -> Kernel:
    """The kernel of sum(expression) / divisor. Arguments: inputs, params, divisor, out; inputs C-contiguous and of one size."""
    name = f"sum_{name}"

    def source(dtype: np.dtype[Any]) -> str:
        text, words = sum_source(name, output, inputs, params)
        return header(name, dtype, words) + text

    def plain(dtype: np.dtype[Any]) -> Function:
        return interpreted_sum(output, (*inputs, *params))

    return Kernel(name, "b" * len(inputs) + "s" * len(params) + "sb", source, plain, fast=REASSOCIATE, compiles=FLOATS)


def interpreted_sum(output: Expr, names: Sequence[str]) -> Callable[..., None]:
    """The same by interpretation."""

    def run(*arguments: Any) -> None:
        divisor, out = arguments[-2:]
        (values,) = evaluate((output,), dict(zip(names, arguments, strict=False)), arguments[0].dtype)
        out[...] = np.broadcast_to(values, arguments[0].shape).sum(dtype=np.float64) / divisor

    return run
