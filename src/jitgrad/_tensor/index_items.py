"""What may stand inside `x[...]`, one entry at a time: brought to an int, slice, None, `...`, bool or index array.

Where torch truncates floating indices of a list or an array, IndexError is raised.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Sequence
from typing import Any, Final, NoReturn

import numpy as np

Array = np.ndarray[Any, Any]

_BAD_TENSOR: Final = "tensors used as indices must be long, int, byte or bool tensors"


def tensor_array(entry: Any) -> Array | None:
    """The array behind a tensor, None for anything else."""
    array = getattr(entry, "array", None)
    return array if isinstance(array, np.ndarray) else None


def _is_nesting(entry: Any) -> bool:
    """Whether an entry makes the list it is in stand for several indices (torch's old rule)."""
    if entry is None or entry is Ellipsis or isinstance(entry, (slice, np.ndarray, Sequence)):
        return True
    return tensor_array(entry) is not None


def as_tuple(index: Any) -> tuple[Any, ...]:
    """The indices in `index`: a tuple is several, and so, with a warning, is a short list of more than numbers."""
    if isinstance(index, tuple):
        return index
    if isinstance(index, list) and len(index) < 32 and any(map(_is_nesting, index)):
        warnings.warn(
            "Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in pytorch 2.9; use x[tuple(seq)] "
            "instead of x[seq], or x[torch.tensor(seq)] if the sequence is meant as one index",
            UserWarning,
            stacklevel=4,
        )
        return tuple(index)
    return (index,)


def as_item(entry: Any) -> Any:
    """One index as int, slice, None, Ellipsis, bool, or an int64 or bool array with at least one dimension."""
    if entry is None or entry is Ellipsis or isinstance(entry, (bool, int, slice)):
        return entry
    array = tensor_array(entry)
    if array is not None:
        return _from_tensor(array)
    if isinstance(entry, np.ndarray):
        return _from_array(entry)
    if isinstance(entry, np.bool_):
        return bool(entry)
    if isinstance(entry, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(entry).__name__}'")
    if isinstance(entry, Sequence):
        return _from_array(_sequence_array(entry))
    if hasattr(entry, "__index__"):
        return operator.index(entry)
    raise IndexError(
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
        f"(got {type(entry).__name__})"
    )


def _from_tensor(array: Array) -> Any:
    """A tensor as an index: 0-dim ones count as an int or a bool. IndexError for types torch does not take."""
    if array.dtype.kind not in "iub":
        raise IndexError(_BAD_TENSOR)
    if array.ndim and array.dtype.kind == "i" and array.dtype.itemsize < 4:
        raise IndexError(_BAD_TENSOR)
    return _from_array(array)


def _from_array(array: Array) -> Any:
    """An integer or bool array as an index; uint8 means a mask. IndexError for floats, unless there are none."""
    kind = array.dtype.kind
    if array.size == 0 and kind == "f":
        array, kind = array.astype(np.int64), "i"
    if kind == "b" or array.dtype == np.uint8:
        if array.ndim == 0:
            return bool(array)
        if kind != "b":
            warnings.warn(
                "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.",
                UserWarning,
                stacklevel=4,
            )
        return array.astype(np.bool_, copy=False)
    if kind not in "iu":
        raise IndexError(_BAD_TENSOR)
    return int(array) if array.ndim == 0 else array.astype(np.int64, copy=False)


def _plain(entry: Any) -> Any:
    """A nested sequence with the tensors in it replaced by numbers. TypeError for one with several elements."""
    array = tensor_array(entry)
    if array is not None:
        if array.size != 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return array.item()
    if isinstance(entry, Sequence) and not isinstance(entry, (str, bytes, range)):
        return [_plain(item) for item in entry]
    return entry


def _sequence_array(entry: Sequence[Any]) -> Array:
    """A nested sequence of numbers as one array. ValueError if it is ragged, else TypeError or RuntimeError."""
    nested = _plain(entry)
    try:
        array = np.array(nested)
    except ValueError:
        raise_ragged(nested)
    except OverflowError:
        array = np.array(nested, dtype=object)
    if array.dtype.kind == "O" and any(isinstance(item, int) for item in array.flat):
        raise ValueError("Overflow when unpacking long long")
    if array.dtype.kind not in "biuf":
        bad = next((item for item in array.flat if not isinstance(item, (bool, int, float))), entry)
        if isinstance(bad, (str, bytes)):
            raise TypeError("new(): invalid data type 'str'")
        raise RuntimeError(f"Could not infer dtype of {type(bad).__name__}")
    return array


def raise_ragged(nested: Any, dim: int = 0) -> NoReturn:
    """ValueError or TypeError in torch's words for nested lists of unequal lengths."""
    lengths = [len(item) if isinstance(item, (list, np.ndarray)) else None for item in nested]
    for length in lengths:
        if length is None and lengths[0] is not None:
            raise TypeError("not a sequence")
        if lengths[0] is None and length is not None:
            raise TypeError("'list' object cannot be interpreted as an integer")
        if length != lengths[0]:
            raise ValueError(f"expected sequence of length {lengths[0]} at dim {dim + 1} (got {length})")
    inner = [item for part in nested if isinstance(part, (list, np.ndarray)) for item in part]
    if not inner:
        raise ValueError("expected sequences of equal lengths")
    raise_ragged(inner, dim + 1)
