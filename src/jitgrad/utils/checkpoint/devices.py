"""What programs ask of devices around checkpoints: there is the CPU, whose random state needs no list."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class DefaultDeviceType:
    """The type of the devices whose random state a checkpoint keeps where its arguments don't tell; kept for programs that set it."""

    _default_device_type = "cpu"

    @staticmethod
    def set_device_type(device: str = "cpu") -> None:
        """Remember a type."""
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type() -> str:
        """The type last set, "cpu" at first."""
        return DefaultDeviceType._default_device_type


def get_device_states(*args: Any) -> tuple[list[int], list[Any]]:
    """Devices other than the CPU that the arguments are on, and their random states: none."""
    return [], []


def set_device_states(devices: Iterable[int], states: Iterable[Any], *, device_type: str | None = None) -> None:
    """Does nothing: there are no devices whose random state could be set."""


def _infer_device_type(*args: Any) -> str:
    """The type of the devices that the arguments are on."""
    return DefaultDeviceType.get_device_type()
