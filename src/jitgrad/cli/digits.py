"""The 1,797 scans of handwritten digits that the package ships (`data/DIGITS.md`: source and licence)."""

from __future__ import annotations

from importlib import resources
from typing import Any, NamedTuple

import numpy as np

Pixels = np.ndarray[Any, np.dtype[np.float32]]
Labels = np.ndarray[Any, np.dtype[np.int64]]


class Digits(NamedTuple):
    """Scans, float32 of shape (n, 64) from 0 (paper) to 1 (ink), and the digits meant, int64 of shape (n,)."""

    images: Pixels
    labels: Labels


class Split(NamedTuple):
    """What to learn from and what to be judged by."""

    train: Digits
    test: Digits


def load_digits() -> Digits:
    """All scans, in the order of their publication.

    >>> images, labels = load_digits()
    >>> images.shape, images.dtype.name, labels[:12].tolist()
    ((1797, 64), 'float32', [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1])
    """
    with resources.files("jitgrad").joinpath("data", "digits.npz").open("rb") as file, np.load(file) as arrays:
        return Digits(arrays["images"].astype(np.float32) / np.float32(16), arrays["labels"].astype(np.int64))


def split_digits(held_out: float = 0.2, seed: int = 0) -> Split:
    """The scans in random order, `held_out` of them kept for the test.

    The same `seed` gives the same split everywhere. Raises ValueError when nothing would be left on one side.
    """
    images, labels = load_digits()
    count = round(len(labels) * held_out)
    if not 0 < count < len(labels):
        raise ValueError(f"held_out must leave scans on both sides, got {held_out}")
    order = np.random.Generator(np.random.PCG64(seed)).permutation(len(labels))
    test, train = order[:count], order[count:]
    return Split(Digits(images[train], labels[train]), Digits(images[test], labels[test]))
