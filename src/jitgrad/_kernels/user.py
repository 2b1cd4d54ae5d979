"""Functions of users over real NumPy arrays, compiled one signature at a time.

`compile_function` takes a plain function, or one that is jitted already, and `Argument`s that say what each argument will be. It
returns a `Compiled`: an entry that takes exactly such arguments, and what it gives back. Who calls the entry vouches for dtype,
rank, C order and alignment.

Arrays that a function may not write to are typed read-only, so a write is an error at compilation, with the user's line. It also tells what
may share memory: a slice of a read-only array is read-only, so a result that Numba types as writable is fresh memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from .._core.errors import KernelError
from .._core.locks import BUILDING
from .._core.settings import settings
from .captures import Function, plain_function
from .copies import relinked, tie
from .digests import Unknown, digest, recursive
from .reasons import READONLY, compile_error, definition, place_in_traceback, write_error
from .registry import COMPILED

Entry = Callable[..., Any]
DEFAULTS: Final[dict[str, Any]] = {"error_model": "numpy", "fastmath": {"contract"}}
_PARALLEL: Final[set[int]] = set()  # processes in which a kernel with `parallel=True` was compiled; see `serial`


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument: an array of `dtype` and rank `ndim`, or (`dtype` None) a number or other value like `value`."""

    name: str
    dtype: np.dtype[Any] | None = None
    ndim: int = 0
    value: Any = None

    def __str__(self) -> str:
        if self.dtype is None:
            return f"{self.name}: {type(self.value).__name__}"
        return f"{self.name}: {self.dtype}[{', '.join(':' * self.ndim)}]"


@dataclass(frozen=True, slots=True)
class Given:
    """One value that a function returns: `kind` is array, number, none or a word for what it should not be.

    fresh: an array that shares memory with no argument. ordered: always C-contiguous.
    """

    kind: str
    dtype: np.dtype[Any] | None = None
    ndim: int = 0
    fresh: bool = False
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class Compiled:
    """A function for one signature. gives: None where nothing is known (plain Python). several: it returns a tuple.

    writes: positions of arguments that it was allowed to write to because it does.
    """

    entry: Entry
    gives: tuple[Given, ...] | None
    several: bool
    writes: frozenset[int]


def compile_function(
    function: Any,
    arguments: Sequence[Argument],
    *,
    mutates: frozenset[int] = frozenset(),
    may_write: frozenset[int] = frozenset(),
    nogil: bool = True,
) -> Compiled:
    """Compile for one signature, or take it from disk.

    mutates: positions that the function may write to. may_write: positions that it is allowed to write to if it can't do without;
    the result says so. Raises KernelError where Numba can't compile it, or where it writes into another argument.
    """
    plain = plain_function(function)
    if plain is None:
        raise TypeError(f"expected a Python function or one made by numba.njit, got {type(function).__name__}")
    if not settings.jit:
        return Compiled(uncompiled(plain, arguments, mutates | may_write), None, False, may_write)
    with BUILDING:
        from . import forks  # noqa: F401  (before numba)

        return _attempts(function, plain, arguments, mutates, may_write, nogil)


def _attempts(
    function: Any,
    plain: Function,
    arguments: Sequence[Argument],
    mutates: frozenset[int],
    may_write: frozenset[int],
    nogil: bool,
) -> Compiled:
    """First with everything read-only; then, if that was in the way, with what may be written; else as Numba usually types arrays."""
    spelled = ", ".join(map(str, arguments))

    def attempt(writable: frozenset[int], wrote: frozenset[int], trusted: bool) -> Compiled:
        types = tuple(_numba_type(argument, place in writable, plain) for place, argument in enumerate(arguments))
        return _compile(function, plain, types, nogil, wrote, trusted)

    try:
        return attempt(mutates, frozenset(), not mutates)
    except KernelError:
        raise
    except Exception as error:
        first = error
    if READONLY in str(first):
        if not may_write:
            raise write_error(plain, first) from first
        try:
            return attempt(
                mutates | may_write, may_write, not mutates
            )  # the caller hands over copies, so results share memory with those only
        except Exception as error:
            raise (
                write_error(plain, error) if READONLY in str(error) else compile_error(plain, spelled, error)
            ) from error
    try:  # a function it calls may insist on writable arrays
        return attempt(frozenset(range(len(arguments))), may_write, False)
    except Exception:
        raise compile_error(plain, spelled, first) from first


def _compile(
    function: Any, plain: Function, types: tuple[Any, ...], nogil: bool, wrote: frozenset[int], trusted: bool
) -> Compiled:
    import numba

    from .jit_cache import user_cache

    options = options_of(function) | {"nogil": nogil, "no_cfunc_wrapper": True, "boundscheck": settings.bounds_check}
    dispatcher = numba.njit(**options)(linked(plain))
    try:
        words = sorted((key, _spell(value)) for key, value in options.items())
        cache = None if recursive(plain) else user_cache(dispatcher.py_func, digest(plain, words), repr(types))
        if cache is not None:
            dispatcher._cache = cache
    except Unknown:
        pass  # something it reads has no digest: compiled in memory
    dispatcher.compile(types)
    COMPILED.append(plain.__name__)
    (found,) = dispatcher.overloads.values()
    result = found.signature.return_type
    several = isinstance(result, numba.types.BaseTuple)
    gives = tuple(_given(item, trusted) for item in (result if several else (result,)))
    return Compiled(found.entry_point, gives, several, wrote)


def _spell(value: Any) -> str:
    return repr(sorted(map(str, value)) if isinstance(value, (set, frozenset)) else value)


def options_of(function: Any) -> dict[str, Any]:
    """How a function is to be compiled: the options its author gave to njit, else ours."""
    given: Mapping[str, Any] | None = getattr(function, "targetoptions", None)
    if given is None:
        return dict(DEFAULTS)
    options = {key: value for key, value in given.items() if key not in ("cache", "nopython", "forceobj", "looplift")}
    if options.get("parallel"):
        if serial():
            del options["parallel"]
        else:
            _PARALLEL.add(os.getpid())
    return options


def serial() -> bool:
    """Whether `parallel=True` must be ignored: a process above this one has used it, and a threading layer rarely survives a fork (GNU
    OpenMP kills the child).
    """
    return bool(_PARALLEL - {os.getpid()})


def forked() -> bool:
    """Whether this process has code in it that its parent compiled for several threads."""
    return bool(_PARALLEL) and os.getpid() not in _PARALLEL


def linked(function: Function) -> Function:
    """The function with everything it calls ready to be compiled into it: plain functions jitted, and nothing taken from
    Numba's own cache, which misses changes in what a callee calls.
    """
    import numba

    done: dict[Function, Any] = {}

    def replace(value: Any, name: str) -> Any:
        inner = plain_function(value)
        if inner is None or (inner.__module__ or "").startswith(("numba.", "numpy.")):
            return value
        if inner not in done:
            done[inner] = None
            options = options_of(value) | ({"boundscheck": True} if settings.bounds_check else {})
            done[inner] = numba.njit(**options)(relinked(inner, replace))
        return value if done[inner] is None else done[inner]

    copy = relinked(function, replace)
    for inner, dispatcher in done.items():  # what calls itself, if over others, was not there yet when it was copied
        tie(inner, dispatcher.py_func, done)
    return copy


def uncompiled(function: Function, arguments: Sequence[Argument], mutates: frozenset[int]) -> Entry:
    """The function as plain Python (`JITGRAD_JIT=0`), what it calls too, on arrays that it can't write to unless it may."""
    done: dict[Function, Any] = {}

    def replace(value: Any, name: str) -> Any:
        inner = plain_function(value)
        if inner is None or type(value) is Function:
            return value
        if inner not in done:
            done[inner] = inner
            done[inner] = relinked(inner, replace)
        return done[inner]

    plain = relinked(function, replace)
    guarded = [place for place, argument in enumerate(arguments) if argument.dtype is not None and place not in mutates]

    def call(*given: Any) -> Any:
        values = list(given)
        for place in guarded:
            values[place] = values[place].view()
            values[place].flags.writeable = False
        try:
            with np.errstate(all="ignore"):
                return plain(*values)
        except ValueError as error:
            if "read-only" in str(error):
                raise write_error(function, error, place_in_traceback(error, function)) from error
            raise

    return call


def _numba_type(argument: Argument, writable: bool, function: Function) -> Any:
    import numba

    if argument.dtype is not None:
        return numba.types.Array(numba.from_dtype(argument.dtype), argument.ndim, "C", readonly=not writable)
    try:
        return numba.typeof(argument.value)
    except ValueError:
        raise KernelError(
            f"argument '{argument.name}' is of type {type(argument.value).__name__}, which Numba has no type for: pass a tensor, a number, "
            f"a bool, a string or a tuple of such numbers, bools and strings{definition(function)}"
        ) from None


def _given(kind: Any, trusted: bool) -> Given:
    """What a returned type of Numba's means; `trusted`: arguments were typed read-only, so writable means fresh."""
    import numba
    from numba.np import numpy_support

    if isinstance(kind, numba.types.Array):
        return Given(
            "array", numpy_support.as_dtype(kind.dtype), kind.ndim, kind.mutable and trusted, kind.layout == "C"
        )
    if isinstance(kind, (numba.types.Number, numba.types.Boolean)):
        return Given("number", numpy_support.as_dtype(numba.types.unliteral(kind)))
    if isinstance(kind, numba.types.NoneType):
        return Given("none")
    return Given(str(kind))
