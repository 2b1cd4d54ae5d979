"""What may be assigned to `.grad`, and what hooks a tensor has."""

from __future__ import annotations

from typing import Any, Final

from .._core.dtypes import SCALAR_TYPE_NAME
from .._engine.node import target
from .base import TensorBase

# torch names the gradient's dtype as C++ does
C_NAMES: Final = {
    "float32": "float", "float64": "double", "float16": "c10::Half", "int64": "long int", "int32": "int", "int16": "short int",
    "int8": "signed char", "uint8": "unsigned char", "bool": "bool",
}  # fmt: skip


def full_name(kind: type[Any]) -> str:
    """The name of a type with its module, but for builtins."""
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def check_grad(tensor: Any, value: Any) -> None:
    """TypeError or RuntimeError for what may not be assigned to a tensor's `.grad`."""
    if not isinstance(value, TensorBase):
        raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {full_name(type(value))}")
    if value is tensor:
        raise RuntimeError("can't assign Variable as its own grad")
    if value.meta.dtype != tensor.meta.dtype:
        raise RuntimeError(f"attempting to assign a gradient with dtype '{C_NAMES[value.meta.kind.name]}' to a tensor with grad_dtype "
                           f"'{SCALAR_TYPE_NAME[tensor.meta.kind]}'. The gradient must match the tensor's grad_dtype (defaults to the tensor's "
                           "dtype).")  # fmt: skip
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
