"""Settings of the process, read from the environment once, when the package is imported."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

_OFF = frozenset({"0", "off", "false", "no"})
_ON = frozenset({"1", "on", "true", "yes"})


class Settings(NamedTuple):
    """What the environment asks for.

    jit: compile kernels; off, they run as plain Python. (`JITGRAD_JIT`, default on)
    cache_dir: folder of generated kernels, None for the default place. (`JITGRAD_CACHE_DIR`)
    bounds_check: kernels check every index they read or write; for debugging. (`JITGRAD_BOUNDSCHECK`, default off)
    keep_memory: freed memory stays with the process, up to a bound. (`JITGRAD_KEEP_MEMORY`, default on)
    """

    jit: bool = True
    cache_dir: str | None = None
    bounds_check: bool = False
    keep_memory: bool = True


def _flag(environment: Mapping[str, str], name: str, default: bool) -> bool:
    """A switch; unset or empty means the default, anything but a known word raises ValueError."""
    word = environment.get(name, "").strip().lower()
    if not word:
        return default
    if word in _ON or word in _OFF:
        return word in _ON
    raise ValueError(f"{name} must be 0 or 1, got {environment[name]!r}")


def read_settings(environment: Mapping[str, str]) -> Settings:
    """The settings an environment describes. Raises ValueError for a switch that is neither on nor off."""
    return Settings(
        jit=_flag(environment, "JITGRAD_JIT", True),
        cache_dir=environment.get("JITGRAD_CACHE_DIR") or None,
        bounds_check=_flag(environment, "JITGRAD_BOUNDSCHECK", False),
        keep_memory=_flag(environment, "JITGRAD_KEEP_MEMORY", True),
    )


settings = read_settings(os.environ)
