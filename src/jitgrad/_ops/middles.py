"""Medians, modes and quantiles: what stands in the middle, or most often, among the elements along an axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.dtypes import bool_, float32, float64
from .._core.shapes import wrap_dim
from .axes import LONG
from .extremes import check_elements, picking
from .kinds import Array, Tensor, composite, general
from .reductions import check_flag
from .results import MedianResult, ModeResult, NanmedianResult


# ---------------------------------------------------------------- medians
def middle_index(array: Array, dim: int, keepdim: bool, skip: bool) -> Array:
    """Where the median (the lower of two) stands along an axis. NaN is the median where there is one, unless `skip`."""
    if not array.ndim:
        return np.zeros((), LONG)
    order = np.argsort(array, dim, kind="stable")
    absent = np.isnan(array) if array.dtype.kind == "f" else np.zeros(array.shape, bool)
    missing = absent.sum(dim, keepdims=True)
    n = array.shape[dim]
    if skip:
        rank = np.maximum(n - missing - 1, 0) // 2
    else:
        rank = np.where(missing > 0, n - missing, (n - 1) // 2)
    found = np.take_along_axis(order, rank, dim)
    return np.asarray(found if keepdim else found.squeeze(dim), LONG, order="C")


@general(name="_middle_index", differentiable=())
def middle_index_op(input: Array, dim: int, keepdim: bool, skip: bool) -> Array:
    return middle_index(input, dim, keepdim, skip)


median_dim_op, nanmedian_dim_op = picking("MedianBackward1", "_median_dim"), picking("NanmedianBackward1", "_nanmedian_dim")
mode_op = picking("ModeBackward0", "_mode")


def middle(array: Array, skip: bool) -> Array:
    """The median of all elements; NaN of none."""
    flat = array.reshape(-1)
    if not flat.size:
        return np.full((), np.nan, array.dtype)
    return np.array(flat[middle_index(flat, 0, False, skip)])


@general(node="MedianBackward0", saves=("input", "result"), name="_median")
def median_op(input: Array) -> Array:
    return middle(input, False)


@general(node="NanmedianBackward0", saves=("input", "result"), name="_nanmedian")
def nanmedian_op(input: Array) -> Array:
    return middle(input, True)


for _op in (median_op, nanmedian_op):

    @_op.rule
    def _(grad: Tensor, input: Tensor, result: Tensor) -> Tensor:
        mask = input.isnan() if bool(result.isnan()) else input == result
        return mask * (grad / mask.sum())


def medians(function: str, input: Tensor, dim: Any, keepdim: Any, skip: bool) -> Any:
    """`median` and `nanmedian`."""
    if input.meta.kind is bool_:
        raise NotImplementedError("\"median_cpu\" not implemented for 'Bool'")
    if dim is None:
        return (nanmedian_op if skip else median_op)(input)
    at = wrap_dim(dim, input.ndim)
    check_elements_along(function, input, at)
    index = middle_index_op(input, at, check_flag(function, keepdim), skip)
    return (nanmedian_dim_op if skip else median_dim_op)(input, index, at), index


def check_elements_along(function: str, input: Tensor, dim: int) -> None:
    """IndexError for an axis without elements."""
    if input.ndim and input.meta.shape[dim] == 0:
        check_elements(function, input.meta.shape, (dim,), "")


@composite
def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The middle element in order, the lower of two, NaN if there is one; with `dim` a named tuple of values and indices along it.

    IndexError for an axis of length 0. The gradient goes in equal parts to all elements equal to the median, along `dim` to the one
    that the index names.
    """
    found = medians("median", input, dim, keepdim, False)
    return found if dim is None else MedianResult(*found)


@composite
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """`median` of the elements that are not NaN; NaN where there are no others."""
    found = medians("nanmedian", input, dim, keepdim, True)
    return found if dim is None else NanmedianResult(*found)


# ---------------------------------------------------------------- modes
@general(name="_mode_index", differentiable=())
def mode_index_op(input: Array, dim: int, keepdim: bool) -> Array:
    """The last place of the most frequent value along an axis, of the smallest one where several are."""
    if not input.ndim:
        return np.zeros((), LONG)
    rows = np.moveaxis(input, dim, -1)
    lead, n = rows.shape[:-1], rows.shape[-1]
    order = np.argsort(rows, -1, kind="stable").reshape(-1, n)
    ordered = np.take_along_axis(rows.reshape(-1, n), order, -1)
    ends = np.ones(ordered.shape, bool)
    ends[:, :-1] = ordered[:, 1:] != ordered[:, :-1]
    place = np.broadcast_to(np.arange(n), ordered.shape)
    before = np.maximum.accumulate(np.where(np.pad(ends, ((0, 0), (1, 0)))[:, :-1], place, 0), -1)  # where a run begins
    last = np.where(ends, place - before, -1).argmax(-1)
    found = np.take_along_axis(order, last[:, None], -1).reshape(lead)
    return np.asarray(np.expand_dims(found, dim) if keepdim else found, LONG, order="C")


@composite
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> Any:
    """The most frequent element along `dim`, the smallest of several, and where it stands: a named tuple. IndexError for a length of 0."""
    at = wrap_dim(dim, input.ndim)
    check_elements_along("mode", input, at)
    index = mode_index_op(input, at, check_flag("mode", keepdim))
    return ModeResult(mode_op(input, index, at), index)


# ---------------------------------------------------------------- quantiles
_MODES = ("linear", "lower", "higher", "midpoint", "nearest")


def checked_quantiles(function: str, input: Tensor, q: Any, interpolation: str) -> Tensor:
    """The fractions as a tensor. RuntimeError or TypeError in torch's words."""
    kind = input.meta.kind
    if not hasattr(q, "meta"):
        if isinstance(q, bool) or not isinstance(q, (int, float)):
            raise TypeError(f"{function}() received an invalid combination of arguments - got (Tensor, {type(q).__name__}), but expected one of:\n"
                            " * (Tensor input, Tensor q, int dim = None, bool keepdim = False, *, str interpolation = \"linear\")\n"
                            " * (Tensor input, float q, int dim = None, bool keepdim = False, *, str interpolation = \"linear\")\n")  # fmt: skip
        if not 0 <= q <= 1:
            raise RuntimeError(f"quantile() q must be in the range [0, 1] but got {q:g}")
    if not input.meta.numel:
        raise RuntimeError("quantile() input tensor must be non-empty")
    if kind not in (float32, float64):
        raise RuntimeError("quantile() input tensor must be either float or double dtype")
    q = q if hasattr(q, "meta") else input.new_tensor(q)
    if q.ndim > 1:
        raise RuntimeError("quantile() q must be a scalar or 1D tensor")
    if q.meta.kind is not kind:
        raise RuntimeError("quantile() q tensor must be same dtype as the input tensor")
    if interpolation not in _MODES:
        raise RuntimeError(f"quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}")
    if not bool(((q >= 0) & (q <= 1)).all()):
        raise RuntimeError("quantile() q values must be in the range [0, 1]")
    return q


def quantiles(input: Tensor, q: Tensor, dim: int | None, keepdim: bool, interpolation: str, skip: bool) -> Tensor:
    """The elements at fractions of the way through the order along an axis; the fractions' axis comes first."""
    at = 0 if dim is None else wrap_dim(dim, input.ndim)
    rows = (input.reshape(-1) if dim is None or not input.ndim else input).transpose(at, -1)
    ordered, n = rows.sort(-1)[0], rows.meta.shape[-1]
    missing = rows.isnan().sum(-1, keepdim=True)
    fractions = q.reshape(-1)
    ranks = (n - missing - 1).clamp(0) * fractions if skip else (fractions * (n - 1)).masked_fill(missing > 0, n - 1)
    if interpolation in ("lower", "higher", "nearest"):
        ranks = {"lower": ranks.floor, "higher": ranks.ceil, "nearest": ranks.round}[interpolation]()
    below = ranks.long()
    values = ordered.gather(-1, below)
    if interpolation in ("linear", "midpoint"):
        weight = ranks - below if interpolation == "linear" else ranks.new_full((), 0.5)
        values = values.lerp(ordered.gather(-1, ranks.ceil().long()), weight)
    values = values.transpose(at, -1).unsqueeze(0).transpose(0, at + 1)  # the axis has length 1 now, the fractions stand first
    if dim is None and keepdim:
        values = values.reshape(-1, *(1,) * input.ndim)
    elif not keepdim or not input.ndim:
        values = values.squeeze(at + 1)
    return values if q.ndim else values.squeeze(0)


@composite
def quantile(input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear") -> Tensor:
    """The value below which a fraction `q` of the elements lies (of all, or along `dim`), NaN where there is NaN.

    q: a number or a vector of numbers in [0, 1]; a vector gives the result a new first axis. `interpolation` between two elements is
    "linear", "lower", "higher", "midpoint" or "nearest". float32 and float64; RuntimeError in torch's words for the rest.
    """
    fractions = checked_quantiles("quantile", input, q, interpolation)
    return quantiles(input, fractions, dim, check_flag("quantile", keepdim, 4), interpolation, False)


@composite
def nanquantile(input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear") -> Tensor:
    """`quantile` of the elements that are not NaN; NaN where there are no others."""
    fractions = checked_quantiles("nanquantile", input, q, interpolation)
    return quantiles(input, fractions, dim, check_flag("nanquantile", keepdim, 4), interpolation, True)
