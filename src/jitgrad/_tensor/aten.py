"""`ops.aten`: ops by the names that torch's dispatcher has for them, for policies of selective checkpoints.

There is one op under a name here, so all overloads of a name (`ops.aten.mul.Tensor`, `ops.aten.mul.Scalar`) are the same object.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from .._core.shapes import wrap_dim
from .._ops import views
from .._ops.kinds import OPS
from . import _functions, indexing
from ._methods import Tensor

# Names of ours that are not torch's but for an underscore in front.
_NAMES: Final = {
    "_batch_norm": "native_batch_norm", "_bce": "binary_cross_entropy", "_bce_logits": "binary_cross_entropy_with_logits",
    "_clamp_high": "clamp", "_clamp_low": "clamp", "_cross_entropy": "nll_loss_forward", "_dropout": "native_dropout",
    "_layer_norm": "native_layer_norm", "_linear": "addmm", "_log_softmax": "_log_softmax", "_logsigmoid": "log_sigmoid_forward",
    "_max_dim": "max", "_mean_dims": "mean", "_min_dim": "min", "_nll_NllLossBackward0": "nll_loss_forward", "_prod_dim": "prod",
    "_nll_NllLoss2DBackward0": "nll_loss2d_forward", "_prelu": "_prelu_kernel", "_softmax": "_softmax", "_squeeze_dim": "squeeze",
    "_squeeze_dims": "squeeze", "_sum_dims": "sum", "_to_copy": "_to_copy", "_unsafe_view": "_unsafe_view",
}  # fmt: skip
_TENSOR: Final = frozenset(("add", "sub", "rsub", "mul", "div", "remainder", "fmod", "eq", "ne", "lt", "le", "gt", "ge", "index"))


def part(input: Any, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Any:
    """`slice`: places from `start` to `end` along one axis; a view."""
    return input[(slice(None),) * wrap_dim(dim, input.ndim) + (slice(start, end, step),)]


_CALLS: Final[dict[str, Callable[..., Any]]] = {  # written by hand
    "alias": views.alias_op, "index": indexing.index, "index_put": indexing.index_put, "index_put_": indexing.index_put_, "slice": part,
}  # fmt: skip


class OpOverload:
    """An op of `ops.aten`; called on tensors it is the function of that name."""

    def __init__(self, name: str) -> None:
        self.__name__ = f"{name}.{'Tensor' if name in _TENSOR else 'default'}"
        self._name = name

    def __call__(self, *args: Any, **named: Any) -> Any:
        """The function of that name, or the method, called. NotImplementedError where there is none."""
        function = _CALLS.get(self._name) or getattr(_functions, self._name, None) or getattr(Tensor, self._name, None)
        if function is None:
            raise NotImplementedError(f"{self} can't be called")
        return function(*args, **named)

    @property
    def base_name(self) -> str:
        """The name alone."""
        return self._name

    def name(self) -> str:
        """The name with its namespace."""
        return f"aten::{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='aten.{self._name}', overload='{self.__name__.partition('.')[2]}')>"

    def __str__(self) -> str:
        return f"aten.{self.__name__}"


class OpOverloadPacket:
    """All overloads of a name."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, overload: str) -> OpOverload:
        if overload.startswith("__"):
            raise AttributeError(overload)
        return overload_of(self.__name__)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """The function of that name, called."""
        return overload_of(self.__name__)(*args, **named)

    def __str__(self) -> str:
        return f"aten.{self.__name__}"


class _Aten:
    def __getattr__(self, name: str) -> OpOverloadPacket:
        if name.startswith("__") or (name not in _known() and name not in _CALLS and not hasattr(_functions, name)):
            raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute '{name}'")
        return packet_of(name)


class _Ops:
    """The namespaces of ops: there is `aten`.

    >>> import jitgrad
    >>> jitgrad.ops.aten.mm.default
    <OpOverload(op='aten.mm', overload='default')>
    """

    aten = _Aten()


@functools.cache
def overload_of(name: str) -> OpOverload:
    """The one object for a name."""
    return OpOverload(name)


@functools.cache
def packet_of(name: str) -> OpOverloadPacket:
    """The one object for the overloads of a name."""
    return OpOverloadPacket(name)


def _known() -> frozenset[str]:  # asked anew: some ops are declared when they are first needed
    return frozenset(_torch_name(name) for name in OPS)


def _torch_name(name: str) -> str:
    return _NAMES.get(name) or name.removeprefix("_").partition(".")[0]


def overload_for(op: Any, inputs: tuple[Any, ...]) -> OpOverload:
    """What torch's dispatcher would see of a call."""
    if op.name == "_linear" and inputs[0] is None:  # without a bias
        return overload_of("mm")
    return overload_of(_torch_name(op.name))


ops = _Ops()
