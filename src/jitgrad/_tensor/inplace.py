"""In-place ops: the out-of-place op on the old value, then one write, then the new history.

When the call is recorded the op sees a copy of the old value, so what it saves stays right; all checks run before the write.
"""

from __future__ import annotations

import functools
import warnings
import weakref
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from .._core.dtypes import check_can_cast
from .._engine import modes, versions
from .._engine.hooks import move_retained
from .._engine.node import LEAF
from .._engine.versions import Version
from .._expr import const
from .._ops.derived import Map
from .._ops.kinds import ONE_OP, camel
from .._ops.maps import Elementwise
from .._ops.outputs import IN_DTYPE_OF_OUT, check_kind
from .base import INFERENCE_WRITE, ODD, TensorBase, settle, version_of, wrap
from .elementwise import record_map, write_into
from .nodes import node_class
from .views import creation_refusal, edge_of, rebase

Function = Callable[..., Any]
# What is written is the same in all places, so they may be one; or nothing is written, but to the tensor's shape.
ALL_ALIKE: Final = frozenset(
    ("as_strided_", "fill_", "set_", "squeeze_", "swapaxes_", "swapdims_", "t_", "transpose_", "unsqueeze_", "zero_")
)


FILLS: Final = frozenset(("fill_", "index_fill_", "masked_fill_"))  # read the one value before they write it


def check_writable(tensor: Any, name: str) -> None:
    """Refuse what must not be written to, in torch's words."""
    rare = tensor.rare
    if rare is not None:
        check_version(tensor)
    if modes.grad_enabled():
        check_history(tensor)
    if rare is not None and name not in ALL_ALIKE:
        check_not_expanded(tensor)
    if modes.SPECIAL and modes.LOCAL.before_write is not None:
        modes.LOCAL.before_write(tensor)


def check_history(tensor: Any) -> None:
    """RuntimeError for a leaf that takes gradients, a view of one, and a view whose history can't follow a write."""
    rare = tensor.rare
    if rare is not None and rare.base is not None and (rare.base.fn is not None or tensor.fn is not None):
        if rare.creation is not None:
            raise creation_refusal(tensor, "is being")
        if rare.base.fn is None or rare.base.fn.number == LEAF:  # None: the base was cut off its history, the view was not
            raise RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")
    fn = edge_of(tensor)
    if fn is not None and fn.number == LEAF:
        what = "a view of a leaf" if rare is not None and rare.base is not None else "a leaf"
        raise RuntimeError(f"{what} Variable that requires grad is being used in an in-place operation.")


def check_version(tensor: Any) -> None:
    """RuntimeError for an inference tensor outside of inference mode; what `.data` gave of one counts its writes, and may be written to."""
    if tensor.rare is not None and tensor.rare.inference is True and not modes.LOCAL.inference:
        raise RuntimeError(INFERENCE_WRITE)


def count_write(tensor: Any) -> None:
    """Count a write, where writes are counted."""
    if tensor.rare is None or tensor.rare.inference is not True:
        tensor._bump()


def check_not_expanded(tensor: Any) -> None:
    """RuntimeError where two elements share a place."""
    if overlaps(tensor.array):
        raise RuntimeError("unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
                           "Please clone() the tensor before performing the operation.")  # fmt: skip


def overlaps(array: np.ndarray[Any, Any]) -> bool:
    """Whether two elements share a place, as in an expanded array."""
    return array.size > 0 and any(step == 0 and n > 1 for n, step in zip(array.shape, array.strides, strict=True))


def partial_overlap(written: Any, read: Any) -> bool:
    """Whether an operand shares some, but not exactly the same, memory with what is written."""
    a, b = written.array, read.array
    if a is b or not np.may_share_memory(a, b):  # 0.2 us, and the answer for nearly all
        return False
    same = a.__array_interface__["data"][0] == b.__array_interface__["data"][0] and a.shape == b.shape and a.strides == b.strides
    return not same and np.shares_memory(a, b)


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
    if modes.SPECIAL and modes.LOCAL.tracer is not None:
        modes.LOCAL.tracer.same(copy, tensor)
    if modes.SPECIAL and modes.LOCAL.level is not None:
        modes.LOCAL.level.copied(copy, tensor)
    return copy


def inplace(function: Function, name: str, tensor: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """`tensor = function(tensor, ...)`, written into its memory; returns the tensor.

    Raises RuntimeError where torch does: a leaf that requires grad, overlapping memory, another shape or a dtype that can't be cast.
    """
    if type(function) is Elementwise:
        op: Any = function
        if write_into(op, (tensor, *args), tuple([named[key] for key in op.statics])):
            return tensor
    elif function in ONE_OP:
        if tensor.fn is not None and tensor.fn.number == LEAF:
            check_writable(tensor, name)  # refused before the arguments are looked at
        if write_into(*ONE_OP[function](tensor, *args, **named)):
            return tensor
    check_writable(tensor, name)
    others = [x for x in (*args, *named.values()) if isinstance(x, TensorBase)]
    for other in others:
        if other.meta.shape or name not in FILLS:
            check_overlap(tensor, other)
    record = modes.grad_enabled() and (edge_of(tensor) is not None or any(edge_of(x) is not None for x in others))
    if not record:
        store(tensor, function(tensor, *args, **named))
        return tensor
    if tensor.rare is not None and tensor.rare.creation is not None:
        raise creation_refusal(tensor, "is being")
    old = shadow(tensor)

    def operand(x: Any) -> Any:
        """An operand over the memory that is about to be written is read, and saved, as it was."""
        if x is tensor:
            return old
        return shadow(x) if isinstance(x, TensorBase) and x.vc is not None and x.vc is tensor.vc else x

    result = function(old, *[operand(x) for x in args], **{k: operand(x) for k, x in named.items()})
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
    if modes.SPECIAL and modes.LOCAL.tracer is not None:
        modes.LOCAL.tracer.written(tensor, result)
    if modes.SPECIAL and modes.LOCAL.level is not None:
        modes.LOCAL.level.stored(tensor, result)
    count_write(tensor)
    fn = result.fn
    if fn is None or not modes.grad_enabled() or not tensor.meta.kind.is_floating_point:
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
    fn.vc = counter = version_of(tensor)
    fn.epoch = versions.WRITES  # the write that made this value is not one that came after it
    rare, old = tensor.rare, tensor.fn
    if rare is not None and rare.base is not None:
        rebase(tensor, rare.base, fn, old)
        fn = rare.base.fn
    else:
        tensor.fn = fn
    counter.maker = weakref.ref(fn)
    if rare is not None and rare.retains is not None:
        move_retained(old, tensor.fn, rare.retains)


def renamed(node: Any) -> Any:
    """The node of a view op under the name torch has for its in-place twin."""
    kind = type(node)
    name = _INPLACE_NODES.get(kind.__name__)
    if name is not None:
        node.__class__ = node_class(name, kind.__bases__[0], node.op)
    return node


_INPLACE_NODES: Final = {
    "AsStridedBackward0": "AsStridedBackward1",
    "SqueezeBackward0": "SqueezeBackward3",
    "SqueezeBackward1": "SqueezeBackward4",
    "SqueezeBackward2": "SqueezeBackward5",
    "TBackward0": "TBackward1",
    "TransposeBackward0": "TransposeBackward1",
    "UnsqueezeBackward0": "UnsqueezeBackward1",
}


def inplace_view(function: Function, name: str, tensor: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Let a tensor become a view of itself (`t_`, `squeeze_`): another shape over the same memory."""
    check_writable(tensor, name)
    try:
        result = function(tensor, *args, **named)
    except RuntimeError as error:
        plain, words = f"{name.removesuffix('_')}()", str(error)
        if not words.startswith(plain):
            raise
        raise RuntimeError(f"{name}()" + words.removeprefix(plain)) from None  # what speaks of the op means the one in place
    if modes.SPECIAL and modes.LOCAL.level is not None:
        modes.LOCAL.level.became(tensor, result)
    tensor.array = result.array
    unrecorded = result.fn is None and tensor.fn is not None
    if result.fn is not None:
        tensor.fn = renamed(result.fn)
    settle(tensor)
    tensor._bump()
    if tensor.rare is not None and tensor.rare.base is not None and not (unrecorded and tensor.rare.creation is None):
        tensor.rare.seen = tensor.vc.count  # else the history is that of another shape, and made anew
    return tensor


# ---------------------------------------------------------------- out=
def write_out(name: str, function: Function, args: tuple[Any, ...], named: dict[str, Any], out: Any) -> Any:
    """`function(*args, **named)` written into `out`, a tensor or one per result, which is returned.

    A tensor of another shape is resized, with a warning unless it was empty. RuntimeError where gradients are taken, where the result can't be
    cast to its dtype, or where writing is refused; TypeError for what is no tensor.
    """
    targets = out if isinstance(out, (tuple, list)) else (out,)
    for target in targets:
        if not isinstance(target, TensorBase):
            raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(target).__name__}")
    inputs = [x for arg in (*args, *named.values()) for x in (arg if isinstance(arg, (tuple, list)) else (arg,)) if isinstance(x, TensorBase)]
    if modes.grad_enabled() and any(x.requires_grad for x in (*inputs, *targets)):
        raise RuntimeError(f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the arguments requires "
                           "grad.")  # fmt: skip
    if has_tangent(*inputs, *targets):
        raise NotImplementedError(f"Trying to use forward AD with {name}_out that does not support it because it is an out= function")
    if named.get("as_tuple"):
        raise RuntimeError(f"{name} does not support the out kwarg when as_tuple is True")
    if name in IN_DTYPE_OF_OUT and named.get("dtype") is None:
        named["dtype"] = targets[0].meta.kind
    result = function(*args, **named)
    results = result if isinstance(result, tuple) else (result,)
    if isinstance(result, tuple) is not isinstance(out, (tuple, list)) or len(results) != len(targets):
        raise TypeError(f"{name}(): argument 'out' must be {'tuple of Tensors' if isinstance(result, tuple) else 'Tensor'}, "
                        f"not {type(out).__name__}")  # fmt: skip
    for target, one in zip(targets, results, strict=True):
        check_writable(target, name)
        if target.meta.shape == one.meta.shape:
            for x in inputs:
                check_overlap(target, x)
        put_out(name, target, one)
    return out if not isinstance(result, tuple) else type(result)(targets) if type(result) is tuple else type(result)(*targets)


def has_tangent(*tensors: Any) -> bool:
    """Whether one of the tensors has a tangent at the innermost level of forward mode."""
    if not modes.SPECIAL or modes.LOCAL.level is None:
        return False
    return any(modes.LOCAL.level.of(x) is not None for x in tensors)


def put_out(name: str, target: Any, result: Any) -> None:
    """Write one result into a tensor that the caller gave."""
    check_kind(name, result.meta.kind, target.meta.kind)
    if target.meta.shape != result.meta.shape:
        if target.meta.numel:
            warnings.warn(f"An output with one or more elements was resized since it had shape {list(target.meta.shape)}, which does not match the "
                          f"required output shape {list(result.meta.shape)}. This behavior is deprecated, and in a future PyTorch release outputs "
                          "will not be resized unless they have zero elements. You can explicitly reuse an out tensor t by resizing it, inplace, to "
                          "zero elements with t.resize_(0).", UserWarning, stacklevel=4)  # fmt: skip
        target.resize_(result.meta.shape)
    target.copy_(result)
