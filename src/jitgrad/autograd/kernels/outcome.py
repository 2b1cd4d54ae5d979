"""From what a kernel returned to arrays that the library may keep: shape, dtype, order and memory of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ..._core.errors import KernelError
from ..._kernels.reasons import definition
from ..._kernels.user import Compiled, Given

Array = np.ndarray[Any, Any]
SUPPORTED: Final = frozenset("?bhilqBfd")  # dtypes a tensor can have; float16 is not for kernels


def as_tuple(compiled: Compiled, result: Any) -> tuple[Any, ...]:
    """The values that a kernel returned."""
    if compiled.gives is None:
        return result if isinstance(result, tuple) else () if result is None else (result,)
    if compiled.several:
        return tuple(result)
    return () if compiled.gives[0].kind == "none" else (result,)


def given_of(value: Any) -> Given:
    """What is known of a value that plain Python returned: nothing but itself."""
    if isinstance(value, np.ndarray):
        return Given("array", value.dtype, value.ndim)
    if isinstance(value, (bool, int, float, np.number, np.bool_)):
        return Given("number", np.asarray(value).dtype)
    return Given("none") if value is None else Given(type(value).__name__)


def gives_of(compiled: Compiled, values: Sequence[Any]) -> tuple[Given, ...]:
    """What is known of the values that a kernel returned."""
    if compiled.gives is None:
        return tuple(given_of(value) for value in values)
    return compiled.gives if values else ()


def own(value: Array, given: Given, others: Sequence[Any]) -> Array:
    """A returned array in C order that shares memory with none of `others`."""
    if not given.ordered and not value.flags.c_contiguous:
        return np.ascontiguousarray(value)
    if given.fresh and value.flags.writeable:
        return value
    if (
        any(isinstance(other, np.ndarray) and np.may_share_memory(value, other) for other in others)
        or not value.flags.writeable
    ):
        return np.array(value, order="C", copy=True)
    return value


def apart(values: Sequence[Any]) -> list[Any]:
    """Values that compiled code returned together, every array fresh: copied where two are views of one allocation."""
    held = set()
    done: list[Any] = []
    for value in values:
        if type(value) is np.ndarray:
            start: Any = value.base.data  # type: ignore[union-attr]
            value = value.copy() if start in held else value
            held.add(start)
        done.append(value)
    return done


def separate(arrays: list[Any]) -> list[Any]:
    """Arrays returned together, copied where two of them share memory."""
    for place, array in enumerate(arrays):
        if isinstance(array, np.ndarray) and any(
            isinstance(one, np.ndarray) and np.may_share_memory(array, one) for one in arrays[:place]
        ):
            arrays[place] = array.copy()
    return arrays


def output_array(value: Any, given: Given, inputs: Sequence[Any], function: Any, place: int) -> Array:
    """An output as an array. KernelError for what can't be a tensor."""
    if given.kind == "number" and given.dtype is not None and given.dtype.char in SUPPORTED:
        return np.array(value, given.dtype)
    if given.kind != "array" or given.dtype is None or given.dtype.char not in SUPPORTED:
        what = given.kind if given.kind not in ("array", "number") else f"{given.dtype} {given.kind}"
        raise KernelError(
            f"{function.__name__} returned {'nothing' if what == 'none' else f'a value of type {what}'} as output {place}; an output is an array "
            f"or a number of type float32, float64, an integer or bool{definition(function)}"
        )
    return own(np.asarray(value), given, inputs)


def is_narrow(given: Given) -> bool:
    """Whether a value is a number of a dtype that Python's numbers don't have."""
    return given.kind == "number" and given.dtype is not None and given.dtype.char not in "dl?"


def number(value: Any, given: Given) -> Any:
    """A returned number as backward gets it: in its dtype."""
    return value if given.dtype is None or not is_narrow(given) else given.dtype.type(value)


def scratch(value: Any, given: Given, others: Sequence[Any]) -> Any:
    """A value kept for backward: an array of its own in C order, all else as it is."""
    if given.kind != "array":
        return number(value, given)
    return own(value, Given("array", given.dtype, given.ndim, False, given.ordered), others)


def gradient_array(
    value: Any, given: Given, meta: Any, name: str, function: Any, others: Sequence[Any]
) -> Array | None:
    """A gradient that backward returned, as an array. KernelError unless it has the shape and dtype of its input."""
    if given.kind == "none":
        return None
    if given.kind == "number" and not meta.shape:
        return np.array(value, meta.dtype)
    if given.kind != "array":
        wanted = f"an array of shape {list(meta.shape)} is expected"
        raise KernelError(
            f"{function.__name__} returned a value of type {given.kind if given.kind != 'number' else given.dtype} as the gradient of '{name}'; "
            f"{wanted}{definition(function)}"
        )
    if value.dtype != meta.dtype:
        raise KernelError(
            f"{function.__name__} returned a {value.dtype} gradient for '{name}', which is {meta.dtype}: make it with "
            f"np.empty_like({name}), or .astype({name}.dtype) (in Numba a number makes float32 into float64){definition(function)}"
        )
    if value.shape != meta.shape:
        raise KernelError(
            f"{function.__name__} returned a gradient of shape {list(value.shape)} for '{name}', which has shape {list(meta.shape)}"
            f"{definition(function)}"
        )
    return own(value, given, others)
