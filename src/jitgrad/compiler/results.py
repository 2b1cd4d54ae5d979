"""What a compiled function returns: which tensors it makes, and how the result is put together around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.devices import memory_order
from .._core.dtypes import dtype
from .._core.meta import meta_of
from .._core.shapes import Size
from .._tensor.base import TensorBase
from .history import Done, is_done
from .lower_rows import permuted
from .operations import Unsupported, View
from .trace import Tracer


@dataclass
class Made:
    """A tensor that each call makes: what is read into it, its Meta and the class of its node. `shape` is as it lies in memory, outermost axis
    first; `axes` brings that into the tensor's order, None where it is.
    """

    view: View
    meta: Any
    node: Any
    shape: tuple[int, ...]
    axes: tuple[int, ...] | None


class Results:
    """The result of a traced call. `text` is the expression it is made by, of arguments x0, x1 ..., made tensors y0 ... and `objects` z0 ...

    `live` says which made tensors can be differentiated; only where `may_live`.
    """

    def __init__(self, tracer: Tracer, arguments: Sequence[Any], result: Any, may_live: bool) -> None:
        self.tracer, self.arguments, self.may_live = tracer, arguments, may_live
        self.objects: list[Any] = []
        self.made: list[Made] = []
        self.live: list[int] = []
        self.places: dict[int, int] = {}
        self.shared: set[int] = set()  # memory that something made lies in
        self.text = self.expression(result)

    def expression(self, x: Any) -> str:
        """The text that makes a part of the result."""
        if isinstance(x, TensorBase):
            return self.tensor(x)
        if type(x) is tuple or type(x) is list:
            inner = "".join(f"{self.expression(item)}, " for item in x)
            return f"({inner})" if type(x) is tuple else f"[{inner}]"
        if type(x) is dict and all(type(key) is str for key in x):
            return "{" + ", ".join(f"{key!r}: {self.expression(item)}" for key, item in x.items()) + "}"
        if isinstance(x, tuple) and hasattr(x, "_fields"):
            return f"{self.constant(type(x))}({''.join(f'{self.expression(item)}, ' for item in x)})"
        if x is None or type(x) in (bool, int, float, str, Size, dtype):
            return self.constant(x)
        raise Unsupported(f"a {type(x).__name__} is returned")

    def constant(self, x: Any) -> str:
        """The text of an object that is the same each time."""
        self.objects.append(x)
        return f"z{len(self.objects) - 1}"

    def tensor(self, x: Any) -> str:
        """The text of an argument, a tensor from outside or one that is made."""
        for k, argument in enumerate(self.arguments):
            if x is argument:
                return f"x{k}"
        known = self.tracer.known.get(id(x.array))
        if known is not None and known.source is not None and known.source.kind == "captured":
            if known.source.tensor is not x:
                raise Unsupported("a view of a tensor from outside is returned")
            return self.constant(x)
        if id(x) not in self.places:
            self.places[id(x)] = len(self.made)
            self.made.append(self.make(x))
        return f"y{self.places[id(x)]}"

    def make(self, x: Any) -> Made:
        """How a tensor is made."""
        fn = x.fn
        live = fn is not None and not is_done(fn)
        if live:
            if not self.may_live:
                raise Unsupported("it returns a tensor that can still be differentiated, and runs a backward")
            self.live.append(len(self.made))
        if x.rare is not None and x.rare.inference:
            raise Unsupported("it returns an inference tensor")
        view = self.tracer.view(x)
        plain = x.array.flags.c_contiguous
        axes = tuple(range(x.array.ndim)) if plain else memory_order(x.array.shape, x.array.strides)
        laid = x.array.transpose(axes)
        if not laid.flags.c_contiguous or not self.is_alone(x):
            raise Unsupported("it returns a view")
        back = None if plain else tuple(np.argsort(axes).tolist())
        spent = fn is not None and not live
        node = type(x.grad_fn.name(), (Done,), {"__slots__": (), "__module__": "jitgrad.autograd"}) if spent else None
        return Made(view if plain else permuted(view, list(axes)), meta_of(x.array), node, laid.shape, back)

    def is_alone(self, x: Any) -> bool:
        """Whether its memory was made by the run and is returned by nothing else, so that a tensor of its own is as good."""
        root = self.tracer.known.get(id(x.array))
        if root is None or root.source is not None or id(root) in self.shared:
            return False
        self.shared.add(id(root))
        return True
