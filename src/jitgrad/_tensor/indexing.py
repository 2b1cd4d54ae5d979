"""`x[index]` and `x[index] = value`: a chain of views, then one gather or scatter by index arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._ops import indexing, views
from .base import TensorBase, wrap
from .index_parse import Plan, parse_index
from .inplace import inplace


def take(tensor: Any, index: Any) -> Any:
    """`tensor[index]`: a view for ints, slices, None and `...`; a copy where lists, tensors or masks are involved."""
    plan = parse_index(tensor.meta.shape, index)
    result = view_of(tensor, plan)
    if not plan.advanced:
        return result
    return indexing.index_op(result, *index_tensors(plan))


def view_of(tensor: Any, plan: Plan) -> Any:
    """The view part of an index, step by step."""
    for step in plan.steps:
        if step.kind == "select":
            tensor = views.select_op(tensor, step.dim, step.start)
        elif step.kind == "slice":
            tensor = views.slice_op(tensor, step.dim, step.start, step.stop, step.step)
        elif step.kind == "unsqueeze":
            tensor = views.unsqueeze_op(tensor, step.dim)
        else:
            tensor = views.alias_op(tensor)
    return tensor


def index_tensors(plan: Plan) -> tuple[Any, ...]:
    """The index arrays as one static: they are bounds-checked copies that nobody writes to."""
    return (tuple(entry if entry is None else np.array(entry) for entry in plan.advanced),)


def assign(tensor: Any, index: Any, value: Any) -> None:
    """`tensor[index] = value`, in place; value broadcasts and is cast."""
    plan = parse_index(tensor.meta.shape, index)
    target = view_of(tensor, plan) if plan.steps and not (len(plan.steps) == 1 and plan.steps[0].kind == "alias") else tensor
    if not isinstance(value, TensorBase):
        value = wrap(np.asarray(value, tensor.meta.dtype))
    if not plan.advanced:
        lead = value.ndim - len(plan.shape)
        if lead > 0 and all(n == 1 for n in value.meta.shape[:lead]):
            value = value.reshape(value.meta.shape[lead:])
        target.copy_(value)
        return
    inplace(indexing.put, "index_put_", target, (index_tensors(plan)[0], value), {})
