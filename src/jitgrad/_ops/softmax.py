"""Softmax and its logarithm."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from .._core.shapes import wrap_dim
from .._kernels import softmax as kernels
from .axes import HALF, SINGLE, arranged, kind_of
from .kinds import Array, Tensor, composite, general


def normalised(array: Array, dim: int, logarithm: bool) -> Array:
    """Softmax along an axis, or its logarithm."""
    if array.dtype.char == "e":
        return normalised(array.astype(SINGLE), dim, logarithm).astype(HALF)
    out = np.empty(array.shape, array.dtype)
    array, outer, n, inner = arranged(array, (dim,) if array.ndim else ())
    if inner == 1:
        kernels.softmax_rows[array.dtype](array, outer, n, int(logarithm), out)
    else:
        work = np.empty((2, min(inner, 1024)), array.dtype)
        kernels.softmax_columns[array.dtype](array, outer, n, inner, int(logarithm), work, out)
    return out


def normalised_back(grad: Array, result: Array, dim: int, logarithm: bool) -> Array:
    """The gradient of the input."""
    if grad.dtype.char == "e":
        return normalised_back(grad.astype(SINGLE), result.astype(SINGLE), dim, logarithm).astype(HALF)
    out = np.empty(grad.shape, grad.dtype)
    grad, outer, n, inner = arranged(grad, (dim,) if grad.ndim else ())
    if inner == 1:
        kernels.softmax_backward_rows[grad.dtype](grad, result, outer, n, int(logarithm), out)
    else:
        work = np.empty(min(inner, 1024), grad.dtype)
        kernels.softmax_backward_columns[grad.dtype](grad, result, outer, n, inner, int(logarithm), work, out)
    return out


@general(node="SoftmaxBackward0", saves=("result",), name="_softmax")
def softmax_op(input: Array, dim: int) -> Array:
    return normalised(input, dim, False)


@softmax_op.rule
def _(grad: Tensor, result: Tensor, dim: int) -> Tensor:
    return (grad - (grad * result).sum(dim, keepdim=True)) * result


@softmax_op.fused
def _(grad: Array, result: Array, dim: int) -> Array:
    return normalised_back(grad, result, dim, False)


@general(node="LogSoftmaxBackward0", saves=("result",), name="_log_softmax")
def log_softmax_op(input: Array, dim: int) -> Array:
    return normalised(input, dim, True)


@log_softmax_op.rule
def _(grad: Tensor, result: Tensor, dim: int) -> Tensor:
    return grad - result.exp() * grad.sum(dim, keepdim=True)


@log_softmax_op.fused
def _(grad: Array, result: Array, dim: int) -> Array:
    return normalised_back(grad, result, dim, True)


@composite
def softmax(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """exp(input) / its sum along `dim`, without overflow. With `dtype` the input is cast first."""
    if dtype is not None:
        input = input.to(kind_of("softmax", dtype))
    if not input.meta.kind.is_floating_point:
        refuse("softmax", input, dim)
    return softmax_op(input, wrap_dim(dim, input.ndim))


@composite
def log_softmax(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """The logarithm of `softmax`, computed as input - logsumexp(input). With `dtype` the input is cast first."""
    if dtype is not None:
        input = input.to(kind_of("log_softmax", dtype))
    if not input.meta.kind.is_floating_point:
        refuse("log_softmax", input, dim)
    return log_softmax_op(input, wrap_dim(dim, input.ndim))


def refuse(function: str, input: Tensor, dim: int) -> NoReturn:
    """There is no softmax of integers."""
    last = "lastdim_" if wrap_dim(dim, input.ndim) == max(input.ndim - 1, 0) else ""
    raise NotImplementedError(f'"{function}_{last}kernel_impl" not implemented for \'{input.meta.kind.scalar_name}\'')
