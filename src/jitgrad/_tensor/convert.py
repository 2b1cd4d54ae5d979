"""From what a user hands over - numbers, nested lists, NumPy arrays, tensors - to an array a tensor may hold."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from .._core.dtypes import bool_, default_dtype, dtype as Dtype, float64, from_numpy, int64, promote, scalar_dtype
from .._core.errors import argument_error
from .._core.late import LateModule
from .._engine import modes
from .base import TensorBase

if TYPE_CHECKING:
    from . import index_items
else:
    index_items = LateModule("jitgrad._tensor.index_items")

Array = np.ndarray[Any, Any]

PYTHON_DTYPES: Final[dict[Any, Dtype]] = {float: float64, int: int64, bool: bool_}
NUMBER_TYPES: Final = (int, float, bool, np.number, np.bool_)
_NEGATIVE: Final = (
    "At least one stride in the given numpy array is negative, and tensors with negative strides are not currently supported. "
    "(You can probably work around this by making a copy of your array  with array.copy().) "
)
_BYTE_ORDER: Final = (
    "given numpy array has byte order different from the native byte order. "
    "Conversion between byte orders is currently not supported."
)
_STRIDES: Final = (
    "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate the memory."
)
_READ_ONLY: Final = (
    "The given NumPy array is not writable, and tensors can't know that: writing to this tensor raises or is undefined. "
    "You may want to copy the array to protect its data or make it writable before converting it to a tensor."
)


# ---------------------------------------------------------------- arguments
def dtype_argument(function: str, dtype: Any, argument: str = "dtype") -> Dtype | None:
    """A `dtype=` argument: None, a dtype, or Python's float, int or bool. TypeError for anything else."""
    if dtype is None or isinstance(dtype, Dtype):
        return dtype
    found = PYTHON_DTYPES.get(dtype) if isinstance(dtype, type) else None
    if found is None:
        raise TypeError(f"{function}(): argument '{argument}' must be jitgrad.dtype, not {type(dtype).__name__}")
    return found


# ---------------------------------------------------------------- arrays
def check_shareable(array: Any) -> Array:
    """An ndarray whose memory a tensor may use as it is. TypeError or ValueError in torch's words."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    kind = from_numpy(array.dtype)
    if not array.dtype.isnative:
        raise ValueError(_BYTE_ORDER)
    for step in array.strides:
        if step < 0:
            raise ValueError(_NEGATIVE)
    if array.flags.carray and type(array) is np.ndarray and array.dtype is kind.numpy:  # the common case
        return array
    if not array.flags.aligned or any(step % kind.itemsize for step in array.strides):
        raise ValueError(_STRIDES)
    if not array.flags.writeable:
        warnings.warn(_READ_ONLY, UserWarning, stacklevel=3)
    plain = array if type(array) is np.ndarray else array.view(np.ndarray)
    return plain if plain.dtype is kind.numpy else plain.view(kind.numpy)


def own_array(array: Array, dtype: Dtype | None) -> Array:
    """A native, aligned, C-contiguous copy of an array of any layout and byte order. TypeError for dtypes tensors can't hold."""
    kind = from_numpy(array.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.array(array, (dtype or kind).numpy, order="C", copy=True, subok=False)


def data_array(data: Any, dtype: Dtype | None = None) -> Array:
    """A fresh array of `data`: a number, nested sequences of numbers, an ndarray, a tensor, or what NumPy takes for an array.

    Without `dtype` it follows torch's inference. TypeError, ValueError or RuntimeError in torch's words for what is no array.
    """
    if isinstance(data, TensorBase):
        return own_array(data.array, dtype)
    if isinstance(data, np.ndarray):
        return own_array(data, dtype)
    if isinstance(data, np.generic):
        return own_array(np.asarray(data), dtype)
    if isinstance(data, NUMBER_TYPES):
        return _fill(_number_array(data), dtype or scalar_dtype(data))
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    if hasattr(data, "__array__") or hasattr(data, "__array_interface__"):
        return own_array(np.asarray(data), dtype)
    if hasattr(data, "__len__") and hasattr(data, "__getitem__") and not isinstance(data, (dict, set)):
        return _from_sequence(data, dtype)
    raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")


def _number_array(number: Any) -> Array:
    """A Python number as an array. ValueError for an integer beyond 64 bits."""
    if isinstance(number, int) and not -(2**63) <= number < 2**63:
        raise ValueError("Overflow when unpacking long long")
    return np.asarray(number)


def _fill(array: Array, kind: Dtype) -> Array:
    """Python numbers, brought to an array, cast as torch does: truncating, wrapping negatives for unsigned, RuntimeError beyond."""
    if array.dtype is kind.numpy:
        return array if array.flags.owndata else array.copy()
    check_fits(array, kind, kind.name)
    with np.errstate(over="ignore", invalid="ignore"):
        return array.astype(kind.numpy, order="C")


def check_fits(array: Array, kind: Dtype, name: str) -> None:
    """RuntimeError if a number is out of range for an integer dtype (negative ones may wrap to an unsigned one)."""
    if kind.kind != "i" or array.size == 0:
        return
    limits = np.iinfo(kind.numpy)
    low = limits.min if limits.min < 0 else -limits.max
    with np.errstate(invalid="ignore"):
        least, most = array.min(), array.max()
    if not (least >= low and most <= limits.max):
        raise RuntimeError(f"value cannot be converted to type {name} without overflow")


# ---------------------------------------------------------------- nested sequences
def _from_sequence(data: Sequence[Any], dtype: Dtype | None) -> Array:
    """Nested sequences, all of one length per level, of numbers, tensors of one element, or arrays."""
    leaves = _leaves(data)
    types = set(map(type, leaves))
    if not all(kind in _PLAIN or issubclass(kind, NUMBER_TYPES) for kind in types):
        kinds = _odd_kinds(leaves)
        data = _plain(data)
    else:
        kinds = [_kind_of(kind) for kind in types]
    try:
        array = np.array(data)
    except ValueError:
        index_items.raise_ragged(_as_lists(data))
    except OverflowError:
        raise ValueError("Overflow when unpacking long long") from None
    if array.dtype.kind not in "biuf":
        if array.dtype.kind == "O" and any(isinstance(item, int) for item in array.flat):
            raise ValueError("Overflow when unpacking long long")
        raise TypeError(f"can't convert np.ndarray of type numpy.{array.dtype.type.__name__}.")
    if array.dtype == np.uint64 and not _only(types, np.uint64):
        raise ValueError("Overflow when unpacking long long")
    return (
        np.ascontiguousarray(_fill(array, dtype or promoted(kinds)))
        if array.ndim
        else _fill(array, dtype or promoted(kinds))
    )


_PLAIN: Final = frozenset((int, float, bool))


def _only(types: Iterable[type], kind: type) -> bool:
    return all(issubclass(each, kind) for each in types)


def _leaves(data: Any) -> list[Any]:
    """The innermost items of nested lists (as deep as the first item goes)."""
    level = list(data)
    while level and isinstance(level[0], (list, tuple, range)):
        nested = [item for item in level if isinstance(item, (list, tuple, range))]
        if len(nested) != len(level):
            index_items.raise_ragged(_as_lists(level))
        level = list(itertools.chain.from_iterable(nested))
    return level


def _kind_of(kind: type) -> Dtype:
    """The dtype a Python or NumPy number type counts as."""
    if issubclass(kind, np.generic):
        return from_numpy(np.dtype(kind))
    return bool_ if issubclass(kind, bool) else int64 if issubclass(kind, int) else default_dtype()


def _odd_kinds(leaves: list[Any]) -> list[Dtype]:
    """The dtypes among leaves that are not all numbers. Raises as torch for what can't be an element."""
    kinds: list[Dtype] = []
    for leaf in leaves:
        if isinstance(leaf, TensorBase):
            if leaf.meta.numel != 1:
                raise ValueError("only one element tensors can be converted to Python scalars")
            kinds.append(leaf.meta.kind)
        elif isinstance(leaf, np.ndarray):
            kinds.append(from_numpy(leaf.dtype))
        elif isinstance(leaf, NUMBER_TYPES):
            kinds.append(_kind_of(type(leaf)))
        elif isinstance(leaf, (str, bytes)):
            raise ValueError(f"too many dimensions '{type(leaf).__name__}'")
        elif hasattr(leaf, "__array__"):
            kinds.append(from_numpy(np.asarray(leaf).dtype))
        elif isinstance(leaf, (list, tuple)):
            raise TypeError(f"'{type(leaf).__name__}' object cannot be interpreted as an integer")
        else:
            raise RuntimeError(f"Could not infer dtype of {type(leaf).__name__}")
    return kinds


def _plain(data: Any) -> Any:
    """Nested lists with the tensors in them replaced by their numbers and arrays by lists."""
    if isinstance(data, TensorBase):
        return data.array.item()
    if isinstance(data, (list, tuple, range)):
        return [_plain(item) for item in data]
    return np.asarray(data).tolist() if hasattr(data, "__array__") else data


def _as_lists(data: Any) -> Any:
    return [_as_lists(item) for item in data] if isinstance(data, (list, tuple, range)) else data


def promoted(kinds: Iterable[Dtype]) -> Dtype:
    """What all these dtypes promote to; the default floating type if there are none."""
    found: Dtype | None = None
    for kind in kinds:
        found = kind if found is None else promote(found, kind)
    return found or default_dtype()


def number_argument(function: str, argument: str, position: int, value: Any) -> Any:
    """A Python number, also out of a tensor of one element. TypeError for anything else."""
    if isinstance(value, NUMBER_TYPES):
        return value
    if isinstance(value, TensorBase) and not value.meta.shape:
        if modes.SPECIAL and modes.LOCAL.tracer is not None:
            modes.LOCAL.tracer.observed(value, f"{argument} of {function}()")
        return value.array.item()
    raise argument_error(function, argument, position, "Number", value)
