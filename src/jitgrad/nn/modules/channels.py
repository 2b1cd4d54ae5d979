# ruff: noqa: D102  (forward and extra_repr are described by their base)
"""What acts on channels: rearrangement, dropout of whole channels, normalisation by neighbours or by example."""

from __future__ import annotations

from typing import Any

from ..._core.dtypes import dtype as DType
from ..._tensor import Tensor
from .. import functional as F
from .batchnorm import _BatchNorm
from .dropout import Dropout
from .module import Module

__all__ = [
    "AlphaDropout",
    "BatchNorm3d",
    "ChannelShuffle",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "FeatureAlphaDropout",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LocalResponseNorm",
    "PixelShuffle",
    "PixelUnshuffle",
    "RReLU",
    "Unfold",
]


class BatchNorm3d(_BatchNorm):
    """Batch normalisation of (N, C, D, H, W) with C = `num_features` channels. ValueError for another number of dimensions.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.BatchNorm3d(3)(torch.ones(2, 3, 4, 4, 4)).shape
    torch.Size([2, 3, 4, 4, 4])
    """

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() != 5:
            raise ValueError(f"expected 5D input (got {input.dim()}D input)")


class _InstanceNorm(_BatchNorm):
    """Mean 0 and variance 1 of each channel of each example. Without scale, shift and running statistics unless asked for."""

    _axes: int

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False, track_running_stats: bool = False,
        device: Any = None, dtype: DType | None = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (self._axes + 1, self._axes + 2):
            raise ValueError(f"expected {self._axes + 1}D or {self._axes + 2}D input (got {input.dim()}D input)")
        alone = input.dim() == self._axes + 1
        x = input.unsqueeze(0) if alone else input
        if self.affine and x.size(1) != self.num_features:
            raise ValueError(f"expected input's size at dim=1 to match num_features ({self.num_features}), but got: {x.size(1)}.")
        own = self.training or not self.track_running_stats
        momentum = 0.0 if self.momentum is None else self.momentum
        result = F.instance_norm(x, self.running_mean, self.running_var, self.weight, self.bias, own, momentum, self.eps)
        return result.squeeze(0) if alone else result


class InstanceNorm1d(_InstanceNorm):
    """Normalisation of each channel of each example of (N, C, L) or (C, L). ValueError for another number of dimensions.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.InstanceNorm1d(1, eps=0.0)(torch.tensor([[[1.0, 3.0]]])).tolist()
    [[[-1.0, 1.0]]]
    """

    _axes = 1


class InstanceNorm2d(_InstanceNorm):
    """Normalisation of each channel of each example of (N, C, H, W) or (C, H, W). ValueError for another number of dimensions.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.InstanceNorm2d(3)(torch.ones(2, 3, 4, 4)).shape
    torch.Size([2, 3, 4, 4])
    """

    _axes = 2


class InstanceNorm3d(_InstanceNorm):
    """Normalisation of each channel of each example of (N, C, D, H, W) or (C, D, H, W). ValueError for another number of dimensions.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.InstanceNorm3d(3)(torch.ones(2, 3, 4, 4, 4)).shape
    torch.Size([2, 3, 4, 4, 4])
    """

    _axes = 3


class LocalResponseNorm(Module):
    """The input over a power of the mean of squares of neighbouring channels; see `functional.local_response_norm`.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.LocalResponseNorm(2, alpha=3.0, beta=1.0)(torch.ones(1, 2, 1))[0, 1].item()
    0.25
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class Unfold(Module):
    """The windows of (N, C, H, W) as columns; see `functional.unfold`.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.Unfold(2)(torch.ones(1, 3, 4, 4)).shape
    torch.Size([1, 12, 9])
    """

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, stride={self.stride}"


class PixelShuffle(Module):
    """(*, C * r ** 2, H, W) to (*, C, H * r, W * r).

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.PixelShuffle(2)(torch.ones(4, 3, 3)).shape
    torch.Size([1, 6, 6])
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """The inverse of `PixelShuffle`.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.PixelUnshuffle(2)(torch.ones(1, 6, 6)).shape
    torch.Size([4, 3, 3])
    """

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """Deals out the channels of each group in turn.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.ChannelShuffle(2)(torch.arange(4.0).view(1, 4, 1)).reshape(-1).tolist()
    [0.0, 2.0, 1.0, 3.0]
    """

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"


class RReLU(Module):
    """`LeakyReLU` with a slope drawn from [lower, upper] for each negative element in training, and their mean otherwise.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.RReLU(0.25, 0.75).eval()(torch.tensor([-2.0, 2.0])).tolist()
    [-1.0, 2.0]
    """

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}" + (", inplace=True" if self.inplace else "")


class Dropout1d(Dropout):
    """In training, sets whole channels of (N, C, L) to 0 with probability `p` and divides the others by `1 - p`.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.Dropout1d(1.0)(torch.ones(1, 2, 3)).sum().item()
    0.0
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(Dropout):
    """In training, sets whole channels of (N, C, H, W) to 0 with probability `p` and divides the others by `1 - p`.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.Dropout2d(1.0)(torch.ones(1, 2, 3, 3)).sum().item()
    0.0
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(Dropout):
    """In training, sets whole channels of (N, C, D, H, W) to 0 with probability `p` and divides the others by `1 - p`.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.Dropout3d(1.0)(torch.ones(1, 2, 3, 3, 3)).sum().item()
    0.0
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(Dropout):
    """Dropout for `SELU`, which keeps mean and variance; see `functional.alpha_dropout`.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.AlphaDropout().eval()(torch.ones(2)).tolist()
    [1.0, 1.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(Dropout):
    """`AlphaDropout` of whole channels.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.FeatureAlphaDropout().eval()(torch.ones(1, 2)).tolist()
    [[1.0, 1.0]]
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training)
