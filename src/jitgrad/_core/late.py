"""Modules that load at the first use of one of their names."""

from __future__ import annotations

import importlib
from typing import Any


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
        module = importlib.import_module(self.module_name)
        value = self.__dict__[name] = getattr(module, name)
        return value
