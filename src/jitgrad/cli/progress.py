"""A progress bar: tqdm's where it is installed, otherwise a plain one."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TextIO, TypeVar

T = TypeVar("T")
_WIDTH = 40


def bar(steps: Iterable[T], total: int, name: str, stream: TextIO | None = None) -> Iterator[T]:
    """Yield from `steps` while a bar of `total` steps fills up on `stream` (default: standard error)."""
    stream = sys.stderr if stream is None else stream
    try:
        from tqdm import tqdm
    except ImportError:
        return _plain(steps, total, name, stream)
    return iter(tqdm(steps, desc=name, total=total, file=stream, unit="step", dynamic_ncols=True, leave=True))


def _plain(steps: Iterable[T], total: int, name: str, stream: TextIO) -> Iterator[T]:
    """On a terminal a line that is drawn over, elsewhere a mark for each tenth done."""
    live, drawn = stream.isatty(), 0
    stream.write("" if live else f"{name}: ")
    for done, step in enumerate(steps, 1):
        yield step
        filled = done * (_WIDTH if live else 10) // total
        if filled > drawn:
            drawn = filled
            full = "#" * filled
            stream.write(f"\r{name} [{full:<{_WIDTH}}] {done}/{total}" if live else f"{10 * filled}% ")
            stream.flush()
    stream.write("\n")
    stream.flush()
