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
    add as add,
    add_ as add_,
    addmm as addmm,
    addmm_ as addmm_,
    bmm as bmm,
    broadcast_to as broadcast_to,
    clone as clone,
    dot as dot,
    exp as exp,
    exp_ as exp_,
    ger as ger,
    linear as linear,
    matmul as matmul,
    mm as mm,
    mul as mul,
    mul_ as mul_,
    multiply as multiply,
    mv as mv,
    neg as neg,
    neg_ as neg_,
    negative as negative,
    outer as outer,
    permute as permute,
    relu as relu,
    relu_ as relu_,
    reshape as reshape,
    squeeze as squeeze,
    squeeze_ as squeeze_,
    swapaxes as swapaxes,
    swapdims as swapdims,
    t as t,
    t_ as t_,
    tanh as tanh,
    tanh_ as tanh_,
    transpose as transpose,
    transpose_ as transpose_,
    unsqueeze as unsqueeze,
    unsqueeze_ as unsqueeze_,
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
