"""Arrays over the memory of computed values that were handed out to NumPy, and the writes to them that no counter sees.

A checksum is taken when the array is handed out, and again when the last array over it dies and before each backward; where it has
changed the version counter counts a write, so that a backward that needs the old value raises. Values that were never handed out cost
nothing, and neither do leaves, whose memory programs may well write to between steps.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from .._core.late import LateModule
from .versions import Version, bump, is_counting

if TYPE_CHECKING:
    from . import anomaly
else:
    anomaly = LateModule("jitgrad._engine.anomaly")

Array = np.ndarray[Any, Any]


class _Window:
    """The end of the chain of bases of what is handed out: views of it refer to that, not to the memory's owner, and keep it alive."""

    def __init__(self, array: Array) -> None:
        self.array = array
        self.__array_interface__ = array.__array_interface__


class _Shown:
    """An array in the user's hands."""

    def __init__(self, array: Array, version: Version, gone: Callable[[Any], None], shown: Array) -> None:
        self.array, self.version = array, version
        self.count, self.sum = version.count, anomaly.checksum(array)
        self.reference = weakref.ref(shown, gone)

    def verify(self) -> None:
        """Count a write if there was one. A write that the library made is counted already."""
        now = anomaly.checksum(self.array)
        if now != self.sum and self.version.count == self.count:
            bump(self.version)
        self.sum, self.count = now, self.version.count


SHOWN: Final[dict[int, _Shown]] = {}
_number = itertools.count().__next__


def show(array: Array, version: Version) -> Array:
    """An array over the same memory, writes to which will be noticed."""
    shown = np.asarray(_Window(array))
    key = _number()

    def gone(_: Any) -> None:
        # The cycle collector may call this while this very thread counts a write, under a lock; then the next backward does it.
        if not is_counting():
            SHOWN.pop(key).verify()

    SHOWN[key] = _Shown(array, version, gone, shown)
    return shown


def verify_all() -> None:
    """Count the writes to all arrays that are in the user's hands."""
    for key, held in list(SHOWN.items()):
        held.verify()
        if held.reference() is None:
            SHOWN.pop(key, None)
