"""Nested tuples, lists and dictionaries: taken apart into their leaves, and put together again."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Final

_DICTIONARIES: Final = (dict, OrderedDict, defaultdict)


def is_namedtuple(value: Any) -> bool:
    """Whether it is an instance of a `NamedTuple`."""
    return isinstance(value, tuple) and hasattr(type(value), "_fields")


class Structure:
    """The shape of a nest: `kind` is the type of the container (None for a leaf), `context` what else makes one, `children` what is in it."""

    __slots__ = ("children", "context", "count", "kind")

    def __init__(self, kind: Any = None, context: Any = None, children: Sequence[Structure] = ()) -> None:
        self.kind, self.context, self.children = kind, context, tuple(children)
        self.count: int = 1 if kind is None else sum(child.count for child in self.children)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Structure) and (self.kind, self.context, self.children) == (other.kind, other.context, other.children)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        parts = [repr(child) for child in self.children]
        if self.kind is None:
            return "*"
        if self.kind in _DICTIONARIES:
            return "{" + ", ".join(f"{key!r}: {part}" for key, part in zip(self.context, parts, strict=True)) + "}"
        if self.kind is list:
            return f"[{', '.join(parts)}]"
        name = "" if self.kind is tuple else self.kind.__name__
        return f"{name}({', '.join(parts)}{',' * (len(parts) == 1 and not name)})"


LEAF: Final = Structure()


def flatten(value: Any) -> tuple[list[Any], Structure]:
    """The leaves of a nest from left to right, and its structure. Whatever is no tuple, list or dictionary is a leaf."""
    kind = type(value)
    if kind in _DICTIONARIES:
        context: Any = list(value)
        items = list(value.values())
    elif kind in (tuple, list) or is_namedtuple(value):
        context, items = None, list(value)
    else:
        return [value], LEAF
    parts = [flatten(item) for item in items]
    return [leaf for leaves, _ in parts for leaf in leaves], Structure(kind, context, [structure for _, structure in parts])


def unflatten(leaves: Sequence[Any], structure: Structure) -> Any:
    """A nest of the given structure; the inverse of `flatten`."""
    if structure.kind is None:
        return leaves[0]
    items = []
    start = 0
    for child in structure.children:
        items.append(unflatten(leaves[start : start + child.count], child))
        start += child.count
    if structure.kind in _DICTIONARIES:
        return (dict if structure.kind is defaultdict else structure.kind)(zip(structure.context, items, strict=True))
    return structure.kind(*items) if hasattr(structure.kind, "_fields") else structure.kind(items)


def mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """The nest with `function` applied to every leaf."""
    leaves, structure = flatten(value)
    return unflatten([function(leaf) for leaf in leaves], structure)


def spread(value: Any, structure: Structure) -> list[Any] | None:
    """The leaves of a nest repeated where the structure has more below one of them; None where the two don't go together."""
    own = flatten(value)[1]
    if own.kind is None:
        return [value] * structure.count
    if own.kind != structure.kind or own.context != structure.context or len(own.children) != len(structure.children):
        return None
    items = list(value.values()) if own.kind in _DICTIONARIES else list(value)
    found: list[Any] = []
    for item, child in zip(items, structure.children, strict=True):
        part = spread(item, child)
        if part is None:
            return None
        found += part
    return found
