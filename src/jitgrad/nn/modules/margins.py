# ruff: noqa: D102  (forward is described by its base)
"""Losses of margins, likenesses and likelihoods as modules, and the distances they measure."""

from __future__ import annotations

from collections.abc import Callable

from ..._tensor import Tensor
from .. import functional as F
from .loss import _Loss, _WeightedLoss
from .module import Module

__all__ = [
    "CosineEmbeddingLoss",
    "CosineSimilarity",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "PairwiseDistance",
    "PoissonNLLLoss",
    "SoftMarginLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]

Flag = bool | None


class CosineSimilarity(Module):
    """Cosine of the angle between vectors along `dim`; see `functional.cosine_similarity`.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.CosineSimilarity(dim=0)(torch.tensor([3.0, 4.0]), torch.tensor([4.0, -3.0])).item()
    0.0
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The p-norm of differences along the last axis; see `functional.pairwise_distance`.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.PairwiseDistance(eps=0.0)(torch.tensor([[3.0, 4.0]]), torch.zeros(1, 2)).tolist()
    [5.0]
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class PoissonNLLLoss(_Loss):
    """See `functional.poisson_nll_loss`.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.PoissonNLLLoss()(torch.tensor([0.0]), torch.tensor([5.0])).item()
    1.0
    """

    def __init__(
        self, log_input: bool = True, full: bool = False, size_average: Flag = None, eps: float = 1e-8, reduce: Flag = None, reduction: str = "mean"
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(log_input, target, self.log_input, self.full, eps=self.eps, reduction=self.reduction)


class GaussianNLLLoss(_Loss):
    """See `functional.gaussian_nll_loss`.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.GaussianNLLLoss()(torch.tensor([3.0]), torch.tensor([1.0]), torch.tensor([1.0])).item()
    2.0
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(None, None, reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        return F.gaussian_nll_loss(input, target, var, self.full, self.eps, self.reduction)


class HingeEmbeddingLoss(_Loss):
    """See `functional.hinge_embedding_loss`.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.HingeEmbeddingLoss()(torch.tensor([2.0, 0.5]), torch.tensor([1.0, -1.0])).item()
    1.25
    """

    def __init__(self, margin: float = 1.0, size_average: Flag = None, reduce: Flag = None, reduction: str = "mean") -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, target, self.margin, reduction=self.reduction)


class MarginRankingLoss(_Loss):
    """See `functional.margin_ranking_loss`.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.MarginRankingLoss()(torch.tensor([1.0]), torch.tensor([3.0]), torch.tensor([1.0])).item()
    2.0
    """

    def __init__(self, margin: float = 0.0, size_average: Flag = None, reduce: Flag = None, reduction: str = "mean") -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.margin_ranking_loss(input1, input2, target, self.margin, reduction=self.reduction)


class SoftMarginLoss(_Loss):
    """See `functional.soft_margin_loss`.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.SoftMarginLoss()(torch.tensor([1000.0]), torch.tensor([-1.0])).item()
    1000.0
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class MultiMarginLoss(_WeightedLoss):
    """See `functional.multi_margin_loss`. ValueError for a `p` other than 1 and 2.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.MultiMarginLoss()(torch.tensor([[1.0, 3.0]]), torch.tensor([0])).item()
    1.5
    """

    def __init__(
        self, p: int = 1, margin: float = 1.0, weight: Tensor | None = None, size_average: Flag = None, reduce: Flag = None, reduction: str = "mean"
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and weight.dim() != 1:
            raise ValueError(f"MultiMarginLoss: expected weight to be None or 1D tensor, got {weight.dim()}D instead")
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multi_margin_loss(input, target, self.p, self.margin, self.weight, reduction=self.reduction)


class MultiLabelMarginLoss(_Loss):
    """See `functional.multilabel_margin_loss`.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.MultiLabelMarginLoss()(torch.tensor([[1.0, 3.0]]), torch.tensor([[0, -1]])).item()
    1.5
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """See `functional.multilabel_soft_margin_loss`.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.MultiLabelSoftMarginLoss()(torch.tensor([[1000.0, 1000.0]]), torch.tensor([[1.0, 0.0]])).item()
    500.0
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_soft_margin_loss(input, target, self.weight, reduction=self.reduction)


class CosineEmbeddingLoss(_Loss):
    """See `functional.cosine_embedding_loss`.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.CosineEmbeddingLoss()(torch.tensor([[3.0, 4.0]]), torch.tensor([[4.0, -3.0]]), torch.tensor([1.0])).item()
    1.0
    """

    def __init__(self, margin: float = 0.0, size_average: Flag = None, reduce: Flag = None, reduction: str = "mean") -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(input1, input2, target, self.margin, reduction=self.reduction)


class TripletMarginLoss(_Loss):
    """See `functional.triplet_margin_loss`. ValueError for a margin that isn't positive.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.TripletMarginLoss()(torch.zeros(1, 2), torch.zeros(1, 2), torch.zeros(1, 2)).item()
    1.0
    """

    def __init__(
        self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False, size_average: Flag = None, reduce: Flag = None,
        reduction: str = "mean",
    ) -> None:  # fmt: skip
        super().__init__(size_average, reduce, reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginLoss: expected margin to be greater than 0, got {margin} instead")
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_loss(anchor, positive, negative, self.margin, self.p, self.eps, self.swap, reduction=self.reduction)


class TripletMarginWithDistanceLoss(_Loss):
    """See `functional.triplet_margin_with_distance_loss`. ValueError for a margin that isn't positive.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.TripletMarginWithDistanceLoss(margin=2.0)(torch.zeros(1, 2), torch.zeros(1, 2), torch.zeros(1, 2)).item()
    2.0
    """

    def __init__(
        self, *, distance_function: Callable[[Tensor, Tensor], Tensor] | None = None, margin: float = 1.0, swap: bool = False, reduction: str = "mean"
    ) -> None:
        super().__init__(None, None, reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginWithDistanceLoss: expected margin to be greater than 0, got {margin} instead")
        self.distance_function = distance_function if distance_function is not None else PairwiseDistance()
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_with_distance_loss(
            anchor, positive, negative, distance_function=self.distance_function, margin=self.margin, swap=self.swap, reduction=self.reduction
        )
