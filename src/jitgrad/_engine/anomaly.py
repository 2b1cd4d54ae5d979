"""Anomaly mode: nodes remember where their op was called; a run that fails, or gives NaN, tells."""

from __future__ import annotations

import linecache
import os
import sys
import warnings
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from .._core.dtypes import TENSOR_TYPE_NAME, from_numpy
from .._core.late import LateModule
from . import modes
from .node import LEAF, Node

if TYPE_CHECKING:
    import zlib

    from .run import Run
else:
    zlib = LateModule("zlib")

PACKAGE: Final = os.path.dirname(os.path.dirname(__file__))  # frames of the library itself are of no interest


class Settings(NamedTuple):
    """What the mode was switched on with."""

    check_nan: bool


def called_from() -> str:
    """The stack outside the library as a traceback shows it, the outermost call first."""
    lines: list[str] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(PACKAGE):
            text = linecache.getline(code.co_filename, frame.f_lineno, frame.f_globals).strip()
            lines.append(f'  File "{code.co_filename}", line {frame.f_lineno}, in {code.co_name}\n' + (f"    {text}\n" if text else ""))
        frame = frame.f_back
    return "".join(reversed(lines))


def note(node: Node) -> None:
    """Remember where an op was called, by which backward if it was one, and what it saved looks like."""
    seal(node)
    extras = node._extras()
    extras.traceback = called_from()
    extras.metadata["traceback_"] = extras.traceback.splitlines(keepends=True)
    run = modes.LOCAL.run
    if run is not None:
        extras.parent = run.current
        if run.current is not None:
            extras.metadata["parent_"] = run.current


def seal(node: Node) -> None:
    """Note a checksum of each saved array, so that a write which no counter saw is found at backward."""
    for name, value, _ in node.kept_values():
        if isinstance(value, np.ndarray) and not name.startswith("ctx."):  # attributes of a context are the user's own
            node._extras().seals[name] = checksum(value)


def checksum(array: np.ndarray[Any, Any]) -> int:
    """Of the elements in order, whatever the strides."""
    return zlib.crc32(np.ascontiguousarray(array).data)


def check_seals(node: Any) -> None:
    """RuntimeError where a saved array has other elements than when it was saved, though nobody told the library."""
    rare = node.rare
    if rare is None or not rare.seals:
        return
    for name, value, _ in node.kept_values():
        if name in rare.seals and isinstance(value, np.ndarray) and checksum(value) != rare.seals[name]:
            try:
                node.check_saved()  # a write that the library saw is reported in its words
            except RuntimeError as error:
                raise RuntimeError(f"{error} {node.name()} had saved it as '{name}'.") from None
            raise RuntimeError(
                f"{node.name()} saved '{name}' for its backward: [{TENSOR_TYPE_NAME[from_numpy(value.dtype)]} {list(value.shape)}], and its elements "
                "have been changed since without the library's knowledge, so the gradient would be wrong. Something wrote to a NumPy array that "
                "shares the memory (`x.numpy()`, `from_numpy(a)`), or to `.data`. Write to a copy, or through the tensor, where it is noticed."
            )


class Watch:
    """Runs the steps of one backward and explains what goes wrong in them."""

    def __init__(self, settings: Settings) -> None:
        self.check_nan = settings.check_nan

    def step(self, run: Run, node: Node) -> None:
        """One step; on an error the traceback of the forward call is issued as a warning first."""
        outer, run.current = run.current, node
        try:
            check_seals(node)
            run.step(node)
        except Exception:
            explain(node)
            raise
        finally:
            run.current = outer

    def check(self, node: Node, results: Any) -> None:
        """RuntimeError where a node gave NaN."""
        if self.check_nan and node.number != LEAF:
            for index, grad in enumerate(results):
                if grad is not None and bool(np.isnan(grad.array).any()):
                    raise RuntimeError(f"Function '{node.name()}' returned nan values in its {index}th output.")


def explain(node: Node) -> None:
    """Warn with the place where the failing op was called, and those that brought it about."""
    where = None if node.rare is None else node.rare.traceback
    if where is None:
        tell(f"Error detected in {node.name()}. {_UNKNOWN}")
        return
    tell(f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n{where}")
    parent = node.rare.parent if node.rare is not None else None
    while parent is not None:
        held = parent.rare
        if held is None or held.traceback is None:
            tell(f"\n\nPrevious calculation was induced by {parent.name()}. {_UNKNOWN}")
            return
        tell(f"\n\nPrevious calculation was induced by {parent.name()}. Traceback of forward call that induced the previous calculation:\n"
             f"{held.traceback}")  # fmt: skip
        parent = held.parent


_UNKNOWN: Final = "No forward pass information available. Enable detect anomaly during forward pass for more information."


def tell(text: str) -> None:
    """Warn, while an error is on its way to the user: where warnings are errors, the text goes to stderr and leaves that one alone."""
    try:
        warnings.warn(text, UserWarning, stacklevel=5)
    except UserWarning as warning:
        sys.stderr.write(f"{warning}\n")
