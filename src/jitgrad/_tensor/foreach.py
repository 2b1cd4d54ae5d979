"""`_foreach_*`: an op on each tensor of a list, as optimizers written for torch call them.

`_foreach_mul(xs, ys)` has a product per pair, `_foreach_mul(xs, 2)` and `_foreach_mul(xs, [2, 3])` take numbers, one for all or one each;
`_foreach_mul_` writes into `xs` and returns them. Each call is recorded as the op itself.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

from .base import TensorBase

# both the function and its in-place twin
_BOTH: Final = frozenset(
    ("abs", "acos", "add", "addcdiv", "addcmul", "asin", "atan", "ceil", "clamp_max", "clamp_min", "cos", "cosh", "div", "erf", "erfc", "exp",
     "expm1", "floor", "frac", "lerp", "lgamma", "log", "log10", "log1p", "log2", "maximum", "minimum", "mul", "neg", "pow", "reciprocal", "round",
     "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "sub", "tan", "tanh", "trunc")
)  # fmt: skip
_ONE: Final = frozenset(("clone", "copy_", "max", "mm", "norm", "powsum", "zero_"))
_CLAMPS: Final = {"maximum": "clamp_min", "minimum": "clamp_max"}  # with a number
_SCALED: Final = ("addcdiv", "addcmul")  # of which the last argument is a factor


def function(name: str) -> Callable[..., Any]:
    """The function `_foreach_*` of a name. AttributeError for a name that torch has not."""
    op = name.removeprefix("_foreach_")
    if op not in _ONE and op.removesuffix("_") not in _BOTH:
        raise AttributeError(f"module 'jitgrad' has no attribute '{name}'")
    return functools.update_wrapper(functools.partial(call, name, op), call, ("__module__", "__doc__"), ())


def call(name: str, op: str, tensors: Any, *args: Any, **named: Any) -> Any:
    """The op on each of the tensors, with what each list among the other arguments has for it. A tuple; the list itself after a write.

    TypeError for what is no list of tensors; RuntimeError for an empty list, or for lists of different lengths.
    """
    if isinstance(tensors, (int, float)) and op == "pow":
        (exponents,) = args
        return tuple([tensors**x for x in checked(name, exponents)])
    checked(name, tensors)
    base = op.removesuffix("_")
    if "scalars" in named:
        args = (*args, named.pop("scalars"))
    factors = None
    if base in _SCALED and len(args) > 2:
        args, factors = args[:2], each(name, args[2], len(tensors), True)
    columns = [each(name, arg, len(tensors), False) for arg in args]
    results = []
    for place, x in enumerate(tensors):
        own = {**named, "value": factors[place]} if factors is not None else named
        results.append(one(op, x, [column[place] for column in columns], own))
    return tensors if op.endswith("_") else tuple(results)


def one(op: str, x: Any, args: list[Any], named: dict[str, Any]) -> Any:
    """The op on one of them."""
    base = op.removesuffix("_")
    if base in _CLAMPS and not isinstance(args[0], TensorBase):
        op = _CLAMPS[base] + op[len(base) :]
    if op == "norm":
        return x.norm(*args, *named.values())
    if op == "powsum":
        return x.abs().pow(*args).sum()
    return getattr(x, op)(*args, **named)


def checked(name: str, tensors: Any) -> Sequence[Any]:
    """A list or tuple of tensors."""
    if not isinstance(tensors, (list, tuple)):
        raise TypeError(f"{name}(): argument 'self' (position 1) must be tuple of Tensors, not {type(tensors).__name__}")
    if not tensors:
        raise RuntimeError("Tensor list must have at least one tensor.")
    for place, x in enumerate(tensors):
        if not isinstance(x, TensorBase):
            raise TypeError(f"expected Tensor as element {place} in argument 0, but got {type(x).__name__}")
    return tensors


def each(name: str, argument: Any, count: int, split: bool) -> Sequence[Any]:
    """An argument per tensor: those of a list, or one and the same for all. `split`: a tensor has one number for each."""
    if isinstance(argument, TensorBase):
        if split and argument.ndim:
            argument = argument.tolist()  # type: ignore[attr-defined]
        elif argument.ndim:
            raise RuntimeError(f"scalar tensor expected to be 0 dim but it has {argument.ndim} dimensions and {argument.meta.numel} elements.")
    if not isinstance(argument, (list, tuple)):
        return [argument] * count
    if len(argument) != count:
        if any(isinstance(x, TensorBase) for x in argument):
            raise RuntimeError(f"Tensor lists must have the same number of tensors, got {count} and {len(argument)}")
        raise RuntimeError("Tensor list must have same number of elements as scalar list.")
    return argument
