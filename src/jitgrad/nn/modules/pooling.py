# ruff: noqa: D102  (forward and extra_repr are described by their base)
"""Pools: the largest, or the mean, of each window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._tensor import Tensor
from .. import functional as F
from .._windows import each
from .module import Module

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
]

Size = int | Sequence[int]
Wanted = int | None | Sequence[int | None]


class _MaxPool(Module):
    _axes: int

    def __init__(
        self, kernel_size: Size, stride: Size | None = None, padding: Size = 0, dilation: Size = 1, return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Any:
        run = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[self._axes - 1]
        return run(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices)

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class _AvgPool(Module):
    _axes: int

    def __init__(
        self, kernel_size: Size, stride: Size | None = None, padding: Size = 0, ceil_mode: bool = False, count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        run = F.avg_pool2d if self._axes == 2 else F.avg_pool3d
        return run(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad, self.divisor_override)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AdaptivePool(Module):
    def __init__(self, output_size: Wanted) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class _AdaptiveMaxPool(_AdaptivePool):
    def __init__(self, output_size: Wanted, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices


class MaxPool1d(_MaxPool):
    """The largest element of each window of the last axis of (N, C, L) or (C, L); with `return_indices` also its place.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.MaxPool1d(2)(torch.ones(1, 2, 9)).shape
    torch.Size([1, 2, 4])
    """

    _axes = 1


class MaxPool2d(_MaxPool):
    """The largest element of each window of the last two axes of (N, C, H, W) or (C, H, W); with `return_indices` also its place.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.MaxPool2d(2)(torch.ones(1, 2, 9, 9)).shape
    torch.Size([1, 2, 4, 4])
    """

    _axes = 2


class MaxPool3d(_MaxPool):
    """The largest element of each window of the last three axes of (N, C, D, H, W) or (C, D, H, W); with `return_indices` also its place.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.MaxPool3d(2)(torch.ones(1, 2, 5, 5, 5)).shape
    torch.Size([1, 2, 2, 2, 2])
    """

    _axes = 3


class AvgPool1d(Module):
    """The mean of each window of the last axis of (N, C, L) or (C, L).

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.AvgPool1d(2)(torch.tensor([[1.0, 3.0, 5.0, 9.0]])).tolist()
    [[2.0, 7.0]]
    """

    def __init__(
        self, kernel_size: Size, stride: Size | None = None, padding: Size = 0, ceil_mode: bool = False, count_include_pad: bool = True
    ) -> None:
        super().__init__()
        self.kernel_size = each(kernel_size, 1)
        self.stride = self.kernel_size if stride is None else each(stride, 1)
        self.padding = each(padding, 1)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(_AvgPool):
    """The mean of each window of the last two axes of (N, C, H, W) or (C, H, W).

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.AvgPool2d(2)(torch.ones(1, 2, 9, 9)).shape
    torch.Size([1, 2, 4, 4])
    """

    _axes = 2


class AvgPool3d(_AvgPool):
    """The mean of each window of the last three axes of (N, C, D, H, W) or (C, D, H, W).

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.AvgPool3d(2)(torch.ones(1, 2, 5, 5, 5)).shape
    torch.Size([1, 2, 2, 2, 2])
    """

    _axes = 3


class AdaptiveAvgPool1d(_AdaptivePool):
    """Means of windows that divide the last axis into `output_size` (None: as many as there are).

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.AdaptiveAvgPool1d(1)(torch.ones(1, 2, 9)).shape
    torch.Size([1, 2, 1])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptivePool):
    """Means of windows that divide the last two axes into `output_size` (None: as many as there are).

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.AdaptiveAvgPool2d(1)(torch.ones(1, 2, 9, 9)).shape
    torch.Size([1, 2, 1, 1])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_AdaptivePool):
    """Means of windows that divide the last three axes into `output_size` (None: as many as there are).

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.AdaptiveAvgPool3d(1)(torch.ones(1, 2, 5, 5, 5)).shape
    torch.Size([1, 2, 1, 1, 1])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool3d(input, self.output_size)


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """Maxima of windows that divide the last axis into `output_size`; with `return_indices` also their places.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.AdaptiveMaxPool1d(1)(torch.ones(1, 2, 9)).shape
    torch.Size([1, 2, 1])
    """

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """Maxima of windows that divide the last two axes into `output_size`; with `return_indices` also their places.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.AdaptiveMaxPool2d(1)(torch.ones(1, 2, 9, 9)).shape
    torch.Size([1, 2, 1, 1])
    """

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """Maxima of windows that divide the last three axes into `output_size`; with `return_indices` also their places.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.AdaptiveMaxPool3d(1)(torch.ones(1, 2, 5, 5, 5)).shape
    torch.Size([1, 2, 1, 1, 1])
    """

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)
