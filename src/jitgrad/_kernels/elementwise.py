"""From scalar expressions to elementwise kernels: the loops around an emitted body, as source text.

Two shells. `flat_source`: every array C-contiguous and of one size; an output may be the very array that is an input.
`strided_source`: inputs of any strides that broadcast to the outputs, which are C-contiguous and of the full shape;
trailing axes are merged where all strides allow, the rest are rows. Arguments in both: inputs, params, outputs.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from .._expr import Expr, free_params, free_variables, is_condition, topological
from .._expr.emit import Body, emit_body, spelling
from .._expr.interpret import evaluate

Array: TypeAlias = "np.ndarray[Any, Any]"
Source: TypeAlias = tuple[str, set[str]]  # the function's text, and the words of the kernel language in it

_INDENT = "    "
ANGLES: Final = frozenset({"sin", "cos", "tan"})
FAR: Final = 2.0**20  # the formulas of `vector/angle.py` hold for smaller angles


def is_foreign(word: str) -> bool:
    """Whether a word of a kernel is a function of the user's (`opaque.py`), which may raise."""
    return word.startswith("u_")


def gives(outputs: Sequence[Expr], conditions: Collection[str]) -> str:
    """One letter per output: 'c' for a truth value, 'r' for a number."""
    return "".join("c" if is_condition(out) or (out.op == "var" and out.name in conditions) else "r" for out in outputs)


def spec_of(
    outputs: Sequence[Expr], inputs: Sequence[str], params: Sequence[str], conditions: Collection[str] = ()
) -> str:
    """The kernel's parameter letters (`registry.kernel`): b numbers, m truth values, s params."""
    arrays = "".join("m" if name in conditions else "b" for name in inputs)
    return arrays + "s" * len(params) + gives(outputs, conditions).replace("c", "m").replace("r", "b")


class _Map(NamedTuple):
    """What both shells know of a kernel.

    used: the inputs that the outputs depend on. guard: the code that finds angles too large for the fast formulas, None
    where there are no angles.
    """

    used: tuple[str, ...]
    conditions: frozenset[str]
    header: str
    setup: list[str]
    body: Body
    guard: Body | None

    @property
    def single(self) -> bool:
        """Whether there is one output, so that `load` and `store` may be used."""
        return len(self.body.results) == 1

    @property
    def words(self) -> set[str]:
        """The words of the kernel language that the flat shell uses."""
        found = self.body.functions | {"data", "size", "release", "restore"}
        if self.single:
            found |= {"load", "store"}
        if self.guard is not None:
            found |= self.guard.functions | {f"{angle}_far" for angle in ANGLES & found}
        return found

    @property
    def release(self) -> str:
        """The line that lets the GIL go; a function of the user's may raise, which takes the GIL and leaves no time to take it back."""
        return f"token = release({0 if any(map(is_foreign, self.body.functions)) else 'n'})"

    def loads(self, index: Callable[[str], str]) -> dict[str, str]:
        """For each used input the line that loads its element; `index` spells where that is."""
        lines = {}
        for name in self.used:
            element = f"load(p_{name}, {index(name)})" if self.single else f"p_{name}[{index(name)}]"
            lines[name] = f"{spelling(name)} = {element}{' != 0' if name in self.conditions else ''}"
        return lines

    def loop(self, head: str, loads: Sequence[str], at: str) -> list[str]:
        """The loop under `head` over the elements `at`, with what has to be loaded inside.

        Angles are looked at first, in a loop of their own because the outputs may overwrite the inputs; if a single one
        is too large, all elements take the slow, scalar and exact way through the C library.
        """
        form = "store(q{0}, {1}, {2})" if self.single else "q{0}[{1}] = {2}"
        stores = [form.format(i, at, value) for i, value in enumerate(self.body.results)]
        fast = [head, *_indented([*loads, *self.body.statements, *stores])]
        if self.guard is None:
            return fast
        exact = [head, *_indented([*loads, *map(_exact, self.body.statements), *stores])]
        look = [head, *_indented([*loads, *self.guard.statements, f"far |= {self.guard.results[0]}"])]
        return ["far = 0", *look, "if far != 0:", *_indented(exact), "else:", *_indented(fast)]


def _exact(statement: str) -> str:
    return re.sub(rf"\b({'|'.join(sorted(ANGLES))})\(", r"\1_far(", statement)


def _far(outputs: Sequence[Expr]) -> Expr | None:
    """The condition that one of the angles is too large for the fast formulas."""
    angles = [node.args[0] for node in topological(*outputs) if node.op in ANGLES]
    tests = [abs(angle) > FAR for angle in dict.fromkeys(angles)]
    return functools.reduce(operator.or_, tests) if tests else None


def _prepare(
    name: str, outputs: Sequence[Expr], inputs: Sequence[str], params: Sequence[str], conditions: Collection[str]
) -> _Map:
    used, numbers = set(free_variables(*outputs)), set(free_params(*outputs))
    unknown = (used - set(inputs)) | (numbers - set(params))
    if unknown:
        raise ValueError(f"kernel {name} uses {', '.join(sorted(unknown))}, which is no argument of it")
    outs = [f"out{i}" for i in range(len(outputs))]
    arguments = [*(f"in_{x}" for x in inputs), *(f"s_{x}" for x in params), *outs]
    setup = [f"p_{x} = data(in_{x})" for x in inputs if x in used]
    setup += [f"q{i} = data({out})" for i, out in enumerate(outs)]
    setup += [f"{spelling(x)} = real(s_{x})" for x in params if x in numbers]
    far = _far(outputs)
    return _Map(
        used=tuple(x for x in inputs if x in used),
        conditions=frozenset(conditions),
        header=f"def {name}({', '.join(arguments)}):",
        setup=setup,
        body=emit_body(outputs, conditions, gives(outputs, conditions)),
        guard=None if far is None else emit_body([far], conditions),
    )


def _indented(lines: Iterable[str]) -> list[str]:
    return [_INDENT + line for line in lines]


def _text(header: str, lines: Iterable[str]) -> str:
    return "\n".join([header, *_indented(line for line in lines if line.strip())]) + "\n"


def flat_source(
    name: str, outputs: Sequence[Expr], inputs: Sequence[str], params: Sequence[str], conditions: Collection[str] = ()
) -> Source:
    """One loop over arrays of one size."""
    kernel = _prepare(name, outputs, inputs, params, conditions)
    loop = kernel.loop("for k in range(n):", list(kernel.loads(lambda _: "k").values()), "k")
    lines = ["n = size(out0)", *kernel.setup, kernel.release, *loop, "restore(token)"]
    return _text(kernel.header, lines), kernel.words


# Trailing axes are merged while every input's strides allow: cols elements with strides step_*. The next axis out is a
# plain loop of rows with strides outer_*, and only the axes before it, which `first` counts, cost divisions.
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
rows = 1
if first > 0:
    first -= 1
    rows = dim(out0, first)
{release}
k = 0
for block in range(n // (cols * rows)):
    rest = block
    {start}
    for count in range(first):
        axis = first - 1 - count
        length = dim(out0, axis)
        whole = rest // length
        {advance}
        rest = whole
    for row in range(rows):
"""


def strided_source(
    name: str, outputs: Sequence[Expr], inputs: Sequence[str], params: Sequence[str], conditions: Collection[str] = ()
) -> Source:
    """Rows of merged trailing axes, with inner loops for the usual strides."""
    kernel = _prepare(name, outputs, inputs, params, conditions)
    used = kernel.used
    head = _STRIDED_HEAD.format(
        setup="\n".join(kernel.setup),
        release=kernel.release,
        zero="\n".join(f"step_{x} = outer_{x} = 0" for x in used),
        outer=_lines((f"outer_{x} = step(in_{x}, first - 1, rank)" for x in used), 2),
        take=_lines((f"step_{x} = outer_{x}" for x in used), 3),
        broken=" or ".join(f"outer_{x} != step_{x} * cols" for x in used) or "False",
        start=_lines((f"base_{x} = 0" for x in used), 1),
        advance=_lines((f"base_{x} += (rest - whole * length) * step(in_{x}, axis, rank)" for x in used), 2),
    )
    row = [*_inner_loops(kernel), "k += cols", *(f"base_{x} += outer_{x}" for x in used)]
    lines = [*head.splitlines(), *_indented(_indented(row)), "restore(token)"]
    return _text(kernel.header, lines), kernel.words | {"ndim", "dim", "step"}


def _lines(lines: Iterable[str], depth: int) -> str:
    return ("\n" + _INDENT * depth).join(lines) or "pass"


def _inner_loops(kernel: _Map) -> list[str]:
    """An if-chain over the inner strides: all 1; for two inputs also one of them 0; else any."""
    patterns = [(1,) * len(kernel.used)] if kernel.used else []
    if len(kernel.used) == 2 and kernel.guard is None:  # three loops each: more of them cost seconds of compilation
        patterns += [(1, 0), (0, 1)]
    lines: list[str] = []
    for steps in patterns:
        test = " and ".join(f"step_{x} == {value}" for x, value in zip(kernel.used, steps, strict=True))
        lines += [f"{'elif' if lines else 'if'} {test}:", *_indented(_inner(kernel, steps))]
    general = _inner(kernel, (None,) * len(kernel.used))
    return [*lines, "else:", *_indented(general)] if lines else general


def _inner(kernel: _Map, steps: Sequence[int | None]) -> list[str]:
    """The loop over one row; `steps` are the inner strides as far as known. What does not move is loaded once."""
    known = dict(zip(kernel.used, steps, strict=True))

    def index(name: str) -> str:
        return {0: f"base_{name}", 1: f"base_{name} + i", None: f"base_{name} + i * step_{name}"}[known[name]]

    loads = kernel.loads(index)
    still = [line for name, line in loads.items() if known[name] == 0]
    moving = [line for name, line in loads.items() if known[name] != 0]
    return [*still, *kernel.loop("for i in range(cols):", moving, "k + i")]


def interpreted(outputs: Sequence[Expr], inputs: Sequence[str], params: Sequence[str]) -> Callable[..., None]:
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
