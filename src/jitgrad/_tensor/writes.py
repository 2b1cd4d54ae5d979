"""Writes that have no out-of-place twin."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from .._core.devices import CHANNELS_LAST, check_memory_format, contiguous_format, format_of, preserve_format
from .._core.errors import argument_error
from .._core.shapes import check_sizes, contiguous_strides, parse_shape
from .._engine import modes
from .._ops import casts
from .._ops.views import flat_memory, window
from . import indexing
from .base import TensorBase, settle, wrap
from .convert import NUMBER_TYPES
from .general import record
from .inplace import adopt, check_overlap, check_version, check_writable, count_write, has_tangent, inplace
from .new_methods import NewMethods
from .views import creation_refusal, edge_of

Tensor = Any


class WriteMethods(NewMethods):
    """See the module's docstring."""

    __slots__ = ()

    def copy_(self, other: Any, non_blocking: bool = False) -> Tensor:
        """Write the elements of `other`, broadcast and cast, into this tensor.

        TypeError unless `other` is a tensor or a number; RuntimeError where it doesn't broadcast or writing is refused.
        """
        if isinstance(other, TensorBase):
            plain = self.meta is other.meta and self.rare is None and other.rare is None and not modes.SPECIAL
            if plain and ((self.fn is None and other.fn is None) or not modes.grad_enabled()):
                written, read = self.array, other.array
                if written.base is not None or read.base is not None:  # two arrays that own their memory are apart, or the same
                    check_overlap(self, other)
                written[...] = read
                self._bump()
                return self
        else:
            if not isinstance(other, NUMBER_TYPES):
                raise argument_error("copy_", "other", 1, "Tensor", other)
            other = wrap(np.asarray(other))
        edges = [edge_of(self), edge_of(other)] if modes.grad_enabled() else [None, None]
        recorded = edges[0] is not None or edges[1] is not None
        if modes.SPECIAL and (recorded or modes.LOCAL.level is not None):
            return inplace(casts.copied, "copy_", self, (other,), {})
        check_writable(self, "copy_")
        check_overlap(self, other)
        casts.check_copied(self, other)
        if recorded:
            return self._copy_recorded(other, edges)
        if self.meta.kind is other.meta.kind:
            self.array[...] = other.array
        else:
            with np.errstate(all="ignore"):
                np.copyto(self.array, other.array, casting="unsafe")
        if modes.SPECIAL and modes.LOCAL.tracer is not None:
            modes.LOCAL.tracer.written(self, other)
        count_write(self)
        return self

    def _copy_recorded(self, other: Any, edges: list[Any]) -> Tensor:
        """`copy_` with a history; straight into the memory, as nothing of the old value is read."""
        if self.rare is not None and self.rare.creation is not None:
            raise creation_refusal(self, "is being")
        made = wrap(self.array)
        if self.meta.kind.is_floating_point:
            record(casts.copy_op, (self, other), (), (), made, (), edges)
        with np.errstate(all="ignore"):
            np.copyto(self.array, other.array, casting="unsafe")
        self._bump()
        if made.fn is not None:
            adopt(self, made.fn)
        return self

    def index_put(self, indices: Any, values: Any, accumulate: bool = False) -> Tensor:
        """This tensor with `values` at the places given by index tensors, one per axis; added there with `accumulate`."""
        return indexing.index_put(self, indices, values, accumulate)

    def index_put_(self, indices: Any, values: Any, accumulate: bool = False) -> Tensor:
        """In-place `index_put`."""
        return indexing.index_put_(self, indices, values, accumulate)

    def fill_diagonal_(self, fill_value: Any, wrap: bool = False) -> Tensor:
        """Write one value along the diagonal of a matrix, or of a tensor with axes of one length; with `wrap` again below a tall one.

        RuntimeError for fewer than two axes, or for several of different lengths.
        """
        shape = self.meta.shape
        if len(shape) < 2:
            raise RuntimeError("dimensions must larger than 1")
        if len(shape) > 2:
            if len(set(shape)) > 1:
                raise RuntimeError("all dimensions of input must be of equal length")
            steps = sum(step // self.meta.dtype.itemsize for step in self.array.strides)
            self.as_strided(shape[:1], (steps,)).fill_(fill_value)  # type: ignore[attr-defined]
            return self
        for start in range(0, shape[0] if wrap else min(shape), shape[1] + 1):
            self.narrow(0, start, min(shape[1], shape[0] - start)).diagonal().fill_(fill_value)  # type: ignore[attr-defined]
        return self

    def resize_(self, *sizes: Any, size: Any = None, memory_format: Any = None) -> Tensor:
        """Another shape, in place: elements are kept in the order of memory, new ones are whatever the memory held.

        memory_format: the order of the axes in memory, row-major by default. RuntimeError on a tensor that takes gradients, unless in
        inference mode.
        """
        shape = parse_shape(sizes if size is None else (size,), "resize_")
        check_sizes(shape)
        in_inference = bool(modes.SPECIAL) and modes.LOCAL.inference
        if self.requires_grad and not in_inference:
            raise RuntimeError("cannot resize variables that require grad")
        if has_tangent(self):
            raise RuntimeError("cannot resize variables that has a forward grad")
        if shape == self.meta.shape and memory_format is None:
            return self
        check_version(self)
        return self._resized(shape, format_strides("resize_", shape, memory_format))

    def _resized(self, shape: tuple[int, ...], strides: tuple[int, ...]) -> Tensor:
        """Take on a shape and strides without gaps, in elements."""
        count = math.prod(shape)
        if count >= 1 << 63:
            raise RuntimeError("numel: integer multiplication overflow")
        if count * self.meta.dtype.itemsize >= 1 << 63:
            raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)}")
        memory, start = flat_memory(self.array, self.meta.kind), self.storage_offset()  # type: ignore[attr-defined]
        if start + count <= memory.size:
            self.array = window(memory, self.meta.kind, start, shape, strides)
        else:
            larger = np.empty(count, self.meta.dtype)
            larger[: memory.size - start] = memory[start:]
            self.array = window(larger, self.meta.kind, 0, shape, strides)
        settle(self)
        count_write(self)
        return self

    def resize(self, *sizes: Any) -> Tensor:
        """`reshape` under an old name. RuntimeError for another number of elements."""
        warnings.warn("non-inplace resize is deprecated", stacklevel=2)
        shape = parse_shape(sizes, "resize")
        count = math.prod(shape)
        if count != self.meta.numel:
            have = "x".join(map(str, self.meta.shape))
            raise RuntimeError(f"requested resize to {'x'.join(map(str, shape))} ({count} elements in total), but the given tensor has a size of "
                               f"{have} ({self.meta.numel} elements). autograd's resize can only change the shape of a given tensor, while "
                               "preserving the number of elements. ")  # fmt: skip
        return self.contiguous().view(shape)  # type: ignore[attr-defined]

    def resize_as(self, tensor: Any) -> Tensor:
        """`resize` to the shape of another tensor."""
        return self.resize(*tensor.meta.shape)

    def resize_as_(self, the_template: Any, memory_format: Any = None) -> Tensor:
        """`resize_` to the shape of another tensor; `preserve_format` means the order of that tensor's axes in memory."""
        if memory_format is preserve_format:
            memory_format = format_of(the_template.array)
        return self.resize_(the_template.meta.shape, memory_format=memory_format)


def resize_as_(input: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    """`resize_` to the shape of another tensor."""
    return input.resize_as_(the_template, memory_format=memory_format)


def format_strides(function: str, shape: tuple[int, ...], order: Any) -> tuple[int, ...]:
    """Strides without gaps, in elements, of a shape in a memory format. TypeError or RuntimeError for a format that it can't have."""
    if order is None or order is contiguous_format:
        return contiguous_strides(shape)
    check_memory_format(function, order, len(shape))
    if order is preserve_format:
        raise RuntimeError("Unsupported memory formatPreserve")
    axes = CHANNELS_LAST[order]
    steps = contiguous_strides([shape[axis] for axis in axes])
    return tuple([steps[axes.index(axis)] for axis in range(len(shape))])
