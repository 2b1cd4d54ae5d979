"""Questions about tensors and dtypes."""

from __future__ import annotations

from typing import Any

from .._core.dtypes import (
    Category,
    can_cast as may_cast,
    default_dtype,
    dtype as Dtype,
    promote,
    result_dtype,
    scalar_dtype,
)
from .._core.errors import argument_error
from .base import TensorBase
from .convert import NUMBER_TYPES, PYTHON_DTYPES
from .storage import Storage

Tensor = Any


def is_tensor(obj: Any, /) -> bool:
    """Whether `obj` is a tensor."""
    return isinstance(obj, TensorBase)


def _assert(condition: Any, message: Any) -> None:
    """AssertionError with a message unless a condition, which may be a tensor of one element, holds."""
    if not condition:
        raise AssertionError(message)


def numel(input: Tensor) -> int:
    """Number of elements."""
    if not isinstance(input, TensorBase):
        raise argument_error("numel", "input", 1, "Tensor", input)
    return input.meta.numel


def result_type(tensor1: Any, tensor2: Any) -> Dtype:
    """The dtype of the result of an arithmetic op on the two."""
    pairs = []
    for operand in (tensor1, tensor2):
        if isinstance(operand, TensorBase):
            pairs.append((operand.meta.kind, Category.DIM if operand.meta.shape else Category.ZERO_DIM))
        elif isinstance(operand, NUMBER_TYPES):
            pairs.append((scalar_dtype(operand), Category.NUMBER))
        else:
            raise TypeError("result_type() received an invalid combination of arguments - got "
                            f"({type(tensor1).__name__}, {type(tensor2).__name__})")  # fmt: skip
    return result_dtype(pairs)


def promote_types(type1: Dtype, type2: Dtype) -> Dtype:
    """The smallest dtype that both promote to."""
    return promote(_dtype("promote_types", "type1", 1, type1), _dtype("promote_types", "type2", 2, type2))


def can_cast(from_: Dtype, to: Dtype) -> bool:
    """Whether a result of dtype `from_` may be written into a tensor of dtype `to`."""
    return may_cast(_dtype("can_cast", "from_", 1, from_), _dtype("can_cast", "to", 2, to))


def _dtype(function: str, argument: str, position: int, value: Any) -> Dtype:
    found: Dtype | None = (
        value if isinstance(value, Dtype) else PYTHON_DTYPES.get(value) if isinstance(value, type) else None
    )
    if found is not None:
        return found
    raise argument_error(function, argument, position, "jitgrad.dtype", value)


def get_default_dtype() -> Dtype:
    """The dtype Python floats become."""
    return default_dtype()


# ---------------------------------------------------------------- methods as functions
def _tensor(function: str, input: Any) -> Any:
    if not isinstance(input, TensorBase):
        raise argument_error(function, "input", 1, "Tensor", input)
    return input


def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype is a floating-point one. TypeError for what is no tensor."""
    return bool(_tensor("is_floating_point", input).meta.kind.is_floating_point)


def is_complex(input: Tensor) -> bool:
    """Whether the dtype is complex: never. TypeError for what is no tensor."""
    return bool(_tensor("is_complex", input).is_complex())


def is_signed(input: Tensor) -> bool:
    """Whether the dtype has negative numbers. TypeError for what is no tensor."""
    return bool(_tensor("is_signed", input).is_signed())


def is_nonzero(input: Tensor) -> bool:
    """The truth of the only element. RuntimeError where there are more, TypeError for what is no tensor."""
    return bool(_tensor("is_nonzero", input))


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have one shape. TypeError for what is no tensor."""
    if not isinstance(other, TensorBase):
        raise argument_error("is_same_size", "other", 2, "Tensor", other)
    return bool(_tensor("is_same_size", input).meta.shape == other.meta.shape)


def is_storage(obj: Any, /) -> bool:
    """Whether `obj` is what `x.storage()` or `x.untyped_storage()` give."""
    return isinstance(obj, Storage)


def detach(input: Tensor) -> Tensor:
    """`input.detach()`."""
    return _tensor("detach", input).detach()


def detach_(input: Tensor) -> Tensor:
    """`input.detach_()`."""
    return _tensor("detach_", input).detach_()
