"""Names for functions that hold all that their machine code depends on: under such a name it may be taken from disk.

A digest goes through the bytecode, the constants, every value read and every function called, to any depth, and refuses
(`Unknown`) what it can't put into words.
"""

from __future__ import annotations

import hashlib
import types
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from .captures import LIBRARIES, NAMED, PLAIN, Function, foreign, in_library, plain_function, reads

_LARGEST: Final = 1 << 16  # bytes of an array in a digest; a function that reads a larger one is compiled in memory


class Unknown(Exception):
    """A captured value that has no digest; its argument says which."""


class _Digest:
    """Feeds values into a hash; a function met again is named by its number, so recursion ends."""

    def __init__(self) -> None:
        self.hash = hashlib.sha256()
        self.seen: dict[Any, int] = {}

    def words(self, *parts: Any) -> None:
        for part in parts:
            text = part if isinstance(part, bytes) else str(part).encode()
            self.hash.update(b"%d:" % len(text))
            self.hash.update(text)

    def value(self, value: Any, name: str) -> None:
        if type(value) in PLAIN:
            self.words(type(value).__name__, repr(value))
        elif isinstance(value, (tuple, list)):
            self.words(type(value).__name__, len(value))
            for item in value:
                self.value(item, name)
        elif isinstance(value, frozenset):
            self.words("frozenset", *sorted(map(repr, value)))
        elif isinstance(value, types.CodeType):
            self.code(value, name)
        elif isinstance(value, (np.ndarray, np.generic)):
            self.array(np.asarray(value), name)
        elif isinstance(value, np.dtype):
            self.words("dtype", value.str)
        elif isinstance(value, types.ModuleType):
            if not in_library(value):
                raise Unknown(name)  # handed on as a whole: who knows what is read of it
            self.words("module", value.__name__, getattr(value, "__version__", ""))
        elif (function := plain_function(value)) is not None:
            self.function(value, function)
        else:
            self.named(value, name)

    def named(self, value: Any, name: str) -> None:
        """What a name of Python, NumPy or Numba stands for; an object with a state of its own has no digest."""
        kind = type(value)
        if kind.__module__.startswith("numba.core.types"):
            self.words("numba type", repr(value))
        elif isinstance(value, NAMED) or kind.__name__ == "_ArrayFunctionDispatcher":
            module = getattr(value, "__module__", None) or kind.__module__
            if module.partition(".")[0] not in LIBRARIES:
                raise Unknown(name)
            self.words("named", module, value.__name__)
        else:
            raise Unknown(name)

    def array(self, value: np.ndarray[Any, Any], name: str) -> None:
        if value.dtype.hasobject or value.nbytes > _LARGEST:
            raise Unknown(name)
        self.words("array", value.dtype.str, value.shape, value.tobytes())

    def function(self, value: Any, function: Function) -> None:
        if function in self.seen:
            self.words("again", self.seen[function])
            return
        self.seen[function] = len(self.seen)
        options = getattr(value, "targetoptions", None) or {}
        self.words(
            "function",
            function.__name__,
            type(value).__name__,
            sorted((k, _spell(v)) for k, v in options.items() if k != "cache"),
        )
        if foreign(function):
            self.words(function.__module__, function.__qualname__)
            return
        self.code(function.__code__, function.__name__)
        self.value(function.__defaults__, function.__name__)
        for read in reads(function):
            self.words(read.name)
            self.value(read.value, read.name)

    def code(self, code: types.CodeType, name: str) -> None:
        self.words(
            "code",
            code.co_code,
            code.co_names,
            code.co_varnames,
            code.co_freevars,
            code.co_argcount,
            code.co_kwonlyargcount,
            code.co_flags,
            code.co_exceptiontable,
        )
        self.value(code.co_consts, name)


def _spell(value: Any) -> str:
    return repr(sorted(map(str, value))) if isinstance(value, (set, frozenset)) else repr(value)


def digest(function: Function, words: Sequence[Any]) -> str:
    """A name for a function, all that it reads and calls, and `words`. Raises `Unknown` where something has no digest."""
    state = _Digest()
    state.words(*words)
    state.function(function, function)
    return state.hash.hexdigest()[:24]


def recursive(function: Function, above: tuple[Function, ...] = ()) -> bool:
    """Whether a function, or one that it calls, ends up calling itself: Numba's cache may give back code for it that crashes (0.68.1)."""
    if function in above:
        return True
    called = [plain_function(read.value) for read in reads(function) if not read.library]
    return any(recursive(one, (*above, function)) for one in called if one is not None and not foreign(one))
