"""From scalar expressions to elementwise kernels: the loops around an emitted body, as source text.

Two shells. `flat_source`: every array C-contiguous and of one size; an output may be the very array that is an input.
`strided_source`: inputs of any strides that broadcast to the outputs, which are C-contiguous and of the full shape; trailing axes
are merged where all strides allow, the rest are rows. Arguments in both: inputs, params, outputs.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from .._expr import Expr, emit_body, free_params, free_variables, is_condition, spelling
from .._expr.interpret import evaluate

Array: TypeAlias = "np.ndarray[Any, Any]"
Source: TypeAlias = tuple[str, set[str]]  # the function's text, and the words of the kernel language in it

_INDENT = "    "


def gives(outputs: Sequence[Expr], conditions: Collection[str]) -> str:
    """One letter per output: 'c' for a truth value, 'r' for a number."""
    return "".join("c" if is_condition(out) or (out.op == "var" and out.name in conditions) else "r" for out in outputs)


def spec_of(outputs: Sequence[Expr], inputs: Sequence[str], params: Sequence[str], conditions: Collection[str] = ()) -> str:
    """The kernel's parameter letters (`registry.kernel`): b numbers, m truth values, s params."""
    arrays = "".join("m" if name in conditions else "b" for name in inputs)
    return arrays + "s" * len(params) + gives(outputs, conditions).replace("c", "m").replace("r", "b")


@dataclass(frozen=True)
class _Map:
    """What both shells know of a kernel. `used`: the inputs that the outputs depend on."""

    name: str
    inputs: tuple[str, ...]
    used: tuple[str, ...]
    params: tuple[str, ...]
    conditions: frozenset[str]
    outputs: int
    header: str
    setup: list[str]
    statements: list[str]
    stores: list[str]
    words: set[str]

    def loads(self, index: Callable[[str], str]) -> list[str]:
        """One line per used input; `index` spells where its element is."""
        mark = {name: " != 0" if name in self.conditions else "" for name in self.used}
        return [f"{spelling(name)} = {self.fetch(f'p_{name}', index(name))}{mark[name]}" for name in self.used]

    def fetch(self, pointer: str, index: str) -> str:
        return f"load({pointer}, {index})" if self.outputs == 1 else f"{pointer}[{index}]"

    def element(self, loads: Sequence[str], at: str) -> list[str]:
        """The statements for one element; `at` spells where the outputs' element is."""
        stores = (
            [f"store(q{i}, {at}, {value})" for i, value in enumerate(self.stores)]
            if self.outputs == 1
            else [f"q{i}[{at}] = {value}" for i, value in enumerate(self.stores)]
        )
        return [*loads, *self.statements, *stores]


def _prepare(
    name: str, outputs: Sequence[Expr], inputs: Sequence[str], params: Sequence[str], conditions: Collection[str]
) -> _Map:
    used, numbers = set(free_variables(*outputs)), set(free_params(*outputs))
    unknown = (used - set(inputs)) | (numbers - set(params))
    if unknown:
        raise ValueError(f"kernel {name} uses {', '.join(sorted(unknown))}, which is no argument of it")
    body = emit_body(outputs, conditions, gives(outputs, conditions))
    outs = [f"out{i}" for i in range(len(outputs))]
    arguments = [*(f"in_{x}" for x in inputs), *(f"s_{x}" for x in params), *outs]
    setup = [f"p_{x} = data(in_{x})" for x in inputs if x in used]
    setup += [f"q{i} = data({out})" for i, out in enumerate(outs)]
    setup += [f"{spelling(x)} = real(s_{x})" for x in params if x in numbers]
    words = body.functions | {"data", "size", "release", "restore"} | ({"load", "store"} if len(outputs) == 1 else set())
    return _Map(
        name, tuple(inputs), tuple(x for x in inputs if x in used), tuple(params), frozenset(conditions), len(outputs),
        f"def {name}({', '.join(arguments)}):", setup, body.statements, body.results, words,
    )  # fmt: skip


def _indented(lines: Sequence[str], depth: int) -> Iterator[str]:
    for line in lines:
        yield _INDENT * depth + line


def _text(lines: Sequence[str]) -> str:
    return "\n".join(lines) + "\n"


def flat_source(
    name: str, outputs: Sequence[Expr], inputs: Sequence[str], params: Sequence[str], conditions: Collection[str] = ()
) -> Source:
    """One loop over arrays of one size."""
    kernel = _prepare(name, outputs, inputs, params, conditions)
    lines = [
        kernel.header,
        *_indented(["n = size(out0)", *kernel.setup, "token = release(n)", "for k in range(n):"], 1),
        *_indented(kernel.element(kernel.loads(lambda _: "k"), "k"), 2),
        *_indented(["restore(token)"], 1),
    ]
    return _text(lines), kernel.words


# {steps}: one line per used input; cols is the length of the merged trailing axes, first the number of axes left over
_STRIDED_HEAD = """\
n = size(out0)
if n == 0:
    return
rank = ndim(out0)
{setup}
cols = 1
first = rank
{zero}
while first > 0:
    length = dim(out0, first - 1)
    if length != 1:
        {outer}
        if cols == 1:
            {take}
        elif {broken}:
            break
        cols *= length
    first -= 1
token = release(n)
for row in range(n // cols):
    rest = row
    {start}
    for count in range(first):
        axis = first - 1 - count
        length = dim(out0, axis)
        {advance}
        rest //= length
    k = row * cols
"""


def strided_source(
    name: str, outputs: Sequence[Expr], inputs: Sequence[str], params: Sequence[str], conditions: Collection[str] = ()
) -> Source:
    """Rows of merged trailing axes, with inner loops for the usual strides."""
    kernel = _prepare(name, outputs, inputs, params, conditions)
    used = kernel.used
    head = _STRIDED_HEAD.format(
        setup="\n".join(kernel.setup),
        zero="\n".join(f"step_{x} = 0" for x in used),
        outer=_lines((f"outer_{x} = step(in_{x}, first - 1, rank)" for x in used), 2),
        take=_lines((f"step_{x} = outer_{x}" for x in used), 3),
        broken=" or ".join(f"outer_{x} != step_{x} * cols" for x in used) or "False",
        start=_lines((f"base_{x} = 0" for x in used), 1),
        advance=_lines((f"base_{x} += rest % length * step(in_{x}, axis, rank)" for x in used), 2),
    )
    lines = [kernel.header, *textwrap.indent(head, _INDENT).splitlines(), *_indented(_inner_loops(kernel), 2)]
    words = kernel.words | {"ndim", "dim", "step"}
    return _text([line for line in (*lines, _INDENT + "restore(token)") if line.strip()]), words


def _lines(lines: Iterator[str], depth: int) -> str:
    return ("\n" + _INDENT * depth).join(lines) or "pass"


def _inner_loops(kernel: _Map) -> list[str]:
    """An if-chain over the inner strides: all 1; for two inputs also one of them 0; else any."""
    patterns = [(1,) * len(kernel.used)] if kernel.used else []
    if len(kernel.used) == 2:
        patterns += [(1, 0), (0, 1)]
    lines: list[str] = []
    for steps in patterns:
        test = " and ".join(f"step_{x} == {value}" for x, value in zip(kernel.used, steps, strict=True))
        lines += [f"{'elif' if lines else 'if'} {test}:", *_indented(_inner(kernel, steps), 1)]
    general = _inner(kernel, None)
    return [*lines, "else:", *_indented(general, 1)] if lines else general


def _inner(kernel: _Map, steps: tuple[int, ...] | None) -> list[str]:
    """The loop over one row; `steps` are the known inner strides, what does not move is loaded once."""
    known = dict(zip(kernel.used, steps or (None,) * len(kernel.used), strict=True))

    def index(name: str) -> str:
        return {0: f"base_{name}", 1: f"base_{name} + i", None: f"base_{name} + i * step_{name}"}[known[name]]

    loads = dict(zip(kernel.used, kernel.loads(index), strict=True))
    still = [loads[name] for name in kernel.used if known[name] == 0]
    moving = [loads[name] for name in kernel.used if known[name] != 0]
    return [*still, "for i in range(cols):", *_indented(kernel.element(moving, "k + i"), 1)]


def interpreted(
    outputs: Sequence[Expr], inputs: Sequence[str], params: Sequence[str]
) -> Callable[..., None]:
    """The kernel by interpretation, for any dtype: same arguments, arrays of any strides that broadcast to the outputs.

    Numbers are computed in the dtype of the first input that is not bool (of the first output, if there is none).
    RuntimeError "ZeroDivisionError" as torch for integer division by zero.
    """
    roots, names, count = tuple(outputs), (*inputs, *params), len(inputs)

    def run(*arguments: Any) -> None:
        arrays, outs = arguments[:count], arguments[len(names) :]
        kinds = [array.dtype for array in arrays if array.dtype.kind != "b"]
        kind = kinds[0] if kinds else arrays[0].dtype if arrays and outs[0].dtype.kind == "b" else outs[0].dtype
        results = evaluate(roots, dict(zip(names, arguments, strict=False)), kind)
        for out, result in zip(outs, results, strict=True):
            np.copyto(out, result, casting="unsafe")

    return run
