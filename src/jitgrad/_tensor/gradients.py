"""What may be assigned to `.grad`, and what hooks a tensor has."""

from __future__ import annotations

from typing import Any

from .._core.dtypes import SCALAR_TYPE_NAME, dtype as Dtype
from .._engine.extras import NodeExtras
from .._engine.node import target
from .._ops.checks import C_NAMES
from .base import TensorBase, own_rare


def full_name(kind: type[Any]) -> str:
    """The name of a type with its module, but for builtins."""
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def extras_of(tensor: Any) -> Any:
    """The extras of a leaf's node, or those that wait for the node; None where there are none."""
    if tensor.fn is not None:
        return tensor.fn.rare
    return None if tensor.rare is None else tensor.rare.hooks


def chosen_of(tensor: Any) -> Any:
    """The dtype that a tensor's `.grad` has, None for any."""
    found = extras_of(tensor) if tensor.is_leaf else None
    return tensor.meta.kind if found is None or found.takes is ... else found.takes


def grad_dtype_of(tensor: Any) -> Any:
    """The same for leaves alone, RuntimeError for others."""
    if not tensor.is_leaf:
        raise RuntimeError("grad_dtype can only be accessed on leaf tensors.")
    return chosen_of(tensor)


def choose_grad_dtype(tensor: Any, value: Any) -> None:
    """Let a leaf's gradients have some dtype, or with None the one they come with."""
    if not tensor.is_leaf:
        raise RuntimeError("grad_dtype can only be set on leaf tensors.")
    if value is not None and not isinstance(value, Dtype):
        raise RuntimeError(f"grad_dtype must be a jitgrad.dtype or None, but got {type(value).__name__}")
    held = tensor._grad_slot()
    if value is not None and held is not None and held.meta.kind is not value:
        raise RuntimeError(f"Cannot set grad_dtype to '{SCALAR_TYPE_NAME[value]}' because there is already a gradient with dtype "
                           f"'{C_NAMES[held.meta.kind]}'. Please clear the gradient (.grad = None) before changing grad_dtype, or ensure the "
                           "new grad_dtype matches the existing gradient's dtype.")  # fmt: skip
    found = extras_of(tensor)
    if value is tensor.meta.kind and found is None:
        return
    if found is None:
        found = NodeExtras()
        if tensor.fn is not None:
            tensor.fn.rare = found
        else:
            own_rare(tensor).hooks = found
    found.takes = ... if value is tensor.meta.kind else value


def check_grad(tensor: Any, value: Any) -> None:
    """TypeError or RuntimeError for what may not be assigned to a tensor's `.grad`."""
    if not isinstance(value, TensorBase):
        raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {full_name(type(value))}")
    if value is tensor:
        raise RuntimeError("can't assign Variable as its own grad")
    wanted = chosen_of(tensor)
    if wanted is not None and value.meta.kind is not wanted:
        raise RuntimeError(f"attempting to assign a gradient with dtype '{C_NAMES[value.meta.kind]}' to a tensor with grad_dtype "
                           f"'{SCALAR_TYPE_NAME[wanted]}'. The gradient must match the tensor's grad_dtype (defaults to the tensor's "
                           "dtype). You can set the tensor's grad_dtype attribute with a specific dtype, or None to allow any dtype. Set "
                           "grad_dtype with caution. Diverging the dtypes of a tensor and its gradient may break downstream systems that assume "
                           "they match.")  # fmt: skip
    if value.meta.shape != tensor.meta.shape:
        raise RuntimeError(f"attempting to assign a gradient of size '{list(value.meta.shape)}' to a tensor of size '{list(tensor.meta.shape)}'. "
                           "Please ensure that the gradient and the tensor are the same size")  # fmt: skip


def hooks_of(edge: Any, which: str) -> Any:
    """The table of a tensor's hooks ("tensor"), or of those called after accumulation ("accumulated"); None where none was ever put on."""
    if edge is None:
        return None
    node, index = target(edge)
    if node.rare is None:
        return None
    return node.rare.tensor.get(index) if which == "tensor" else node.rare.accumulated or None
