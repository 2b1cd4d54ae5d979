"""Devices, layouts and memory formats: names that programs pass around, and memory as they ask for it. All tensors are dense and on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NoReturn

import numpy as np

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]

_TYPES: Final = (
    "cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia", "xla", "lazy", "vulkan", "mps", "meta",
    "hpu", "mtia", "privateuseone",
)  # fmt: skip
_SIGNATURES: Final = ", but expected one of:\n * (torch.device device)\n * (str type, int index = -1)\n"


class device:
    """A kind of device and, where there are several, its number: `device("cpu")`, `device("cuda:1")`, `device("cuda", 1)`.

    Any name torch knows can be made; only "cpu" can hold tensors. RuntimeError for an unknown or malformed name.

    >>> device("cpu:0").index
    0
    """

    __slots__ = ("index", "type")
    __module__ = "jitgrad"
    type: str
    index: int | None

    def __new__(cls, *args: Any, **named: Any) -> device:
        given = dict(zip(("type", "index"), args, strict=False)) | named
        first = given.pop("device", None) if "type" not in given else given.pop("type")
        if isinstance(first, device) and not given:
            return first
        if isinstance(first, int) and not isinstance(first, bool) and not given:
            raise RuntimeError("Cannot access accelerator device when none is available.")
        if not isinstance(first, str) or set(given) - {"index"} or len(args) > 2:
            raise TypeError(
                f"device() received an invalid combination of arguments - got ({', '.join(type(x).__name__ for x in args)}){_SIGNATURES}"
            )
        kind, number = _parsed(first)
        index = given.get("index")
        if index is not None:
            if number is not None:
                raise RuntimeError(
                    f"type (string) must not include an index because index was passed explicitly: {first}"
                )
            if index < 0:
                raise RuntimeError("Device index must not be negative")
            number = int(index)
        made = object.__new__(cls)
        object.__setattr__(made, "type", kind)
        object.__setattr__(made, "index", number)
        return made

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"attribute '{name}' of 'jitgrad.device' objects is not writable")

    def __repr__(self) -> str:
        return f"device(type='{self.type}'" + (")" if self.index is None else f", index={self.index})")

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __enter__(self) -> device:
        check_device(self, "empty")
        return self

    def __exit__(self, *exception: object) -> None:
        """New tensors are on the CPU before, inside and after."""

    def __reduce__(self) -> tuple[Any, ...]:
        return device, (str(self),)


def _parsed(name: str) -> tuple[str, int | None]:
    """Type and number out of "cuda:1". RuntimeError in torch's words for a malformed or unknown name."""
    if not name:
        raise RuntimeError("Device string must not be empty")
    kind, colon, number = name.partition(":")
    if not kind.replace("_", "").isalpha() or (colon and not (number.isdecimal() and str(int(number)) == number)):
        raise RuntimeError(f"Invalid device string: '{name}'")
    if kind not in _TYPES:
        raise RuntimeError(f"Expected one of {', '.join(_TYPES)} device type at start of device string: {kind}")
    return kind, int(number) if colon else None


CPU: Final = device("cpu")


def check_device(where: Any, function: str = "empty") -> None:
    """Accept None and whatever means the CPU.

    AssertionError, RuntimeError or NotImplementedError that names the device for all others, TypeError for what is no device.
    """
    if where is None or where is CPU or where == "cpu":
        return
    if isinstance(where, bool) or not isinstance(where, (str, int, device)):
        kind = getattr(where, "type", None)  # another library's device
        if not isinstance(kind, str):
            raise TypeError(f"{function}(): argument 'device' must be torch.device, not {type(where).__name__}")
        where = kind
    kind = device(where).type
    if kind in ("cuda", "xpu"):
        raise AssertionError(f"Torch not compiled with {kind.upper()} enabled")
    if kind != "cpu":
        raise NotImplementedError(
            f"Could not run 'aten::{function}' with arguments from the '{kind}' backend: all tensors are on the CPU."
        )


# ---------------------------------------------------------------- how elements lie in memory
class Word:
    """One of a closed set of names, such as a layout; compared by identity."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _word, (self.name,)


class layout(Word):
    """How a tensor stores its elements: always `strided`."""

    __slots__ = ()
    __module__ = "jitgrad"


class memory_format(Word):
    """The order of the axes in memory that a copy is asked for."""

    __slots__ = ()
    __module__ = "jitgrad"


strided, sparse_coo = layout("strided"), layout("sparse_coo")
contiguous_format, preserve_format = memory_format("contiguous_format"), memory_format("preserve_format")
channels_last, channels_last_3d = memory_format("channels_last"), memory_format("channels_last_3d")
WORDS: Final = {
    word.name: word
    for word in (strided, sparse_coo, contiguous_format, preserve_format, channels_last, channels_last_3d)
}


def _word(name: str) -> Word:
    """The one word of that name (what a pickle holds)."""
    return WORDS[name]


def check_layout(wanted: Any, function: str = "empty") -> None:
    """Accept None and `strided`; RuntimeError or TypeError for the rest."""
    if wanted is not None and wanted is not strided:
        if not isinstance(wanted, layout):
            raise TypeError(f"{function}(): argument 'layout' must be torch.layout, not {type(wanted).__name__}")
        raise RuntimeError(f"layout {wanted} is not implemented: all tensors are dense")


def check_memory_format(function: str, wanted: Any, rank: int) -> None:
    """Accept None and the formats that a tensor of that rank can have; TypeError or RuntimeError for the rest.

    rank: of the tensor, negative if it isn't known yet.
    """
    if wanted is None or wanted is contiguous_format or wanted is preserve_format:
        return
    if not isinstance(wanted, memory_format):
        raise TypeError(f"{function}(): argument 'memory_format' must be torch.memory_format, not {type(wanted).__name__}")
    if rank >= 0 and rank != (4 if wanted is channels_last else 5):
        raise RuntimeError(f"required rank {4 if wanted is channels_last else 5} tensor to use {wanted.name} format")


def check_pinned(pin_memory: Any) -> None:
    """Accept false; RuntimeError in torch's words where memory is to be pinned for an accelerator."""
    if pin_memory:
        raise RuntimeError(
            "pin_memory=True requires a CUDA or other accelerator backend; no pinned memory allocator is available on this system."
        )


def check_place(function: str, where: Any, wanted: Any, pinned: Any, order: Any = None, rank: int = -1) -> None:
    """Accept what leaves a new tensor dense and on the CPU; errors in torch's words that name the rest."""
    if where is not None:
        check_device(where, function)
    if wanted is not None:
        check_layout(wanted, function)
    if pinned:
        check_pinned(pinned)
    if order is not None and order is not contiguous_format and order is not preserve_format:
        check_memory_format(function, order, rank)


# ---------------------------------------------------------------- memory in an order of the axes
CHANNELS_LAST: Final = {channels_last: (0, 2, 3, 1), channels_last_3d: (0, 2, 3, 4, 1)}


def memory_order(shape: Shape, strides: Shape) -> Shape:
    """The axes from the outermost to the innermost in memory.

    An axis without a step (an expanded one) stays where it is among its neighbours, and of two with the same step the longer is the outer
    one, as torch has it.
    """
    axes = list(range(len(shape)))  # an insertion sort from the innermost axis on; ties and steps of zero end no comparison
    for place in range(len(axes) - 2, -1, -1):
        k = place
        for other in range(place + 1, len(axes)):
            outer, inner = axes[k], axes[other]
            a, b = strides[outer], strides[inner]
            if a == 0 or b == 0 or (a == b and shape[outer] >= shape[inner]):
                continue
            if a > b:
                break
            axes[k], axes[other] = inner, outer
            k = other
    return tuple(axes)


def in_order(shape: Shape, dtype: np.dtype[Any], axes: Shape, new: Callable[..., Array] = np.empty) -> Array:
    """New memory whose axes lie in the order `axes`, outermost first; `new` is NumPy's `empty`, `zeros` or `ones`."""
    return new(tuple([shape[axis] for axis in axes]), dtype).transpose(np.argsort(axes))


def blank(shape: Shape, dtype: np.dtype[Any], order: Any = None, new: Callable[..., Array] = np.empty) -> Array:
    """New memory, row by row or in a format of images."""
    axes = CHANNELS_LAST.get(order)
    return new(shape, dtype) if axes is None else in_order(shape, dtype, axes, new)


def blank_like(array: Array, dtype: np.dtype[Any], order: Any = None, new: Callable[..., Array] = np.empty) -> Array:
    """New memory in the shape of an array; by default its axes lie in memory as the array's do, without gaps."""
    if order is not None and order is not preserve_format:
        return blank(array.shape, dtype, order, new)
    if array.flags.c_contiguous:
        return new(array.shape, dtype)
    if 0 in array.strides:  # NumPy takes an expanded axis for the innermost
        return in_order(array.shape, dtype, memory_order(array.shape, array.strides), new)
    made = np.empty_like(array, dtype, "K", False)
    if new is not np.empty:
        made.fill(new is np.ones)
    return made


def format_of(array: Array) -> Any:
    """The memory format that an array lies in: one of images, or row by row."""
    for order, axes in CHANNELS_LAST.items():
        if array.ndim == len(axes) and not array.flags.c_contiguous and array.transpose(axes).flags.c_contiguous:
            return order
    return contiguous_format


def duplicate(array: Array, dtype: np.dtype[Any], order: Any = preserve_format) -> Array:
    """A copy of an array in a dtype and an order of the axes."""
    if order is contiguous_format:
        return array.astype(dtype, "C")
    if order is preserve_format and (0 not in array.strides or array.flags.c_contiguous):
        return array.astype(dtype, "K")
    made = blank_like(array, dtype, order)
    made[...] = array
    return made
