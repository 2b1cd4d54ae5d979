"""Anomaly mode: where in the forward the op stands whose backward failed or gave NaN."""

from __future__ import annotations

import warnings
from types import TracebackType
from typing import TYPE_CHECKING

from .._core.late import LateModule
from .._engine import modes

if TYPE_CHECKING:
    from .._engine import anomaly
else:
    anomaly = LateModule("jitgrad._engine.anomaly")

__all__ = ["detect_anomaly", "is_anomaly_check_nan_enabled", "is_anomaly_enabled", "set_anomaly_enabled", "set_detect_anomaly"]


def is_anomaly_enabled() -> bool:
    """Whether the mode is on."""
    return modes.LOCAL.anomaly is not None


def is_anomaly_check_nan_enabled() -> bool:
    """Whether a NaN in a backward is an error while the mode is on."""
    settings = modes.LOCAL.anomaly
    return True if settings is None else bool(settings.check_nan)


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """Switch the mode, for all threads."""
    modes.set_anomaly(anomaly.Settings(check_nan) if mode else None)


class set_detect_anomaly:
    """The mode on or off from now on; as a context manager, until the end of the block."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.prev = modes.LOCAL.anomaly
        set_anomaly_enabled(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        modes.set_anomaly(self.prev)


class detect_anomaly:
    """In the block nodes note where their op was called, and a backward that fails tells, in a warning, before it raises.

    With `check_nan` a gradient that is NaN is a failure.
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.prev = modes.LOCAL.anomaly
        self.check_nan = check_nan
        warnings.warn("Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging.",
                      stacklevel=2)  # fmt: skip

    def __enter__(self) -> None:
        set_anomaly_enabled(True, self.check_nan)

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        modes.set_anomaly(self.prev)
