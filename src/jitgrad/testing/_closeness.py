"""`assert_close`: tensors, numbers and nests of them that should agree, and a report of where they don't."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from .._core.dtypes import float16, float32, float64, from_numpy
from .._tensor.base import TensorBase

Message = str | Callable[[str], str] | None
_TOLERANCES: Final = {float16: (1e-3, 1e-5), float32: (1.3e-6, 1e-5), float64: (1e-7, 1e-7)}


class Settings:
    """What counts as close."""

    def __init__(self, rtol: float | None, atol: float | None, equal_nan: bool, check_dtype: bool, check_stride: bool) -> None:
        if (rtol is None) != (atol is None):
            missing = "rtol" if rtol is None else "atol"
            raise ValueError(f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}.")
        self.rtol, self.atol, self.equal_nan = rtol, atol, equal_nan
        self.check_dtype, self.check_stride = check_dtype, check_stride

    def tolerances(self, *dtypes: Any) -> tuple[float, float]:
        """rtol and atol, by default those of the least exact of some dtypes."""
        if self.rtol is not None and self.atol is not None:
            return self.rtol, self.atol
        found = [_TOLERANCES.get(dtype, (0.0, 0.0)) for dtype in dtypes]
        return max(rtol for rtol, _ in found), max(atol for _, atol in found)


def assert_close(actual: Any, expected: Any, *, allow_subclasses: bool = True, rtol: float | None = None, atol: float | None = None,
                 equal_nan: bool = False, check_device: bool = True, check_dtype: bool = True, check_layout: bool = True,
                 check_stride: bool = False, msg: Message = None) -> None:  # fmt: skip
    """AssertionError, with a report, unless `actual` and `expected` agree in structure, shape and dtype, and their elements satisfy

    |actual - expected| <= atol + rtol * |expected|. The default tolerances depend on the dtype; integers and bools must be equal. `msg`
    replaces the report, or is a function of it.

    >>> import jitgrad
    >>> jitgrad.testing.assert_close(jitgrad.tensor([1.0, 2.0]), jitgrad.tensor([1.0, 2.0 + 1e-6]))
    """
    report = compared(actual, expected, Settings(rtol, atol, equal_nan, check_dtype, check_stride), "")
    if report is not None:
        raise AssertionError(msg(report) if callable(msg) else msg if msg is not None else report)


def assert_allclose(actual: Any, expected: Any, rtol: float | None = None, atol: float | None = None, equal_nan: bool = True, msg: str = "") -> None:
    """`assert_close` without regard to dtypes, with NaN equal to NaN."""
    assert_close(as_array(actual), as_array(expected), rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None)


def as_array(value: Any) -> np.ndarray[Any, Any]:
    """Anything as an array."""
    return value.array if isinstance(value, TensorBase) else np.asarray(value)


def compared(actual: Any, expected: Any, settings: Settings, where: str) -> str | None:
    """The report of what differs, or None. TypeError for a pair that can't be compared."""
    pair = actual, expected
    if all(isinstance(x, Sequence) and not isinstance(x, str) for x in pair):
        return compared_sequences(actual, expected, settings, where)
    if all(isinstance(x, Mapping) for x in pair):
        return compared_mappings(actual, expected, settings, where)
    report = compared_values(actual, expected, settings)
    return report if report is None or not where else f"{report}\n\nThe failure occurred for item {where}"


def compared_sequences(actual: Any, expected: Any, settings: Settings, where: str) -> str | None:
    """Two sequences, item by item."""
    if len(actual) != len(expected):
        return f"The length of the sequences mismatch: {len(actual)} != {len(expected)}"
    reports = (compared(a, b, settings, f"{where}[{k}]") for k, (a, b) in enumerate(zip(actual, expected, strict=True)))
    return next((report for report in reports if report is not None), None)


def compared_mappings(actual: Any, expected: Any, settings: Settings, where: str) -> str | None:
    """Two mappings, key by key."""
    missing, more = sorted(expected.keys() - actual.keys()), sorted(actual.keys() - expected.keys())
    if missing or more:
        return (f"The keys of the mappings do not match:\nMissing keys in the actual mapping: {missing}\n"
                f"Additional keys in the actual mapping: {more}")  # fmt: skip
    reports = (compared(actual[key], expected[key], settings, f"{where}[{key!r}]") for key in expected)
    return next((report for report in reports if report is not None), None)


def compared_values(actual: Any, expected: Any, settings: Settings) -> str | None:
    """Two values that are no nests."""
    pair = actual, expected
    if any(x is None for x in pair):
        return None if actual is expected else f"None mismatch: {actual} is not {expected}"
    if all(isinstance(x, TensorBase) for x in pair) or all(isinstance(x, np.ndarray) for x in pair):
        return compared_arrays(actual, expected, settings)
    if all(isinstance(x, (bool, np.bool_)) for x in pair):
        return None if actual == expected else f"Booleans mismatch: {actual} is not {expected}"
    if all(isinstance(x, numbers.Real) for x in pair):
        if settings.check_dtype and type(actual) is not type(expected):
            return f"The (d)types do not match: {type(actual)} != {type(expected)}."
        return compared_numbers(actual, expected, settings.tolerances(*[float64 for x in pair if isinstance(x, float)], None), settings.equal_nan)
    raise TypeError(f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.")


def compared_numbers(actual: Any, expected: Any, tolerances: tuple[float, float], equal_nan: bool) -> str | None:
    """Two numbers, or two tensors without axes."""
    rtol, atol = tolerances
    if bool(np.isclose(actual, expected, rtol, atol, equal_nan)):
        return None
    absolute = abs(actual - expected)
    relative = absolute / abs(expected) if expected else float("inf")
    allowed = (f" (up to {atol} allowed)", f" (up to {rtol} allowed)") if rtol or atol else ("", "")
    verdict = "close" if rtol or atol else "equal"
    return (f"Scalars are not {verdict}!\n\nExpected {expected} but got {actual}.\n"
            f"Absolute difference: {absolute}{allowed[0]}\nRelative difference: {relative}{allowed[1]}")  # fmt: skip


def compared_arrays(actual: Any, expected: Any, settings: Settings) -> str | None:
    """Two tensors, or two arrays."""
    for name in ("shape", "dtype") if settings.check_dtype else ("shape",):
        one, two = getattr(actual, name), getattr(expected, name)
        if one != two:
            return f"The values for attribute '{name}' do not match: {one} != {two}."
    a, b = (x.array if isinstance(x, TensorBase) else x for x in (actual, expected))
    if settings.check_stride and a.strides != b.strides:
        steps = [tuple(step // x.itemsize for step in x.strides) for x in (a, b)]
        return f"The values for attribute 'stride()' do not match: {steps[0]} != {steps[1]}."
    rtol, atol = settings.tolerances(from_numpy(a.dtype), from_numpy(b.dtype))
    if not a.shape:
        return compared_numbers(a.item(), b.item(), (rtol, atol), settings.equal_nan)
    common = np.result_type(a, b)
    wide = [x.astype(common if common.kind == "f" else np.int64) for x in (a, b)]
    with np.errstate(all="ignore"):
        close = np.isclose(a.astype(np.float64), b.astype(np.float64), rtol, atol, settings.equal_nan)
        if close.all():
            return None
        absolute = np.abs(wide[0] - wide[1])
        return difference_report(close, absolute, absolute / np.abs(wide[1]), (rtol, atol))


def difference_report(close: Any, absolute: Any, relative: Any, tolerances: tuple[float, float]) -> str:
    """How many elements differ, and where most."""
    rtol, atol = tolerances
    verdict = "close" if rtol or atol else "equal"
    lines = [f"Tensor-likes are not {verdict}!", "", f"Mismatched elements: {(~close).sum()} / {close.size} ({(~close).sum() / close.size:.1%})"]
    for name, values, allowed in (("absolute", absolute, atol), ("relative", relative, rtol)):
        masked = np.where(close, -1.0, values)  # the largest among those that differ
        place = np.unravel_index(int(np.argmax(masked)), close.shape)
        text = f"Greatest {name} difference: {values[place]} at index {tuple(int(k) for k in place)}"
        lines.append(text + (f" (up to {allowed} allowed)" if rtol or atol else ""))
    return "\n".join(lines)
