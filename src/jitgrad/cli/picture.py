"""The picture of a training run: curves of loss and accuracy, and the digits that were misread. Needs matplotlib."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

_SHOWN = 12


class Epoch(NamedTuple):
    """What was measured after one pass over the data; accuracies are fractions."""

    number: int
    train_loss: float
    test_loss: float
    train_accuracy: float
    test_accuracy: float


class Misread(NamedTuple):
    """A scan, shape (64,), the digit it shows, and the digit the model saw."""

    image: np.ndarray[Any, Any]
    label: int
    guess: int


def available() -> bool:
    """Whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def draw(history: Sequence[Epoch], misread: Sequence[Misread], path: Path) -> None:
    """Write the picture as a PNG. `history` has at least one entry."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(11, 5.2), layout="constrained")
    FigureCanvasAgg(figure)  # no pyplot: no display is asked for, nothing global is touched
    top, bottom = figure.subfigures(2, 1, height_ratios=(2.6, 1))
    _curves(top, history)
    _digits(bottom, misread)
    figure.savefig(path, dpi=110)


def _curves(figure: Any, history: Sequence[Epoch]) -> None:
    numbers = [epoch.number for epoch in history]
    left, right = figure.subplots(1, 2)
    left.semilogy(numbers, [epoch.train_loss for epoch in history], label="training", color="#4477aa")
    left.semilogy(numbers, [epoch.test_loss for epoch in history], label="held out", color="#ee6677")
    left.set(xlabel="epoch", title="cross entropy")
    right.plot(numbers, [100 * epoch.train_accuracy for epoch in history], label="training", color="#4477aa")
    right.plot(numbers, [100 * epoch.test_accuracy for epoch in history], label="held out", color="#ee6677")
    right.set(xlabel="epoch", title=f"accuracy, %  (held out: {100 * history[-1].test_accuracy:.1f} at the end)")
    for axes in (left, right):
        axes.grid(alpha=0.25)
        axes.legend(frameon=False)


def _digits(figure: Any, misread: Sequence[Misread]) -> None:
    shown = f", {_SHOWN} of {len(misread)}" if len(misread) > _SHOWN else ""
    figure.suptitle(f"misread digits{shown}" if misread else "no digit was misread", fontsize=12)
    grid = figure.subplots(1, _SHOWN, squeeze=False)[0]
    for axes in grid:
        axes.set_axis_off()
    for axes, (image, label, guess) in zip(grid, misread, strict=False):
        axes.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
        axes.set_title(f"{label}, seen as {guess}", fontsize=9)
