"""`compile`: a function that is traced once per kind of arguments, compiled, and from then on called as a program."""

from __future__ import annotations

import functools
import itertools
import re
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, Final

from .._core.settings import settings
from .._engine import modes
from .._tensor.base import TensorBase
from .derivative import Derivative, live_tensors
from .entry import AGAIN, FAILED, MISS
from .guards import Guards
from .history import is_done
from .operations import Unsupported
from .reasons import why_not
from .trace import Tracer
from .version import Version

LIMIT: Final = 8  # compiled versions of one function; the least recently used goes
MARK: Final = "tensor"


def flatten(value: Any, tensors: list[Any]) -> Any:
    """The tensors in nested containers, in order; what is left, to be compared."""
    if isinstance(value, TensorBase):
        tensors.append(value)
        return MARK
    if isinstance(value, (list, tuple)):
        return (type(value), *[flatten(item, tensors) for item in value])
    if isinstance(value, dict):
        return (dict, *[(key, flatten(item, tensors)) for key, item in value.items()])
    return (type(value), value)


def filled(value: Any, tensors: Iterator[Any]) -> Any:
    """Nested containers with other tensors in the place of theirs."""
    if isinstance(value, TensorBase):
        return next(tensors)
    if type(value) in (list, tuple):
        return type(value)(filled(item, tensors) for item in value)
    if type(value) is dict:
        return {key: filled(item, tensors) for key, item in value.items()}
    return value


class Compiled:
    """A compiled function. `source()`, `graph()` and `explain()` tell about the version used last.

    Raises what the function raises. Where it can't be compiled it runs as it is, after one warning that says why.
    """

    def __init__(self, function: Callable[..., Any], background: bool = False, limit: int = LIMIT) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.background = background
        self.limit = limit
        self.versions: OrderedDict[int, Version] = OrderedDict()
        self.latest: Version | None = None
        self.eager: dict[Any, str] = {}
        self.history: list[str] = []
        self.retraces: list[str] = []  # why there is more than one version
        self.calls = 0
        self.lock = threading.Lock()
        self.pending: threading.Thread | None = None
        self.beside_now: set[object] = set()  # calls that run eagerly at the moment, of whatever thread
        self.beside_ever = itertools.count()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the program of the version used last, if it fits; see `find`."""
        version = self.latest
        if version is not None and not kwargs and len(args) == version.plain_arguments:
            result = version.enter(*args)
            if result is not MISS and result is not AGAIN and result is not FAILED:
                return result
        return self.find(args, kwargs)

    def find(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The version that fits, or a new one."""
        inside = modes.SPECIAL and modes.LOCAL.tracer is not None
        if inside or not settings.jit:  # inside another compiled function: part of its trace
            return self.function(*args, **kwargs)
        tensors: list[Any] = []
        spec = flatten((args, tuple(kwargs.items())), tensors)
        for key in reversed(list(self.versions)):
            version = self.versions[key]
            if version.spec != spec:
                continue
            if version.moved() or version.guards.drifted():
                version.refresh()
            result = version.enter(*tensors)
            while result is AGAIN:
                result = version.enter(*tensors)
            if result is FAILED:
                return self.function(*args, **kwargs)
            if result is not MISS:
                self.versions.move_to_end(key)
                self.latest = version
                return result
        return self.trace(args, kwargs, tensors, spec)

    def trace(self, args: Any, kwargs: Any, tensors: list[Any], spec: Any) -> Any:
        """Run the function with the tracer looking on, and compile what it saw."""
        signature = self.signature(tensors, spec)
        if (
            signature in self.eager
            or modes.SPECIAL
            or not modes.grad_enabled()
            or (self.pending is not None and self.pending.is_alive())
            or not self.lock.acquire(blocking=False)
        ):
            return self.beside(args, kwargs)
        try:
            before, disturbed = next(self.beside_ever), bool(self.beside_now)
            if self.latest is not None:
                self.retraces.append(why_not(self.latest, tensors, spec) if len(tensors) == self.latest.argument_count else "other arguments")
            guards = Guards(self.function)
            tracer = Tracer(tensors)
            with tracer:
                result = self.function(*args, **kwargs)
                live = live_tensors(result, is_done) if not tracer.broken else []
                derivative = (
                    Derivative(tracer, self.again(args, kwargs), tensors, live) if live and not tracer.leaves else None
                )
            why = tracer.broken
            guards.kernels(tracer.contracts.values())
            if not why and guards.refused:
                why = f"it reads {guards.refused}"
            if not why and (changed := guards.changed()):
                why = f"the function changes {changed}"
            if not why:
                try:
                    self.build(tracer, tensors, result, guards, spec, derivative)
                except Unsupported as unsupported:
                    why = str(unsupported)
                except Exception as error:  # a fault of the compiler must not be one of the program
                    why = f"the compiler failed with {type(error).__name__}: {error}"
            disturbed |= next(self.beside_ever) != before + 1
            if why and not disturbed:  # else what another thread wrote may be the reason: the next call will tell
                self.give_up(signature, why)
            return result
        finally:
            self.lock.release()

    def beside(self, args: Any, kwargs: Any) -> Any:
        """A call that is no program, maybe while another thread traces, which has to know of it."""
        mark = object()
        self.beside_now.add(mark)  # before the count: a trace reads them in the other order, and misses no call
        next(self.beside_ever)
        try:
            return self.function(*args, **kwargs)
        finally:
            self.beside_now.discard(mark)

    def again(self, args: Any, kwargs: Any) -> Callable[..., Any]:
        """The function of the tensors alone, everything else as in this call."""

        def call(*tensors: Any) -> Any:
            left = iter(tensors)
            return self.function(*filled(args, left), **filled(kwargs, left))

        return call

    def signature(self, tensors: list[Any], spec: Any) -> Any:
        """What eager calls are known by."""
        try:
            hash(spec)
        except TypeError:
            spec = repr(spec)
        return spec, tuple((x.meta, x.fn is not None) for x in tensors)

    def build(
        self, tracer: Tracer, tensors: list[Any], result: Any, guards: Guards, spec: Any, derivative: Derivative | None
    ) -> None:
        """Schedule all that is computed once."""
        name = "".join(c if c.isalnum() else "_" for c in getattr(self.function, "__name__", "step"))
        version = Version(f"step_{name.strip('_') or 'x'}", tracer, tensors, result, guards, spec, derivative)
        version.plain_arguments = len(tensors) if spec == ((tuple), *_plain(len(tensors))) else -1
        if self.background:
            self.pending = threading.Thread(target=self.later, args=(version, self.signature(tensors, spec)), daemon=True)
            self.pending.start()
        else:
            self.finish(version)

    def later(self, version: Version, signature: Any) -> None:
        """Compile a version in a thread of its own."""
        try:
            self.finish(version)
        except Exception as error:
            self.give_up(signature, f"the compiler failed with {type(error).__name__}: {error}")

    def finish(self, version: Version) -> None:
        """Compile a version and let it be used."""
        version.compile()
        self.calls += 1
        self.versions[self.calls] = version
        while len(self.versions) > self.limit:
            self.versions.popitem(last=False)
        self.latest = version

    def give_up(self, signature: Any, why: str) -> None:
        """Run eagerly from now on, and say why."""
        code = getattr(self.function, "__code__", None)
        if code is not None and not re.search(r"\(.*:\d+\)", why):
            why = f"{why} ({code.co_filename}:{code.co_firstlineno})"
        self.eager[signature] = why
        if why not in self.history:
            self.history.append(why)
            name = getattr(self.function, "__name__", "function")
            warnings.warn(f"{name} runs eagerly: {why}", RuntimeWarning, stacklevel=4)

    # ---- what it is
    def source(self) -> str:
        """The generated source of the version used last."""
        return "" if self.latest is None else self.latest.text

    def graph(self) -> str:
        """The operations of the version used last, one per line."""
        if self.latest is None:
            return ""
        program = self.latest.program
        return "\n".join(f"{', '.join(map(repr, op.outs))} = {op.describe()}" for op in program.schedule.operations)

    def explain(self) -> str:
        """What was compiled and why, or why not."""
        lines = [f"{len(self.versions)} compiled version(s), at most {self.limit}"]
        lines += [f"runs eagerly: {why}" for why in self.history]
        lines += [f"traced again: {why}" for why in self.retraces]
        return "\n".join([*lines, *(version.explain() for version in self.versions.values())])


def _plain(count: int) -> Any:
    return ((tuple, *(MARK,) * count), (tuple,))


def compile(function: Callable[..., Any] | None = None, *, background: bool = False, limit: int = LIMIT) -> Any:
    """Make one program of a function of tensors: a training step with backward and optimizer, a loss, a model.

    Usable as a decorator. With `background` calls run eagerly while the compilation goes on; `limit` bounds the number of compiled versions.
    See docs/compile.md.
    """
    if function is None:
        return lambda inner: Compiled(inner, background, limit)
    return Compiled(function, background, limit)
