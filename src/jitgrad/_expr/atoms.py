"""The one table of atoms: arity, derivative and spelling in the kernel language of every primitive.

A partial is a function of (out, *args) that returns the factor standing before the argument's tangent; None declares
it zero. It may use the atom's own output (`out`): hash-consing shares it with the forward value. Formulas and values at
kinks follow torch 2.13. An atom that selects carries a `tangent` instead, so that the choice falls between finished
derivatives and an infinite one that is not chosen never meets a factor of zero.

Each NumPy function stands under the same name in `interpret`, the only module of this package that needs NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from . import scalar as s
from .node import Expr, apply, const, topological

Partial: TypeAlias = Callable[..., Expr]
Tangent: TypeAlias = Expr | None  # None: a zero that derivation knows to be one
TangentRule: TypeAlias = Callable[[Expr, tuple[Expr, ...], tuple[Tangent, ...]], Tangent]

REAL, INTEGER, CONDITION = "r", "i", "c"


class Atom(NamedTuple):
    """One primitive.

    name: its `Expr.op`. takes, gives: one letter per operand and for the result, 'r' a number, 'i' an integer, 'c' a condition.
    emit: template of the kernel-language expression. partials: one entry per operand, None where declared zero.
    tangent: replaces the sum of partial times tangent. finite: finite operands give a finite result.
    """

    name: str
    takes: str
    gives: str
    emit: str
    partials: tuple[Partial | None, ...]
    tangent: TangentRule | None = None
    finite: bool = False

    @property
    def arity(self) -> int:
        return len(self.takes)

    @property
    def differentiable(self) -> bool:
        return self.tangent is not None or any(self.partials)


ATOMS: dict[str, Atom] = {}


def _atom(
    name: str, emit: str, *partials: Partial | None, tangent: TangentRule | None = None, finite: bool = False
) -> None:
    ATOMS[name] = Atom(name, REAL * len(partials), REAL, emit, partials, tangent, finite)


def _condition(name: str, emit: str, takes: str) -> None:
    ATOMS[name] = Atom(name, takes, CONDITION, emit, (None,) * len(takes), finite=True)


def is_condition(expr: Expr) -> bool:
    """Whether `expr` is a truth value by construction (a var may still be a mask: only its array tells)."""
    if expr.op in ATOMS:
        return ATOMS[expr.op].gives == CONDITION
    return expr.op == "const" and isinstance(expr.value, bool)


def stays_finite(expr: Expr) -> bool:
    """Whether finite inputs always give a finite value (overflow of a polynomial apart): no pole, no exponential below.

    Where it holds, 0 * expr is 0 and no `zmul` is needed.
    """
    decided: dict[Expr, bool] = {}

    def decide(node: Expr) -> bool:
        if node.op in ("var", "param"):
            return True
        if node.op == "const":
            return math.isfinite(node.value)
        if node.op == "div":  # by a number that is not zero
            divisor = node.args[1]
            return divisor.op == "const" and divisor.value != 0 and decided[node.args[0]]
        if ATOMS[node.op].gives == CONDITION:
            return True
        return ATOMS[node.op].finite and all(decided[arg] for arg in node.args)

    stack = [expr]
    while stack:
        node = stack[-1]
        waiting = [arg for arg in node.args if arg not in decided]
        if waiting:
            stack.extend(waiting)
        else:
            decided[node] = decide(node)
            stack.pop()
    return decided[expr]


_POWERS: dict[float, Callable[[Expr], Expr]] = {
    1: lambda x: x,
    2: lambda x: x * x,
    3: lambda x: x * x * x,
    0.5: s.sqrt,
    -0.5: s.rsqrt,
    -1: s.reciprocal,
    -2: lambda x: s.reciprocal(x * x),
}


def lower_powers(*roots: Expr, integer: bool = False) -> tuple[Expr, ...]:
    """`roots` with the constant powers that torch computes by other means, and as exactly, written so.

    (-inf) ** 0.5 is therefore nan and (-0.0) ** -0.5 is -inf, as in torch, where the general power gives inf for both.
    With `integer`, only the products are rewritten.
    """
    image: dict[Expr, Expr] = {}
    for node in topological(*roots):
        args = [image[arg] for arg in node.args]
        power = _POWERS.get(args[1].value) if node.op == "pow" and args[1].op == "const" else None
        if power is not None and not (integer and args[1].value not in (1, 2, 3)):
            image[node] = power(args[0])
        else:
            image[node] = apply(node.op, *args) if args else node
    return tuple(image[root] for root in roots)


# ---- tangent rules of the atoms that choose
def choose(condition: Expr, x: Tangent, y: Tangent) -> Tangent:
    """Choice between tangents; nothing to choose when both are zero."""
    if x is None and y is None:
        return None
    return s.where(condition, const(0.0) if x is None else x, const(0.0) if y is None else y)


def plus(x: Tangent, y: Tangent) -> Tangent:
    """The sum x + y between tangents."""
    if x is None or y is None:
        return y if x is None else x
    return x + y


def _half(x: Tangent) -> Tangent:
    return None if x is None else x * 0.5


def _where_tangent(out: Expr, args: tuple[Expr, ...], tangents: tuple[Tangent, ...]) -> Tangent:
    return choose(args[0], tangents[1], tangents[2])


def _extremum_tangent(loses: Callable[[Expr, Expr], Expr]) -> TangentRule:
    # torch masks the loser and halves a tie, so at NaN, which neither loses nor ties, both sides get the whole gradient
    def rule(out: Expr, args: tuple[Expr, ...], tangents: tuple[Tangent, ...]) -> Tangent:
        (x, y), (dx, dy) = args, tangents
        if x is y:
            return plus(_half(dx), _half(dy))
        left = choose(x == y, _half(dx), choose(loses(x, y), None, dx))
        right = choose(x == y, _half(dy), choose(loses(y, x), None, dy))
        return plus(left, right)

    return rule


def _clamp_tangent(out: Expr, args: tuple[Expr, ...], tangents: tuple[Tangent, ...]) -> Tangent:
    (x, lo, hi), (dx, dlo, dhi) = args, tangents
    inner = choose((x >= lo) & (x <= hi), dx, None)
    lower = choose((lo < hi) & (x < lo), dlo, None)
    upper = choose((x > hi) | (hi < lo), dhi, None)
    return plus(plus(inner, lower), upper)


# ---- partials too long for a line of the table
def _pow_base(out: Expr, x: Expr, y: Expr) -> Expr:
    if y.op == "const":
        return const(0.0) if y.value == 0 else y * s.pow(x, const(y.value - 1))
    return s.where(y == 0, 0.0, y * s.pow(x, y - 1))


def _pow_exponent(out: Expr, x: Expr, y: Expr) -> Expr:
    return s.where((x == 0) & (y >= 0), 0.0, out * s.log(x))


def _atan2_partial(sign: float, which: int) -> Partial:
    def partial(out: Expr, y: Expr, x: Expr) -> Expr:
        squared = y * y + x * x
        other = (y, x)[which]
        return s.where(squared == 0, 0.0, (other if sign > 0 else -other) / squared)

    return partial


def _xlogy_factor(out: Expr, x: Expr, y: Expr) -> Expr:
    return s.where((x == 0) & (y <= 0), 0.0, s.log(y))


_TWO_OVER_SQRT_PI = 2.0 / math.sqrt(math.pi)
_LN2, _LN10 = math.log(2.0), math.log(10.0)


def _one(*_: Expr) -> Expr:
    return const(1.0)


# ---- arithmetic
_atom("add", "{0} + {1}", _one, _one, finite=True)
_atom("sub", "{0} - {1}", _one, lambda out, x, y: const(-1.0), finite=True)
_atom("mul", "{0} * {1}", lambda out, x, y: y, lambda out, x, y: x, finite=True)
_atom("div", "{0} / {1}", lambda out, x, y: 1.0 / y, lambda out, x, y: -(out / y))
_atom("neg", "-{0}", lambda out, x: const(-1.0), finite=True)
_atom("abs", "abs({0})", lambda out, x: s.sign(x), finite=True)
_atom("sign", "sign({0})", None, finite=True)
_atom("square", "{0} * {0}", lambda out, x: 2.0 * x, finite=True)
_atom("sqrt", "sqrt({0})", lambda out, x: 0.5 / out)
_atom("rsqrt", "rsqrt({0})", lambda out, x: -0.5 * (out * out * out))
_atom("reciprocal", "real(1.0) / {0}", lambda out, x: -(out * out))
_atom("pow", "pow_({0}, {1})", _pow_base, _pow_exponent)
# zmul's value is finite only if the factor is, and then it is a product like any other
_atom("zmul", "zmul({0}, {1})", lambda out, g, d: d, lambda out, g, d: g, finite=True)

# ---- exponentials and logarithms
_atom("exp", "exp({0})", lambda out, x: out)
_atom("exp2", "exp2({0})", lambda out, x: out * _LN2)
_atom("expm1", "expm1({0})", lambda out, x: out + 1.0)
_atom("log", "log({0})", lambda out, x: 1.0 / x)
_atom("log2", "log2({0})", lambda out, x: 1.0 / (x * _LN2))
_atom("log10", "log10({0})", lambda out, x: 1.0 / (x * _LN10))
_atom("log1p", "log1p({0})", lambda out, x: 1.0 / (x + 1.0))
_atom("sigmoid", "sigmoid({0})", lambda out, x: (1.0 - out) * out, finite=True)
_atom("softplus", "softplus({0})", lambda out, x: s.sigmoid(x), finite=True)
_atom("logsigmoid", "logsigmoid({0})", lambda out, x: s.sigmoid(-x), finite=True)
_atom(
    "logaddexp", "logaddexp({0}, {1})",
    lambda out, x, y: s.sigmoid(x - y), lambda out, x, y: s.sigmoid(y - x), finite=True,
)  # fmt: skip
_atom("xlogy", "xlogy({0}, {1})", _xlogy_factor, lambda out, x, y: x / y)

# ---- trigonometric and hyperbolic functions
_atom("sin", "sin({0})", lambda out, x: s.cos(x), finite=True)
_atom("cos", "cos({0})", lambda out, x: -s.sin(x), finite=True)
_atom("tan", "tan({0})", lambda out, x: 1.0 + out * out)
_atom("asin", "asin({0})", lambda out, x: s.rsqrt(1.0 - x * x))
_atom("acos", "acos({0})", lambda out, x: -s.rsqrt(1.0 - x * x))
_atom("atan", "atan({0})", lambda out, x: 1.0 / (x * x + 1.0), finite=True)
_atom("atan2", "atan2({0}, {1})", _atan2_partial(1.0, 1), _atan2_partial(-1.0, 0))
_atom("sinh", "sinh({0})", lambda out, x: s.cosh(x))
_atom("cosh", "cosh({0})", lambda out, x: s.sinh(x))
_atom("tanh", "tanh({0})", lambda out, x: 1.0 - out * out, finite=True)
_atom("asinh", "asinh({0})", lambda out, x: s.rsqrt(x * x + 1.0), finite=True)
_atom("acosh", "acosh({0})", lambda out, x: s.rsqrt(x * x - 1.0))
_atom("atanh", "atanh({0})", lambda out, x: 1.0 / (1.0 - x * x))
_atom("hypot", "hypot({0}, {1})", lambda out, x, y: x / out, lambda out, x, y: y / out)
_atom("erf", "erf({0})", lambda out, x: _TWO_OVER_SQRT_PI * s.exp(-(x * x)), finite=True)
_atom("erfc", "erfc({0})", lambda out, x: -_TWO_OVER_SQRT_PI * s.exp(-(x * x)), finite=True)

# ---- choices
_atom("maximum", "maximum({0}, {1})", None, None, tangent=_extremum_tangent(lambda x, y: x < y), finite=True)
_atom("minimum", "minimum({0}, {1})", None, None, tangent=_extremum_tangent(lambda x, y: x > y), finite=True)
_atom("clamp", "minimum(maximum({0}, {1}), {2})", None, None, None, tangent=_clamp_tangent, finite=True)
ATOMS["where"] = Atom("where", "crr", REAL, "where({0}, {1}, {2})", (None, None, None), _where_tangent, finite=True)

# ---- rounding, remainders, signs
_atom("floor", "floor({0})", None, finite=True)
_atom("ceil", "ceil({0})", None, finite=True)
_atom("round", "rint({0})", None, finite=True)
_atom("trunc", "trunc({0})", None, finite=True)
_atom("frac", "{0} - trunc({0})", _one, finite=True)
_atom("floor_divide", "floor_divide({0}, {1})", None, None)
_atom("fmod", "fmod({0}, {1})", _one, lambda out, x, y: -s.trunc(x / y))
_atom("remainder", "remainder({0}, {1})", _one, lambda out, x, y: -s.floor_divide(x, y))
_atom("copysign", "copysign({0}, {1})", lambda out, x, y: s.where(x == 0, 0.0, out / x), None, finite=True)

# ---- bits of integers and truth values; floats have none
for _name, _sign in (("and", "&"), ("or", "|"), ("xor", "^"), ("left_shift", "<<"), ("right_shift", ">>")):
    ATOMS[f"bitwise_{_name}"] = Atom(f"bitwise_{_name}", "ii", INTEGER, "{0} " + _sign + " {1}", (None, None), finite=True)
ATOMS["bitwise_not"] = Atom("bitwise_not", "i", INTEGER, "~{0}", (None,), finite=True)

# ---- conditions
for _name, _sign in (("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">="), ("eq", "=="), ("ne", "!=")):
    _condition(_name, "{0} " + _sign + " {1}", "rr")
_condition("logical_and", "{0} & {1}", "cc")
_condition("logical_or", "{0} | {1}", "cc")
_condition("logical_xor", "{0} != {1}", "cc")
_condition("logical_not", "not {0}", "c")
_condition("isnan", "isnan({0})", "r")
_condition("isinf", "isinf({0})", "r")
_condition("isfinite", "isfinite({0})", "r")
