"""Switches that seeding recipes set and device choices read. `cudnn` takes any attribute and does nothing with it.

>>> import jitgrad as torch
>>> torch.backends.cudnn.deterministic = True
>>> torch.backends.mps.is_available()
False
"""

__all__ = ["cudnn", "mps"]


class _Backend:
    """One that is not here."""

    enabled = False
    deterministic = False
    benchmark = False

    def is_available(self) -> bool:
        return False

    def is_built(self) -> bool:
        return False

    def version(self) -> None:
        """None: there is no such library."""


cudnn = _Backend()
mps = _Backend()
