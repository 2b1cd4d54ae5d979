"""Atoms that are no part of the language: functions of the user's, known by a call and by the partials given for them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Final

from .atoms import ATOMS, REAL, Atom, Partial
from .interpret import NUMPY

_NUMBERS: Final = itertools.count()


def called(word: str, arity: int) -> str:
    """The template of a call of `word` in a kernel."""
    return f"real({word}({', '.join(f'{{{place}}}' for place in range(arity))}))"


def add_atom(label: str, emit: str, partials: Sequence[Partial | None], numpy: Callable[..., Any]) -> str:
    """Add an atom; returns its name, which no other has: equal calls may have other partials.

    `emit` and `partials` are as in `Atom`, `numpy` computes it on arrays.
    """
    name = f"{label}.{next(_NUMBERS)}"
    ATOMS[name] = Atom(name, REAL * len(partials), REAL, emit, tuple(partials))
    NUMPY[name] = numpy
    return name
