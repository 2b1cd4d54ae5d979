"""Lists, tuples and dicts of tensors, of any depth: laid out flat, filled again, mapped. For `NestedIOFunction`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .._tensor.base import TensorBase
from .._tensor.gradients import full_name

__all__ = ["filled", "flat", "flat_with_none", "mapped"]


def _unknown(x: Any) -> ValueError:
    return ValueError(f"Auto nesting doesn't know how to process an input object of type {full_name(type(x))}. "
                      "Accepted types: Tensors, or lists/tuples of them")  # fmt: skip


def _leaves(x: Any) -> Iterator[Any]:
    if isinstance(x, dict):
        x = tuple(x.values())
    if isinstance(x, (list, tuple)):
        for part in x:
            yield from _leaves(part)
    else:
        if x is not None and not isinstance(x, TensorBase):
            raise _unknown(x)
        yield x


def flat(x: Any) -> tuple[Any, ...]:
    """The tensors in order, without None. ValueError for anything else."""
    return tuple([leaf for leaf in _leaves(x) if leaf is not None])


def flat_with_none(x: Any) -> tuple[Any, ...]:
    """The tensors in order, None among them. ValueError for anything else."""
    return tuple(_leaves(x))


def filled(values: Any, like: Any) -> Any:
    """The nesting of `like` with `values` in place of its leaves. IndexError where these are too few."""
    left = list(values)

    def fill(x: Any) -> Any:
        if isinstance(x, (list, tuple)):
            return type(x)([fill(part) for part in x])
        if not left:
            raise IndexError("tuple index out of range")
        return left.pop(0)

    return fill(like)


def mapped(function: Callable[[Any], Any], x: Any) -> Any:
    """The same nesting with `function` of each tensor. ValueError for what is neither a tensor, None, nor a nesting of them."""
    if isinstance(x, TensorBase):
        return function(x)
    if isinstance(x, dict):
        return {key: mapped(function, value) for key, value in x.items()}
    if isinstance(x, (list, tuple)):
        return type(x)([mapped(function, part) for part in x])
    if x is not None:
        raise _unknown(x)
    return None
