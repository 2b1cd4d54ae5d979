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
    comparisons,
    indexing,
    matmul,
    reductions,
    rounding,
    selection,
    shaping,
    transcendental,
    views,
)

if TYPE_CHECKING:
    from . import (
        classes,
        contractions,
        counting,
        decompositions,
        differences,
        distributions,
        embedding,
        extremes,
        flat_indexing,
        joining,
        linear_systems,
        losses,
        matrix_functions,
        middles,
        normalization,
        norms,
        number_parts,
        random,
        rearranging,
        running,
        scans,
        scatter_reductions,
        scattering,
        searching,
        softmax,
        sorting,
        special_functions,
        splitting,
        spread_measures,
        statistics,
        triangular_factors,
        vector_products,
    )
else:
    classes = LateModule("jitgrad._ops.classes")
    contractions = LateModule("jitgrad._ops.contractions")
    counting = LateModule("jitgrad._ops.counting")
    decompositions = LateModule("jitgrad._ops.decompositions")
    differences = LateModule("jitgrad._ops.differences")
    distributions = LateModule("jitgrad._ops.distributions")
    embedding = LateModule("jitgrad._ops.embedding")
    extremes = LateModule("jitgrad._ops.extremes")
    flat_indexing = LateModule("jitgrad._ops.flat_indexing")
    joining = LateModule("jitgrad._ops.joining")
    linear_systems = LateModule("jitgrad._ops.linear_systems")
    losses = LateModule("jitgrad._ops.losses")
    matrix_functions = LateModule("jitgrad._ops.matrix_functions")
    middles = LateModule("jitgrad._ops.middles")
    normalization = LateModule("jitgrad._ops.normalization")
    norms = LateModule("jitgrad._ops.norms")
    number_parts = LateModule("jitgrad._ops.number_parts")
    random = LateModule("jitgrad._ops.random")
    rearranging = LateModule("jitgrad._ops.rearranging")
    running = LateModule("jitgrad._ops.running")
    scans = LateModule("jitgrad._ops.scans")
    scatter_reductions = LateModule("jitgrad._ops.scatter_reductions")
    scattering = LateModule("jitgrad._ops.scattering")
    searching = LateModule("jitgrad._ops.searching")
    softmax = LateModule("jitgrad._ops.softmax")
    sorting = LateModule("jitgrad._ops.sorting")
    special_functions = LateModule("jitgrad._ops.special_functions")
    splitting = LateModule("jitgrad._ops.splitting")
    spread_measures = LateModule("jitgrad._ops.spread_measures")
    statistics = LateModule("jitgrad._ops.statistics")
    triangular_factors = LateModule("jitgrad._ops.triangular_factors")
    vector_products = LateModule("jitgrad._ops.vector_products")

__all__ = [
    "activations",
    "arithmetic",
    "broadcasting",
    "casts",
    "classes",
    "comparisons",
    "contractions",
    "counting",
    "decompositions",
    "differences",
    "distributions",
    "embedding",
    "extremes",
    "flat_indexing",
    "indexing",
    "joining",
    "linear_systems",
    "load_all",
    "losses",
    "matmul",
    "matrix_functions",
    "middles",
    "normalization",
    "norms",
    "number_parts",
    "random",
    "rearranging",
    "reductions",
    "rounding",
    "running",
    "scans",
    "scatter_reductions",
    "scattering",
    "searching",
    "selection",
    "shaping",
    "softmax",
    "sorting",
    "special_functions",
    "splitting",
    "spread_measures",
    "statistics",
    "transcendental",
    "triangular_factors",
    "vector_products",
    "views",
]


def load_all() -> None:
    """Load every family, so that `kinds.OPS` and `kinds.FACES` are complete."""
    for name in sorted({*__all__} - {"load_all"}):
        importlib.import_module(f"{__name__}.{name}")
