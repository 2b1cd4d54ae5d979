"""Trained weights as a file: safetensors where it is installed, otherwise NumPy's .npz."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

Arrays = Mapping[str, np.ndarray[Any, Any]]


def save(arrays: Arrays, folder: Path) -> Path:
    """Write named arrays into `folder`; returns the file."""
    try:
        from safetensors.numpy import save_file
    except ImportError:
        path = folder / "weights.npz"
        np.savez(path, allow_pickle=False, **arrays)
        return path
    path = folder / "weights.safetensors"
    save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, path)
    return path
