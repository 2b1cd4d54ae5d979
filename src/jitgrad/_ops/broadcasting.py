"""Tensors brought to a common shape or rank."""

from __future__ import annotations

import warnings
from typing import Any

from .._core.errors import combination_error
from .._core.shapes import Size, broadcast_shapes as common_shape
from .kinds import Tensor, composite


@composite
def broadcast_to(input: Tensor, *size: Any, **named: Any) -> Tensor:
    """`input.expand(size)`."""
    return input.expand(*size, **named)


@composite(method=False)
def broadcast_tensors(*tensors: Any) -> Any:
    """The tensors expanded to one shape, as a tuple; views."""
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tuple(tensors[0])
    shape = common_shape(*(x.meta.shape for x in tensors)) if tensors else ()
    return tuple(x if x.meta.shape == shape else x.expand(shape) for x in tensors)


@composite(method=False)
def broadcast_shapes(*shapes: Any) -> Any:
    """The shape that all shapes broadcast to. RuntimeError where there is none."""
    for shape in shapes:
        if not isinstance(shape, (int, tuple, list)):
            raise RuntimeError(f"Input shapes should be of type ints, a tuple of ints, or a list of ints, got {shape}")
    wrapped = [Size((shape,) if isinstance(shape, int) else shape) for shape in shapes]
    found = [1] * max([len(shape) for shape in wrapped], default=0)
    for place, shape in enumerate(wrapped):
        for axis in range(-1, -1 - len(shape), -1):
            length = shape[axis]
            if length < 0:
                raise ValueError("Attempting to broadcast a dimension with negative length!")
            if length in (1, found[axis]):
                continue
            if found[axis] != 1:
                raise RuntimeError(f"Attempting to broadcast a dimension of length {length} at {axis}! Mismatching argument at index {place} had "
                                   f"{tuple(shape)}; but expected shape should be broadcastable to {found}")  # fmt: skip
            found[axis] = length
    return Size(found)


@composite(method=False)
def meshgrid(*tensors: Any, indexing: str | None = None) -> Any:
    """Each vector along an axis of its own, expanded to the grid of all; views, as a tuple. `indexing` is 'ij' or 'xy'."""
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tuple(tensors[0])
    if not tensors:
        raise ValueError("meshgrid expects a non-empty TensorList")
    for x in tensors:
        if x.ndim > 1:
            raise RuntimeError(f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {x!r}")
        if x.dtype is not tensors[0].dtype:
            raise RuntimeError("torch.meshgrid expects all tensors to have the same dtype")
    if indexing is None:
        warnings.warn(
            "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.",
            UserWarning,
            stacklevel=3,
        )
    elif indexing not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    swap = indexing == "xy" and len(tensors) > 1
    order = (tensors[1], tensors[0], *tensors[2:]) if swap else tensors
    shape = tuple(x.meta.numel for x in order)
    grids = [x.view((1,) * k + (-1,) + (1,) * (len(order) - k - 1)).expand(shape) for k, x in enumerate(order)]
    return (grids[1], grids[0], *grids[2:]) if swap else tuple(grids)


@composite(method=False)
def atleast_1d(*tensors: Any) -> Any:
    """Each tensor, with one axis if it has none; a tuple if several are given."""
    return each("atleast_1d", tensors, lambda x: x if x.ndim else x.reshape(1))


@composite(method=False)
def atleast_2d(*tensors: Any) -> Any:
    """Each tensor, with two axes if it has fewer (new ones in front); a tuple if several are given."""
    return each("atleast_2d", tensors, lambda x: x if x.ndim > 1 else x.unsqueeze(0) if x.ndim else x.reshape(1, 1))


@composite(method=False)
def atleast_3d(*tensors: Any) -> Any:
    """Each tensor, with three axes if it has fewer; a tuple if several are given."""
    return each(
        "atleast_3d",
        tensors,
        lambda x: (
            x
            if x.ndim > 2
            else x.unsqueeze(-1)
            if x.ndim == 2
            else x.unsqueeze(0).unsqueeze(-1)
            if x.ndim
            else x.reshape(1, 1, 1)
        ),
    )


def each(function: str, tensors: tuple[Any, ...], change: Any) -> Any:
    """A function of one tensor, on one or several. TypeError for what is none."""
    several = len(tensors) != 1 or isinstance(tensors[0], (tuple, list))
    given = tuple(tensors[0]) if several and len(tensors) == 1 else tensors
    for x in given:
        if not hasattr(x, "meta"):
            raise combination_error(function, tensors, {}, " * (Tensor input)\n * (tuple of Tensors tensors)\n")
    return tuple(change(x) for x in given) if several else change(given[0])
