"""Activations with torch's names and arguments; those with `inplace` write to their input if asked."""

from __future__ import annotations

import warnings

from .._core.dtypes import dtype as DType
from .._tensor import Tensor, _functions as T

__all__ = [
    "celu",
    "celu_",
    "elu",
    "elu_",
    "gelu",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "leaky_relu",
    "leaky_relu_",
    "log_softmax",
    "logsigmoid",
    "mish",
    "prelu",
    "relu",
    "relu6",
    "relu_",
    "selu",
    "selu_",
    "sigmoid",
    "silu",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "threshold_",
]

celu_ = T.celu_
elu_ = T.elu_
gelu = T.gelu
hardshrink = T.hardshrink
hardtanh_ = T.hardtanh_
leaky_relu_ = T.leaky_relu_
logsigmoid = T.logsigmoid
prelu = T.prelu
relu_ = T.relu_
selu_ = T.selu_
sigmoid = T.sigmoid
softplus = T.softplus
softshrink = T.softshrink
softsign = T.softsign
tanh = T.tanh
tanhshrink = T.tanhshrink
threshold_ = T.threshold_


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """`max(input, 0)` of each element; in place if asked."""
    return T.relu_(input) if inplace else T.relu(input)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Each element, multiplied by `negative_slope` where it is negative; in place if asked."""
    return T.leaky_relu_(input, negative_slope) if inplace else T.leaky_relu(input, negative_slope)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Each element, `alpha * (exp(x) - 1)` where it is negative; in place if asked."""
    return T.elu_(input, alpha) if inplace else T.elu(input, alpha)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """`x * sigmoid(x)` of each element; in place if asked."""
    return T.silu_(input) if inplace else T.silu(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Each element moved into [0, 6]; in place if asked."""
    return T.relu6_(input) if inplace else T.relu6(input)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Scaled `elu`, which keeps mean 0 and variance 1 from layer to layer; in place if asked."""
    return T.selu_(input) if inplace else T.selu(input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Each element, `alpha * (exp(x / alpha) - 1)` where it is negative; in place if asked."""
    return T.celu_(input, alpha) if inplace else T.celu(input, alpha)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """`x * tanh(softplus(x))` of each element; in place if asked."""
    return T.mish_(input) if inplace else T.mish(input)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Each element moved into [min_val, max_val]; in place if asked. ValueError where the bounds are crossed."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return T.hardtanh_(input, min_val, max_val) if inplace else T.hardtanh(input, min_val, max_val)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """`relu6(x + 3) / 6` of each element; in place if asked."""
    return T.hardsigmoid_(input) if inplace else T.hardsigmoid(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """`x * relu6(x + 3) / 6` of each element; in place if asked."""
    return T.hardswish_(input) if inplace else T.hardswish(input)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Each element that is larger than `threshold`; the others become `value`; in place if asked."""
    return T.threshold_(input, threshold, value) if inplace else T.threshold(input, threshold, value)


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None) -> Tensor:
    """`exp(x) / sum(exp(x))` along `dim`; with `dtype` the input is cast to it first."""
    if dim is None:
        dim = _implicit_dim("softmax", input.dim(), _stacklevel)
    return T.softmax(input, dim, dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None) -> Tensor:
    """Logarithm of the softmax along `dim`; with `dtype` the input is cast to it first."""
    if dim is None:
        dim = _implicit_dim("log_softmax", input.dim(), _stacklevel)
    return T.log_softmax(input, dim, dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None) -> Tensor:
    """Softmax of the negative input along `dim`."""
    if dim is None:
        dim = _implicit_dim("softmin", input.dim(), _stacklevel)
    return T.softmax(-input, dim, dtype)


def _implicit_dim(name: str, ndim: int, stacklevel: int) -> int:
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1
