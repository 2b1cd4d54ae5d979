"""What a script asks before it chooses a device. There is none but the CPU, so the answers are those of a torch without CUDA.

>>> import jitgrad as torch
>>> torch.device("cuda" if torch.cuda.is_available() else "cpu")
device(type='cpu')
"""

__all__ = ["device_count", "empty_cache", "is_available", "is_initialized", "manual_seed", "manual_seed_all", "synchronize"]


def is_available() -> bool:
    """False."""
    return False


def is_initialized() -> bool:
    """False."""
    return False


def device_count() -> int:
    """0."""
    return 0


def manual_seed(seed: int) -> None:
    """Does nothing, as in torch where there is no device."""


def manual_seed_all(seed: int) -> None:
    """Does nothing, as in torch where there is no device."""


def empty_cache() -> None:
    """Does nothing, as in torch where nothing was put on a device."""


def synchronize(device: object = None) -> None:
    """Raises AssertionError with torch's sentence."""
    raise AssertionError("Torch not compiled with CUDA enabled")
