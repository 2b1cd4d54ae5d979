"""Convolutions and their transposes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..._core.dtypes import dtype as DType
from ..._tensor import Tensor
from ..._tensor.creation import empty
from .. import functional as F, init
from .._windows import each
from ..parameter import Parameter
from .module import Module

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]

Size = int | Sequence[int]
_MODES = ("zeros", "reflect", "replicate", "circular")


class _Conv(Module):
    """What convolutions share. Weight and bias are drawn from U(-1/sqrt(n), 1/sqrt(n)), n being the number of inputs of an output."""

    _axes: int
    _transposed = False
    weight: Parameter
    bias: Parameter | None
    output_padding: tuple[int, ...]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size | str = 0,
        dilation: Size = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        _check(in_channels, out_channels, groups, padding, stride, padding_mode)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = each(kernel_size, self._axes)
        self.stride = each(stride, self._axes)
        self.padding = padding if isinstance(padding, str) else each(padding, self._axes)
        self.dilation = each(dilation, self._axes)
        self.output_padding = (0,) * self._axes
        self.groups = groups
        self.padding_mode = padding_mode
        ends = (in_channels, out_channels // groups) if self._transposed else (out_channels, in_channels // groups)
        self.weight = Parameter(empty((*ends, *self.kernel_size), device=device, dtype=dtype))
        self.register_parameter("bias", Parameter(empty(out_channels, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias afresh."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        inputs = self.weight.size(1) * math.prod(self.kernel_size)
        if self.bias is not None and inputs:
            init.uniform_(self.bias, -1 / math.sqrt(inputs), 1 / math.sqrt(inputs))

    def forward(self, input: Tensor) -> Tensor:
        run: Any = (F.conv1d, F.conv2d, F.conv3d)[self._axes - 1]
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            input, padding = F.pad(input, self._frame(), self.padding_mode), 0
        result: Tensor = run(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)
        return result

    def _frame(self) -> list[int]:
        """Widths for `pad`, last axis first."""
        if self.padding == "same":
            totals = [dilation * (size - 1) for size, dilation in zip(self.kernel_size, self.dilation, strict=True)]
        else:
            totals = [0 if isinstance(width, str) else 2 * width for width in self.padding]
        return [width for total in reversed(totals) for width in (total // 2, total - total // 2)]

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        for name, usual in (("padding", 0), ("dilation", 1), ("output_padding", 0)):
            value = self.__dict__[name]
            if value != (usual,) * self._axes:
                text += f", {name}={value}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        return text if self.padding_mode == "zeros" else f"{text}, padding_mode={self.padding_mode}"


def _check(inputs: int, outputs: int, groups: int, padding: Size | str, stride: Size, mode: str) -> None:
    if groups <= 0:
        raise ValueError("groups must be a positive integer")
    if inputs % groups:
        raise ValueError("in_channels must be divisible by groups")
    if outputs % groups:
        raise ValueError("out_channels must be divisible by groups")
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'valid', 'same'}}")
        if padding == "same" and any(step != 1 for step in (stride if isinstance(stride, Sequence) else (stride,))):
            raise ValueError("padding='same' is not supported for strided convolutions")
    if mode not in _MODES:
        raise ValueError(f"padding_mode must be one of {set(_MODES)}, but got padding_mode='{mode}'")


class _ConvTranspose(_Conv):
    _transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size = 0,
        output_padding: Size = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Size = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: DType | None = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype)
        self.output_padding = each(output_padding, self._axes)

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        run: Any = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[self._axes - 1]
        extra = self.output_padding if output_size is None else self._extra(input, output_size)
        result: Tensor = run(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation)
        return result

    def _extra(self, input: Tensor, output_size: Sequence[int]) -> tuple[int, ...]:
        """What is missing to the wanted size. ValueError where no padding leads to it."""
        extra = []
        for k, wanted in enumerate(tuple(output_size)[-self._axes :]):
            padding = self.padding[k]
            assert isinstance(padding, int)
            have = input.size(input.dim() - self._axes + k)
            least = (have - 1) * self.stride[k] - 2 * padding + self.dilation[k] * (self.kernel_size[k] - 1) + 1
            if not 0 <= wanted - least < self.stride[k]:
                raise ValueError(f"requested an output size of {output_size}, but valid sizes range from {least} to {least + self.stride[k] - 1} "
                                 f"at axis {k} (for an input of {input.size()[2:]})")  # fmt: skip
            extra.append(wanted - least)
        return tuple(extra)


class Conv1d(_Conv):
    """Cross-correlation of (N, C, L) or (C, L): each output channel is a weighted sum over windows of the input channels.

    Shapes: weight (out_channels, in_channels / groups, kernel sizes), bias (out_channels). `padding` may be "same" or "valid".
    ValueError for settings that don't go together, RuntimeError for an input that doesn't fit.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.Conv1d(2, 4, 3)(torch.ones(1, 2, 9)).shape
    torch.Size([1, 4, 7])
    """

    _axes = 1


class Conv2d(_Conv):
    """Cross-correlation of (N, C, H, W) or (C, H, W): each output channel is a weighted sum over windows of the input channels.

    Shapes: weight (out_channels, in_channels / groups, kernel sizes), bias (out_channels). `padding` may be "same" or "valid".
    ValueError for settings that don't go together, RuntimeError for an input that doesn't fit.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.Conv2d(2, 4, 3)(torch.ones(1, 2, 9, 9)).shape
    torch.Size([1, 4, 7, 7])
    """

    _axes = 2


class Conv3d(_Conv):
    """Cross-correlation of (N, C, D, H, W) or (C, D, H, W): each output channel is a weighted sum over windows of the input channels.

    Shapes: weight (out_channels, in_channels / groups, kernel sizes), bias (out_channels). `padding` may be "same" or "valid".
    ValueError for settings that don't go together, RuntimeError for an input that doesn't fit.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.Conv3d(2, 4, 3)(torch.ones(1, 2, 5, 5, 5)).shape
    torch.Size([1, 4, 3, 3, 3])
    """

    _axes = 3


class ConvTranspose1d(_ConvTranspose):
    """The transpose of `Conv1d` (the gradient of its input), on (N, C, L) or (C, L).

    Shapes: weight (in_channels, out_channels / groups, kernel sizes), bias (out_channels). `output_padding` makes the output larger at its end;
    called with `output_size` it is chosen for that. ValueError for settings that don't go together.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.ConvTranspose1d(2, 4, 3)(torch.ones(1, 2, 9)).shape
    torch.Size([1, 4, 11])
    """

    _axes = 1


class ConvTranspose2d(_ConvTranspose):
    """The transpose of `Conv2d` (the gradient of its input), on (N, C, H, W) or (C, H, W).

    Shapes: weight (in_channels, out_channels / groups, kernel sizes), bias (out_channels). `output_padding` makes the output larger at its end;
    called with `output_size` it is chosen for that. ValueError for settings that don't go together.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.ConvTranspose2d(2, 4, 3)(torch.ones(1, 2, 9, 9)).shape
    torch.Size([1, 4, 11, 11])
    """

    _axes = 2


class ConvTranspose3d(_ConvTranspose):
    """The transpose of `Conv3d` (the gradient of its input), on (N, C, D, H, W) or (C, D, H, W).

    Shapes: weight (in_channels, out_channels / groups, kernel sizes), bias (out_channels). `output_padding` makes the output larger at its end;
    called with `output_size` it is chosen for that. ValueError for settings that don't go together.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.ConvTranspose3d(2, 4, 3)(torch.ones(1, 2, 5, 5, 5)).shape
    torch.Size([1, 4, 7, 7, 7])
    """

    _axes = 3
