"""How a tensor prints: arrays in, text out, character for character what torch prints.

The shown part of an array is cut out first (all of it, or the edges of each dimension), one `_Style` is chosen for all
shown values, and the nested lists of values are laid out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import numpy as np

from .._core.dtypes import bool_, default_dtype, dtype, int64


class PrintOptions(NamedTuple):
    """precision: digits after the point. threshold: more elements than this are summarised to `edgeitems` per edge.

    linewidth: where lines break. sci_mode: scientific notation always, never, or (None) when the values ask for it.
    """

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


_PROFILES: Final = {
    "default": PrintOptions(),
    "short": PrintOptions(precision=2, edgeitems=2),
    "full": PrintOptions(threshold=math.inf),
}
_options = _PROFILES["default"]


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Change how tensors print; None keeps what is set, except that `sci_mode` goes back to automatic.

    profile: 'default', 'short' or 'full', applied before the other arguments. ValueError for another one.
    """
    global _options
    if profile is not None and profile not in _PROFILES:
        raise ValueError(f"profile must be one of {', '.join(_PROFILES)}, got {profile!r}")
    base = _options if profile is None else _PROFILES[profile]
    _options = PrintOptions(
        precision=base.precision if precision is None else precision,
        threshold=base.threshold if threshold is None else threshold,
        edgeitems=base.edgeitems if edgeitems is None else edgeitems,
        linewidth=base.linewidth if linewidth is None else linewidth,
        sci_mode=sci_mode,
    )


def get_printoptions() -> dict[str, Any]:
    """The options in force, as arguments for `set_printoptions`."""
    return _options._asdict()


@contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """Options for the length of a `with` block; arguments of `set_printoptions`."""
    global _options
    before = _options
    set_printoptions(**options)
    try:
        yield
    finally:
        _options = before


class _Style:
    """How one value is written so that all values of a tensor line up.

    kind: 'plain' (ints, bools), 'whole' (floats that are all integers: `2.`), 'fixed' or 'scientific'.
    """

    def __init__(self, values: np.ndarray[Any, Any], options: PrintOptions) -> None:
        """values: the shown elements, any shape."""
        self.width = 1
        self.kind = "plain"
        if values.dtype.kind == "f":
            values = values.astype(np.float64)
            values = values[np.isfinite(values) & (values != 0)]
            self.kind = self._choose(values, options)
        self.number = f".{options.precision}{'e' if self.kind == 'scientific' else 'f'}"
        # NaN, infinities and zeros do not widen a float tensor: torch measures the others only.
        for value in values.ravel().tolist():
            self.width = max(self.width, len(self.bare(value)))

    @staticmethod
    def _choose(values: np.ndarray[Any, Any], options: PrintOptions) -> str:
        """The kind for floats; values: the finite ones that are not zero, as float64."""
        if not values.size:
            return "whole"
        magnitudes = np.abs(values)
        low, high = float(magnitudes.min()), float(magnitudes.max())
        scientific = options.sci_mode
        if scientific is None:
            scientific = high > 1000.0 * low or high > 1.0e8 or low < 1.0e-4
        if scientific:
            return "scientific"
        return "whole" if bool((values == np.ceil(values)).all()) else "fixed"

    def bare(self, value: Any) -> str:
        """The text of one Python number, not padded."""
        if self.kind == "plain":
            return str(value)
        if self.kind == "whole":
            return f"{value:.0f}." if math.isfinite(value) else str(value)
        return format(value, self.number)

    def text(self, value: Any) -> str:
        """The text of one Python number, padded to the common width."""
        return self.bare(value).rjust(self.width)


def _shown(array: np.ndarray[Any, Any], edge: int) -> tuple[np.ndarray[Any, Any], list[int]]:
    """The edges of each dimension that is longer than two of them.

    The second result says for each dimension after how many items its gap is, -1 if it has none.
    """
    gaps = []
    for axis, size in enumerate(array.shape):
        if size > 2 * edge:
            array = np.take(array, [*range(edge), *range(size - edge, size)], axis=axis)
        gaps.append(edge if size > 2 * edge else -1)
    return array, gaps


def _lines(items: list[str], indent: int, per_line: int) -> str:
    """A bracketed row of texts, broken into lines of `per_line`."""
    rows = [", ".join(items[k : k + per_line]) for k in range(0, len(items), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(rows) + "]"


def _layout(nested: Any, gaps: list[int], indent: int, style: _Style, linewidth: int) -> str:
    """Nested lists of numbers as text; gaps: one entry per nesting level that is left."""
    if not gaps:
        return style.text(nested)
    gap, inner = gaps[0], gaps[1:]
    items = [_layout(item, inner, indent + 1, style, linewidth) for item in nested]
    if gap >= 0:
        items.insert(gap, "..." if inner else " ...")
    if not inner:
        return _lines(items, indent, max(1, (linewidth - indent) // (style.width + 2)))
    return "[" + ("," + "\n" * len(gaps[1:]) + " " * (indent + 1)).join(items) + "]"


def _contents(array: np.ndarray[Any, Any], indent: int, options: PrintOptions) -> str:
    """The bracketed values of an array, or the bare value of a 0-d one."""
    if array.size == 0:
        return "[]"
    gaps = [-1] * array.ndim
    if array.size > options.threshold and array.ndim:
        if not options.edgeitems:
            return "[...]"
        array, gaps = _shown(array, options.edgeitems)
    return _layout(array.tolist(), gaps, indent, _Style(array, options), options.linewidth)


def _join(text: str, suffixes: list[str], indent: int, linewidth: int) -> str:
    """Append the suffixes, each on a line of its own where it would not fit, and the closing bracket."""
    length = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if length + len(suffix) + 2 > linewidth:
            text += ",\n" + " " * indent + suffix
            length = indent + len(suffix)
        else:
            text += ", " + suffix
            length += len(suffix) + 2
    return text + ")"


def tensor_str(
    array: np.ndarray[Any, Any],
    kind: dtype,
    requires_grad: bool = False,
    grad_fn_name: str | None = None,
    *,
    type_name: str = "tensor",
    tangent: str | None = None,
) -> str:
    """The repr of a tensor.

    array: its values, any shape and strides. kind: its dtype. grad_fn_name: the name of its node, None for a leaf.
    type_name: what stands before the bracket (the class name of a subclass).
    tangent: the repr of the tangent of a dual number.
    """
    options = _options
    indent = len(type_name) + 1
    empty = array.size == 0
    suffixes = []
    if (empty and array.ndim != 1) or (not empty and not options.edgeitems):
        suffixes.append(f"size={tuple(array.shape)}")
    # An empty tensor has no element that tells int64 or bool from the default dtype.
    if kind is not default_dtype() and (empty or kind not in (int64, bool_)):
        suffixes.append(f"dtype={kind}")
    if grad_fn_name is not None:
        suffixes.append(f"grad_fn=<{grad_fn_name}>")
    elif requires_grad:
        suffixes.append("requires_grad=True")
    if tangent is not None:
        suffixes.append(f"tangent={tangent}")
    return _join(f"{type_name}({_contents(array, indent, options)}", suffixes, indent, options.linewidth)


def parameter_str(text: str) -> str:
    """The repr of a Parameter, given the repr of it as a tensor."""
    return f"Parameter containing:\n{text}"
