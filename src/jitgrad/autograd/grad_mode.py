"""Switches of recording: `no_grad`, `enable_grad`, `set_grad_enabled`, `inference_mode`.

All of them are context managers and decorators, hold for the calling thread only, and nest. A decorated generator or coroutine has
the mode while it runs, not while it is suspended: whoever resumes it keeps a mode of their own. (In torch a decorated coroutine
never has the mode; see `docs/differences.md`.)
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Self

from .._core.errors import argument_error
from .._engine import modes
from .._tensor.base import TensorBase, version_of

__all__ = [
    "enable_grad",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
]

Function = Callable[..., Any]
Factory = Callable[[], AbstractContextManager[Any]]

_CLASS = (
    "Decorating classes is deprecated and will be disabled in future versions. You should only decorate functions or methods. "
    "To preserve the current behavior of class decoration, you can directly decorate the `__init__` method and nothing else."
)


def is_grad_enabled() -> bool:
    """Whether ops that take gradients are recorded in this thread."""
    return modes.grad_enabled()


def is_inference_mode_enabled() -> bool:
    """Whether this thread is in inference mode."""
    return modes.LOCAL.inference


class Mode:
    """A context manager that is a decorator too; every call of the decorated function enters a fresh copy."""

    def __enter__(self) -> None:
        raise NotImplementedError

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        raise NotImplementedError

    def clone(self) -> Self:
        """Another one with the same arguments."""
        return type(self)()

    def __call__(self, function: Any) -> Any:
        """Decorate a function."""
        if inspect.isclass(function):
            warnings.warn(_CLASS, FutureWarning, stacklevel=2)
            return decorate(self.clone, functools.wraps(function)(functools.partial(function)))
        return decorate(self.clone, function)


def decorate(fresh: Factory, function: Function) -> Function:
    """`function` running inside what `fresh` makes; with generators and coroutines, every step of them."""
    if inspect.isgeneratorfunction(function):
        return _stepping_generator(fresh, function)
    if inspect.isasyncgenfunction(function):
        return _stepping_async_generator(fresh, function)
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def coroutine(*args: Any, **named: Any) -> Any:
            return await Stepped(fresh, function(*args, **named))

        return coroutine

    @functools.wraps(function)
    def inside(*args: Any, **named: Any) -> Any:
        with fresh():
            return function(*args, **named)

    return inside


def _drive(fresh: Factory, inner: Any) -> Generator[Any, Any, Any]:
    """Hand everything through to a generator or coroutine and back, with the mode on while it runs."""
    step, given = inner.send, None
    while True:
        try:
            with fresh():
                out = step(given)
        except StopIteration as end:
            return end.value
        try:
            given = yield out
            step = inner.send
        except GeneratorExit:
            with fresh():
                inner.close()
            raise
        except BaseException as error:
            step, given = inner.throw, error


def _stepping_generator(fresh: Factory, function: Function) -> Function:
    @functools.wraps(function)
    def generator(*args: Any, **named: Any) -> Generator[Any, Any, Any]:
        return (yield from _drive(fresh, function(*args, **named)))

    return generator


class Stepped:
    """An awaitable around a coroutine."""

    def __init__(self, fresh: Factory, inner: Coroutine[Any, Any, Any]) -> None:
        self.fresh, self.inner = fresh, inner

    def __await__(self) -> Generator[Any, Any, Any]:
        return _drive(self.fresh, self.inner.__await__())


def _stepping_async_generator(fresh: Factory, function: Function) -> Function:
    @functools.wraps(function)
    async def generator(*args: Any, **named: Any) -> AsyncGenerator[Any, Any]:
        inner = function(*args, **named)
        step, given = inner.asend, None
        while True:
            try:
                out = await Stepped(fresh, step(given))
            except StopAsyncIteration:
                return
            try:
                given = yield out
                step = inner.asend
            except GeneratorExit:
                await Stepped(fresh, inner.aclose())
                raise
            except BaseException as error:
                step, given = inner.athrow, error

    return generator


class _Switch(Mode):
    """Recording on or off; usable without parentheses: `@no_grad`."""

    on: bool

    def __new__(cls, function: Any = None) -> Any:
        """Make the mode, or decorate a function with it."""
        return super().__new__(cls) if function is None else cls()(function)

    def __init__(self, function: Any = None) -> None:
        self.prev = False

    def __enter__(self) -> None:
        self.prev = modes.set_grad(self.on)

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        modes.set_grad(self.prev)


class no_grad(_Switch):
    """Nothing is recorded: results take no gradient, though tensors made with `requires_grad=True` do.

    >>> import jitgrad
    >>> x = jitgrad.ones(2, requires_grad=True)
    >>> with jitgrad.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    on = False


class enable_grad(_Switch):
    """Recording on again inside `no_grad`."""

    on = True


class set_grad_enabled(Mode):
    """Recording on or off from now on; as a context manager, until the end of the block. TypeError for what is no bool."""

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise argument_error("set_grad_enabled", "enabled", 1, "bool", mode)
        self.mode = mode
        self.prev = modes.set_grad(mode)

    def __call__(self, function: Any) -> Any:
        """Decorate a function."""
        modes.set_grad(self.prev)  # the decorator itself must not switch anything
        return super().__call__(function)

    def __enter__(self) -> None:
        modes.set_grad(self.mode)

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        modes.set_grad(self.prev)

    def clone(self) -> Self:
        """Another one with the same mode."""
        return type(self)(self.mode)

    def __repr__(self) -> str:
        return f"jitgrad.autograd.grad_mode.set_grad_enabled(mode={self.mode})"


class inference_mode(Mode):
    """Nothing is recorded, and the tensors made are inference tensors: without version counter, refused by recorded ops later on.

    `mode=False` leaves inference mode for the block.
    """

    def __new__(cls, mode: Any = True) -> Any:
        """Make the mode, or decorate a function with it."""
        return super().__new__(cls) if isinstance(mode, bool) else cls()(mode)

    def __init__(self, mode: Any = True) -> None:
        self.mode = mode
        self.prev = (True, False)

    def __enter__(self) -> None:
        self.prev = (modes.set_grad(not self.mode), modes.set_inference(self.mode))

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        grad, inference = self.prev
        modes.set_inference(inference)
        modes.set_grad(grad)

    def clone(self) -> Self:
        """Another one with the same mode."""
        return type(self)(self.mode)


class set_multithreading_enabled(Mode):
    """Accepted for compatibility: a backward always runs in the thread that calls it."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode
        self.prev = modes.LOCAL.multithreading
        modes.LOCAL.multithreading = mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        modes.LOCAL.multithreading = self.prev

    def clone(self) -> Self:
        """Another one with the same mode."""
        return type(self)(self.mode)


def is_multithreading_enabled() -> bool:
    """What `set_multithreading_enabled` was set to."""
    return modes.LOCAL.multithreading


class _force_original_view_tracking(Mode):
    """Views remember from now on, or until the end of the block, the ops that made them (`mode=False`: no longer).

    After a write to its base such a view has those ops for its history once more, where other views have one `AsStridedBackward0`.

    >>> import jitgrad
    >>> x = jitgrad.ones(2, 3, requires_grad=True) * 2
    >>> with jitgrad.autograd._force_original_view_tracking(True):
    ...     row = x[0]
    >>> _ = x.mul_(3)
    >>> row.grad_fn.name()
    'SelectBackward0'
    """

    def __init__(self, mode: bool) -> None:
        self.mode = mode
        self.prev = modes.set_view_replay(mode)

    def __call__(self, function: Any) -> Any:
        """Decorate a function."""
        modes.set_view_replay(self.prev)
        return super().__call__(function)

    def __enter__(self) -> None:
        modes.set_view_replay(self.mode)

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        modes.set_view_replay(self.prev)

    def clone(self) -> Self:
        """Another one with the same mode."""
        return type(self)(self.mode)


def is_view_replay_enabled() -> bool:
    """What `_force_original_view_tracking` was set to."""
    return modes.LOCAL.view_replay


class _unsafe_preserve_version_counter(Mode):
    """Writes in the block to one tensor, or to each of a tuple, are not counted: a backward that saved it goes on with the new values.

    For programs that put the memory of a saved tensor elsewhere and fill it again before the backward. Where other values are put in,
    gradients are wrong without a word. AssertionError for what is no tensor or tuple; RuntimeError for an inference tensor, which has no count.

    >>> import jitgrad
    >>> x = jitgrad.ones(2)
    >>> with jitgrad.autograd._unsafe_preserve_version_counter(x):
    ...     _ = x.mul_(3)
    >>> x._version
    0
    """

    def __init__(self, tensors: Any) -> None:
        self.tensors = (tensors,) if isinstance(tensors, TensorBase) else tensors
        if not isinstance(self.tensors, tuple):
            raise AssertionError("Expected tensors to be a tuple")
        for x in self.tensors:
            _ = x._version
        self.states = [version_of(x).state() for x in self.tensors]

    def clone(self) -> Self:
        return type(self)(self.tensors)

    def __enter__(self) -> None:
        if modes.SPECIAL and modes.LOCAL.tracer is not None:
            modes.LOCAL.tracer.give_up("writes that are not counted")

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        for x, state in zip(self.tensors, self.states, strict=True):
            version_of(x).restore(state)
