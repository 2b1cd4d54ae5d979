"""The state of a random number generator: a seed and how many blocks of random words have been used up."""

from __future__ import annotations

import os
import threading
from typing import Final

DEFAULT_SEED: Final = 67280421310721  # what torch starts with
_WORD: Final = (1 << 64) - 1


class Stream:
    """Seed and offset; `take` reserves blocks, so that threads never share one.

    A fill of random numbers is a function of the seed and of the number of its first block, see `_kernels/random.py`.
    """

    __slots__ = ("_guard", "initial", "offset", "seed")

    def __init__(self, seed: int = DEFAULT_SEED) -> None:
        self._guard = threading.Lock()
        self.restart(seed)

    def restart(self, seed: int) -> None:
        """Begin again under another seed, an int of 64 bits."""
        self.seed = self.initial = seed & _WORD
        self.offset = 0

    def take(self, blocks: int) -> tuple[int, int]:
        """Reserve so many blocks; returns the seed and the number of the first."""
        with self._guard:
            first = self.offset
            self.offset = (first + blocks) & _WORD
            return self.seed, first

    @property
    def state(self) -> tuple[int, int]:
        """Seed and offset."""
        with self._guard:
            return self.seed, self.offset

    @state.setter
    def state(self, new: tuple[int, int]) -> None:
        with self._guard:
            self.seed, self.offset = (value & _WORD for value in new)


def fresh_seed() -> int:
    """A seed from the operating system."""
    return int.from_bytes(os.urandom(8), "little")


DEFAULT: Final = Stream()
