"""The public face of autograd."""

from typing import TYPE_CHECKING, Any

from .._core.late import late_attribute as _late_attribute, late_dir as _late_dir
from .._tensor.backward import backward, grad
from .._tensor.saved import SavedTensor
from . import grad_mode
from .anomaly_mode import detect_anomaly, set_detect_anomaly
from .grad_mode import (
    _force_original_view_tracking,
    _unsafe_preserve_version_counter,
    enable_grad,
    inference_mode,
    is_multithreading_enabled,
    is_view_replay_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from .gradcheck import gradcheck, gradgradcheck
from .variable import Variable

if TYPE_CHECKING:
    from . import forward_ad, function, functional, graph, profiler, profiler_util
    from .function import Function, NestedIOFunction
    from .profiler import _profiler_enabled

__all__ = [
    "Function",
    "NestedIOFunction",
    "SavedTensor",
    "Variable",
    "_force_original_view_tracking",
    "_profiler_enabled",
    "_unsafe_preserve_version_counter",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "function",
    "functional",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_multithreading_enabled",
    "is_view_replay_enabled",
    "no_grad",
    "profiler",
    "profiler_util",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
]

# What not every program uses costs `import jitgrad` nothing.
_LATE = ("forward_ad", "function", "functional", "graph", "profiler", "profiler_util")
_LATE_NAMES = {"Function": "function", "NestedIOFunction": "function", "_profiler_enabled": "profiler"}


def __getattr__(name: str) -> Any:
    """Import a submodule, or the home of a name, at its first use."""
    return _late_attribute(__name__, name, _LATE_NAMES, _LATE)


def __dir__() -> list[str]:
    return _late_dir(__name__, _LATE_NAMES, _LATE)
