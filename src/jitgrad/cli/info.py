"""`python -m jitgrad info`: what runs here, for a bug report or a puzzled user."""

from __future__ import annotations

import os
import platform
from importlib import metadata

from .. import __version__
from .._core.settings import settings
from . import cache

_EXTRAS = ("matplotlib", "mkl", "safetensors", "scipy", "torch", "tqdm")


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _platform() -> str:
    return f"{platform.python_implementation()}, {platform.system()} {platform.machine()}"


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _jit() -> str:
    return "on" if settings.jit else "off (JITGRAD_JIT=0): kernels run as plain Python"


def _blas() -> tuple[str, str]:
    """The BLAS and its threads, each as a text."""
    if not settings.jit:
        return "NumPy's own", "1"
    from .._kernels import blas  # brings numba

    library = blas.describe()
    words = [library["name"], library["integers"] and f"{library['integers']} integers", library["path"]]
    return ", ".join(word for word in words if word), library["threads"]


def rows() -> list[tuple[str, str]]:
    """Name and value of all there is to say."""
    library, threads = _blas()
    extras = [f"{name} {found}" for name in _EXTRAS if (found := _version(name))]
    return [
        ("jitgrad", __version__),
        ("python", f"{platform.python_version()} ({_platform()})"),
        ("numpy", _version("numpy") or "?"),
        ("numba", f"{_version('numba')}, llvmlite {_version('llvmlite')}"),
        ("extras", ", ".join(extras) or "none installed"),
        ("jit", _jit()),
        ("threads", f"kernels 1, BLAS {threads}, of {_cores()} cores"),
        ("BLAS", library),
        ("cache", cache.summary()),
    ]


def run() -> int:
    """Print the rows, aligned."""
    for name, value in rows():
        print(f"{name:9}{value}")
    return 0
