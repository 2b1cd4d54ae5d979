"""In-place ops: the out-of-place op on the old value, then one write, then the new history.

When the call is recorded the op sees a copy of the old value, so what it saves stays right; all checks run before the write.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .._core.dtypes import check_can_cast
from .._engine import modes, versions
from .._engine.node import LEAF
from .._engine.versions import Version
from .._expr import const
from .._ops.kinds import camel
from .._ops.maps import Map
from .base import ODD, TensorBase, settle, version_of, wrap
from .invoke import record_map
from .views import creation_refusal, edge_of, rebase

Function = Callable[..., Any]


def check_writable(tensor: Any, name: str) -> None:
    """Refuse what must not be written to, in torch's words."""
    rare = tensor.rare
    if rare is not None:
        if rare.inference and not modes.LOCAL.inference:
            raise RuntimeError("Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a normal tensor "
                               "before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details.")  # fmt: skip
        if overlaps(tensor.array):
            raise RuntimeError("unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
                               "Please clone() the tensor before performing the operation.")  # fmt: skip
    if not modes.grad_enabled():
        return
    if rare is not None and rare.base is not None and rare.base.fn is not None:
        if rare.creation is not None:
            raise creation_refusal(tensor, "is being")
        if rare.base.fn.number == LEAF:
            raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")
    fn = edge_of(tensor)
    if fn is not None and fn.number == LEAF:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")


def overlaps(array: np.ndarray[Any, Any]) -> bool:
    """Whether two elements share a place, as in an expanded array."""
    return array.size > 0 and any(step == 0 and n > 1 for n, step in zip(array.shape, array.strides, strict=True))


def partial_overlap(written: Any, read: Any) -> bool:
    """Whether an operand shares some, but not exactly the same, memory with what is written."""
    a, b = written.array, read.array
    if a is b or a.size == 0 or b.size == 0:
        return False
    same = a.__array_interface__["data"][0] == b.__array_interface__["data"][0] and a.shape == b.shape and a.strides == b.strides
    return not same and np.shares_memory(a, b) if np.may_share_memory(a, b) else False


def check_overlap(written: Any, read: Any) -> None:
    """RuntimeError for an operand that shares part of the written memory."""
    if partial_overlap(written, read):
        raise RuntimeError("unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
                           "location. Please clone() the tensor before performing the operation.")  # fmt: skip


def shadow(tensor: Any) -> Any:
    """A copy of the value with the same history, for an op that is about to overwrite the original.

    Its counter is its own, and it is marked as unusual, so that what saves it does not watch the original by way of the edge.
    """
    copy = wrap(np.array(tensor.array, order="C", copy=True), edge_of(tensor))
    copy.vc, copy.rare = Version(), copy.rare or ODD
    return copy


def inplace(function: Function, name: str, tensor: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """`tensor = function(tensor, ...)`, written into its memory; returns the tensor.

    Raises RuntimeError where torch does: a leaf that requires grad, overlapping memory, another shape or a dtype that can't be cast.
    """
    check_writable(tensor, name)
    others = [x for x in (*args, *named.values()) if isinstance(x, TensorBase)]
    for other in others:
        check_overlap(tensor, other)
    record = modes.grad_enabled() and (edge_of(tensor) is not None or any(edge_of(x) is not None for x in others))
    if not record:
        store(tensor, function(tensor, *args, **named))
        return tensor
    if tensor.rare is not None and tensor.rare.creation is not None:
        raise creation_refusal(tensor, "is being")
    old = shadow(tensor)
    result = function(old, *(old if x is tensor else x for x in args), **{k: old if x is tensor else x for k, x in named.items()})
    store(tensor, constant_of(old, name, result) if result.fn is None and old.fn is not None else result)
    return tensor


def constant_of(old: Any, name: str, result: Any) -> Any:
    """A result that takes no gradient, such as a comparison's, over a tensor that does: its history ends in a gradient of zero."""
    written = wrap(result.array.astype(old.meta.dtype))
    record_map(zero_map(name), (old,), (old.array,), (), written)
    return written


@functools.cache
def zero_map(name: str) -> Map:
    """The history of an in-place op whose result depends on nothing."""
    return Map("constant", camel(name.rstrip("_")) + "Backward0", ("input",), (), const(0))


def store(tensor: Any, result: Any) -> None:
    """Write a result into a tensor and let its history go on from the result's."""
    check_result(tensor, result.array.shape, result.meta.kind)
    np.copyto(tensor.array, result.array, casting="unsafe")
    inference = tensor.rare is not None and tensor.rare.inference
    if not inference:
        tensor._bump()
    if not modes.grad_enabled():
        return
    fn = result.fn
    if fn is None:
        return
    if result.meta.dtype != tensor.meta.dtype:
        fn = result.to(tensor.meta.kind).fn
    adopt(tensor, fn)


def check_result(tensor: Any, shape: tuple[int, ...], kind: Any) -> None:
    """What is written must have the tensor's shape, and a dtype that it can hold."""
    if shape != tensor.array.shape:
        raise RuntimeError(f"output with shape {list(tensor.array.shape)} doesn't match the broadcast shape {list(shape)}")
    if kind is not tensor.meta.kind:
        check_can_cast(kind, tensor.meta.kind)


def adopt(tensor: Any, fn: Any) -> None:
    """Make a node the tensor's history; a view hands it on to its base."""
    fn.vc = version_of(tensor)
    fn.epoch = versions.WRITES  # the write that made this value is not one that came after it
    rare = tensor.rare
    if rare is not None and rare.base is not None:
        rebase(tensor, rare.base, fn)
    else:
        tensor.fn = fn


def inplace_view(function: Function, name: str, tensor: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Let a tensor become a view of itself (`t_`, `squeeze_`): another shape over the same memory."""
    check_writable(tensor, name)
    result = function(tensor, *args, **named)
    tensor.array = result.array
    if result.fn is not None:
        tensor.fn = result.fn
    settle(tensor)
    tensor._bump()
    if tensor.rare is not None and tensor.rare.base is not None:
        tensor.rare.seen = tensor.vc.count
    return tensor
