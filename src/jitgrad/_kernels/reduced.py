"""Sums of elementwise expressions: what sums, means, norms and losses are, in one pass and without a temporary.

float32 is summed in blocks: the processor's lanes within a block, float64 from block to block. 1e6 elements take 43 us (float64 all
the way 72; torch 44) and are good to one rounding, where lanes alone lose a digit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from .._expr import Expr, emit
from .._expr.interpret import evaluate
from .registry import REASSOCIATE, Function, Kernel, header

FLOATS = "fd"
BLOCK: Final = 1024  # elements of a row, and columns side by side
WORDS: Final = {"data", "size", "offset", "release", "restore"}

# total = the sum over p_x[0:n] of the expression, in blocks; what does not fill the lanes is summed apart from what does, since the
# compiler would add it to their sum one by one
_ROW: Final = """\
total_ = np.float64(0.0)
for block in range((n + 1023) // 1024):
    count = min(n - block * 1024, 1024)
    whole = count // 64 * 64
{shift}
    part_ = real(0)
    for k in range(whole):
        {element}
        part_ += {value}
{rest}
    few_ = real(0)
    for k in range(count - whole):
        {element}
        few_ += {value}
    total_ += np.float64(part_) + np.float64(few_)
"""

_FLAT: Final = """\
def {name}({arguments}, divisor, out0):
    n = size({first})
    q0 = data(out0)
    {setup}
    token = release(n)
    {row}
    restore(token)
    q0[0] = real(total_ / divisor)
"""

# Columns side by side: four rows at a time into the output, 64 rows of that into float64.
_MIDDLE: Final = """\
def {name}({arguments}, outer_, n, inner_, divisor, work_, out0):
    q0 = data(out0)
    w_ = data(work_)
    {setup}
    token = release(outer_ * n * inner_)
    if inner_ == 1:
        for o_ in range(outer_):
            base_ = offset(p_x, o_ * n)
            {row}
            q0[o_] = real(total_ / divisor)
    else:
        blocks_ = (inner_ + 1023) // 1024
        for piece_ in range(outer_ * blocks_):
            o_ = piece_ // blocks_
            first_ = (piece_ - o_ * blocks_) * 1024
            cols = min(inner_ - first_, 1024)
            end_ = offset(q0, o_ * inner_ + first_)
            source_ = offset(p_x, o_ * n * inner_ + first_)
            for i in range(cols):
                w_[i] = np.float64(0.0)
            for block in range((n + 63) // 64):
                count = min(n - block * 64, 64)
                for i in range(cols):
                    end_[i] = real(0)
                for k in range(count // 4):
                    r0_ = offset(source_, (block * 64 + k * 4) * inner_)
                    r1_ = offset(r0_, inner_)
                    r2_ = offset(r1_, inner_)
                    r3_ = offset(r2_, inner_)
                    for i in range(cols):
                        {four}
                for k in range(count % 4):
                    r0_ = offset(source_, (block * 64 + count // 4 * 4 + k) * inner_)
                    for i in range(cols):
                        {one}
                for i in range(cols):
                    w_[i] += np.float64(end_[i])
            for i in range(cols):
                end_[i] = real(w_[i] / divisor)
    restore(token)
"""


def _fill(template: str, **parts: str) -> str:
    """Put texts of several lines into a template, indented as their places are."""
    lines = []
    for line in template.splitlines():
        place = line.strip()
        if place.startswith("{") and place.endswith("}") and place[1:-1] in parts:
            indent = line[: len(line) - len(line.lstrip())]
            lines += [indent + part for part in parts[place[1:-1]].splitlines()]
        else:
            lines.append(line.format(**parts) if "{" in line else line)
    return "\n".join(lines) + "\n"


def _setup(inputs: Sequence[str], params: Sequence[str]) -> str:
    return "\n".join([*(f"p_{x} = data(in_{x})" for x in inputs), *(f"{emit.spelling(x)} = real(s_{x})" for x in params)])


def _element(body: emit.Body, loads: Sequence[str]) -> str:
    return "\n".join([*loads, *body.statements])


def sum_source(name: str, output: Expr, inputs: Sequence[str], params: Sequence[str]) -> tuple[str, set[str]]:
    """The kernel's text and its words. Arguments: inputs, params, divisor, out; inputs C-contiguous and of one size."""
    body = emit.emit_body([output])
    row = _fill(
        _ROW,
        shift="\n".join(f"    b_{x} = offset(p_{x}, block * 1024)" for x in inputs),
        rest="\n".join(f"    b_{x} = offset(b_{x}, whole)" for x in inputs),
        element=_element(body, [f"{emit.spelling(x)} = b_{x}[k]" for x in inputs]),
        value=body.results[0],
    )
    arguments = ", ".join([*(f"in_{x}" for x in inputs), *(f"s_{x}" for x in params)])
    text = _fill(_FLAT, name=name, arguments=arguments, first=f"in_{inputs[0]}", setup=_setup(inputs, params), row=row)
    return text, body.functions | WORDS


def middle_source(name: str, output: Expr, params: Sequence[str]) -> tuple[str, set[str]]:
    """The kernel's text and its words. Arguments: x, params, outer, n, inner, divisor, work, out."""
    body = emit.emit_body([output])
    row = _fill(
        _ROW,
        shift="    b_x = offset(base_, block * 1024)",
        rest="    b_x = offset(b_x, whole)",
        element=_element(body, ["x = b_x[k]"]),
        value=body.results[0],
    )
    four = []
    for r in range(4):
        four += [_element(body, [f"x = r{r}_[i]"]), f"e{r}_ = {body.results[0]}"]
    four.append("end_[i] += (e0_ + e1_) + (e2_ + e3_)")
    one = [_element(body, ["x = r0_[i]"]), f"end_[i] += {body.results[0]}"]
    arguments = ", ".join(["in_x", *(f"s_{x}" for x in params)])
    text = _fill(_MIDDLE, name=name, arguments=arguments, setup=_setup(["x"], params), row=row, four="\n".join(four), one="\n".join(one))
    return text, body.functions | WORDS


def sum_kernel(name: str, output: Expr, inputs: Sequence[str], params: Sequence[str] = ()) -> Kernel:
    """The kernel of sum(expression) / divisor. Arguments: inputs, params, divisor, out; inputs C-contiguous and of one size."""
    name = f"sum_{name}"

    def source(dtype: np.dtype[Any]) -> str:
        text, words = sum_source(name, output, inputs, params)
        return header(name, dtype, words) + text

    def plain(dtype: np.dtype[Any]) -> Function:
        return interpreted_sum(output, (*inputs, *params))

    return Kernel(name, "b" * len(inputs) + "s" * len(params) + "sb", source, plain, fast=REASSOCIATE, compiles=FLOATS)


def middle_kernel(name: str, output: Expr, params: Sequence[str] = ()) -> Kernel:
    """The same over the middle axis of (outer, n, inner), for one input `x`. Arguments: x, params, outer, n, inner, divisor, work, out.

    `work` holds min(inner, BLOCK) float64.
    """
    name = f"sum_middle_{name}"

    def source(dtype: np.dtype[Any]) -> str:
        text, words = middle_source(name, output, params)
        return header(name, dtype, words) + text

    def plain(dtype: np.dtype[Any]) -> Function:
        return interpreted_middle(output, ("x", *params))

    return Kernel(name, "b" + "s" * len(params) + "nnnsdb", source, plain, fast=REASSOCIATE, compiles=FLOATS)


def interpreted_sum(output: Expr, names: Sequence[str]) -> Callable[..., None]:
    """The flat kernel by interpretation."""

    def run(*arguments: Any) -> None:
        divisor, out = arguments[-2:]
        (values,) = evaluate((output,), dict(zip(names, arguments, strict=False)), arguments[0].dtype)
        out[...] = np.broadcast_to(values, arguments[0].shape).sum(dtype=np.float64) / divisor

    return run


def interpreted_middle(output: Expr, names: Sequence[str]) -> Callable[..., None]:
    """The kernel over the middle axis by interpretation."""

    def run(*arguments: Any) -> None:
        outer, n, inner, divisor, _, out = arguments[-6:]
        (values,) = evaluate((output,), dict(zip(names, arguments, strict=False)), arguments[0].dtype)
        values = np.broadcast_to(values, arguments[0].shape).reshape(outer, n, inner)
        out[...] = (values.sum(1, dtype=np.float64) / divisor).reshape(out.shape)

    return run
