"""Frames around the last axes."""

from __future__ import annotations

from collections.abc import Sequence

from ..._tensor import Tensor
from .. import functional as F
from .module import Module

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]


class _ConstantPad(Module):
    """A frame of `value` around the last axes; `padding` is one width for all sides or (left, right, top, bottom ...)."""

    _axes: int

    def __init__(self, padding: int | Sequence[int], value: float) -> None:
        super().__init__()
        self.padding = (padding,) * (2 * self._axes) if isinstance(padding, int) else tuple(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPad):
    """A frame around the last axis; negative widths cut off.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.ConstantPad1d((1, 2), 0.5)(torch.zeros(1)).tolist()
    [0.5, 0.0, 0.5, 0.5]
    """

    _axes = 1


class ConstantPad2d(_ConstantPad):
    """A frame around the last two axes.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.ConstantPad2d(1, 0.5)(torch.zeros(2, 3)).shape
    torch.Size([4, 5])
    """

    _axes = 2


class ConstantPad3d(_ConstantPad):
    """A frame around the last three axes.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.ConstantPad3d(1, 0.5)(torch.zeros(2, 3, 4)).shape
    torch.Size([4, 5, 6])
    """

    _axes = 3


class _ZeroPad(_ConstantPad):
    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad1d(_ZeroPad):
    """Zeros before and after the last axis.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.ZeroPad1d(1)(torch.ones(1)).tolist()
    [0.0, 1.0, 0.0]
    """

    _axes = 1


class ZeroPad2d(_ZeroPad):
    """Zeros around the last two axes.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.ZeroPad2d(1)(torch.ones(2, 3)).shape
    torch.Size([4, 5])
    """

    _axes = 2


class ZeroPad3d(_ZeroPad):
    """Zeros around the last three axes.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.ZeroPad3d(1)(torch.ones(2, 3, 4)).shape
    torch.Size([4, 5, 6])
    """

    _axes = 3


class _FramePad(Module):
    """A frame made of the input's own elements; `padding` as for the others."""

    _axes: int
    _mode: str

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__()
        self.padding = (padding,) * (2 * self._axes) if isinstance(padding, int) else tuple(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ReflectionPad(_FramePad):
    _mode = "reflect"


class _ReplicationPad(_FramePad):
    _mode = "replicate"


class _CircularPad(_FramePad):
    _mode = "circular"


class ReflectionPad1d(_ReflectionPad):
    """The elements within, mirrored at the outermost, around the last axis.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.ReflectionPad1d(1)(torch.tensor([[1.0, 2.0, 3.0]]))[0].tolist()
    [2.0, 1.0, 2.0, 3.0, 2.0]
    """

    _axes = 1


class ReflectionPad2d(_ReflectionPad):
    """The elements within, mirrored at the outermost, around the last two axes.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.ReflectionPad2d(1)(torch.ones(1, 3, 3)).shape
    torch.Size([1, 5, 5])
    """

    _axes = 2


class ReflectionPad3d(_ReflectionPad):
    """The elements within, mirrored at the outermost, around the last three axes.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.ReflectionPad3d(1)(torch.ones(1, 3, 3, 3)).shape
    torch.Size([1, 5, 5, 5])
    """

    _axes = 3


class ReplicationPad1d(_ReplicationPad):
    """The outermost elements, again and again, around the last axis.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.ReplicationPad1d(1)(torch.tensor([[1.0, 2.0, 3.0]]))[0].tolist()
    [1.0, 1.0, 2.0, 3.0, 3.0]
    """

    _axes = 1


class ReplicationPad2d(_ReplicationPad):
    """The outermost elements, again and again, around the last two axes.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.ReplicationPad2d(1)(torch.ones(1, 3, 3)).shape
    torch.Size([1, 5, 5])
    """

    _axes = 2


class ReplicationPad3d(_ReplicationPad):
    """The outermost elements, again and again, around the last three axes.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.ReplicationPad3d(1)(torch.ones(1, 3, 3, 3)).shape
    torch.Size([1, 5, 5, 5])
    """

    _axes = 3


class CircularPad1d(_CircularPad):
    """The elements of the other end around the last axis.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.CircularPad1d(1)(torch.tensor([[1.0, 2.0, 3.0]]))[0].tolist()
    [3.0, 1.0, 2.0, 3.0, 1.0]
    """

    _axes = 1


class CircularPad2d(_CircularPad):
    """The elements of the other end around the last two axes.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.CircularPad2d(1)(torch.ones(1, 3, 3)).shape
    torch.Size([1, 5, 5])
    """

    _axes = 2


class CircularPad3d(_CircularPad):
    """The elements of the other end around the last three axes.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.CircularPad3d(1)(torch.ones(1, 3, 3, 3)).shape
    torch.Size([1, 5, 5, 5])
    """

    _axes = 3
