"""What the optimizers share: checks of their options, their count of steps, and updates that no kernel takes."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .._core.dtypes import default_dtype, float32, float64
from .._engine.versions import bump
from .._expr import Expr
from .._expr.node import topological
from .._tensor import Tensor
from .._tensor._functions import where
from .._tensor.base import version_of
from .._tensor.creation import from_numpy, tensor
from ..autograd import no_grad
from .rules import Rule


@dataclass(frozen=True)
class Recipe:
    """One group's update as the compiler sees it.

    `rule` with `flags` works on a parameter, its gradient and the state named in `states`. Its params are `numbers`: expressions over the
    hyper-parameters named in `hyper`, whose values `read(group)` gives at each call, and over `steps` where the state `counts` them.
    """

    rule: Rule
    flags: tuple[bool, ...]
    states: tuple[str, ...]
    hyper: tuple[str, ...]
    numbers: tuple[Expr, ...]
    read: Callable[[dict[str, Any]], tuple[float, ...]]
    counts: bool = False


def check_flags(fused: bool | None, foreach: bool | None, differentiable: bool) -> None:
    """`fused` and `foreach` choose between torch's own implementations and change nothing here.

    Raises RuntimeError for a combination that torch refuses.
    """
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def check_rate(lr: Any) -> None:
    """ValueError for a learning rate that is negative, NaN or a tensor of several elements."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    check_not_negative("learning rate", lr)


def check_not_negative(name: str, value: Any) -> None:
    """ValueError "Invalid <name>: <value>" for a value that is not at least zero."""
    if not value >= 0.0:
        raise ValueError(f"Invalid {name}: {value}")


def fresh_count() -> Tensor:
    """A count of steps as torch keeps it: a tensor of shape (), float32 unless the default is float64."""
    count: Tensor = tensor(0.0, dtype=float64 if default_dtype() is float64 else float32)
    return count


def counts_as_tensors(optimizer: Any) -> None:
    """Turn counts of steps that were saved as numbers, as old versions of torch did, into tensors."""
    for state in optimizer.state.values():
        if "step" in state and not isinstance(state["step"], Tensor):
            count = fresh_count()
            count.fill_(float(state["step"]))
            state["step"] = count


def advance(count: Tensor) -> float:
    """Add one to a count of steps and give it as a number."""
    array = count.array
    steps: float = array.item() + 1.0
    array.fill(steps)
    return steps


def update(rule: Rule, flags: tuple[bool, ...], tensors: Sequence[Tensor], numbers: Sequence[float]) -> None:
    """Apply a rule to a parameter, its gradient and its state, in place.

    By the rule's kernel if all are C-contiguous and of one shape and dtype, float32 or float64; by interpretation else.
    """
    param = tensors[0]
    meta = param.meta
    for one in tensors:
        if one.meta is not meta:
            update_anyway(rule, flags, tensors, numbers)
            return
    if meta.plain:
        meta.k[rule.numbers[flags]](*[one.array for one in tensors], *numbers)
        bump(param.vc or version_of(param))
    else:
        update_anyway(rule, flags, tensors, numbers)


def update_recorded(optimizer: Any, group: dict[str, Any]) -> None:
    """One group's update in recorded ops, for `differentiable=True`: what comes later has gradients by parameters, state and options.

    RuntimeError for a parameter that is a leaf and takes a gradient, as for any write to one.
    """
    for p in group["params"]:
        g = p.grad
        if g is None:
            continue
        rule, flags, names, numbers = optimizer._plan(p, group)
        tensors = (p, g, *[optimizer.state[p][name] for name in names])
        before = [one if place == 1 else one.clone() for place, one in enumerate(tensors)]  # what is written to must not be saved
        results = recorded(rule.outputs(flags), dict(zip((*rule.arrays, *rule.params), (*before, *numbers), strict=True)))
        for place, result in zip(rule.places, results, strict=True):
            tensors[place].copy_(result)


def plan_of(recipe: Recipe, optimizer: Any, p: Tensor, group: dict[str, Any]) -> tuple[Rule, tuple[bool, ...], tuple[str, ...], Sequence[Any]]:
    """A parameter's next step by a recipe: the rule, its flags, the names of its state, its numbers, which may be tensors with a history."""
    named = _options(group) | optimizer._begin(p, group)
    if recipe.counts:
        named["steps"] = advance(optimizer.state[p]["step"])
    return recipe.rule, recipe.flags, recipe.states, recorded(recipe.numbers, named)


def _options(group: dict[str, Any]) -> dict[str, Any]:
    """A group's options under the names that recipes have for them: numbers, or tensors with their history."""
    named = {name: value for name, value in group.items() if name != "params"}
    if "betas" in group:
        named["beta1"], named["beta2"] = group["betas"]
    if "dampening" in group:
        named["share"] = 1.0 - group["dampening"]
    return named


_RECORDED: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "neg": operator.neg, "pow": operator.pow,
    "sqrt": lambda x: x.sqrt() if isinstance(x, Tensor) else math.sqrt(x), "abs": abs, "sign": lambda x: x.sign(),
    "maximum": lambda x, y: x.maximum(y) if isinstance(y, Tensor) else x.clamp(min=y), "minimum": lambda x, y: x.clamp(max=y),
    "gt": operator.gt, "lt": operator.lt, "where": where,
}  # fmt: skip


def recorded(outputs: Sequence[Expr], named: dict[str, Any]) -> list[Any]:
    """Expressions over tensors and numbers, by ops that are recorded."""
    values: dict[Expr, Any] = {}
    for node in topological(*outputs):
        if node.args:
            values[node] = _RECORDED[node.op](*[values[arg] for arg in node.args])
        else:
            values[node] = node.value if node.op == "const" else named[node.name]
    return [values[output] for output in outputs]


def update_anyway(rule: Rule, flags: tuple[bool, ...], tensors: Sequence[Tensor], numbers: Sequence[float]) -> None:
    """Apply a rule by interpretation: float16, strided tensors, different layouts or dtypes."""
    results = rule.evaluate(flags, [one.array for one in tensors], numbers)
    with no_grad():
        for place, result in zip(rule.places, results, strict=True):
            tensors[place].copy_(from_numpy(result))
