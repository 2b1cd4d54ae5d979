"""Modules that load at the first use of one of their names, and names that bring their module."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from .locks import BUILDING


class LateModule:
    """Stands for the module `name`; looked up once, an attribute of the module is one of the stand-in.

    >>> import jitgrad
    >>> late = LateModule("jitgrad.testing")
    >>> late.assert_close.__name__
    'assert_close'
    """

    def __init__(self, name: str) -> None:
        self.module_name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        with BUILDING:  # else a fork could leave its child with a module that is imported for ever
            module = importlib.import_module(self.module_name)
        value = self.__dict__[name] = getattr(module, name)
        return value


def late_attribute(module: str, name: str, homes: Mapping[str, str], submodules: Collection[str] = ()) -> Any:
    """What the `__getattr__` of `module` gives: a submodule, or a name from its home, imported now and found without this from now on.

    `homes` has the module of each name, relative to the package of `module`. Raises AttributeError for all other names.

    >>> import jitgrad.autograd
    >>> late_attribute("jitgrad.autograd", "Function", {"Function": "function"}).__name__
    'Function'
    """
    namespace = sys.modules[module].__dict__
    package = namespace["__package__"]
    if name in submodules:
        with BUILDING:
            return importlib.import_module(f".{name}", package)
    if name not in homes:
        raise AttributeError(f"module '{module}' has no attribute '{name}'")
    with BUILDING:
        home = importlib.import_module(f".{homes[name]}", package)
    value = namespace[name] = home.__dict__[name]
    return value


def late_dir(module: str, names: Iterable[str], submodules: Iterable[str] = ()) -> list[str]:
    """What the `__dir__` of `module` gives: the names it has and those that come later.

    >>> import jitgrad.autograd
    >>> "Function" in late_dir("jitgrad.autograd", ["Function"])
    True
    """
    return sorted({*sys.modules[module].__dict__, *names, *submodules})
