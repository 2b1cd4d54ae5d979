# ruff: noqa: D102  (forward and extra_repr are described by their base)
"""Losses as modules."""

from __future__ import annotations

from ..._tensor import Tensor
from .. import functional as F
from .._reduction import legacy_reduction
from .module import Module

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CrossEntropyLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "MSELoss",
    "NLLLoss",
    "SmoothL1Loss",
]


class _Loss(Module):
    """A loss with a `reduction`: 'mean', 'sum' or 'none'."""

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> None:
        super().__init__()
        if size_average is not None or reduce is not None:
            reduction = legacy_reduction(size_average, reduce)
        self.reduction = reduction


class _WeightedLoss(_Loss):
    """A loss with a weight, kept as a buffer."""

    weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class MSELoss(_Loss):
    """Mean squared distance; see `functional.mse_loss`.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.MSELoss()(torch.tensor([1.0, 3.0]), torch.tensor([1.0, 1.0])).item()
    2.0
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, None, None, self.reduction)


class L1Loss(_Loss):
    """Mean distance; see `functional.l1_loss`.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.L1Loss()(torch.tensor([1.0, 3.0]), torch.tensor([1.0, 1.0])).item()
    1.0
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(input, target, None, None, self.reduction)


class SmoothL1Loss(_Loss):
    """Squared below a distance of `beta`, linear above; see `functional.smooth_l1_loss`.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.SmoothL1Loss()(torch.tensor([3.0]), torch.tensor([1.0])).item()
    1.5
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, target, None, None, self.reduction, self.beta)


class HuberLoss(_Loss):
    """Squared below a distance of `delta`, linear above; see `functional.huber_loss`.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.HuberLoss(delta=2.0)(torch.tensor([4.0]), torch.tensor([1.0])).item()
    4.0
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        if not isinstance(delta, float | int):
            raise TypeError(f"delta must be a float or int, got: {type(delta)}")
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, self.reduction, self.delta)


class NLLLoss(_WeightedLoss):
    """Minus the log-probability of the target class; see `functional.nll_loss`.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.NLLLoss()(torch.tensor([[-1.0, -2.0]]), torch.tensor([1])).item()
    2.0
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(input, target, self.weight, None, self.ignore_index, None, self.reduction)


class CrossEntropyLoss(_WeightedLoss):
    """Minus the log-probability of the target class, from logits; see `functional.cross_entropy`.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> loss = nn.CrossEntropyLoss()(torch.zeros(5, 4), torch.tensor([0, 1, 2, 3, 0]))
    >>> round(loss.item(), 4)
    1.3863
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(
            input, target, self.weight, None, self.ignore_index, None, self.reduction, self.label_smoothing
        )


class BCELoss(_WeightedLoss):
    """Cross entropy of probabilities for two classes; see `functional.binary_cross_entropy`.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> round(nn.BCELoss()(torch.tensor([0.5]), torch.tensor([1.0])).item(), 4)
    0.6931
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, self.weight, None, None, self.reduction)


class BCEWithLogitsLoss(_WeightedLoss):
    """Cross entropy of logits for two classes; see `functional.binary_cross_entropy_with_logits`.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.BCEWithLogitsLoss()(torch.tensor([1000.0]), torch.tensor([0.0])).item()
    1000.0
    """

    pos_weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, None, None, self.reduction, self.pos_weight
        )


class KLDivLoss(_Loss):
    """How far the distribution `target` is from the one whose logarithms are the input; see `functional.kl_div`.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.KLDivLoss(reduction="batchmean")(torch.tensor([[0.0]]), torch.tensor([[1.0]])).item()
    0.0
    """

    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean", log_target: bool = False
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)
