"""jitgrad: a Numba-JIT accelerated autograd with PyTorch's semantics.

>>> import jitgrad
>>> x = jitgrad.tensor(3.0, requires_grad=True)
>>> (x * x).backward()
>>> x.grad
tensor(6.)
"""

from ._core.dtypes import bool_ as bool
from ._core.dtypes import double as double
from ._core.dtypes import dtype as dtype
from ._core.dtypes import finfo as finfo
from ._core.dtypes import float16 as float16
from ._core.dtypes import float32 as float32
from ._core.dtypes import float64 as float64
from ._core.dtypes import float_ as float
from ._core.dtypes import half as half
from ._core.dtypes import iinfo as iinfo
from ._core.dtypes import int8 as int8
from ._core.dtypes import int16 as int16
from ._core.dtypes import int32 as int32
from ._core.dtypes import int64 as int64
from ._core.dtypes import int_ as int
from ._core.dtypes import long as long
from ._core.dtypes import short as short
from ._core.dtypes import uint8 as uint8
from ._core.shapes import Size as Size

# start: written by tools/gen_api.py
from ._tensor._functions import (
    abs as abs,
    abs_ as abs_,
    absolute as absolute,
    absolute_ as absolute_,
    add as add,
    add_ as add_,
    addcdiv as addcdiv,
    addcdiv_ as addcdiv_,
    addcmul as addcmul,
    addcmul_ as addcmul_,
    addmm as addmm,
    addmm_ as addmm_,
    adjoint as adjoint,
    as_strided as as_strided,
    as_strided_ as as_strided_,
    atleast_1d as atleast_1d,
    atleast_2d as atleast_2d,
    atleast_3d as atleast_3d,
    bmm as bmm,
    broadcast_shapes as broadcast_shapes,
    broadcast_tensors as broadcast_tensors,
    broadcast_to as broadcast_to,
    chunk as chunk,
    clone as clone,
    copysign as copysign,
    copysign_ as copysign_,
    diagonal as diagonal,
    div as div,
    div_ as div_,
    divide as divide,
    divide_ as divide_,
    dot as dot,
    dsplit as dsplit,
    flatten as flatten,
    float_power as float_power,
    float_power_ as float_power_,
    ger as ger,
    hsplit as hsplit,
    linear as linear,
    matmul as matmul,
    meshgrid as meshgrid,
    mm as mm,
    moveaxis as moveaxis,
    movedim as movedim,
    mul as mul,
    mul_ as mul_,
    multiply as multiply,
    multiply_ as multiply_,
    mv as mv,
    narrow as narrow,
    narrow_copy as narrow_copy,
    neg as neg,
    neg_ as neg_,
    negative as negative,
    negative_ as negative_,
    outer as outer,
    permute as permute,
    positive as positive,
    pow as pow,
    pow_ as pow_,
    ravel as ravel,
    reciprocal as reciprocal,
    reciprocal_ as reciprocal_,
    reshape as reshape,
    rsub as rsub,
    select as select,
    sgn as sgn,
    sgn_ as sgn_,
    sign as sign,
    sign_ as sign_,
    split as split,
    split_with_sizes as split_with_sizes,
    square as square,
    square_ as square_,
    squeeze as squeeze,
    squeeze_ as squeeze_,
    sub as sub,
    sub_ as sub_,
    subtract as subtract,
    subtract_ as subtract_,
    swapaxes as swapaxes,
    swapaxes_ as swapaxes_,
    swapdims as swapdims,
    swapdims_ as swapdims_,
    t as t,
    t_ as t_,
    tensor_split as tensor_split,
    transpose as transpose,
    transpose_ as transpose_,
    true_divide as true_divide,
    true_divide_ as true_divide_,
    unbind as unbind,
    unflatten as unflatten,
    unsafe_chunk as unsafe_chunk,
    unsafe_split as unsafe_split,
    unsafe_split_with_sizes as unsafe_split_with_sizes,
    unsqueeze as unsqueeze,
    unsqueeze_ as unsqueeze_,
    vsplit as vsplit,
)
# end: written by tools/gen_api.py
from ._tensor._methods import Tensor as Tensor
from ._tensor.creation import arange as arange
from ._tensor.creation import as_tensor as as_tensor
from ._tensor.creation import asarray as asarray
from ._tensor.creation import can_cast as can_cast
from ._tensor.creation import empty as empty
from ._tensor.creation import empty_like as empty_like
from ._tensor.creation import empty_strided as empty_strided
from ._tensor.creation import eye as eye
from ._tensor.creation import from_numpy as from_numpy
from ._tensor.creation import full as full
from ._tensor.creation import full_like as full_like
from ._tensor.creation import get_default_dtype as get_default_dtype
from ._tensor.creation import is_tensor as is_tensor
from ._tensor.creation import linspace as linspace
from ._tensor.creation import logspace as logspace
from ._tensor.creation import numel as numel
from ._tensor.creation import ones as ones
from ._tensor.creation import ones_like as ones_like
from ._tensor.creation import promote_types as promote_types
from ._tensor.creation import result_type as result_type
from ._tensor.creation import scalar_tensor as scalar_tensor
from ._tensor.creation import set_default_dtype as set_default_dtype
from ._tensor.creation import tensor as tensor
from ._tensor.creation import tril_indices as tril_indices
from ._tensor.creation import triu_indices as triu_indices
from ._tensor.creation import zeros as zeros
from ._tensor.creation import zeros_like as zeros_like
from ._tensor.writes import zero_ as zero_
