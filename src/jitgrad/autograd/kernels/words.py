"""The words of an elementwise function: what `jitgrad.tanh`, `math.tanh` and `np.tanh` mean where the argument is one element.

A function that is about to be traced is copied, and in the copy every name of a module or of a known function stands for its scalar
meaning. So the author writes the function as usual, and what has no such meaning is refused by its name.
"""

from __future__ import annotations

import builtins
import functools
import types
from collections.abc import Callable
from typing import Any, Final, NoReturn

import numpy as np

from ..._expr import Expr, const, scalar
from ..._kernels.captures import plain_function
from ..._kernels.copies import rebound
from ..._ops.kinds import OPS
from ..._ops.maps import Elementwise
from ..._tensor.base import TensorBase

Word = Callable[..., Any]
LIBRARIES: Final = ("jitgrad", "math", "numpy")
CONSTANTS: Final = (bool, int, float, str, type(None), np.number, np.bool_)


def clamp(x: Any, min: Any = None, max: Any = None) -> Any:
    """`x` within bounds, either of which may be missing."""
    if min is not None and max is not None:
        return scalar.clamp(x, min, max)
    if min is None and max is None:
        raise ValueError("clamp: at least one of 'min' or 'max' must not be None")
    return OPS["_clamp_low"].function(x, min) if max is None else OPS["_clamp_high"].function(x, max)


def softplus(x: Any, beta: Any = 1.0, threshold: Any = 20.0) -> Any:
    """log(1 + exp(beta x)) / beta."""
    if isinstance(beta, (int, float)) and beta == 1 and isinstance(threshold, (int, float)) and threshold == 20:
        return scalar.softplus(x)
    return OPS["_softplus"].function(x, beta=_lift(beta), threshold=_lift(threshold))


def leaky_relu(x: Any, negative_slope: Any = 0.01) -> Any:
    """`x`, times a small slope where it is negative."""
    return OPS["_leaky_relu"].function(x, negative_slope=_lift(negative_slope))


def elu(x: Any, alpha: Any = 1.0) -> Any:
    """`x`, alpha (exp(x) - 1) where it is negative."""
    return OPS["_elu"].function(x, alpha=_lift(alpha), scale=const(1.0))


def relu6(x: Any) -> Any:
    """`x` between 0 and 6."""
    return OPS["_hardtanh"].function(x, min_val=const(0.0), max_val=const(6.0))


def _lift(value: Any) -> Any:
    return value if isinstance(value, Expr) else const(value)


def _binary(symbol: str) -> Word:
    operations: dict[str, Word] = {
        "+": lambda x, y: x + y,
        "-": lambda x, y: x - y,
        "*": lambda x, y: x * y,
        "/": lambda x, y: x / y,
    }
    return operations[symbol]


def _largest(first: Any, second: Any, *rest: Any) -> Any:
    return functools.reduce(scalar.maximum, rest, scalar.maximum(first, second))


def _smallest(first: Any, second: Any, *rest: Any) -> Any:
    return functools.reduce(scalar.minimum, rest, scalar.minimum(first, second))


ALIASES: Final = {
    "absolute": "abs",
    "fabs": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "power": "pow",
    "float_power": "pow",
    "rint": "round",
    "round_": "round",
    "fix": "trunc",
    "mod": "remainder",
    "negative": "neg",
    "multiply": "mul",
    "subtract": "sub",
    "divide": "div",
    "true_divide": "div",
    "clip": "clamp",
    "greater": "gt",
    "less": "lt",
    "greater_equal": "ge",
    "less_equal": "le",
    "equal": "eq",
    "not_equal": "ne",
    "expit": "sigmoid",
}
FROM_OPS: Final = (
    "gelu",
    "silu",
    "mish",
    "hardsigmoid",
    "hardswish",
    "neg",
    "sgn",
    "fmax",
    "fmin",
    "lerp",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "deg2rad",
    "rad2deg",
    "sinc",
    "signbit",
    "logaddexp2",
    "isposinf",
    "isneginf",
)
NOT_WORDS: Final = ("Expr", "Number", "Scalar", "const", "param", "var", "zmul")


@functools.cache
def words() -> dict[str, Word]:
    """Name to scalar meaning."""
    found: dict[str, Word] = {name: scalar.__dict__[name] for name in scalar.__all__ if name not in NOT_WORDS}
    found |= {
        name: op.function for name in FROM_OPS if isinstance(op := OPS.get(name) or OPS.get("_" + name), Elementwise)
    }
    found |= {"add": _binary("+"), "sub": _binary("-"), "mul": _binary("*"), "div": _binary("/")}
    found |= {"clamp": clamp, "softplus": softplus, "leaky_relu": leaky_relu, "elu": elu, "relu6": relu6}
    return found | {alias: found[name] for alias, name in ALIASES.items() if name in found}


BUILTINS: Final = {
    builtins.max: _largest,
    builtins.min: _smallest,
    builtins.abs: scalar.abs,
    builtins.round: scalar.round,
    builtins.pow: scalar.pow,
}


def no_word(spelled: str) -> NoReturn:
    """Refuse a name that means nothing for one element."""
    raise TypeError(
        f"{spelled} is not a function of one element. An elementwise function may use arithmetic, comparisons, jitgrad.where and "
        f"{', '.join(sorted(set(words()) - set(ALIASES)))}; for anything else write a loop and use jit_function"
    )


class Words:
    """A module as a traced function sees it: its functions of one element, its numbers, its submodules."""

    def __init__(self, module: types.ModuleType, spelled: str) -> None:
        self._module, self._spelled = module, spelled

    def __getattr__(self, name: str) -> Any:
        try:
            value = getattr(self._module, name)
        except AttributeError:
            raise AttributeError(f"module '{self._module.__name__}' has no attribute '{name}'") from None
        return meaning(value, f"{self._spelled}.{name}", name)


def in_library(value: Any) -> bool:
    """Whether a function belongs to jitgrad, math or NumPy."""
    module = getattr(value, "__module__", None) or type(value).__module__
    return module.partition(".")[0] in LIBRARIES


def meaning(value: Any, spelled: str, name: str = "") -> Any:
    """What a value that a function reads from outside stands for while it is traced. TypeError for what it can't stand for."""
    if isinstance(value, CONSTANTS) or getattr(value, "traceable", False):
        return value
    if isinstance(value, types.ModuleType):
        return Words(value, spelled)
    if isinstance(value, type) and (
        value.__module__ == "builtins" or in_library(value) or issubclass(value, Exception)
    ):
        return value
    if isinstance(value, (tuple, list)) and all(isinstance(item, CONSTANTS) for item in value):
        return value if isinstance(value, tuple) else tuple(value)
    if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "biuf":
        return tuple(value.tolist())
    if getattr(value, "__module__", None) == "builtins" and callable(value):
        return BUILTINS.get(value, value)
    inner = plain_function(value)
    if callable(value) and (in_library(value) or (inner is not None and in_library(inner))):
        found = words().get(getattr(value, "__name__", name))
        return found if found is not None else no_word(spelled)
    if inner is not None:
        return traced_copy(inner)
    if isinstance(value, TensorBase):
        raise TypeError(
            f"it reads the tensor '{spelled}' from outside, which no gradient would reach: make it an operand"
        )
    raise TypeError(
        f"it reads '{spelled}' from outside, a {type(value).__name__}: only numbers, strings, tuples of those, and functions can be read; "
        "hand numbers over as keyword-only arguments"
    )


_COPIES: dict[Any, Any] = {}


def traced_copy(function: Any) -> Any:
    """The function with every outer name in its scalar meaning; a function that calls itself gets itself."""
    if function in _COPIES:
        return _COPIES[function]

    def lazily(*args: Any, **named: Any) -> Any:
        return copy(*args, **named)

    _COPIES[function] = lazily
    try:
        copy = rebound(function, _lazily_meaning)
    finally:
        del _COPIES[function]
    return copy


def _lazily_meaning(value: Any, name: str) -> Any:
    """The meaning, or, where there is none, an object that says so when it is used: a name may be read on a path not taken."""
    try:
        return meaning(value, name, name)
    except TypeError as error:
        return Refused(str(error))


class Refused:
    """Stands for a value that an elementwise function can't read; any use of it raises."""

    __array_ufunc__ = None

    def __init__(self, words: str) -> None:
        object.__setattr__(self, "_words", words)

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(object.__getattribute__(self, "_words"))

    __call__ = __getitem__ = __iter__ = __len__ = __bool__ = __float__ = __index__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __pow__ = __rpow__ = (
        _refuse
    )
    __lt__ = __le__ = __gt__ = __ge__ = __neg__ = __abs__ = _refuse

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise TypeError(object.__getattribute__(self, "_words"))
