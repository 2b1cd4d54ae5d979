"""Copies: to another dtype, to contiguous memory, or plain."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.devices import (
    CHANNELS_LAST,
    check_device,
    check_memory_format,
    contiguous_format,
    duplicate,
    preserve_format,
)
from .._core.dtypes import (
    FROM_TENSOR_TYPE_NAME,
    TENSOR_TYPE_NAME,
    bool_ as boolean,
    dtype as Dtype,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
)
from .._core.meta import Meta
from .._core.shapes import check_broadcastable
from .kinds import Array, Tensor, composite, linear
from .views import unbroadcast

_PYTHON_TYPES = {float: float64, int: int64, bool: boolean}


# ---------------------------------------------------------------- ops
def cast(array: Array, kind: np.dtype[Any]) -> Array:
    """A C-contiguous copy in another dtype; numbers out of range give what the machine gives, without a warning."""
    with np.errstate(all="ignore"):
        return array.astype(kind, order="C")


@linear(node="ToCopyBackward0", name="_to_copy")
def to_copy_op(input: Array, kind: Dtype, order: Any = preserve_format) -> Array:
    with np.errstate(all="ignore"):
        return duplicate(input, kind.numpy, order)


@to_copy_op.adjoint
def _(grad: Array, like: Meta) -> Array:
    return cast(grad, like.dtype)


@linear(node="CloneBackward0", name="_clone")
def clone_op(input: Array, order: Any = preserve_format) -> Array:
    return input.copy() if order is preserve_format and input.flags.c_contiguous else duplicate(input, input.dtype, order)


@clone_op.adjoint
def _(grad: Array) -> Array:
    return grad


@linear(node="CopyBackwards", name="_copy")
def copy_op(input: Array, src: Array) -> Array:
    """`src` in the shape and dtype of `input`, whose values are not read."""
    with np.errstate(all="ignore"):
        return np.broadcast_to(src, input.shape).astype(input.dtype, order="C")


@copy_op.adjoint
def _(grad: Array, needs: tuple[bool, bool], like: tuple[Meta, Meta]) -> tuple[Array | None, Array | None]:
    first = np.zeros(like[0].shape, like[0].dtype) if needs[0] else None
    return first, cast(unbroadcast(grad, like[1].shape), like[1].dtype) if needs[1] else None


# ---------------------------------------------------------------- faces
def as_dtype(function: str, kind: Any) -> Dtype:
    """A dtype argument; TypeError for what is none."""
    found: Dtype | None = (
        kind if isinstance(kind, Dtype) else _PYTHON_TYPES.get(kind) if isinstance(kind, type) else None
    )
    if found is None:
        raise TypeError(f"{function}(): argument 'dtype' must be jitgrad.dtype, not {type(kind).__name__}")
    return found


def convert(input: Tensor, kind: Dtype, copy: bool = False, order: Any = None) -> Tensor:
    """The tensor itself if it has that dtype and order in memory and no copy is asked for, else a copy; None keeps the order."""
    if order is not None:
        check_memory_format("to", order, input.ndim)
    if kind is input.meta.kind and not copy and (order is None or order is preserve_format or lies_in(input, order)):
        return input
    return to_copy_op(input, kind, preserve_format if order is None else order)


def lies_in(input: Tensor, order: Any) -> bool:
    """Whether the elements lie in memory in that order of the axes."""
    array = input.array.transpose(CHANNELS_LAST[order]) if order in CHANNELS_LAST else input.array
    return bool(array.flags.c_contiguous)


@composite(public=False)
def to(input: Tensor, *args: Any, **named: Any) -> Tensor:
    """In another dtype: `x.to(dtype)`, `x.to(other)`, `x.to(device, dtype)`; the tensor itself where nothing changes, unless `copy=True`.

    memory_format: the order of the axes in memory, by default that of the tensor.
    RuntimeError or AssertionError for a device other than the CPU.
    """
    copy = bool(named.pop("copy", args[3] if len(args) > 3 else False))
    kind, device = named.pop("dtype", None), named.pop("device", None)
    memory_format = named.pop("memory_format", None)
    named.pop("non_blocking", None)
    other = named.pop("other", None)
    if named:
        raise TypeError(f"to() got an unexpected keyword argument '{next(iter(named))}'")
    for place, argument in enumerate(args[:2]):
        if isinstance(argument, Dtype) or argument in _PYTHON_TYPES:
            kind, copy = argument, copy or (len(args) > place + 2 and bool(args[place + 2]))
        elif hasattr(argument, "meta"):
            other = argument
        elif argument is not None and not isinstance(argument, bool):
            device = argument
    check_device(device, "to")
    if other is not None:
        kind = other.meta.kind
    if kind is None and device is None and not copy and args and args[0] is None:
        return input
    return convert(input, input.meta.kind if kind is None else as_dtype("to", kind), copy, memory_format)


@composite(public=False)
def double(input: Tensor, memory_format: Any = None) -> Tensor:
    """In float64."""
    return convert(input, float64, order=memory_format)


@composite(public=False)
def float_(input: Tensor, memory_format: Any = None) -> Tensor:
    """In float32."""
    return convert(input, float32, order=memory_format)


@composite(public=False)
def half(input: Tensor, memory_format: Any = None) -> Tensor:
    """In float16."""
    return convert(input, float16, order=memory_format)


@composite(public=False)
def long(input: Tensor, memory_format: Any = None) -> Tensor:
    """In int64."""
    return convert(input, int64, order=memory_format)


@composite(public=False)
def int_(input: Tensor, memory_format: Any = None) -> Tensor:
    """In int32."""
    return convert(input, int32, order=memory_format)


@composite(public=False)
def short(input: Tensor, memory_format: Any = None) -> Tensor:
    """In int16."""
    return convert(input, int16, order=memory_format)


@composite(public=False)
def char(input: Tensor, memory_format: Any = None) -> Tensor:
    """In int8."""
    return convert(input, int8, order=memory_format)


@composite(public=False)
def byte(input: Tensor, memory_format: Any = None) -> Tensor:
    """In uint8."""
    return convert(input, uint8, order=memory_format)


@composite(public=False)
def bool_(input: Tensor, memory_format: Any = None) -> Tensor:
    """In bool: whether each element is not zero."""
    return convert(input, boolean, order=memory_format)


@composite(public=False)
def type_(input: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The name of the tensor's type, as torch spells it; with a dtype, such a name or class (`FloatTensor`), `input.to(dtype)`."""
    dtype = getattr(dtype, "tensor_dtype", dtype)
    if dtype is None:
        return TENSOR_TYPE_NAME[input.meta.kind]
    if isinstance(dtype, str):
        if dtype not in FROM_TENSOR_TYPE_NAME:
            raise ValueError(f"invalid type: '{dtype}'")
        return convert(input, FROM_TENSOR_TYPE_NAME[dtype])
    return convert(input, as_dtype("type", dtype))


@composite(public=False)
def type_as(input: Tensor, other: Tensor) -> Tensor:
    """`input.to(other.dtype)`."""
    return convert(input, other.meta.kind)


@composite
def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy, whose axes lie in memory as the tensor's do unless another order is asked for; gradients flow through it."""
    if memory_format is None:
        return clone_op(input, preserve_format)
    check_memory_format("clone", memory_format, input.ndim)
    return clone_op(input, memory_format)


@composite(public=False)
def contiguous(input: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor itself if its elements lie in row-major order, or in the order asked for, else a copy."""
    if memory_format is None or memory_format is contiguous_format:
        return input if input.array.flags.c_contiguous else clone_op(input, contiguous_format)
    check_memory_format("contiguous", memory_format, input.ndim)
    if memory_format is preserve_format and not input.array.flags.c_contiguous:
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
    return input if lies_in(input, memory_format) else clone_op(input, memory_format)


def copied(input: Tensor, src: Tensor) -> Tensor:
    """What `input.copy_(src)` writes. RuntimeError if `src` doesn't broadcast to `input`."""
    check_copied(input, src)
    return copy_op(input, src)


def check_copied(input: Tensor, src: Tensor) -> None:
    """RuntimeError if `src` doesn't broadcast to `input`."""
    if src.meta.shape != input.meta.shape:
        check_broadcastable(input.meta.shape, src.meta.shape)
