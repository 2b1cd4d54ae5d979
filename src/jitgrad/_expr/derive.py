"""Derivatives of scalar expressions, in tangent form.

The tangent of every node is built from those of its operands, operands first, so a choice is made between finished
derivatives: D[where(c, a, b)] = where(c, Da, Db). Zeros that derivation introduces are carried as None and vanish;
a product with a derived one is that factor; nothing else is simplified, and nothing the author wrote.
"""

from __future__ import annotations

from . import scalar as s
from .atoms import ATOMS, Tangent, plus, stays_finite
from .node import Expr, apply, const, topological


def derivative(out: Expr, wrt: Expr) -> Expr:
    """Partial derivative d out / d wrt, an expression that shares the nodes of `out`.

    `wrt` is usually a var or a param, but any node will do: the rest of the expression is then held fixed.
    Raises ValueError for an atom that is not in the table or has the wrong number of operands.
    """
    tangent = _tangents(out, wrt)[out]
    return const(0.0) if tangent is None else tangent


def derivatives(out: Expr, *wrt: Expr) -> tuple[Expr, ...]:
    """One derivative for each of `wrt`."""
    return tuple(derivative(out, node) for node in wrt)


def _tangents(out: Expr, wrt: Expr) -> dict[Expr, Tangent]:
    tangents: dict[Expr, Tangent] = {}
    for node in topological(out):
        if node is wrt:
            tangents[node] = const(1.0)
        elif not node.args:
            tangents[node] = None
        else:
            tangents[node] = _step(node, tuple(tangents[arg] for arg in node.args))
    return tangents


def _step(node: Expr, tangents: tuple[Tangent, ...]) -> Tangent:
    """Tangent of `node` from those of its operands."""
    atom = ATOMS.get(node.op)
    if atom is None or len(node.args) != atom.arity:
        raise ValueError(f"no atom {node.op!r} with {len(node.args)} operands")
    if not any(tangent is not None for tangent in tangents):
        return None
    if atom.tangent is not None:
        return atom.tangent(node, node.args, tangents)
    if node.op in _LINEAR:
        return _linear(node, tangents)
    total: Tangent = None
    for partial, tangent in zip(atom.partials, tangents, strict=True):
        if partial is not None and tangent is not None:
            total = plus(total, _chain(partial(node, *node.args), tangent))
    return total


_LINEAR = frozenset({"add", "sub", "neg", "div"})


def _linear(node: Expr, tangents: tuple[Tangent, ...]) -> Tangent:
    """Sums keep their shape, and (u / y)' = u' / y: one rounding less than u' * (1 / y)."""
    first, second = tangents[0], tangents[-1]
    if node.op == "neg":
        return None if first is None else _negative(first)
    if node.op == "add":
        return plus(first, second)
    if node.op == "sub":
        if second is None:
            return first
        return _negative(second) if first is None else first - second
    y = node.args[1]
    left = None if first is None else first / y
    right = None if second is None else _chain(-(node / y), second)
    return plus(left, right)


def _negative(tangent: Expr) -> Expr:
    return const(-tangent.value) if tangent.op == "const" else -tangent


def _is_number(expr: Expr, number: float) -> bool:
    return expr.op == "const" and expr.value == number


def _chain(partial: Expr, tangent: Expr) -> Tangent:
    """The product of both. A partial of exactly zero wins over an infinite tangent, as a zero gradient does."""
    if partial.op == "const" and partial.value == 0:
        return None
    for factor, other in ((partial, tangent), (tangent, partial)):
        if _is_number(factor, 1.0):
            return other
        if _is_number(factor, -1.0):
            return _negative(other)
    if stays_finite(tangent):
        return apply("mul", partial, tangent)
    return s.zmul(partial, tangent)
