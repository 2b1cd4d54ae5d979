"""Element types: the `dtype` objects, promotion between them, the default floating type, `finfo` and `iinfo`.

Every dtype wraps one native NumPy dtype object. `dtype.numpy` is the canonical one, so two arrays that went through
`canonical` can be compared by `is`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NoReturn, cast

import numpy as np


class dtype:
    """An element type. Immutable, one object per type: compare with `is` or `==`.

    name: 'float32'. numpy: the native NumPy dtype. kind: 'b', 'i' or 'f'. scalar_name: 'Float', as messages say.
    """

    __slots__ = (
        "__weakref__", "_index", "is_complex", "is_floating_point", "is_signed", "itemsize", "kind", "name", "numpy",
        "scalar_name",
    )  # fmt: skip
    __module__ = "jitgrad"

    _index: int
    name: str
    numpy: np.dtype[Any]
    kind: str
    itemsize: int
    is_floating_point: bool
    is_complex: bool
    is_signed: bool
    scalar_name: str

    def __new__(cls, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError("cannot create 'jitgrad.dtype' instances")

    def __init_subclass__(cls) -> None:
        raise TypeError("type 'jitgrad.dtype' is not an acceptable base type")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"attribute '{name}' of 'jitgrad.dtype' objects is not writable")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"attribute '{name}' of 'jitgrad.dtype' objects is not writable")

    def __repr__(self) -> str:
        return f"jitgrad.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _by_name, (self.name,)

    def __copy__(self) -> dtype:
        return self

    def __deepcopy__(self, memo: object) -> dtype:
        return self


_ALL: Final[list[dtype]] = []
_BY_NAME: Final[dict[str, dtype]] = {}
_BY_NUMPY: Final[dict[Any, dtype]] = {}


def _by_name(name: str) -> dtype:
    """The interned dtype of that name (what a pickle holds)."""
    return _BY_NAME[name]


def _define(name: str, scalar_name: str) -> dtype:
    native = np.dtype(name)
    self: dtype = object.__new__(cast(Any, dtype))
    facts: dict[str, object] = {
        "_index": len(_ALL),
        "name": name,
        "numpy": native,
        "kind": "i" if native.kind == "u" else native.kind,
        "itemsize": native.itemsize,
        "is_floating_point": native.kind == "f",
        "is_complex": False,
        "is_signed": native.kind in "if",
        "scalar_name": scalar_name,
    }
    for key, value in facts.items():
        object.__setattr__(self, key, value)
    _ALL.append(self)
    _BY_NAME[name] = _BY_NUMPY[native] = self
    return self


uint8 = _define("uint8", "Byte")
int8 = _define("int8", "Char")
int16 = _define("int16", "Short")
int32 = _define("int32", "Int")
int64 = _define("int64", "Long")
float16 = _define("float16", "Half")
float32 = _define("float32", "Float")
float64 = _define("float64", "Double")
bool_ = _define("bool", "Bool")

half = float16
float_ = float32
double = float64
short = int16
int_ = int32
long = int64

ALL_DTYPES: Final[tuple[dtype, ...]] = tuple(_ALL)

# What messages call a type ('Float'), and what `Tensor.type()` returns ('torch.FloatTensor').
SCALAR_TYPE_NAME: Final[dict[dtype, str]] = {d: d.scalar_name for d in ALL_DTYPES}
TENSOR_TYPE_NAME: Final[dict[dtype, str]] = {d: f"torch.{d.scalar_name}Tensor" for d in ALL_DTYPES}
FROM_TENSOR_TYPE_NAME: Final[dict[str, dtype]] = {name: d for d, name in TENSOR_TYPE_NAME.items()}


def from_numpy(native: Any) -> dtype:
    """The dtype of a NumPy dtype (any byte order). TypeError for one that tensors can't hold, such as complex64."""
    found = _BY_NUMPY.get(native)
    if found is not None:
        return found
    native = np.dtype(native)
    found = _BY_NUMPY.get(native.newbyteorder("=")) if native.kind in "biuf" else None
    if found is None:
        names = ", ".join(d.name for d in reversed(ALL_DTYPES))
        kind = native.type.__name__
        raise TypeError(f"can't convert np.ndarray of type numpy.{kind}. The only supported types are: {names}.")
    return found


def canonical(native: Any) -> np.dtype[Any]:
    """The one native NumPy dtype object equal to `native` up to byte order. TypeError as `from_numpy`."""
    return from_numpy(native).numpy


def _promote_rule(a: dtype, b: dtype) -> dtype:
    """The ladder: bool < unsigned < signed < float; the wider of one kind; uint8 with int8 needs int16."""
    if a is b or b is bool_:
        return a
    if a is bool_:
        return b
    if a.is_floating_point != b.is_floating_point:
        return a if a.is_floating_point else b
    if a.is_floating_point or a.is_signed == b.is_signed:
        return a if a.itemsize >= b.itemsize else b
    signed = a if a.is_signed else b
    return int16 if signed is int8 else signed


_PROMOTE: Final[dict[tuple[dtype, dtype], dtype]] = {
    (a, b): _promote_rule(a, b) for a in ALL_DTYPES for b in ALL_DTYPES
}


def promote(a: dtype, b: dtype) -> dtype:
    """The smallest type that both promote to (`torch.promote_types`)."""
    return _PROMOTE[a, b]


_default: dtype = float32


def default_dtype() -> dtype:
    """The floating type given to Python floats; float32 unless `set_default_dtype` changed it."""
    return _default


def set_default_dtype(new: dtype) -> None:
    """Change the default floating type of the process. TypeError unless `new` is a floating dtype."""
    global _default
    if not isinstance(new, dtype):
        raise TypeError("invalid dtype object: only floating-point types are supported as the default type")
    if not new.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    _default = new


def scalar_dtype(number: object) -> dtype:
    """The dtype of a Python (or NumPy scalar) number among tensors: bool, int64 or the default floating type.

    TypeError for anything else, complex numbers included.
    """
    if isinstance(number, (bool, np.bool_)):
        return bool_
    if isinstance(number, (int, np.integer)):
        return int64
    if isinstance(number, (float, np.floating)):
        return _default
    raise TypeError(f"unsupported scalar type {type(number).__name__}")


class Category:
    """How much an operand counts in promotion: a lower category matters only where its kind is higher."""

    DIM: Final = 0  # a tensor with at least one dimension
    ZERO_DIM: Final = 1  # a 0-dim tensor
    NUMBER: Final = 2  # a Python number


def _combine(higher: dtype | None, lower: dtype | None) -> dtype | None:
    """The rule between two categories: the lower one counts only if it is of a higher kind."""
    if higher is None or lower is None:
        return higher or lower
    if higher.is_floating_point:
        return higher
    if higher is bool_ or lower.is_floating_point:
        return _PROMOTE[higher, lower]
    return higher


def result_dtype(operands: Iterable[tuple[dtype, int]]) -> dtype:
    """The dtype operands of an op are brought to (`torch.result_type`).

    operands: (dtype, category) pairs; a number's dtype is `scalar_dtype(number)`. ValueError if there is none.
    """
    by_category: list[dtype | None] = [None, None, None]
    for kind, category in operands:
        seen = by_category[category]
        by_category[category] = kind if seen is None else _PROMOTE[seen, kind]
    result = _combine(by_category[0], _combine(by_category[1], by_category[2]))
    if result is None:
        raise ValueError("result_dtype needs at least one operand")
    return result


def can_cast(source: dtype, target: dtype) -> bool:
    """Whether torch stores a result of type `source` into `target`: no float to integer, nothing but bool to bool."""
    if source.is_floating_point and not target.is_floating_point:
        return False
    return target is not bool_ or source is bool_


def check_can_cast(source: dtype, target: dtype) -> None:
    """RuntimeError in torch's words where a result of type `source` can't be stored in place into `target`."""
    if not can_cast(source, target):
        raise RuntimeError(
            f"result type {source.scalar_name} can't be cast to the desired output type {target.scalar_name}"
        )


class finfo:
    """Numerical limits of a floating dtype (of the default one if none is given); values are Python floats.

    TypeError for an integer dtype or something that is no dtype.
    """

    __slots__ = ("bits", "dtype", "eps", "max", "min", "resolution", "smallest_normal", "tiny")

    def __init__(self, type: dtype | None = None) -> None:
        kind = _default if type is None else type
        if not isinstance(kind, dtype):
            raise TypeError(
                f"finfo(): argument 'type' (position 1) must be jitgrad.dtype, not {kind.__class__.__name__}"
            )
        if not kind.is_floating_point:
            raise TypeError(
                "jitgrad.finfo() requires a floating point input type. Use jitgrad.iinfo to handle 'jitgrad.finfo'"
            )
        facts = np.finfo(kind.numpy)
        self.bits = kind.itemsize * 8
        self.dtype = kind.name
        self.eps = float(facts.eps)
        self.max = float(facts.max)
        self.min = float(facts.min)
        self.tiny = self.smallest_normal = float(facts.tiny)
        self.resolution = float(f"1e-{facts.precision}")

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash((finfo, self.dtype))


class iinfo:
    """Numerical limits of an integer dtype. TypeError for floating dtypes and bool."""

    __slots__ = ("bits", "dtype", "max", "min")

    def __init__(self, type: dtype) -> None:
        if not isinstance(type, dtype):
            raise TypeError(
                f"iinfo(): argument 'type' (position 1) must be jitgrad.dtype, not {type.__class__.__name__}"
            )
        if type.is_floating_point:
            raise TypeError(
                "jitgrad.iinfo() requires an integer input type. Use jitgrad.finfo to handle 'jitgrad.iinfo'"
            )
        if type is bool_:
            raise TypeError("jitgrad.bool is not supported by jitgrad.iinfo")
        facts = np.iinfo(type.numpy)
        self.bits = type.itemsize * 8
        self.dtype = type.name
        self.max = int(facts.max)
        self.min = int(facts.min)

    def __repr__(self) -> str:
        return f"iinfo(min={float(self.min):g}, max={float(self.max):g}, dtype={self.dtype})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash((iinfo, self.dtype))
