"""Ways to call a function beside its declaration: with `out=`, the tensor to write to, and with factors in front, as programs once did."""

from __future__ import annotations

from typing import Final

import numpy as np

from .._core.dtypes import can_cast, dtype
from .checks import C_NAMES
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
cholesky_inverse cholesky_solve digamma erfinv histogram i0 igamma igammac lgamma lu_solve lu_unpack mvlgamma
polygamma renorm svd triangular_solve
special_entr special_erfcx special_i0e special_i1 special_i1e special_log_ndtr special_ndtr special_ndtri
special_xlog1py special_zeta
linalg_cholesky linalg_cholesky_ex linalg_cond linalg_cross linalg_det linalg_eigh linalg_eigvalsh linalg_inv
linalg_inv_ex linalg_lu linalg_lu_factor linalg_lu_factor_ex linalg_lu_solve linalg_matmul linalg_matrix_norm
linalg_matrix_power linalg_matrix_rank linalg_multi_dot linalg_norm linalg_pinv linalg_qr linalg_slogdet linalg_solve
linalg_solve_ex linalg_solve_triangular linalg_svd linalg_svdvals linalg_tensorinv linalg_tensorsolve linalg_vecdot
linalg_vector_norm
"""
# functions whose result is not cast to the dtype of `out`, and what they say of another one: F and G are the names of the result's
# dtype and of the one given, f and g those in C++
_STRICT: Final = {
    "Expected out tensor to have dtype {f}, but got {g} instead": """
        addmm addmv argmax argmin baddbmm bmm copy cross detach_copy diag gather index_add index_copy index_reduce isin kthvalue log_softmax
        matmul mm msort norm scatter scatter_add scatter_reduce softmax take_along_dim tril triu""",
    "Found dtype {G} but expected {F}": "abs ceil floor frac neg round sgn sign trunc",
    "Expected out type to be {F} but got {G}": "where",
    "Expected the dtype for input and out to match, but got {F} for input's dtype and {G} for out's dtype.": "amax amin",
    "result dtype {G} does not match input dtype {F}": "dot vdot",
    "addmv input tensors must have the same dtype, but got {G}, {F}, and {F}": "mv",
    "self and mat2 must have the same dtype, but got {G} and {F}": "addbmm",
    "{name}(): self and result must have the same scalar type": "index_select masked_select",
    "take(): self and out expected to have the same dtype, but got self.dtype = {F} and out.dtype = {G}": "take",
    "quantile() out tensor must be same dtype as the input tensor": "quantile nanquantile",
    "heaviside is not yet implemented for tensors with different dtypes.": "heaviside",
    "the output given to float_power has dtype {G} but the operation's result requires dtype {F}": "float_power",
    "{name} does not support non-boolean outputs.": "signbit isposinf isneginf",
    "nan_to_num: dtype of out: {G} should be same as input: {F}": "nan_to_num",
    "multinomial expects Long tensor out, got: {G}": "multinomial",
    "torch.histogram: input tensor and hist tensor should have the same dtype, but got input {f} and hist {g}": "histc",
    "tensordot: Expected the output tensor to have dtype {F}, but got an output tensor with dtype {G}": "tensordot",
    "expected scalar_type {F} but found {G}": "diff logcumsumexp",
    "torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) depending on whether out_int32 flag is True, "
    "but we got output tensor's dtype {G}": "bucketize searchsorted",
    "nonzero: Expected out tensor to have scalar type Long but got scalar type{G}": "nonzero",
}
_BY_FUNCTION: Final = {name: message for message, names in _STRICT.items() for name in names.split()}
_JOINING: Final = frozenset(("cat", "column_stack", "dstack", "hstack", "stack", "vstack"))
WITH_OUT: Final = frozenset(_NAMES.split())  # torch has `out=` for these; the generated functions take it
FACTORS_FIRST: Final = {  # functions that also take their factors by position, before what these multiply: `x.add_(-0.1, y)`
    "add": ("alpha",), "sub": ("alpha",), "addcmul": ("value",), "addcdiv": ("value",),
    **dict.fromkeys(("addbmm", "addmm", "addmv", "addr", "baddbmm"), ("beta", "alpha")),
}  # fmt: skip
IN_DTYPE_OF_OUT: Final = frozenset(("cumprod", "cumsum", "prod", "sum"))  # without a `dtype` these compute in that of `out`


def check_kind(name: str, have: dtype, given: dtype) -> None:
    """RuntimeError (TypeError where tensors are joined) if a function's result does not go into an `out` of that dtype."""
    if have is given:
        return
    if name in _BY_FUNCTION:
        names = {"F": have.scalar_name, "G": given.scalar_name, "f": C_NAMES[have], "g": C_NAMES[given], "name": name}
        raise RuntimeError(_BY_FUNCTION[name].format(**names))
    if name in ("all", "any") and given.name != "uint8":
        raise RuntimeError(f"{name} only supports bool tensor for result, got: {given.scalar_name}")
    if can_cast(have, given):
        return
    if name in _JOINING:
        raise TypeError(f"torch.cat(): input types can't be cast to the desired output type {given.scalar_name}")
    raise RuntimeError(f"result type {have.scalar_name} can't be cast to the desired output type {given.scalar_name}")


def into(function: str, out: Tensor | None, result: Tensor, *inputs: Tensor) -> Tensor:
    """The result, or `out` holding it.

    As `check_kind` for another dtype; RuntimeError for an `out` that shares memory with an input, or where gradients are taken.
    """
    if out is None:
        return result
    if any(np.may_share_memory(out.array, x.array) for x in inputs):
        raise RuntimeError("unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. "
                           "Please clone() the tensor before performing the operation.")  # fmt: skip
    if out.requires_grad or result.requires_grad:
        raise RuntimeError(f"{function}(): functions with out=... arguments don't support automatic differentiation, but one "
                           "of the arguments requires grad.")  # fmt: skip
    check_kind(function, result.meta.kind, out.meta.kind)
    return out.resize_(result.meta.shape).copy_(result)
