"""What a script asks before it chooses a device other than the CPU: there is none.

>>> import jitgrad as torch
>>> torch.accelerator.is_available()
False
"""

from typing import Any

__all__ = ["current_accelerator", "device_count", "is_available"]


def is_available() -> bool:
    """False."""
    return False


def device_count() -> int:
    """0."""
    return 0


def current_accelerator(check_available: bool = False) -> Any:
    """None: there is no device but the CPU."""
    return None
