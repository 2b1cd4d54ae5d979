"""The arguments of a `jit_function`: bound to parameters, made fit for compiled code, and what a signature depends on."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ..._core.errors import KernelError
from ..._kernels.reasons import definition
from ..._tensor.base import TensorBase
from .contract import Contract

_UNFIT: Final = "eg"  # float16, which is stored only, and long double


def bind(contract: Contract, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """Arguments in order, defaults filled in. TypeError as from a call of the Python function."""
    name, names, defaults = contract.name, contract.names, contract.defaults
    values = list(args)
    if len(values) > len(names):
        raise TypeError(f"{name}() takes {len(names)} arguments but {len(values)} were given")
    for parameter in names[: len(values)]:
        if parameter in named:
            raise TypeError(f"{name}() got multiple values for argument '{parameter}'")
    for parameter in names[len(values) :]:
        if parameter not in named and parameter not in defaults:
            raise TypeError(f"{name}() missing argument '{parameter}'")
        values.append(named.pop(parameter) if parameter in named else defaults[parameter])
    if unknown := [word for word in named if word not in names]:
        raise TypeError(f"{name}() got an unexpected keyword argument '{unknown[0]}'")
    return tuple(values)


def prepare(contract: Contract, x: Any, place: int) -> Any:
    """An argument as the kernel sees it: arrays aligned, in native byte order and C order. KernelError for what it can't see."""
    if isinstance(x, TensorBase):
        array = x.array
        if array.dtype.char in _UNFIT:
            raise unfit(contract, place, "float16, which kernels can't compute in: pass x.float()")
        return array if array.flags.c_contiguous else np.array(array, order="C", copy=True)
    if isinstance(x, np.ndarray):
        masked = isinstance(x, np.ma.MaskedArray)
        if x.dtype.kind not in "biuf" or x.dtype.char in _UNFIT or masked:
            raise unfit(
                contract, place, f"{'a masked' if masked else 'an'} array of {x.dtype}, which kernels don't take"
            )
        native = x.dtype.newbyteorder("=")
        return np.require(x, native, ["C", "A"]) if x.ndim else np.array(x, native)
    return tuple(x) if isinstance(x, list) else x


def unfit(contract: Contract, place: int, what: str) -> KernelError:
    """The error for an argument that compiled code can't take."""
    return KernelError(f"argument '{contract.names[place]}' of {contract.name} is {what}{definition(contract.python)}")


def signature_key(args: tuple[Any, ...], call: list[Any]) -> tuple[Any, ...]:
    """What the compiled form of a call depends on: dtypes and ranks, and the types of other arguments."""
    return tuple(
        (x.dtype, x.ndim, isinstance(given, TensorBase)) if isinstance(x, np.ndarray) else static_key(x)
        for x, given in zip(call, args, strict=True)
    )


def static_key(value: Any) -> Any:
    """The type of a value that is no array; for a tuple the types of its items."""
    return tuple(static_key(item) for item in value) if isinstance(value, tuple) else type(value)
