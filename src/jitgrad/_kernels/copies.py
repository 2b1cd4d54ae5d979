"""Copies of functions that read other values from outside, or call other functions."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from .captures import Function, chains, first, plain_function, reads


def rebound(function: Function, replace: Callable[[Any, str], Any]) -> Function:
    """The same function reading `replace(value, name)` for every outer name; attributes of modules are not touched."""
    names = {chain[0] for cell, chain in chains(function) if not cell}
    found = {}
    for name in names:
        try:
            found[name] = replace(first(function, name, False)[0], name)
        except KeyError:
            continue
    return _copied(function, found, replace)


def relinked(function: Function, replace: Callable[[Any, str], Any]) -> Function:
    """The same function calling `replace(callee, name)` for every function it calls, also where that is an attribute of a module."""
    found: dict[str, Any] = {}
    for read in reads(function):
        if read.library or plain_function(read.value) is None:
            continue
        value = replace(read.value, read.name)
        root, *attributes = read.name.split(".")
        if not attributes:
            found[root] = value
        elif value is not read.value and root in function.__globals__:
            place = found[root] = _module_like(found.get(root, function.__globals__[root]))
            for attribute in attributes[:-1]:
                inner = place.__dict__[attribute] = _module_like(place.__dict__[attribute])
                place = inner
            place.__dict__[attributes[-1]] = value
    return _copied(function, found, replace)


def tie(function: Function, copy: Function, done: dict[Function, Any]) -> None:
    """Let a copy made by `relinked` call what `done` has for functions that it still calls as they are."""
    cells = dict(zip(copy.__code__.co_freevars, copy.__closure__ or (), strict=True))
    for read in reads(function):
        inner = plain_function(read.value)
        found = None if inner is None else done.get(inner)
        if found is None:
            continue
        if read.name in cells:
            cells[read.name].cell_contents = found
        elif read.name in copy.__globals__:
            copy.__globals__[read.name] = found


def _module_like(module: types.ModuleType) -> types.ModuleType:
    """A module with the same contents, to be changed."""
    copy = types.ModuleType(module.__name__)
    copy.__dict__.update(module.__dict__)
    return copy


def _copied(function: Function, names: dict[str, Any], replace: Callable[[Any, str], Any]) -> Function:
    """The function over other globals, its cells replaced."""
    cells = []
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            cells.append(types.CellType(replace(cell.cell_contents, name)))
        except ValueError:  # not filled yet
            cells.append(cell)
    scope = {**function.__globals__, **names}
    copy = types.FunctionType(function.__code__, scope, function.__name__, function.__defaults__, tuple(cells) or None)
    copy.__kwdefaults__, copy.__qualname__, copy.__module__ = (
        function.__kwdefaults__,
        function.__qualname__,
        function.__module__,
    )
    return copy
