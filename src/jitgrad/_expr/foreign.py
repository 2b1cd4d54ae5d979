"""Atoms that are no part of the language: functions of the user's, known by name and by the partials given for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .atoms import ATOMS, REAL, Atom, Partial
from .interpret import NUMPY


def add_atom(name: str, arity: int, partials: Sequence[Partial | None], numpy: Callable[..., Any]) -> None:
    """Add an atom that kernels spell as a call of `name`. `partials` is as in `Atom`; `numpy` computes it on arrays."""
    operands = ", ".join(f"{{{place}}}" for place in range(arity))
    ATOMS[name] = Atom(name, REAL * arity, REAL, f"real({name}({operands}))", tuple(partials))
    NUMPY[name] = numpy
