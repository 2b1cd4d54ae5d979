"""Counts and histograms, sums that skip NaN, and both extremes at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core.shapes import wrap_dim
from .axes import LONG, Shape, axes_of, kind_of, restored
from .extremes import LARGEST, SMALLEST, extreme
from .kinds import Array, Optional, Tensor, composite, general
from .reductions import check_flag, totals
from .results import AminmaxResult, HistogramResult


# ---------------------------------------------------------------- counts
@general(name="_count_nonzero", differentiable=())
def count_nonzero_op(input: Array, dims: Shape) -> Array:
    return np.asarray(np.count_nonzero(input, axis=dims), LONG)


@composite
def count_nonzero(input: Tensor, dim: Any = None, *more: int) -> Tensor:
    """How many elements are not zero, in all or along `dim` (an int or several), as int64."""
    return count_nonzero_op(input, axes_of((dim, *more) if more else dim, input.ndim))


@general(name="_bincount", differentiable=())
def bincount_op(input: Array, weights: Optional, minlength: int) -> Array:
    if not input.size:
        return np.zeros(minlength, LONG)
    found = np.bincount(input.astype(LONG), weights, minlength)
    return found.astype(weights.dtype if weights is not None and weights.dtype == np.float32 else found.dtype, copy=False)


@composite
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each integer from 0 on occurs in a vector; with `weights` the sum of their weights (float32, or float64).

    RuntimeError for negative numbers or other shapes, NotImplementedError for a floating dtype.
    """
    kind = input.meta.kind
    if kind.is_floating_point or kind.kind == "b":
        raise NotImplementedError(f"\"bincount_cpu\" not implemented for '{kind.scalar_name}'")
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if input.ndim != 1 or (input.meta.numel and bool((input < 0).any())):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is not None and weights.meta.shape != input.meta.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    return bincount_op(input, weights, minlength)


# ---------------------------------------------------------------- histograms
@general(name="_histogram", differentiable=())
def histogram_op(input: Array, weight: Optional, edges: Any, density: bool) -> Array:
    weights = None if weight is None else weight.reshape(-1)
    hist = np.histogram(input.reshape(-1), np.asarray(edges, np.float64), weights=weights)[0].astype(np.float64)
    if density:
        with np.errstate(all="ignore"):
            hist = hist / hist.sum() / np.diff(np.asarray(edges, np.float64))
    return hist.astype(input.dtype)


def bounds(input: Tensor, low: float, high: float) -> tuple[float, float]:
    """The range of a histogram: the given one, that of the elements where it is empty, half a unit around a single value."""
    if low == high and input.meta.numel:
        low, high = float(input.array.min()), float(input.array.max())
    elif low == high:
        low, high = 0.0, 1.0
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"torch.histc: range of [{low}, {high}] is not finite")
    return (low - 0.5, high + 0.5) if low == high else (low, high)


def check_bins(bins: int) -> None:
    """RuntimeError for no bins."""
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")


@composite
def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """How many elements lie in each of `bins` equal parts of [min, max], by default of the elements' own range, in the input's dtype.

    NaN and what lies outside is not counted. NotImplementedError for integers, RuntimeError for an empty or infinite range.
    """
    if not input.meta.kind.is_floating_point:
        raise NotImplementedError(f"\"histogram_cpu\" not implemented for '{input.meta.kind.scalar_name}'")
    check_bins(bins)
    if max < min:
        raise RuntimeError("torch.histc: max must be larger than min")
    low, high = bounds(input, float(min), float(max))
    return histogram_op(input, None, tuple(np.linspace(low, high, bins + 1).tolist()), False)


@composite
def histogram(input: Tensor, bins: Any = 100, *, range: Sequence[float] | None = None, weight: Tensor | None = None, density: bool = False) -> Any:
    """Counts of the elements, or sums of their weights, between edges: a named tuple (hist, bin_edges) of the input's dtype.

    `bins` is a number of equal parts of `range` (by default that of the elements), or a vector of edges. With `density` the counts are
    scaled so that the histogram has area 1.
    """
    if not input.meta.kind.is_floating_point:
        raise NotImplementedError(f"\"histogramdd\" not implemented for '{input.meta.kind.scalar_name}'")
    if weight is not None and weight.meta.shape != input.meta.shape:
        raise RuntimeError("torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor excluding its "
                           "innermost dimension, "
                           f"got input with shape {list(input.meta.shape)} and weight with shape {list(weight.meta.shape)}")  # fmt: skip
    if hasattr(bins, "meta"):
        edges = bins
    else:
        check_bins(bins)
        low, high = (range[0], range[1]) if range is not None else bounds(input, 0.0, 0.0)
        if low > high:
            raise RuntimeError(f"torch.histogramdd: min should not exceed max, but got min {low:g} max {high:g} for dimension 0")
        low, high = (low - 0.5, high + 0.5) if low == high else (low, high)
        edges = input.new_tensor(np.linspace(low, high, bins + 1))
    return HistogramResult(histogram_op(input.detach(), weight, tuple(edges.tolist()), bool(density)), edges)


# ---------------------------------------------------------------- sums without NaN
@general(node="NansumBackward0", saves=("input",), name="_nansum")
def nansum_op(input: Array, dims: Shape, keepdim: bool, kind: Any) -> Array:
    return totals(np.where(np.isnan(input), input.dtype.type(0), input), dims, keepdim, 1.0, kind)


@nansum_op.rule
def _(grad: Tensor, input: Tensor, dims: Shape, keepdim: bool) -> Tensor:
    return restored(grad, input.meta.shape, dims, keepdim) * input.isnan().logical_not()


@composite(numpy=True)
def nansum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """`sum` with NaN taken as 0."""
    kind = kind_of("nansum", dtype)
    if not input.meta.kind.is_floating_point:
        return input.sum(dim, keepdim, dtype=dtype)
    return nansum_op(input, axes_of(dim, input.ndim), check_flag("nansum", keepdim), None if kind is None else kind.numpy)


@composite(numpy=True)
def nanmean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """`mean` of the elements that are not NaN; NaN where there are no others. RuntimeError for integers."""
    if not input.meta.kind.is_floating_point:
        raise RuntimeError(f"nanmean(): expected input to have floating point or complex dtype but got {input.meta.kind.scalar_name}")
    return nansum(input, dim, keepdim, dtype=dtype) / input.isnan().logical_not().sum(dim, keepdim)


# ---------------------------------------------------------------- both extremes
@general(node="AminmaxBackward0", saves=("input", "result0", "result1"), outputs=2, name="_aminmax")
def aminmax_op(input: Array, dims: Shape, keepdim: bool) -> tuple[Array, Array]:
    return extreme(input, dims, keepdim, SMALLEST), extreme(input, dims, keepdim, LARGEST)


@aminmax_op.rule
def _(grads: Any, input: Tensor, result0: Tensor, result1: Tensor, dims: Shape, keepdim: bool) -> Tensor:
    total = None
    for grad, result in zip(grads, (result0, result1), strict=True):
        if grad is not None:
            mask = input == restored(result, input.meta.shape, dims, keepdim)
            part = restored(grad, input.meta.shape, dims, keepdim) * mask / mask.sum(dims, keepdim=True)
            total = part if total is None else total + part
    return total


@composite
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> Any:
    """The smallest and the largest element, of all or along `dim`: a named tuple. Ties share the gradient. IndexError for a length of 0."""
    if dim is None:
        if not input.meta.numel:
            raise RuntimeError("aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.")
        dims: Shape = tuple(range(input.ndim))
    elif not isinstance(dim, int) or isinstance(dim, bool):
        raise TypeError(f"aminmax(): argument 'dim' must be int, not {type(dim).__name__}")
    else:
        at = wrap_dim(dim, input.ndim)
        dims = (at,) if input.ndim else ()
        if dims and input.meta.shape[at] == 0:
            raise IndexError(f"aminmax: Expected reduction dim {at} to have non-zero size.")
    return AminmaxResult(*aminmax_op(input, dims, check_flag("aminmax", keepdim)))


