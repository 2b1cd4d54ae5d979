"""Results with names: tuples that print as torch's `return_types` do."""

from __future__ import annotations

from typing import Any, NamedTuple


class Printed:
    """How a named result prints; `title` is its name."""

    __slots__ = ()
    title = ""

    def __repr__(self) -> str:
        fields: dict[str, Any] = self._asdict()  # type: ignore[attr-defined]
        return f"torch.return_types.{self.title}(\n" + ",\n".join(f"{name}={value!r}" for name, value in fields.items()) + ")"


class ValuesIndices(NamedTuple):
    """Elements and where they were along an axis."""

    values: Any
    indices: Any


class MaxResult(Printed, ValuesIndices):
    """Of `max(dim)`."""

    __slots__ = ()
    title = "max"


class MinResult(Printed, ValuesIndices):
    """Of `min(dim)`."""

    __slots__ = ()
    title = "min"


class SortResult(Printed, ValuesIndices):
    """Of `sort`."""

    __slots__ = ()
    title = "sort"


class TopkResult(Printed, ValuesIndices):
    """Of `topk`."""

    __slots__ = ()
    title = "topk"


class KthValueResult(Printed, ValuesIndices):
    """Of `kthvalue`."""

    __slots__ = ()
    title = "kthvalue"


class MedianResult(Printed, ValuesIndices):
    """Of `median(dim)`."""

    __slots__ = ()
    title = "median"


class NanmedianResult(Printed, ValuesIndices):
    """Of `nanmedian(dim)`."""

    __slots__ = ()
    title = "nanmedian"


class ModeResult(Printed, ValuesIndices):
    """Of `mode`."""

    __slots__ = ()
    title = "mode"


class CummaxResult(Printed, ValuesIndices):
    """Of `cummax`."""

    __slots__ = ()
    title = "cummax"


class CumminResult(Printed, ValuesIndices):
    """Of `cummin`."""

    __slots__ = ()
    title = "cummin"


class MinMax(NamedTuple):
    """The two extremes."""

    min: Any
    max: Any


class AminmaxResult(Printed, MinMax):
    """Of `aminmax`."""

    __slots__ = ()
    title = "aminmax"


class HistogramParts(NamedTuple):
    """Counts, or weights, and the edges of their bins."""

    hist: Any
    bin_edges: Any


class HistogramResult(Printed, HistogramParts):
    """Of `histogram`."""

    __slots__ = ()
    title = "histogram"


class FrexpParts(NamedTuple):
    """A number as mantissa * 2 ** exponent."""

    mantissa: Any
    exponent: Any


class FrexpResult(Printed, FrexpParts):
    """Of `frexp`."""

    __slots__ = ()
    title = "frexp"
