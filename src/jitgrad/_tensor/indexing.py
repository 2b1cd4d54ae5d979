"""`x[index]` and `x[index] = value`: a chain of views, then one gather or scatter by index arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from .._core.errors import argument_error
from .._core.late import LateModule
from .._core.shapes import expand_shape
from .._engine import modes
from .._ops import indexing, places, views
from .base import ODD, TensorBase, wrap
from .convert import NUMBER_TYPES
from .creation import filled
from .inplace import check_history, check_not_expanded, check_overlap, check_writable, inplace, overlaps
from .views import edge_of

if TYPE_CHECKING:
    from . import index_parse
    from .index_parse import Plan
else:
    index_parse = LateModule("jitgrad._tensor.index_parse")

Key = tuple[np.ndarray[Any, Any] | None, ...]


def take(tensor: Any, index: Any) -> Any:
    """`tensor[index]`: a view for ints, slices, None and `...`; a copy where lists, tensors or masks are involved."""
    plan = index_parse.parse_index(tensor.meta.shape, index)
    key = key_of(plan)
    if modes.SPECIAL and modes.LOCAL.tracer is not None:
        modes.LOCAL.tracer.indexed(index, plan.view_shape, key)
    result = view_of(tensor, plan)
    return indexing.index_op(result, key) if plan.advanced else result


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


def key_of(plan: Plan) -> Key:
    """The index arrays as one static: bounds-checked copies that nobody writes to."""
    return tuple([entry if entry is None else np.array(entry) for entry in plan.advanced])


def assign(tensor: Any, index: Any, value: Any) -> None:
    """`tensor[index] = value`, in place; value is a tensor or a number, and broadcasts.

    Raises RuntimeError where it doesn't, or where writing is refused; TypeError for other values.
    """
    plan = index_parse.parse_index(tensor.meta.shape, index)
    if not plan.advanced and write_plainly(tensor, plan, value):
        return
    key = key_of(plan)
    if modes.SPECIAL and modes.LOCAL.tracer is not None:
        if is_mask(index, value):
            tensor.masked_fill_(index.reshape(index.meta.shape + (1,) * (tensor.ndim - index.ndim)), value)
            return
        modes.LOCAL.tracer.indexed(index, plan.view_shape, key)
    target = tensor if covers(plan, tensor.meta.shape) else view_of(tensor, plan)
    if not isinstance(value, TensorBase):
        value = number_tensor(tensor, value)
    if plan.advanced:
        if value.meta.numel == 1 and isinstance(index, TensorBase) and index.meta.dtype == np.bool_:
            value = value.to(tensor.meta.kind)
            value = value.clone() if np.may_share_memory(value.array, tensor.array) else value  # a fill, which reads the value first
        check_same_dtype(target, key, value)
        write_by_key(target, key, value, False)
        return
    if not value.meta.shape:
        check_not_expanded(target)
        target.fill_(value)
        return
    lead = value.ndim - len(plan.shape)
    if lead > 0 and all(n == 1 for n in value.meta.shape[:lead]):
        value = value.reshape(value.meta.shape[lead:])
    if value.meta.shape != plan.shape:
        expand_shape(value.meta.shape, plan.shape, value.type())
    target.copy_(value)


def write_plainly(tensor: Any, plan: Plan, value: Any) -> bool:
    """Write where nothing is recorded: a number, or a tensor of the same dtype and the right shape. Returns whether that was the case."""
    rare, meta = tensor.rare, tensor.meta
    if modes.SPECIAL or (rare is not None and (rare is not ODD or overlaps(tensor.array))):
        return False
    recording = modes.grad_enabled()
    if recording and tensor.fn is not None:
        return False
    if isinstance(value, TensorBase):
        if value.meta.dtype != meta.dtype or value.meta.shape != plan.shape or (recording and value.rare is not None):
            return False
        if (recording and value.fn is not None) or np.may_share_memory(tensor.array, value.array):
            return False
        tensor.array[plan.view] = value.array
    elif type(value) in _PYTHON_NUMBERS and meta.dtype.char in "fd" and -_LARGE < value < _LARGE:
        tensor.array[plan.view] = value
    else:
        return False
    tensor._bump()
    return True


_PYTHON_NUMBERS: Final = frozenset((int, float, bool))
_LARGE: Final = 3e38  # what float32 can hold


def is_mask(index: Any, value: Any) -> bool:
    """Whether one number goes to the places of a mask, which needs no list of places."""
    masked = isinstance(index, TensorBase) and index.meta.dtype == np.bool_ and index.ndim > 0
    return masked and (type(value) in _PYTHON_NUMBERS or (isinstance(value, TensorBase) and not value.meta.shape))


def write_by_key(target: Any, key: Key, values: Any, accumulate: bool) -> Any:
    """`target[key] = values`, or `+=`: in place, without a copy of the whole where nothing is recorded."""
    if target.rare is not None:
        check_writable(target, "index_put_")  # before its history is brought up to date, which may be refused in other words
    if modes.SPECIAL or (modes.grad_enabled() and (edge_of(target) is not None or edge_of(values) is not None)):
        return inplace(indexing.put_by_key, "index_put_", target, (key, values, accumulate), {})
    check_writable(target, "index_put_")
    shape = indexing.fitting_shape(target.meta.shape, key, values.meta.shape)
    check_overlap(target, values)
    array = values.array.reshape(shape)
    if not accumulate:
        target.array[places.numpy_key(key)] = array
    elif target.array.flags.c_contiguous:
        places.add_by_key(target.array, key, array)
    else:
        np.add.at(target.array, places.numpy_key(key), array)
    target._bump()
    return target


def covers(plan: Plan, shape: tuple[int, ...]) -> bool:
    """Whether the view part of an index is the tensor as it is."""
    if len(plan.steps) > 1:
        return False
    return (
        not plan.steps
        or plan.steps[0].kind == "alias"
        or (plan.steps[0].kind == "slice" and plan.steps[0][2:] == (0, shape[0], 1))
    )


def number_tensor(tensor: Any, value: Any) -> Any:
    """A number as a tensor without dimensions of another's dtype. TypeError for anything else, RuntimeError if it doesn't fit."""
    if not isinstance(value, NUMBER_TYPES):
        module = type(value).__module__
        name = type(value).__qualname__ if module == "builtins" else f"{module}.{type(value).__qualname__}"
        raise TypeError(f"can't assign a {name} to a {tensor.type()}")
    return wrap(filled("fill_", (), value, tensor.meta.kind))


def check_same_dtype(tensor: Any, key: Key, values: Any) -> None:
    """RuntimeError unless the dtypes agree; of the shapes, where these don't fit either."""
    if values.meta.kind is not tensor.meta.kind:
        indexing.fitting_shape(tensor.meta.shape, key, values.meta.shape)
        raise RuntimeError(f"Index put requires the source and destination dtypes match, got {tensor.meta.kind.scalar_name} for the destination and "
                           f"{values.meta.kind.scalar_name} for the source.")  # fmt: skip


def put_arguments(function: str, tensor: Any, indices: Any, values: Any) -> Key:
    """The key of `index_put`: a list or tuple of tensors, None for a whole axis. Raises as torch."""
    if not isinstance(indices, (tuple, list)):
        raise argument_error(function, "indices", 1, "tuple of Tensors", indices)
    if not isinstance(values, TensorBase):
        raise argument_error(function, "values", 2, "Tensor", values)
    entries = whole_axes(indices)
    if not entries:
        raise RuntimeError("at least one index must be provided")
    plan = index_parse.parse_index(tensor.meta.shape, entries)
    key = key_of(plan)
    check_same_dtype(tensor, key, values)
    if modes.SPECIAL and modes.LOCAL.tracer is not None:
        modes.LOCAL.tracer.indexed(entries, plan.view_shape, key)
    return key


def whole_axes(indices: Any) -> tuple[Any, ...]:
    """Index tensors as `x[...]` takes them: None stands for a whole axis."""
    return tuple([slice(None) if entry is None else entry for entry in indices])


def index(input: Any, indices: Any) -> Any:
    """`input[indices]` with a list of index tensors, None for a whole axis. IndexError if there is none."""
    if not any(entry is not None for entry in indices):
        raise IndexError("at least one index must be provided")
    return take(input, whole_axes(indices))


def index_put(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """`input` with `values` at the places given by index tensors, one per axis; added there with `accumulate`."""
    return indexing.put_by_key(input, put_arguments("index_put", input, indices, values), values, accumulate)


def index_put_(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """In-place `index_put`."""
    if isinstance(input, TensorBase) and modes.grad_enabled():
        check_history(input)  # a leaf is refused before the arguments are looked at
    key = put_arguments("index_put_", input, indices, values)
    return write_by_key(input, key, values, accumulate)
