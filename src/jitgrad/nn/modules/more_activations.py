# ruff: noqa: D102  (forward and extra_repr are described by their base)
"""The less common nonlinearities."""

from __future__ import annotations

from typing import Any

from ..._core.dtypes import dtype as DType
from ..._tensor import Tensor
from ..._tensor.creation import full
from .. import functional as F
from ..parameter import Parameter
from .activation import Softmax
from .module import Module

__all__ = [
    "CELU",
    "GLU",
    "SELU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "Mish",
    "PReLU",
    "ReLU6",
    "Softmax2d",
    "Softmin",
    "Softshrink",
    "Softsign",
    "Tanhshrink",
    "Threshold",
]


class _InPlace(Module):
    """A nonlinearity without settings that may write to its input."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class SELU(_InPlace):
    """Scaled `ELU`, which keeps mean 0 and variance 1 from layer to layer.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.SELU()(torch.tensor([0.0])).tolist()
    [0.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)


class Mish(_InPlace):
    """`x * tanh(softplus(x))` of each element.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.Mish()(torch.tensor([0.0, 50.0])).tolist()
    [0.0, 50.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, self.inplace)


class Hardsigmoid(_InPlace):
    """`relu6(x + 3) / 6` of each element.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.Hardsigmoid()(torch.tensor([-3.0, 0.0, 3.0])).tolist()
    [0.0, 0.5, 1.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class Hardswish(_InPlace):
    """`x * relu6(x + 3) / 6` of each element.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.Hardswish()(torch.tensor([-4.0, 3.0])).tolist()
    [-0.0, 3.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class Hardtanh(Module):
    """Each element moved into [min_val, max_val]. AssertionError unless `min_val < max_val`.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.Hardtanh()(torch.tensor([-2.0, 0.5, 2.0])).tolist()
    [-1.0, 0.5, 1.0]
    """

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        if max_val <= min_val:
            raise AssertionError(f"max_val ({max_val}) must be greater than min_val ({min_val})")
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}" + (", inplace=True" if self.inplace else "")


class ReLU6(Hardtanh):
    """Each element moved into [0, 6].

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.ReLU6()(torch.tensor([-2.0, 8.0])).tolist()
    [0.0, 6.0]
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class CELU(Module):
    """Each element, `alpha * (exp(x / alpha) - 1)` where it is negative.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.CELU()(torch.tensor([0.0, 2.0])).tolist()
    [0.0, 2.0]
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class Threshold(Module):
    """Each element above `threshold`; the others become `value`.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.Threshold(1.0, 20.0)(torch.tensor([0.5, 2.0])).tolist()
    [20.0, 2.0]
    """

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return f"threshold={self.threshold}, value={self.value}" + (", inplace=True" if self.inplace else "")


class Hardshrink(Module):
    """Each element, zero where it is within [-lambd, lambd].

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.Hardshrink()(torch.tensor([0.25, 2.0])).tolist()
    [0.0, 2.0]
    """

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Softshrink(Module):
    """Each element moved by `lambd` towards zero, and not across it.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.Softshrink()(torch.tensor([0.25, 2.0])).tolist()
    [0.0, 1.5]
    """

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)


class Tanhshrink(Module):
    """`x - tanh(x)` of each element.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.Tanhshrink()(torch.tensor([0.0])).tolist()
    [0.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


class Softsign(Module):
    """`x / (1 + |x|)` of each element.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.Softsign()(torch.tensor([1.0, -3.0])).tolist()
    [0.5, -0.75]
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class PReLU(Module):
    """Each element, multiplied by a trained slope where it is negative: one for all, or one per channel (axis 1).

    Shapes: input (N, num_parameters, *) or any with `num_parameters=1`; weight (num_parameters), `init` at first.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.PReLU()(torch.tensor([-4.0, 3.0])).tolist()
    [-1.0, 3.0]
    """

    weight: Parameter

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: DType | None = None) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(full((num_parameters,), float(init), device=device, dtype=dtype))

    def reset_parameters(self) -> None:
        """Back to the slope of the beginning."""
        self.weight.data.fill_(self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class GLU(Module):
    """`a * sigmoid(b)`, where a and b are the halves of the input along `dim`.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.GLU()(torch.tensor([4.0, 0.0])).tolist()
    [2.0]
    """

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmin(Softmax):
    """`Softmax` of the negative input.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.Softmin(dim=0)(torch.zeros(4)).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """`Softmax` over the channels of (N, C, H, W) or (C, H, W). ValueError for another number of dimensions.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.Softmax2d()(torch.zeros(2, 1, 1)).reshape(-1).tolist()
    [0.5, 0.5]
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3, _stacklevel=5)
