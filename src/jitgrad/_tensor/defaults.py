"""What holds for the whole process: default device and tensor type, and switches that programs set for other back ends."""

from __future__ import annotations

import warnings
from typing import Any, Final

from .._core.devices import CPU, check_device, device as Device
from .._core.dtypes import FROM_TENSOR_TYPE_NAME, set_default_dtype
from .._engine import modes
from .base import TensorBase

_MODES: Final = ("default", "warn", "error")


class Switches:
    """The values last set. Results are the same from run to run and for any number of threads, whatever these say."""

    deterministic = False
    warn_only = False
    precision = "highest"
    interop_threads = 1


def get_default_device() -> Device:
    """Where new tensors are: the CPU."""
    return CPU


def set_default_device(device: Any) -> None:
    """Accept the CPU, or None. AssertionError, RuntimeError or NotImplementedError that names any other device."""
    check_device(device, "set_default_device")


def set_default_tensor_type(t: Any) -> None:
    """`set_default_dtype` by a class such as `FloatTensor`, or its name. TypeError unless its dtype is a floating one."""
    if isinstance(t, str):
        if t.startswith("torch.cuda."):
            raise TypeError(f"type {t} not available. Torch not compiled with CUDA enabled.")
        if t not in FROM_TENSOR_TYPE_NAME:
            raise AttributeError(f"module 'torch' has no attribute '{t.rpartition('.')[2]}'")
        kind: Any = FROM_TENSOR_TYPE_NAME[t]
    else:
        kind = getattr(t, "tensor_dtype", None)
    if kind is None:
        raise TypeError("invalid type object: only floating-point types are supported as the default type")
    set_default_dtype(kind)


def typename(obj: Any, /) -> str:
    """`torch.FloatTensor` and the like for tensors, else the full name of the object's class, or of a class or function itself."""
    if isinstance(obj, TensorBase):
        return str(obj.type())  # type: ignore[attr-defined]
    named = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(named, "__module__", None)
    return str(named.__qualname__ if module in (None, "builtins") else f"{module}.{named.__qualname__}")


# ---------------------------------------------------------------- switches
def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Remember the wish; every op is deterministic. TypeError unless `mode` is a bool."""
    if not isinstance(mode, bool):
        raise TypeError(f"_set_deterministic_algorithms(): argument 'mode' (position 1) must be bool, not {type(mode).__name__}")
    Switches.deterministic, Switches.warn_only = mode, bool(warn_only)


def are_deterministic_algorithms_enabled() -> bool:
    """What `use_deterministic_algorithms` was last told."""
    return Switches.deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether it was told to warn only."""
    return Switches.warn_only


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """The same by a number, or by "default", "warn" or "error". RuntimeError for another word, TypeError for another type."""
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        if debug_mode not in _MODES:
            raise RuntimeError(f"invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got {debug_mode}")
        debug_mode = _MODES.index(debug_mode)
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    use_deterministic_algorithms(debug_mode > 0, warn_only=debug_mode == 1)


def get_deterministic_debug_mode() -> int:
    """0, 1 or 2: nothing, a warning or an error where an op is not deterministic."""
    return (1 if Switches.warn_only else 2) if Switches.deterministic else 0


def set_warn_always(b: bool, /) -> None:
    """Warn always of what is otherwise warned of once in a process. How often it is shown is left to Python's `warnings`."""
    modes.set_warn_always(bool(b))


def is_warn_always_enabled() -> bool:
    """What `set_warn_always` was last told."""
    return modes.LOCAL.warn_always


def set_flush_denormal(mode: bool) -> bool:
    """False: numbers too small to be normal are kept."""
    return False


def set_float32_matmul_precision(precision: str) -> None:
    """Remember "highest", "high" or "medium"; products of float32 are exact to float32 in any case. A warning for another word."""
    if precision not in ("highest", "high", "medium"):
        warnings.warn(f"{precision} is not one of 'highest', 'high', or 'medium'; the current setFloat32MatmulPrecision call has no effect.",
                      stacklevel=2)  # fmt: skip
        return
    Switches.precision = precision


def get_float32_matmul_precision() -> str:
    """What `set_float32_matmul_precision` was last told."""
    return Switches.precision


def set_num_interop_threads(n: int, /) -> None:
    """Remember the wish: ops run one after the other. RuntimeError unless positive."""
    if n <= 0:
        raise RuntimeError("set_num_interop_threads expects a positive integer")
    Switches.interop_threads = n


def get_num_interop_threads() -> int:
    """What `set_num_interop_threads` was last told; 1 at first."""
    return Switches.interop_threads
