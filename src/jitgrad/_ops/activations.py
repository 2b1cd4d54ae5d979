"""Activation functions of neural networks."""

from __future__ import annotations

import math

from .._core.dtypes import uint8
from .._expr import Expr, scalar as s
from .checks import check_numbers, floating, is_tensor, no_bool, no_bool_message, not_implemented
from .kinds import Dispatch, Tensor, composite, one_op
from .maps import elementwise

SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946


# ---------------------------------------------------------------- rectifiers
@elementwise(keep_result=True, check=no_bool_message("Boolean inputs not supported for relu"))
def relu(input: Expr) -> Expr:
    """max(input, 0); NaN stays NaN."""
    return s.relu(input)


@relu.partial("input")
def _(result: Expr) -> Expr:
    return s.where(result <= 0, 0.0, 1.0)


@elementwise(name="_leaky_relu", check=floating("leaky_relu_cpu"))
def leaky_relu_op(input: Expr, *, negative_slope: float) -> Expr:
    return s.where(input > 0, input, input * negative_slope)


@one_op(method=False, inplace="write")
def leaky_relu(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """Each element, multiplied by `negative_slope` where it is negative."""
    if type(negative_slope) is not float:
        check_numbers("leaky_relu", negative_slope=negative_slope)
    return leaky_relu_op, (input,), (negative_slope,)


@elementwise(name="_threshold", check=no_bool("threshold_cpu"))
def threshold_op(input: Expr, *, threshold: float, value: float) -> Expr:
    return s.where(input <= threshold, value, input)


@one_op(method=False, inplace="write")
def threshold(input: Tensor, threshold: float, value: float) -> Tensor:
    """Each element that is larger than `threshold`; the others become `value`; NaN stays."""
    check_numbers("threshold", threshold=threshold, value=value)
    if not input.meta.kind.is_floating_point:
        threshold, value = int(threshold), int(value)
    return threshold_op, (input,), (threshold, value)


@elementwise(name="_hardtanh")
def hardtanh_op(input: Expr, *, min_val: float, max_val: float) -> Expr:
    return s.clamp(input, min_val, max_val)


@hardtanh_op.partial("input")
def _(input: Expr, min_val: Expr, max_val: Expr) -> Expr:
    return s.where((input <= min_val) | (input >= max_val), 0.0, 1.0)


@composite(method=False, inplace="write")
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """Each element moved into [min_val, max_val]; derivative 0 at the bounds."""
    check_numbers("hardtanh", min_val=min_val, max_val=max_val)
    kind = input.meta.kind
    if kind.kind == "b":
        raise RuntimeError("Bool inputs not supported for hardtanh")
    if not kind.is_floating_point:
        min_val, max_val = int(min_val), int(max_val)
        if kind is uint8 and (min_val < 0 or max_val < 0):
            raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    return hardtanh_op(input, min_val=min_val, max_val=max_val)


@composite(method=False, inplace="write")
def relu6(input: Tensor) -> Tensor:
    """Each element moved into [0, 6]."""
    return hardtanh(input, 0.0, 6.0)


@elementwise(name="_hardsigmoid", check=floating("hardsigmoid_cpu"))
def hardsigmoid_op(input: Expr) -> Expr:
    return s.clamp(input + 3.0, 0.0, 6.0) / 6.0


@hardsigmoid_op.partial("input")
def _(input: Expr) -> Expr:
    return s.where((input > -3.0) & (input < 3.0), 1.0 / 6.0, 0.0)


@composite(method=False, inplace="write")
def hardsigmoid(input: Tensor) -> Tensor:
    """relu6(input + 3) / 6."""
    return hardsigmoid_op(input)


@elementwise(name="_hardswish", check=floating("hardswish_cpu"))
def hardswish_op(input: Expr) -> Expr:
    return input * s.clamp(input + 3.0, 0.0, 6.0) / 6.0


@hardswish_op.partial("input")
def _(input: Expr) -> Expr:
    return s.where(input <= -3.0, 0.0, s.where(input < 3.0, input / 3.0 + 0.5, 1.0))


@composite(method=False, inplace="write")
def hardswish(input: Tensor) -> Tensor:
    """input * relu6(input + 3) / 6."""
    return hardswish_op(input)


# ---------------------------------------------------------------- shrinkage
@elementwise(name="_hardshrink", check=floating("hardshrink_cpu"))
def hardshrink_op(input: Expr, *, lambd: float) -> Expr:
    return s.where((input >= -lambd) & (input <= lambd), 0.0, input)


@composite
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Each element, but 0 within [-lambd, lambd]."""
    check_numbers("hardshrink", lambd=lambd)
    return hardshrink_op(input, lambd=lambd)


@elementwise(name="_softshrink")
def softshrink_op(input: Expr, *, lambd: float) -> Expr:
    return s.where(input > lambd, input - lambd, s.where(input < -lambd, input + lambd, input * 0.0))


@softshrink_op.partial("input")
def _(input: Expr, lambd: Expr) -> Expr:
    return s.where((input >= -lambd) & (input <= lambd), 0.0, 1.0)


@composite(method=False)
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Each element moved towards 0 by `lambd`, and 0 within [-lambd, lambd]. RuntimeError for a negative `lambd`."""
    check_numbers("softshrink", lambd=lambd)
    kind = input.meta.kind
    if not kind.is_floating_point:
        raise not_implemented("softshrink_check", kind)
    if not lambd >= 0:
        raise RuntimeError(f"lambda must be in range [0, 3.40282e+38] for input dtype {kind.scalar_name}, but found {lambd:g}")
    return softshrink_op(input, lambd=lambd)


@composite(method=False)
def tanhshrink(input: Tensor) -> Tensor:
    """input - tanh(input)."""
    return input - input.tanh()


# ---------------------------------------------------------------- exponential units
@elementwise(name="_elu", check=floating("elu_cpu"))
def elu_op(input: Expr, *, alpha: float, scale: float) -> Expr:
    return s.where(input <= 0, scale * alpha * s.expm1(input), scale * input)


@elu_op.partial("input")
def _(input: Expr, alpha: Expr, scale: Expr) -> Expr:
    return s.where(input <= 0, scale * alpha * s.exp(input), scale)


@one_op(method=False, inplace="write")
def elu(input: Tensor, alpha: float = 1.0) -> Tensor:
    """Each element, alpha * (exp(x) - 1) where it is negative."""
    if type(alpha) is not float:
        check_numbers("elu", alpha=alpha)
    return elu_op, (input,), (alpha, 1.0)


@composite(method=False, inplace="write")
def selu(input: Tensor) -> Tensor:
    """Scaled `elu`, which keeps mean 0 and variance 1 from layer to layer."""
    return elu_op(input, alpha=SELU_ALPHA, scale=SELU_SCALE)


@elementwise(name="_celu", check=floating("elu_cpu"))
def celu_op(input: Expr, *, alpha: float) -> Expr:
    return s.where(input <= 0, alpha * s.expm1(input / alpha), input)


@celu_op.partial("input")
def _(input: Expr, alpha: Expr) -> Expr:
    return s.where(input <= 0, s.exp(input / alpha), 1.0)


@composite(method=False, inplace="write")
def celu(input: Tensor, alpha: float = 1.0) -> Tensor:
    """Each element, alpha * (exp(x / alpha) - 1) where it is negative. RuntimeError for an alpha of 0."""
    check_numbers("celu", alpha=alpha)
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return celu_op(input, alpha=alpha)


# ---------------------------------------------------------------- smooth ones
@elementwise(name="_gelu", check=floating("GeluKernelImpl"))
def gelu_op(input: Expr, *, approximate: str = "none") -> Expr:
    if approximate == "tanh":
        inner = math.sqrt(2.0 / math.pi) * (input + 0.044715 * (input * input * input))
        return 0.5 * input * (1.0 + s.tanh(inner))
    return 0.5 * input * (1.0 + s.erf(input * math.sqrt(0.5)))


@composite(method=False)
def gelu(input: Tensor, *, approximate: str = "none") -> Tensor:
    """input times the normal distribution's probability of a value below it. RuntimeError unless `approximate` is none or tanh."""
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    return Dispatch.invoke(gelu_op, (input,), (approximate,))


@elementwise(name="_silu", check=floating("silu_cpu"))
def silu_op(input: Expr) -> Expr:
    return input * s.sigmoid(input)


@one_op(method=False, inplace="write")
def silu(input: Tensor) -> Tensor:
    """input * sigmoid(input)."""
    return silu_op, (input,), ()


@elementwise(name="_mish", check=floating("mish_cpu"))
def mish_op(input: Expr) -> Expr:
    return input * s.tanh(s.softplus(input))


@composite(method=False, inplace="write")
def mish(input: Tensor) -> Tensor:
    """input * tanh(softplus(input))."""
    return mish_op(input)


@elementwise(name="_softplus", check=floating("softplus_cpu"))
def softplus_op(input: Expr, *, beta: float, threshold: float) -> Expr:
    scaled = input * beta
    return s.where(scaled > threshold, input, s.softplus(scaled) / beta)


@softplus_op.partial("input")
def _(input: Expr, beta: Expr, threshold: Expr) -> Expr:
    scaled = input * beta
    return s.where(scaled > threshold, 1.0, s.sigmoid(scaled))


@composite(method=False)
def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta * input)) / beta, and the input itself where beta * input > threshold."""
    if type(beta) is not float or type(threshold) is not float:
        check_numbers("softplus", beta=beta, threshold=threshold)
    return Dispatch.invoke(softplus_op, (input,), (beta, threshold))


@elementwise(name="_logsigmoid", node="LogSigmoidBackward0", check=floating("log_sigmoid_cpu"))
def logsigmoid_op(input: Expr) -> Expr:
    return s.logsigmoid(input)


@composite(method=False)
def logsigmoid(input: Tensor) -> Tensor:
    """log(sigmoid(input)), without overflow."""
    return logsigmoid_op(input)


@composite(method=False)
def softsign(input: Tensor) -> Tensor:
    """input / (1 + |input|)."""
    return input / (input.abs() + 1)


# ---------------------------------------------------------------- with a weight
@elementwise(name="_prelu", node="PreluKernelBackward0", keeps={"weight": ("weight",)}, check=floating("prelu_cpu"))
def prelu_op(input: Expr, weight: Expr) -> Expr:
    return s.where(input > 0, input, weight * input)


@composite
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """Each element, multiplied by a weight where it is negative: one weight for all, or one for each channel (the second axis).

    RuntimeError for another number of weights, or for two dtypes.
    """
    kind, rank = input.meta.kind, len(input.meta.shape)
    if not is_tensor(weight):
        raise TypeError(f"prelu(): argument 'weight' (position 2) must be Tensor, not {type(weight).__name__}")
    if kind is not weight.meta.kind:
        raise RuntimeError(f"prelu: Type promoting not supported. Got {kind.name} and {weight.meta.kind.name}")
    if weight.meta.numel != 1:
        if rank == 0:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = input.meta.shape[1] if rank >= 2 else 1
        if channels != weight.meta.numel:
            raise RuntimeError("Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                               f"{weight.meta.numel} and channel size = {channels}.")  # fmt: skip
    if len(weight.meta.shape) > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {len(weight.meta.shape)}")
    shape = [1] * rank
    if rank >= 2:
        shape[1] = weight.meta.numel
    return prelu_op(input, weight.reshape(shape))


