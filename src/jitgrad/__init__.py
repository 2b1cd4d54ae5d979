"""jitgrad: a Numba-JIT accelerated autograd with PyTorch's semantics.

>>> import jitgrad
>>> x = jitgrad.tensor(3.0, requires_grad=True)
>>> (x * x).backward()
>>> x.grad
tensor(6.)
"""

from ._core.dtypes import (
    bool_,
    double,
    dtype,
    finfo,
    float16,
    float32,
    float64,
    float_,
    half,
    iinfo,
    int8,
    int16,
    int32,
    int64,
    int_,
    long,
    short,
    uint8,
)
from ._core.shapes import Size
from ._tensor import *  # noqa: F403
from ._tensor import Tensor
