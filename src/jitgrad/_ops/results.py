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
