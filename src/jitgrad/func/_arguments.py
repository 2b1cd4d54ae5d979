"""What the transforms share: which arguments are differentiated, and what outputs may be."""

from __future__ import annotations

from typing import Any

from .._tensor import Tensor

Argnums = int | tuple[int, ...]


def chosen(args: tuple[Any, ...], argnums: Any) -> tuple[int, ...]:
    """The places of the arguments that are differentiated. RuntimeError for what names none, or one twice."""
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    places = []
    for place in (argnums,) if isinstance(argnums, int) else argnums:
        if not isinstance(place, int):
            raise RuntimeError(f"argnum must be int, got: {type(place)}")
        if not -len(args) <= place < len(args):
            raise RuntimeError(f"Got argnum={place}, but only {len(args)} positional inputs")
        places.append(place % len(args))
    if not places:
        raise RuntimeError("argnums must be non-empty")
    if len(set(places)) != len(places):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return tuple(places)


def replaced(args: tuple[Any, ...], new: tuple[Any, ...], places: tuple[int, ...]) -> tuple[Any, ...]:
    """The arguments with those at `places` exchanged."""
    given = list(args)
    for place, value in zip(places, new, strict=True):
        given[place] = value
    return tuple(given)


def with_aux(result: Any, name: str) -> tuple[Any, Any]:
    """Output and auxiliary value. RuntimeError where it is no pair."""
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(f"{name}: output of function f should be a tuple: (output, aux) if has_aux is True")
    return result


def check_outputs(leaves: list[Any], name: str) -> None:
    """RuntimeError unless a function returned tensors, and at least one."""
    if not leaves or (len(leaves) == 1 and leaves[0] is None):
        raise RuntimeError(f"{name}: Expected f to be a function that has non-empty output (got output = {leaves})")
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"{name}: expected f(*primals) to return only tensors, got unsupported type {type(leaf)}")


def check_inputs(leaves: list[Any], name: str, what: str) -> None:
    """RuntimeError unless there are tensors, and nothing else."""
    if not leaves:
        raise RuntimeError(f"{name}: Expected {what} to contain at least one Tensor.")
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"{name}: Expected {what} to only contain Tensors, got {type(leaf)}")
