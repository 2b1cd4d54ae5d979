"""`Variable`, the name that tensors once had."""

from __future__ import annotations

from typing import Any

from .._engine import modes
from .._tensor.base import TensorBase
from .._tensor.creation import empty

__all__ = ["Variable"]


class Engine:
    """What programs ask of the engine itself."""

    @staticmethod
    def queue_callback(callback: Any) -> None:
        """Call a function at the end of the backward that runs. RuntimeError outside one."""
        run = modes.LOCAL.run
        if run is None or run.after_all is None:
            raise RuntimeError("Final callbacks can only be installed during backward pass.")
        run.after_all.append(callback)


class _VariableType(type):
    def __instancecheck__(cls, other: Any) -> bool:
        return isinstance(other, TensorBase)


class Variable(metaclass=_VariableType):
    """`Variable(tensor)` is the tensor over the same memory, a leaf; any tensor is an instance of it."""

    _execution_engine = Engine()

    def __new__(cls, data: Any = None, requires_grad: bool = False, volatile: bool = False, _grad_fn: Any = None) -> Any:
        """The tensor over the memory of `data`. TypeError for what is no tensor, RuntimeError for a `_grad_fn`."""
        if _grad_fn is not None:
            raise RuntimeError("_grad_fn argument to legacy Variable constructor is no longer supported.  Instead, please invoke your _grad_fn to "
                               "produce a variable with it as the _grad_fn.")  # fmt: skip
        if data is None:
            data = empty(0)
        if not isinstance(data, TensorBase):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        return data.detach().requires_grad_(requires_grad)  # type: ignore[attr-defined]
