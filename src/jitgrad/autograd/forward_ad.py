"""Forward mode: tensors that carry a tangent, and ops that hand it on.

>>> import jitgrad
>>> from jitgrad.autograd import forward_ad
>>> with forward_ad.dual_level():
...     x = forward_ad.make_dual(jitgrad.tensor(3.0), jitgrad.tensor(1.0))
...     forward_ad.unpack_dual(x * x)
UnpackedDualTensor(primal=tensor(9.), tangent=tensor(6.))

Tangents are ordinary tensors: they are recorded where they depend on something that takes a gradient, and a backward inside a level
carries them through the gradients.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from .._engine import modes
from .._tensor import dual, dual_rules
from .grad_mode import Mode

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]

_current_level = -1  # as programs written for torch read it


class UnpackedDualTensor(NamedTuple):
    """What `unpack_dual` returns: the value without tangent, and the tangent or None."""

    primal: Any
    tangent: Any


def enter_dual_level() -> int:
    """Begin a level; returns its number, 0. RuntimeError inside another one: `jitgrad.func.jvp` is what nests."""
    global _current_level
    if _current_level >= 0:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _current_level = 0
    dual_rules.level(0).enter()
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """End the level; its tangents are gone. RuntimeError for a level that is not the current one."""
    global _current_level
    if (_current_level if level is None else level) != _current_level:
        raise RuntimeError("Trying to exit a forward AD level that was not the last one that was created. This is not supported.")
    if _current_level < 0:
        raise RuntimeError("Dual level must be a positive number.")
    current = found(_current_level)
    if current is not None:
        current.leave()
    _current_level -= 1


@contextmanager
def entered() -> Iterator[dual.Level]:
    """A level that may lie within others; `make_dual` and `unpack_dual` mean it while it is the innermost."""
    global _current_level
    was, _current_level = _current_level, 0
    level = dual_rules.level(0)
    level.enter()
    try:
        yield level
    finally:
        level.leave()
        _current_level = was


def found(number: int) -> Any:
    """The innermost level of that number, in this thread, or None."""
    level = modes.LOCAL.level
    while level is not None and level.number != number:
        level = level.outer
    return level


def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Any:
    """A view of `tensor` with `tangent`, a tensor of its shape.

    The tangent is used as it is where it is laid out in memory as the tensor is, else copied. Raises RuntimeError outside of all levels,
    for another shape, or where one of both has a tangent already; ValueError for a dtype that is not floating point.
    """
    number = _current_level if level is None else level
    if number < 0:
        raise RuntimeError("Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first.")
    for what, x in (("primal", tensor), ("tangent", tangent)):
        if not x.is_floating_point():
            raise ValueError(f"Expected {what} to be floating point or complex, but got: {x.dtype}")
    current = found(number)
    if current is None:
        return tensor.view_as(tensor)
    if current.of(tensor) is not None:
        raise RuntimeError(f"Making a dual Tensor based on a Tensor that already has a forward gradient at the same level {number} is not supported.")
    if current.of(tangent) is not None:
        raise RuntimeError(f"Setting a forward grad that itself has a forward gradient at the same level{number} is not supported.")
    dual.check_size(tensor, tangent)
    result = dual.alias(tensor)
    for outside in current.outwards():
        if outside is current:
            outside.give(result, tangent)
            break
    return result


def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """A view of the tensor's value, without tangent, and the tangent itself or None; outside of all levels the tensor itself and None."""
    number = _current_level if level is None else level
    if number < 0:
        return UnpackedDualTensor(tensor, None)
    current = found(number)
    if current is None:
        return UnpackedDualTensor(tensor.view_as(tensor), None)
    return UnpackedDualTensor(dual.alias(tensor), current.of(tensor))


class dual_level(Mode):
    """A level as a context manager (its value is the level's number) or a decorator."""

    def __enter__(self) -> int:  # type: ignore[override]
        return enter_dual_level()

    def __exit__(self, *exception: object) -> None:
        exit_dual_level()


def _is_fwd_grad_enabled() -> bool:
    return not modes.LOCAL.without_tangents


class _set_fwd_grad_enabled(Mode):
    """Switches forward mode off (False): no tensor then has a tangent."""

    def __init__(self, mode: bool) -> None:
        self._mode = mode
        self._before = modes.set_tangents(mode)

    def clone(self) -> _set_fwd_grad_enabled:
        """Another one of the same mode."""
        return type(self)(self._mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        modes.set_tangents(self._before)
