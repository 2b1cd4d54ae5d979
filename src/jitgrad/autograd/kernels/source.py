"""The kernels of an elementwise function as text: what is compiled, with the derived expressions in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..._core.dtypes import dtype as Dtype
from ..._ops.derived import Map, Pair
from ..._ops.maps import Elementwise

KINDS = ("forward", "backward", "double_backward")


def source_of(ops: Sequence[Elementwise], which: str, dtype: Any) -> str:
    """The sources of the kernels for contiguous operands, all gradients wanted, one after the other. ValueError for another `which`."""
    if which not in KINDS:
        raise ValueError(f"source() knows {', '.join(map(repr, KINDS))}, not {which!r}")
    kind = np.dtype(np.float32) if dtype is None else dtype.numpy if isinstance(dtype, Dtype) else np.dtype(dtype)
    texts = [pair.flat.source(kind) for op in ops for pair in pairs(op.map("t" * len(op.inputs)), which)]
    return "\n\n".join(texts)


def pairs(found: Map, which: str) -> Iterator[Pair]:
    """The kernels of a Map that were asked for."""
    everything = (True,) * len(found.differentiable)
    if which == "forward":
        yield found.kernels
    elif which == "backward":
        if everything:
            yield found.backward(everything)
    else:
        for place in range(len(found.differentiable)):
            yield from pairs(found.partial(place), "backward")
