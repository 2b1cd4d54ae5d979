"""`view_copy(x, shape)` and the like: what the view op gives, as a copy.

A copy of a view has the node of the view under torch's name for it (`ViewBackward0_copy`): the transpose is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._core.devices import contiguous_format
from .._engine.node import Port
from .._ops import shaping, splitting
from .._ops.outputs import into
from .indexing import take
from .nodes import node_class

Tensor = Any


def copied(view: Tensor, out: Tensor | None = None) -> Tensor:
    """A view's elements in memory of their own, with the view's history."""
    result = view.clone(memory_format=contiguous_format)
    if result.fn is not None:
        edge = view.fn
        maker: Any = edge.e0 if type(edge) is Port else edge
        kind = type(maker)
        if not kind.__name__.endswith("_copy"):
            maker.__class__ = node_class(kind.__name__ + "_copy", kind.__bases__[0], maker.op)
        edge.vc = result.vc
        result.fn = edge
    return into("copy", out, result)


def all_copied(views: Sequence[Tensor], out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...] | None:
    """Copies of several views; None where they go into the tensors of `out`."""
    if out is None:
        return tuple(copied(view) for view in views)
    for view, target in zip(views, out, strict=True):
        copied(view, target)
    return None


def view_copy(input: Tensor, size: Any = None, *, dtype: Any = None, out: Tensor | None = None) -> Tensor:
    """A copy of `input.view(size)`."""
    return copied(input.view(dtype) if dtype is not None else input.reshape(size), out)


def alias_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy of the whole."""
    return copied(take(input, ...), out)


def as_strided_copy(
    input: Tensor, size: Any, stride: Any, storage_offset: int | None = None, *, out: Tensor | None = None
) -> Tensor:
    """A copy of `as_strided`."""
    return copied(shaping.as_strided(input, size, stride, storage_offset), out)


def diagonal_copy(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1, *, out: Tensor | None = None) -> Tensor:
    """A copy of `diagonal`."""
    return copied(splitting.diagonal(input, offset, dim1, dim2), out)


def expand_copy(input: Tensor, size: Any, *, implicit: bool = False, out: Tensor | None = None) -> Tensor:
    """A copy of `expand`."""
    return copied(shaping.expand(input, size), out)


def permute_copy(input: Tensor, dims: Any, *, out: Tensor | None = None) -> Tensor:
    """A copy of `permute`."""
    return copied(shaping.permute(input, dims), out)


def select_copy(input: Tensor, dim: int, index: int, *, out: Tensor | None = None) -> Tensor:
    """A copy of `select`."""
    return copied(splitting.select(input, dim, index), out)


def slice_copy(
    input: Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """A copy of a slice along one axis."""
    at = (slice(None),) * (dim % max(input.ndim, 1))
    return copied(take(input, (*at, slice(start, end, step))), out)


def squeeze_copy(input: Tensor, dim: Any = None, *, out: Tensor | None = None) -> Tensor:
    """A copy of `squeeze`."""
    return copied(shaping.squeeze(input, dim=dim), out)


def t_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy of the transpose of a matrix."""
    return copied(shaping.t(input), out)


def transpose_copy(input: Tensor, dim0: int, dim1: int, *, out: Tensor | None = None) -> Tensor:
    """A copy of `transpose`."""
    return copied(shaping.transpose(input, dim0, dim1), out)


def unfold_copy(input: Tensor, dimension: int, size: int, step: int, *, out: Tensor | None = None) -> Tensor:
    """A copy of `unfold`."""
    return copied(shaping.unfold(input, dimension, size, step), out)


def unsqueeze_copy(input: Tensor, dim: int, *, out: Tensor | None = None) -> Tensor:
    """A copy of `unsqueeze`."""
    return copied(shaping.unsqueeze(input, dim), out)


def split_copy(
    input: Tensor, split_size: int, dim: int = 0, *, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, ...] | None:
    """Copies of the pieces of `split`; None where they go into `out`."""
    return all_copied(splitting.split(input, split_size, dim), out)


def split_with_sizes_copy(
    input: Tensor, split_sizes: Sequence[int], dim: int = 0, *, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, ...] | None:
    """Copies of the pieces of `split_with_sizes`; None where they go into `out`."""
    return all_copied(splitting.split_with_sizes(input, split_sizes, dim), out)


def unbind_copy(input: Tensor, dim: int = 0, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...] | None:
    """Copies of all slices along an axis; None where they go into `out`."""
    return all_copied(splitting.unbind(input, dim), out)


def detach_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy without history."""
    return into("detach_copy", out, input.detach().clone())
