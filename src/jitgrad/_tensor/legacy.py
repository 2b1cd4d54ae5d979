"""The old constructors: `Tensor(2, 3)`, `Tensor([1, 2])`, `x.new(...)`, and classes of one dtype such as `FloatTensor`."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .._core.devices import CPU, device as Device, layout as Layout, strided
from .._core.dtypes import (
    ALL_DTYPES,
    bool_,
    default_dtype,
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
from .._core.shapes import Size
from .._ops.checks import C_NAMES
from .._ops.views import alias_op
from .base import TensorBase
from .convert import data_array
from .creation import leaf, sizes

Tensor = Any

_SIGNATURES: Final = """, but expected one of:
 * (*, torch.device device = None)
 * (torch.Storage storage)
 * (Tensor other)
 * (tuple of ints size, *, torch.device device = None)
 * (object data, *, torch.device device = None)
"""
_OPTIONS: Final = (
    "TensorOptions(dtype={}, device=cpu, layout=Strided, requires_grad=false (default), pinned_memory=false (default), memory_format=(nullopt))"
)
_NO_SEQUENCE: Final = (bool, float, type(None), dict, set, frozenset)


def combination(args: tuple[Any, ...], named: dict[str, Any]) -> TypeError:
    """The error for arguments that fit no signature."""
    words = [type(x).__name__ for x in args] + [f"{name}={type(value).__name__}" for name, value in named.items()]
    return TypeError(f"new() received an invalid combination of arguments - got ({', '.join(words)}){_SIGNATURES}")


def legacy_tensor(args: tuple[Any, ...], named: dict[str, Any], kind: Dtype | None) -> Tensor:
    """What the old constructors make: of sizes uninitialised memory, of a sequence or array a copy, of a tensor a view of all of it.

    kind: the dtype; None for the default one, in which case a tensor may have any. TypeError or RuntimeError in torch's words.
    """
    if named:
        args, where = _positional(args, dict(named))
        if where is not None and Device(where).type != "cpu":
            raise RuntimeError(f"legacy constructor expects device type: cpu but device type: {Device(where).type} was passed")
    dtype = kind or default_dtype()
    if not args:
        return leaf(np.empty(0, dtype.numpy))
    first = args[0]
    if len(args) == 1 and not isinstance(first, (int, np.integer, Size)):
        return _of_object(first, dtype, kind is None)
    if isinstance(first, bool):
        return _of_object(first, dtype, False)
    return leaf(np.empty(_shape(args), dtype.numpy))


def _positional(args: tuple[Any, ...], named: dict[str, Any]) -> tuple[tuple[Any, ...], Any]:
    """The arguments with those given by name in their place, and the device."""
    given = dict(named)
    where = given.pop("device", None)
    if not args:
        for name in ("size", "data", "other"):
            if name in given:
                value = given.pop(name)
                args = (Size(value),) if name == "size" and not isinstance(value, int) else (value,)
    if given:
        raise combination(args, named)
    return args, where


def _shape(args: tuple[Any, ...]) -> tuple[int, ...]:
    """Sizes given one by one, or as a `Size`."""
    if len(args) == 1 and isinstance(args[0], Size):
        return sizes("new", args, {})
    if not isinstance(args[0], (int, np.integer)) and not (isinstance(args[0], TensorBase) and not args[0].meta.shape):
        raise combination(args, {})
    for place, size in enumerate(args, 1):
        if isinstance(size, TensorBase) and not size.meta.shape and not size.meta.kind.is_floating_point:
            continue
        if not isinstance(size, (int, np.integer)):
            raise TypeError(f"new(): argument 'size' failed to unpack the object at pos {place} with error \"type must be tuple of ints,but got "
                            f"{type(size).__name__}\"")  # fmt: skip
    return sizes("new", tuple(int(size) for size in args), {})


def _of_object(data: Any, dtype: Dtype, any_kind: bool) -> Tensor:
    """A copy of a sequence or array, or a view of a tensor or storage."""
    if isinstance(data, TensorBase):
        if data.meta.kind is not dtype and not any_kind:
            wanted, got = (_OPTIONS.format(C_NAMES[kind].replace("short int", "short")) for kind in (dtype, data.meta.kind))
            raise TypeError(f"expected {wanted} (got {got})")
        return alias_op(data)
    elements = getattr(data, "elements", None)
    if isinstance(elements, np.ndarray):  # a storage
        return leaf(elements.view(dtype.numpy))
    if isinstance(data, _NO_SEQUENCE):
        raise TypeError(f"new(): data must be a sequence (got {type(data).__name__})")
    return leaf(data_array(data, dtype))


# ---------------------------------------------------------------- classes of one dtype
class tensortype(type):
    """The class of `FloatTensor` and its like: tensors of that dtype are instances, and calling one makes such a tensor."""

    dtype: Dtype
    is_cuda = False
    layout: Layout = strided
    device = CPU

    def __instancecheck__(cls, other: Any) -> bool:
        return isinstance(other, TensorBase) and other.meta.kind is cls.dtype

    def __call__(cls, *args: Any, **named: Any) -> Any:
        return legacy_tensor(args, named, cls.dtype)

    def __repr__(cls) -> str:
        return f"<class 'torch.{cls.__name__}'>"


def _typed(kind: Dtype) -> Any:
    name = f"{kind.scalar_name}Tensor"
    doc = f"`{name}(2, 3)`, `{name}([1, 2])`: tensors of dtype {kind.name}, as programs once made them; see `legacy_tensor`."
    return tensortype(name, (), {"__module__": "jitgrad", "__doc__": doc, "dtype": kind, "tensor_dtype": kind})


FloatTensor, DoubleTensor, HalfTensor = _typed(float32), _typed(float64), _typed(float16)
LongTensor, IntTensor, ShortTensor, CharTensor = _typed(int64), _typed(int32), _typed(int16), _typed(int8)
ByteTensor, BoolTensor = _typed(uint8), _typed(bool_)
BY_DTYPE: Final = {kind.dtype: kind for kind in (FloatTensor, DoubleTensor, HalfTensor, LongTensor, IntTensor, ShortTensor, CharTensor, ByteTensor,
                                                 BoolTensor)}  # fmt: skip
assert set(BY_DTYPE) == set(ALL_DTYPES)
