"""The declarations of all ops, by family.

What nearly every program uses is loaded with the package, the other families at the first use of one of their ops: they are a
third of the time that `import jitgrad` takes.
"""

import importlib
from typing import TYPE_CHECKING

from .._core.late import LateModule
from . import (
    activations,
    arithmetic,
    broadcasting,
    casts,
    classes,
    comparisons,
    indexing,
    losses,
    matmul,
    reductions,
    rounding,
    selection,
    shaping,
    softmax,
    transcendental,
    views,
)

if TYPE_CHECKING:
    from . import (
        embedding,
        extremes,
        flat_indexing,
        joining,
        normalization,
        norms,
        random,
        rearranging,
        scans,
        scatter_reductions,
        scattering,
        searching,
        sorting,
        splitting,
        statistics,
    )
else:
    embedding = LateModule("jitgrad._ops.embedding")
    extremes = LateModule("jitgrad._ops.extremes")
    flat_indexing = LateModule("jitgrad._ops.flat_indexing")
    joining = LateModule("jitgrad._ops.joining")
    normalization = LateModule("jitgrad._ops.normalization")
    norms = LateModule("jitgrad._ops.norms")
    random = LateModule("jitgrad._ops.random")
    rearranging = LateModule("jitgrad._ops.rearranging")
    scans = LateModule("jitgrad._ops.scans")
    scatter_reductions = LateModule("jitgrad._ops.scatter_reductions")
    scattering = LateModule("jitgrad._ops.scattering")
    searching = LateModule("jitgrad._ops.searching")
    sorting = LateModule("jitgrad._ops.sorting")
    splitting = LateModule("jitgrad._ops.splitting")
    statistics = LateModule("jitgrad._ops.statistics")

__all__ = [
    "activations",
    "arithmetic",
    "broadcasting",
    "casts",
    "classes",
    "comparisons",
    "embedding",
    "extremes",
    "flat_indexing",
    "indexing",
    "joining",
    "load_all",
    "losses",
    "matmul",
    "normalization",
    "norms",
    "random",
    "rearranging",
    "reductions",
    "rounding",
    "scans",
    "scatter_reductions",
    "scattering",
    "searching",
    "selection",
    "shaping",
    "softmax",
    "sorting",
    "splitting",
    "statistics",
    "transcendental",
    "views",
]


def load_all() -> None:
    """Load every family, so that `kinds.OPS` and `kinds.FACES` are complete."""
    for name in sorted({*__all__} - {"load_all"}):
        importlib.import_module(f"{__name__}.{name}")
