"""Calling the hooks of a node, with the checks of what they return."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from .._core.dtypes import TENSOR_TYPE_NAME
from .._core.hooks import RemovableHandle, add_hook
from .._core.meta import Meta
from .extras import Hook, NodeExtras, name_of
from .node import ACCUMULATE, Node, target

Grads = tuple[Any, ...]
Taker = Callable[[Any], None]


def extras(node: Node) -> NodeExtras:
    """The node's extras, made when there are none yet."""
    if node.rare is None:
        node.rare = NodeExtras()
    return node.rare


def add(hooks: OrderedDict[int, Hook], hook: Hook) -> RemovableHandle:
    """Append a hook; the handle takes it out again."""
    return add_hook(hooks, hook)


def on_tensor(node: Node, index: int, hook: Hook) -> RemovableHandle:
    """Call `hook(grad)` when the gradient of an output is complete."""
    return add(extras(node).tensor.setdefault(index, OrderedDict()), hook)


def set_table(node: Node, index: int, table: Any) -> None:
    """Exchange the table of the hooks put on an output; None takes it away."""
    if table is None:
        extras(node).tensor.pop(index, None)
    else:
        extras(node).tensor[index] = table


def retain(node: Node, index: int, take: Taker) -> None:
    """Call `take(grad)` with the final gradient of an output."""
    extras(node).retain.setdefault(index, []).append(take)


def move_retained(old: Node | None, new: Node | None, take: Taker) -> None:
    """After a write a tensor retains the gradient of its new history."""
    if old is not None and old is not new:
        node, index = target(old)
        takers = node.rare.retain.get(index, []) if node.rare is not None else []
        if take in takers:
            takers.remove(take)
    if new is not None and old is not new:
        retain(*target(new), take)


# ---- calling them; each takes a copy of its table, so that hooks may remove themselves or add others
def call_tensor_hooks(rare: NodeExtras, grads: Grads) -> Grads:
    """The hooks put on tensors, in order, then the gradients retained: these see the final value."""
    for index, hooks in list(rare.tensor.items()):
        for hook in list(hooks.values()):
            grad = grads[index]
            changed = hook(grad)
            if changed is not None:
                check_value(hook, changed, grad)
                grads = (*grads[:index], changed, *grads[index + 1 :])
    for index, takers in list(rare.retain.items()):
        with ACCUMULATE:  # two runs of one graph may come here together
            for take in list(takers):
                take(grads[index])
    return grads


def call_before(rare: NodeExtras, grads: Grads) -> Grads:
    """The node's pre-hooks: `hook(grads)` may return others in their place."""
    for hook in list(rare.before.values()):
        grads = replaced(hook, hook(grads), grads)
    return grads


def call_after(rare: NodeExtras, results: Sequence[Any], grads: Grads) -> Sequence[Any]:
    """The node's post-hooks: `hook(results, grads)` may return others in place of the results."""
    for hook in list(rare.after.values()):
        results = replaced(hook, hook(tuple(results), grads), tuple(results))
    return results


def replaced(hook: Hook, changed: Any, old: Grads) -> Grads:
    """What a node's hook returned, checked; None leaves all as it was."""
    if changed is None:
        return old
    if not isinstance(changed, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(changed).__name__}'")
    if len(changed) != len(old):
        raise RuntimeError(
            f"hook '{name_of(hook)}' has returned an incorrect number of values (got {len(changed)}, but expected {len(old)})"
        )
    for new, before in zip(changed, old, strict=True):
        if new is not None or before is not None:
            check_value(hook, new, before)
    return changed


def check_value(hook: Hook, new: Any, old: Any) -> None:
    """A hook may change the value of a gradient, or drop it, but not its shape or dtype."""
    if new is None:
        return
    if old is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    meta = getattr(new, "meta", None)
    if not isinstance(meta, Meta):
        raise TypeError(f"expected Variable, but hook returned '{type(new).__name__}'")
    if meta.dtype != old.meta.dtype:
        raise RuntimeError(
            f"hook '{name_of(hook)}' has changed the type of value (was {TENSOR_TYPE_NAME[old.meta.kind]} got {TENSOR_TYPE_NAME[meta.kind]})"
        )
    if meta.shape != old.meta.shape:
        raise RuntimeError(f"hook '{name_of(hook)}' has changed the size of value")
