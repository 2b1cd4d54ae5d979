"""`out=`: a result written into a tensor that the caller gave."""

from __future__ import annotations

from typing import Final

import numpy as np

from .._core.dtypes import can_cast
from .kinds import Tensor

_NAMES: Final = """
abs acos acosh add addbmm addcdiv addcmul addmm addmv addr all amax amin aminmax angle any argmax argmin asin asinh
atan atan2 atanh baddbmm bernoulli bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift
bitwise_xor bmm bucketize cat ceil chain_matmul cholesky clamp clamp_max clamp_min column_stack copysign cos cosh
cross cummax cummin cumprod cumsum deg2rad diag diff div dot dstack eq erf erfc exp exp2 expm1 float_power floor
floor_divide fmax fmin fmod frac frexp gather gcd ge gt heaviside histc hstack hypot index_add index_copy
index_reduce index_select inner inverse isin isneginf isposinf kron kthvalue lcm ldexp le lerp log log10 log1p log2
log_softmax logaddexp logaddexp2 logcumsumexp logical_and logical_not logical_or logical_xor logit logsumexp lt
masked_select matmul matrix_power max maximum mean median min minimum mm mode msort mul multinomial mv nan_to_num
nanmean nanmedian nanquantile nansum narrow_copy ne neg nextafter nonzero norm outer pow prod quantile rad2deg
reciprocal remainder round rsqrt scatter scatter_add scatter_reduce searchsorted sgn sigmoid sign signbit sin sinc
sinh softmax sort sqrt square stack std sub sum take take_along_dim tan tanh tensordot topk tril triu trunc var vdot
vstack where xlogy
"""
WITH_OUT: Final = frozenset(_NAMES.split())  # torch has `out=` for these; the generated functions take it


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
        raise RuntimeError(f"{function.removeprefix('torch.')}(): functions with out=... arguments don't support automatic differentiation, but one "
                           "of the arguments requires grad.")  # fmt: skip
    kind = result.meta.kind
    if kind is not out.meta.kind:
        if not cast:
            raise RuntimeError(f"Expected out tensor to have dtype {kind.name}, but got {out.meta.kind.name} instead")
        if not can_cast(kind, out.meta.kind):
            raise RuntimeError(
                f"{function}(): input types can't be cast to the desired output type {out.meta.kind.scalar_name}"
            )
    return out.resize_(result.meta.shape).copy_(result)
