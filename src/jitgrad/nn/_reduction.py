"""The words for how a loss is summed up, and the older arguments that said the same."""

from __future__ import annotations

import warnings


def legacy_reduction(size_average: bool | None, reduce: bool | None) -> str:
    """The reduction that `size_average` and `reduce` stand for, with torch's warning that they are going away."""
    if reduce is None or reduce:
        reduction = "mean" if size_average is None or size_average else "sum"
    else:
        reduction = "none"
    warnings.warn(
        f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.", stacklevel=3
    )
    return reduction


def checked_reduction(reduction: str) -> str:
    """`reduction` if it is one of none, mean and sum; ValueError otherwise."""
    if reduction == "elementwise_mean":
        warnings.warn("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.", stacklevel=3)
        return "mean"
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction
