"""`out=`: a result written into a tensor that the caller gave."""

from __future__ import annotations

import numpy as np

from .._core.dtypes import can_cast
from .kinds import Tensor


def into(function: str, out: Tensor | None, result: Tensor, *inputs: Tensor, cast: bool = False) -> Tensor:
    """The result, or `out` holding it.

    RuntimeError for another dtype (unless one that can be cast to), for an `out` that shares memory with an input, or where gradients are taken.
    """
    if out is None:
        return result
    if any(np.may_share_memory(out.array, x.array) for x in inputs):
        raise RuntimeError("unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. "
                           "Please clone() the tensor before performing the operation.")  # fmt: skip
    if out.requires_grad or result.requires_grad:
        raise RuntimeError(
            f"{function}(): functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad."
        )
    kind = result.meta.kind
    if kind is not out.meta.kind:
        if not cast:
            raise RuntimeError(f"Expected out tensor to have dtype {kind.name}, but got {out.meta.kind.name} instead")
        if not can_cast(kind, out.meta.kind):
            raise RuntimeError(
                f"{function}(): input types can't be cast to the desired output type {out.meta.kind.scalar_name}"
            )
    return out.resize_(result.meta.shape).copy_(result)
