"""Nodes of the scalar language: immutable, hash-consed, built by ordinary operators.

Two expressions that are spelled alike are one object, so identity is equality, sharing is free, and the emitter writes
a common subexpression once. Nothing is simplified here: what the author wrote is what runs.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from numbers import Integral, Real
from typing import NoReturn, TypeAlias
from weakref import WeakValueDictionary

from .._core.locks import forking_lock

Number: TypeAlias = bool | int | float
Scalar: TypeAlias = "Expr | Number"

LEAVES = frozenset({"var", "param", "const"})

_table: WeakValueDictionary[tuple[object, ...], Expr] = WeakValueDictionary()
_table_lock = forking_lock()


class Expr:
    """One node: `op` names an atom (or is 'var', 'param', 'const'), `args` are its operands.

    Never constructed directly: `var`, `param`, `const` and `apply` look the node up first. `==` builds a comparison;
    compare nodes with `is`, and keep them in sets and dictionaries (their hash is their identity).
    """

    __slots__ = ("__weakref__", "_args", "_op")
    __array_ufunc__ = None  # NumPy scalars on the left defer to the reflected operators below
    __hash__ = object.__hash__

    _op: str
    _args: tuple[object, ...]

    def __init__(self) -> None:
        raise TypeError("expressions are made by var, param, const and apply")

    @property
    def op(self) -> str:
        return self._op

    @property
    def args(self) -> tuple[Expr, ...]:
        """The operands; empty for a leaf."""
        return () if self._op in LEAVES else self._args  # type: ignore[return-value]

    @property
    def name(self) -> str:
        """The name of a var or a param."""
        if self._op not in ("var", "param"):
            raise AttributeError(f"a {self._op!r} node has no name")
        return self._args[0]  # type: ignore[return-value]

    @property
    def value(self) -> Number:
        """The value of a const."""
        if self._op != "const":
            raise AttributeError(f"a {self._op!r} node has no value")
        return self._args[0]  # type: ignore[return-value]

    def __reduce__(self) -> tuple[Callable[..., Expr], tuple[object, ...]]:
        return _rebuild, (self._op, *self._args)

    def __repr__(self) -> str:
        return describe(self)

    # arithmetic
    def __add__(self, other: Scalar) -> Expr:
        return _binary("add", self, other)

    def __radd__(self, other: Scalar) -> Expr:
        return _binary("add", other, self)

    def __sub__(self, other: Scalar) -> Expr:
        return _binary("sub", self, other)

    def __rsub__(self, other: Scalar) -> Expr:
        return _binary("sub", other, self)

    def __mul__(self, other: Scalar) -> Expr:
        return _binary("mul", self, other)

    def __rmul__(self, other: Scalar) -> Expr:
        return _binary("mul", other, self)

    def __truediv__(self, other: Scalar) -> Expr:
        return _binary("div", self, other)

    def __rtruediv__(self, other: Scalar) -> Expr:
        return _binary("div", other, self)

    def __floordiv__(self, other: Scalar) -> Expr:
        return _binary("floor_divide", self, other)

    def __rfloordiv__(self, other: Scalar) -> Expr:
        return _binary("floor_divide", other, self)

    def __mod__(self, other: Scalar) -> Expr:
        return _binary("remainder", self, other)

    def __rmod__(self, other: Scalar) -> Expr:
        return _binary("remainder", other, self)

    def __pow__(self, other: Scalar) -> Expr:
        return _binary("pow", self, other)

    def __rpow__(self, other: Scalar) -> Expr:
        return _binary("pow", other, self)

    def __neg__(self) -> Expr:
        return apply("neg", self)

    def __pos__(self) -> Expr:
        return self

    def __abs__(self) -> Expr:
        return apply("abs", self)

    # conditions
    def __lt__(self, other: Scalar) -> Expr:
        return _binary("lt", self, other)

    def __le__(self, other: Scalar) -> Expr:
        return _binary("le", self, other)

    def __gt__(self, other: Scalar) -> Expr:
        return _binary("gt", self, other)

    def __ge__(self, other: Scalar) -> Expr:
        return _binary("ge", self, other)

    def __eq__(self, other: Scalar) -> Expr:  # type: ignore[override]
        return _binary("eq", self, other)

    def __ne__(self, other: Scalar) -> Expr:  # type: ignore[override]
        return _binary("ne", self, other)

    def __and__(self, other: Scalar) -> Expr:
        return _binary("logical_and", self, other)

    def __rand__(self, other: Scalar) -> Expr:
        return _binary("logical_and", other, self)

    def __or__(self, other: Scalar) -> Expr:
        return _binary("logical_or", self, other)

    def __ror__(self, other: Scalar) -> Expr:
        return _binary("logical_or", other, self)

    def __invert__(self) -> Expr:
        return apply("logical_not", self)

    # what Python cannot record
    def __bool__(self) -> NoReturn:
        raise TypeError(
            "a scalar expression has no truth value while it is being recorded: `if`, `while`, `and`, `or`, `not` and "
            "chained comparisons cannot be seen. Write where(condition, a, b) for a choice, and join conditions with "
            "`&`, `|`, `~` in parentheses, as in (lo <= x) & (x <= hi)"
        )

    def __iter__(self) -> Iterator[Expr]:
        raise TypeError(
            "a scalar expression is one number, nothing to iterate over; choose with where(condition, a, b)"
        )

    def __len__(self) -> NoReturn:
        raise TypeError("a scalar expression is one number and has no len()")

    def __float__(self) -> NoReturn:
        raise TypeError(
            "a scalar expression has no value while it is being recorded: use the functions of the scalar namespace "
            "(s.exp, not math.exp), and where(condition, a, b) for a choice"
        )

    __int__ = __float__
    __complex__ = __float__
    __index__ = __float__


def _make(key: tuple[object, ...], op: str, args: tuple[object, ...]) -> Expr:
    with _table_lock:
        node = _table.get(key)
        if node is None:
            node = object.__new__(Expr)
            node._op = op
            node._args = args
            _table[key] = node
        return node


def _binary(op: str, left: Scalar, right: Scalar) -> Expr:
    if isinstance(left, (Expr, Real)) and isinstance(right, (Expr, Real)):
        return apply(op, left, right)
    refused: Expr = NotImplemented  # Python then tries the other operand, and raises TypeError
    return refused


def var(name: str) -> Expr:
    """An input that varies from element to element."""
    return _make(("var", name), "var", (name,))


def param(name: str) -> Expr:
    """A run-time number, the same for every element."""
    return _make(("param", name), "param", (name,))


def const(value: object) -> Expr:
    """A number known when the kernel is written; its Python type is kept, so integer kernels stay integer."""
    if isinstance(value, bool):
        return _make(("const", bool, value), "const", (value,))
    if isinstance(value, Integral):
        return _make(("const", int, int(value)), "const", (int(value),))
    if isinstance(value, Real):
        number = float(value)
        # the bit pattern tells -0.0 from 0.0 and lets nan equal itself
        return _make(("const", float, struct.pack("<d", number)), "const", (number,))
    raise TypeError(f"a scalar expression takes numbers, not {type(value).__name__}")


def lift(value: Scalar) -> Expr:
    """`value` itself if it is a node, else the constant. TypeError for anything that is not a real number."""
    return value if isinstance(value, Expr) else const(value)


def apply(op: str, *operands: Scalar) -> Expr:
    """The node that applies atom `op` to `operands`."""
    args = tuple([lift(operand) for operand in operands])
    # a node keeps its operands alive, and its entry dies before they do: an id in a live key is never reused
    return _make((op, *map(id, args)), op, args)


def _rebuild(op: str, *args: object) -> Expr:
    leaf: dict[str, Callable[..., Expr]] = {"var": var, "param": param, "const": const}
    return leaf[op](*args) if op in leaf else apply(op, *args)  # type: ignore[arg-type]


def topological(*roots: Expr) -> list[Expr]:
    """Every node below `roots` once, operands before users, in the order a left-to-right reader meets them."""
    order: list[Expr] = []
    seen: set[Expr] = set()
    for root in roots:
        stack: list[tuple[Expr, bool]] = [(root, False)]
        while stack:
            node, finished = stack.pop()
            if finished:
                order.append(node)
            elif node not in seen:
                seen.add(node)
                stack.append((node, True))
                stack.extend((arg, False) for arg in reversed(node.args))
    return order


def free_variables(*roots: Expr) -> tuple[str, ...]:
    """Names of the vars below `roots`, in order of first use."""
    return tuple(node.name for node in topological(*roots) if node.op == "var")


def free_params(*roots: Expr) -> tuple[str, ...]:
    """Names of the params below `roots`, in order of first use."""
    return tuple(node.name for node in topological(*roots) if node.op == "param")


def substitute(root: Expr, mapping: dict[Expr, Expr]) -> Expr:
    """`root` with every node in `mapping` replaced by its image; the images themselves are not searched."""
    image: dict[Expr, Expr] = {}
    for node in topological(root):
        found = mapping.get(node)
        if found is None:
            args = node.args
            found = apply(node.op, *[image[arg] for arg in args]) if args else node
        image[node] = found
    return image[root]


_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "**", "floor_divide": "//", "remainder": "%",
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "logical_and": "&", "logical_or": "|",
}  # fmt: skip


def describe(root: Expr, limit: int = 400) -> str:
    """`root` as text, cut off after about `limit` characters."""
    text: dict[Expr, str] = {}
    for node in topological(root):
        parts = [text[arg] for arg in node.args]
        if not parts:
            spelled = repr(node.value) if node.op == "const" else node.name
        elif node.op in _INFIX:
            spelled = f"({parts[0]} {_INFIX[node.op]} {parts[1]})"
        else:
            spelled = f"{node.op}({', '.join(parts)})"
        text[node] = spelled if len(spelled) <= limit else spelled[:limit] + "..."
    return text[root]
