"""Kernels as objects: a source per dtype, compiled at the first call, found by number in `Meta.k`.

`@kernel(spec)` registers a hand-written one; `Kernel` takes a function that writes the source, for generated ones.
"""

from __future__ import annotations

import inspect
import textwrap
import types
from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np

from .._core.locks import BUILDING
from .._core.meta import Entry, register, table
from .._core.settings import settings
from . import language
from .allocator import keep_freed_memory

Function = Callable[..., Any]
REASSOCIATE: Final = frozenset({"reassoc", "nsz"})
COMPILED: list[str] = []  # names of the kernels compiled or loaded in this process, in order; `jitgrad info` and tests read it


def number_type(dtype: np.dtype[Any]) -> str:
    """The source text of a dtype's scalar type."""
    return f"np.{dtype.type.__name__}"


def header(name: str, dtype: np.dtype[Any], words: Iterable[str]) -> str:
    """The head of a kernel module: where its words come from and what `real` means."""
    origin: dict[str, list[str]] = {}
    for word in words:
        if word in language.WORDS:
            origin.setdefault(language.WORDS[word], []).append(word)
    imports = "".join(f"from jitgrad._kernels.{module} import {', '.join(sorted(found))}\n" for module, found in sorted(origin.items()))
    head = f'"""Kernel {name} for {dtype}, written by jitgrad."""\n\nfrom __future__ import annotations\n\nimport numpy as np\n'
    return f"{head}{imports}\nreal = {number_type(dtype)}\n\n\n"


def _words_of(code: types.CodeType) -> set[str]:
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= _words_of(constant)
    return found


class Kernel:
    """A loop over Buffers, compiled per dtype.

    `write(dtype)` gives the source of a function called `name`; `plain(dtype)` a Python function with the same parameters that
    stands in for it where nothing is compiled (`JITGRAD_JIT=0`, or a dtype for which `compiles(dtype)` is false).
    """

    __slots__ = ("_compiles", "fast", "index", "name", "plain", "spec", "write")

    def __init__(self, name: str, spec: str, write: Callable[[np.dtype[Any]], str], plain: Callable[[np.dtype[Any]], Function],
                 *, fast: Iterable[str] = (), compiles: str = "fdlqiB?hbHILQ") -> None:  # fmt: skip
        self.name = name
        self.spec = spec
        self.write = write
        self.plain = plain
        self.fast = frozenset(fast)
        self._compiles = compiles
        self.index = register(self._pending)

    def __repr__(self) -> str:
        return f"<kernel {self.name} ({self.spec})>"

    def __getitem__(self, dtype: np.dtype[Any]) -> Entry:
        """The entry for a dtype: positional arguments only, nothing checked."""
        return table(dtype)[self.index]

    def _pending(self, dtype: np.dtype[Any], entries: list[Entry], index: int) -> Entry:
        def first_call(*arguments: Any) -> Any:
            with BUILDING:
                if entries[index] is first_call:
                    entries[index] = self.build(dtype)
            return entries[index](*arguments)

        return first_call

    def build(self, dtype: np.dtype[Any]) -> Entry:
        """Compile or load the kernel for a dtype, or take its plain form."""
        if not settings.jit or dtype.char not in self._compiles:
            return quiet(self.plain(dtype))
        from . import forks, jit, store  # noqa: F401  (numba enters here, at the first kernel of the process)

        keep_freed_memory()
        module, on_disk = store.load(f"{self.name}_{dtype.name}", self.source(dtype))
        function = getattr(module, self.name)
        COMPILED.append(f"{self.name}_{dtype.name}")
        if on_disk and "in_memory" not in module.__dict__:  # see `digests.recursive`
            try:
                return jit.jit(function, self.spec, dtype, self.fast, cache=True)
            except Exception:  # a damaged cache file, or a real compile error, which the second try then raises
                store.forget(module)
        return jit.jit(function, self.spec, dtype, self.fast, cache=False)

    def source(self, dtype: np.dtype[Any]) -> str:
        """The whole module that gets compiled for a dtype."""
        return self.write(dtype)


def quiet(function: Function) -> Entry:
    """The function under IEEE's rules without NumPy's warnings: infinities and NaN are results like others."""

    def call(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*arguments)

    return call


def with_real(function: Function, dtype: np.dtype[Any]) -> Function:
    """The same Python function with `real` bound to a dtype."""
    if not isinstance(function, types.FunctionType):
        return function
    scope = dict(function.__globals__, real=dtype.type)
    return types.FunctionType(function.__code__, scope, function.__name__, function.__defaults__, function.__closure__)


def kernel(spec: str, *, fast: Iterable[str] = (), uses: tuple[Function, ...] = ()) -> Callable[[Function], Kernel]:
    """Declare a hand-written kernel.

    `spec` has a letter per parameter: b a Buffer of the kernel's dtype, i of int64, m of bool, d of float64, u of uint64; n an
    int64, s a float64, w a uint64; `->n` or `->s` for a returned number. `uses` names plain functions that the kernel calls; their
    sources go into the module. `fast` adds fast-math flags (`REASSOCIATE` for sums whose order may change).
    """

    def declare(function: Function) -> Kernel:
        name = function.__name__

        def write(dtype: np.dtype[Any]) -> str:
            words = _words_of(function.__code__).union(*(_words_of(helper.__code__) for helper in uses))
            flags = ", ".join(repr(flag) for flag in sorted({"contract", *fast}))
            helpers = "".join(f"@numba.njit(error_model='numpy', fastmath={{{flags}}})\n{_text(helper)}\n\n" for helper in uses)
            return header(name, dtype, words) + ("import numba\n\n" if uses else "") + helpers + _text(function)

        def plain(dtype: np.dtype[Any]) -> Function:
            bound = with_real(function, dtype)
            bound.__globals__.update({helper.__name__: with_real(helper, dtype) for helper in uses})
            return bound

        return Kernel(name, spec, write, plain, fast=fast)

    return declare


def _text(function: Function) -> str:
    """The function's source without its decorators."""
    lines = textwrap.dedent(inspect.getsource(function)).splitlines(keepends=True)
    start = next(number for number, line in enumerate(lines) if line.startswith("def "))
    return "".join(lines[start:])
