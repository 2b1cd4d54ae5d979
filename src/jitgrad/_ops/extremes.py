"""Largest and smallest elements. NaN wins; tied elements share a gradient over all, the named index takes it along an axis (S02)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.meta import Meta
from .._core.shapes import wrap_dim
from .._kernels import reductions as kernels
from .arithmetic_pairs import maximum, minimum
from .axes import COMPILED, LONG, Shape, arranged, axes_of, in_single, kept_shape, restored
from .kinds import Array, Index, Tensor, composite, general, linear
from .named import MaxResult, MinResult
from .reductions import check_flag
