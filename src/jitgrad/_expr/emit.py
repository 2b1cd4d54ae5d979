"""From expressions to straight-line statements in the kernel language, each shared node computed once.

Constants carry the kernel's dtype (`real(0.5)`): a bare literal would make the whole line float64. A condition used as
a number, and a number used as a condition, are converted where they meet.
"""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from .atoms import ATOMS, CONDITION, REAL, is_condition, lower_powers
from .node import Expr, topological

# what a generated kernel calls its own things; a variable of such a name gets a trailing underscore
_SHELL_WORDS = frozenset(
    [
        "data",
        "size",
        "dim",
        "ndim",
        "stride",
        "step",
        "load",
        "store",
        "real",
        "release",
        "restore",
        "range",
        "np",
        "pow_",
        "rsqrt",
        "rint",
        "n",
        "k",
        "i",
        "token",
        "rank",
        "first",
        "rows",
        "row",
        "block",
        "rest",
        "whole",
        "far",
        "axis",
        "length",
        "count",
        "cols",
    ]
)
_SHELL_NAMES = re.compile(r"[tq]\d+|out\d+|(in|p|s|step|base|outer)_\w*|.*_")
RESERVED = frozenset({*keyword.kwlist, *ATOMS, *_SHELL_WORDS})


class Body(NamedTuple):
    """Straight-line code.

    statements: one assignment per line, in order. results: for each output, the spelling of its value.
    """

    statements: list[str]
    results: list[str]

    @property
    def functions(self) -> set[str]:
        """The names that the code calls."""
        return set(re.findall(r"\b([a-z]\w*)\(", "\n".join([*self.statements, *self.results])))


def spelling(name: str) -> str:
    """The local variable that stands for var or param `name` in emitted code. ValueError if it is no identifier."""
    if not name.isidentifier():
        raise ValueError(f"{name!r} cannot name a variable in a kernel")
    return f"{name}_" if name in RESERVED or _SHELL_NAMES.fullmatch(name) else name


def literal(value: float) -> str:
    """A constant of the kernel's dtype."""
    if math.isnan(value):
        return "real(np.nan)"
    if math.isinf(value):
        return "real(np.inf)" if value > 0 else "real(-np.inf)"
    return f"real({float(value)!r})"


def emit_body(outputs: Sequence[Expr], masks: Collection[str] = (), gives: str | None = None) -> Body:
    """Statements that compute `outputs` from local variables named `spelling(name)`.

    masks: names of the vars that hold truth values. gives: one letter per output, 'r' where a number is wanted and 'c'
    where a truth value is; by default what each output is.
    """
    roots = lower_powers(*outputs)
    writer = _Writer(frozenset(masks))
    writer.write(roots)
    wanted = gives or "".join(CONDITION if writer.is_condition(root) else REAL for root in roots)
    results = [writer.operand(root, kind) for root, kind in zip(roots, wanted, strict=True)]
    return Body(writer.statements, results)


class _Writer:
    def __init__(self, masks: frozenset[str]) -> None:
        self.masks = masks
        self.statements: list[str] = []
        self.names: dict[Expr, str] = {}

    def is_condition(self, node: Expr) -> bool:
        return node.name in self.masks if node.op == "var" else is_condition(node)

    def write(self, roots: Iterable[Expr]) -> None:
        for node in topological(*roots):
            if node.op == "const":
                self.names[node] = repr(node.value) if is_condition(node) else literal(node.value)
            elif not node.args:
                self.names[node] = spelling(node.name)
            else:
                self.names[node] = name = f"t{len(self.statements)}"
                self.statements.append(f"{name} = {self.expression(node)}")

    def expression(self, node: Expr) -> str:
        atom = ATOMS[node.op]
        operands = [self.operand(arg, kind) for arg, kind in zip(node.args, atom.takes, strict=True)]
        return atom.emit.format(*operands)

    def operand(self, node: Expr, kind: str) -> str:
        """The spelling of `node` where a number ('r') or a truth value ('c') is wanted."""
        name = self.names[node]
        if kind == REAL and self.is_condition(node):
            return f"where({name}, real(1.0), real(0.0))"
        if kind == CONDITION and not self.is_condition(node):
            return f"({name} != real(0.0))"
        return name
