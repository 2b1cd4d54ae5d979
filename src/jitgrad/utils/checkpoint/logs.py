"""What a checkpoint did, for the errors of its debug mode: the ops of each run, and what was saved where."""

from __future__ import annotations

import os
import traceback
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Final

from ..._tensor import Tensor
from ..._tensor.aten import overload_for
from ..._tensor.interception import Interceptor, intercept
from ..._tensor.invoke import run_op

_PACKAGE: Final = os.path.dirname(os.path.dirname(os.path.dirname(__file__))) + os.sep
_LOGS: Final = (
    "An error happened while unpacking tensors; dumping logs of latest computation\n"
    "because you passed `debug=True` to `torch.utils.checkpoint.checkpoint()`.\n\n"
    "Tensors saved during the original forward:\n\n{saved}\n\nTensors saved during recomputation:\n\n{saved_again}\n\n"
    "Operations executed during the original forward:\n\n{ops}\n\nOperations executed during recomputation:\n\n{ops_again}\n\n"
    "ERROR: Detected non-determinism while running activation checkpointing\n\n"
    "You are seeing this error because you passed `debug=True` to checkpoint and\n"
    "tensors to be saved during the original forward and differ between those saved\n"
    "during recomputation. Each is listed above with the lines that had it saved.\n\n{error}"
)


class RunLog(AbstractContextManager[None]):
    """Notes the ops that are called inside, and the tensors that are told to it; begins anew when it is entered again."""

    def __init__(self) -> None:
        self.ops: list[str] = []
        self.saved: list[str] = []
        self._outer: Interceptor | None = None

    def __enter__(self) -> None:
        self.ops.clear()
        self.saved.clear()
        self._outer = intercept(self._call)

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        intercept(self._outer)
        self._outer = None

    def _call(self, op: Any, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
        result = (run_op if self._outer is None else self._outer)(op, inputs, statics)
        results = result if isinstance(result, tuple | list) else (result,)
        shown = [", ".join(_short(x) for x in group if isinstance(x, Tensor)) for group in (inputs, results)]
        self.ops.append(f"  {overload_for(op, inputs)}({shown[0]}) -> {shown[1]}")
        return result

    def save(self, tensor: Tensor) -> None:
        """Note a saved tensor and the lines of the user's program that had it saved."""
        lines = [f"  {x.filename}:{x.lineno}:{x.name}" for x in traceback.extract_stack() if not x.filename.startswith(_PACKAGE)]
        self.saved.append("\n".join([_short(tensor), *lines]))


def _short(tensor: Tensor) -> str:
    return f"{tensor.dtype.name}{list(tensor.shape)}"


def told(first: RunLog, again: RunLog, error: Exception) -> str:
    """The error with all that is known of the two runs."""
    return _LOGS.format(
        saved="\n".join(first.saved), saved_again="\n".join(again.saved), ops="\n".join(first.ops), ops_again="\n".join(again.ops), error=error
    )
