"""What a trace knows of arrays: which piece of memory each belongs to, and the value that has now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._tensor.base import TensorBase
from .._tensor.saved import count_of
from .access import carried
from .graph import Graph
from .operations import Collect, Source, Unsupported, Value, View, contiguous_strides

Array = np.ndarray[Any, Any]


class Root:
    """A piece of memory: the array that owns it, its value now, and, if it is captured or an argument, where it came from."""

    __slots__ = ("address", "array", "count", "end", "initial", "source", "value", "writes")

    def __init__(self, array: Array, value: Value, source: Source | None = None) -> None:
        self.array, self.value, self.source, self.initial = array, value, source, value
        self.address = array.__array_interface__["data"][0]
        self.end = self.address + array.nbytes
        self.writes = 0
        self.count = 0  # of writes before it was met


def steps_of(array: Array) -> tuple[int, ...]:
    """Strides in elements; those of a contiguous array as if no axis had length 1."""
    return (
        contiguous_strides(array.shape)
        if array.flags.c_contiguous
        else tuple(step // array.itemsize for step in array.strides)
    )


class Memory:
    """See the module's docstring; a part of `trace.Tracer`. `fresh` says of arrays made during the run who made them."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.known: dict[int, Root] = {}
        self.roots: list[Root] = []
        self.fresh: dict[int, str] = {}
        self.keep: list[Any] = []

    def source(self, tensor: Any, source: Source, name: str) -> Root:
        """A root for a tensor that was there before."""
        array = tensor.array
        steps = steps_of(array)
        root = Root(array, self.graph.value(array.shape, array.dtype, name, source=source, strides=steps), source)
        root.count = count_of(tensor)
        self.bind(array, root)
        self.roots.append(root)
        return root

    def bind(self, array: Array, root: Root) -> None:
        """Make an array known as part of a root."""
        self.known[id(array)] = root
        self.keep.append(array)

    def view(self, tensor: Any) -> View:
        """How a tensor reads the value its memory has now."""
        array = tensor.array
        root = self.known.get(id(array))
        if root is None:
            made = self.fresh.get(id(array))
            if made is None:
                root = self.source(tensor, Source("captured", tensor=tensor), "captured")
            elif made.startswith("constant"):
                root = self.constant(array)
            else:
                raise Unsupported(f"a tensor made by {made}, which is no op")
        return self.read(array, root)

    def constant(self, array: Array) -> Root:
        """A root for what a creation function made of Python numbers."""
        if array.size and array.dtype.kind in "fib" and bool((array == array.flat[0]).all()):
            view = self.graph.number(array.flat[0].item(), array.shape, array.dtype)
            root = Root(array, self.graph.copy(view, name="filled").value)
        else:
            held = np.array(array, order="C", copy=True)
            root = Root(
                array, self.graph.value(array.shape, array.dtype, "constant", source=Source("constant", array=held))
            )
        self.bind(array, root)
        self.roots.append(root)
        return root

    def read(self, array: Array, root: Root) -> View:
        """The geometry of an array within its root."""
        value = root.value
        if array is root.array:
            return value.whole()
        offset = array.__array_interface__["data"][0] - root.address
        strides = steps_of(array)
        if array.dtype != root.array.dtype:
            raise Unsupported("a view in another dtype")
        view = View(value, array.shape, strides, offset // array.itemsize)
        if value.strides == steps_of(root.array):
            return view
        found = carried(
            value.whole(), root.array.shape, steps_of(root.array), view
        )  # the value lies in another order than the traced array
        if found is None:
            raise Unsupported("a view of memory that was laid out anew")
        return found

    def owner(self, array: Array, inputs: Sequence[Any]) -> Root | None:
        """The root of an input whose memory an array lies in."""
        address = array.__array_interface__["data"][0]
        for tensor in inputs:
            root = self.known.get(id(tensor.array)) if isinstance(tensor, TensorBase) else None
            if root is not None and root.address <= address < max(root.end, root.address + 1) and array.size:
                return root
        return None

    def result(self, array: Array, found: View | None, inputs: Sequence[Any]) -> None:
        """Make a result known: as a view of an input's memory, or with the value of its lowering."""
        root = self.owner(array, inputs)
        if root is not None:
            self.bind(array, root)
            return
        if found is None:
            raise Unsupported("a result without a form")
        if found.shape != array.shape or found.value.dtype != array.dtype:
            raise Unsupported(
                f"a result of another form ({found.shape} {found.value.dtype} instead of {array.shape} {array.dtype})"
            )
        self.adopt(array, found)

    def adopt(self, array: Array, found: View) -> None:
        """A root of its own for an array that holds the elements of a view."""
        steps = steps_of(array)
        value = found.value
        if not (found.is_whole and found.constant is None and value.strides == steps and value.shape == array.shape):
            value = self.graph.copy(found).value
        root = Root(array, value)
        self.bind(array, root)
        self.roots.append(root)

    def put(self, array: Array, new: View) -> None:
        """Give the memory of an array a new value."""
        root = self.known[id(array)]
        view = self.read(array, root)
        root.writes += 1
        if view.is_whole:
            if new.is_whole and new.constant is None and new.value.strides == root.value.strides:
                root.value = new.value
                return
            if not root.array.flags.c_contiguous:
                raise Unsupported("a write to a tensor that is not contiguous")
            root.value = self.graph.copy(new, name="written").value
            return
        out = self.graph.value(root.value.shape, root.value.dtype, "written")
        if out.strides != root.value.strides:
            raise Unsupported("a write to a part of a tensor that is not contiguous")
        self.graph.add(
            Collect([out], base=root.value.whole(), part=new, strides=view.strides, offset=view.offset, add=False)
        )
        root.value = out
