"""`opcheck`: what a gradient check can't see - layouts, edges, memory, repeatability - and the gradient check as well."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..._engine import modes
from ..._tensor.base import TensorBase
from .probing import Case, Failure, Refusal, smaller
from .properties import PROPERTIES, Property


@dataclass(frozen=True)
class Finding:
    """What was found about one property.

    verdict: "holds", "fails", or "refused", where the function does not offer what the property is about. words: how it fails, or the words of
    the refusal. input: the smallest arguments found that show it.
    """

    property: str
    verdict: str
    words: str = ""
    input: str = ""

    def __str__(self) -> str:
        lines = f"{self.property}: {self.verdict}" + (f" - {self.words}" if self.words else "")
        return lines + (f"\n    input: {self.input}" if self.input else "")


@dataclass(frozen=True)
class Report:
    """The findings about a function, one per property."""

    name: str
    findings: tuple[Finding, ...]

    @property
    def failures(self) -> tuple[Finding, ...]:
        """Those that fail."""
        return tuple(found for found in self.findings if found.verdict == "fails")

    def __bool__(self) -> bool:
        return not self.failures

    def __str__(self) -> str:
        return f"opcheck of {self.name}\n" + textwrap.indent("\n".join(map(str, self.findings)), "  ")


class OpcheckError(AssertionError):
    """Some property does not hold; `report` has all findings."""

    def __init__(self, report: Report) -> None:
        self.report = report
        lines = textwrap.indent("\n".join(map(str, report.failures)), "  ")
        super().__init__(f"{report.name} fails {len(report.failures)} of {len(report.findings)} properties\n{lines}")


def opcheck(function: Callable[..., Any], *args: Any, skip: Sequence[str] = (), raise_exception: bool = True) -> Report:
    """Look for what is wrong with an op: a `jit_function`, an elementwise function, the `apply` of a custom Function, any function of tensors.

    args: arguments of a typical call, tensors small enough for finite differences; those that require grad (all floating-point ones if none
    does) are differentiated. skip: names of properties not to look at. Raises OpcheckError where a property fails, with the
    smallest input found; with `raise_exception=False` the report says so. ValueError for an unknown name in `skip`.
    """
    if unknown := set(skip) - set(PROPERTIES):
        raise ValueError(f"unknown property {sorted(unknown)[0]!r}; there are {', '.join(PROPERTIES)}")
    if not any(isinstance(x, TensorBase) for x in args):
        raise TypeError("opcheck() needs at least one tensor to call the function with")
    case = Case(function, args)
    was = modes.set_grad(True)
    try:
        findings = tuple(examine(name, look, case) for name, look in PROPERTIES.items() if name not in skip)
    finally:
        modes.set_grad(was)
    report = Report(
        getattr(function, "__qualname__", None) or getattr(function, "__name__", None) or type(function).__name__,
        findings,
    )
    if raise_exception and not report:
        raise OpcheckError(report)
    return report


def examine(name: str, look: Property, case: Case) -> Finding:
    """One property; where it fails, with smaller arguments too."""
    words = failure(look, case)
    if isinstance(words, Refusal):
        return Finding(name, "refused", str(words))
    if words is None:
        return Finding(name, "holds")
    shown = case
    if not case.whole:  # integers may be positions in what would be cut
        for small in smaller(case):
            found = failure(look, small)
            if isinstance(found, str) and small.size < shown.size and found.partition(" ")[0] != "raises":
                words, shown = found, small
                break
    return Finding(name, "fails", words, str(shown))


def failure(look: Property, case: Case) -> str | Refusal | None:
    """How a property fails for a case: words; None where it holds."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of odd arrays, which are what this is about
            look(case)
    except Failure as error:
        return str(error)
    except Refusal as error:
        return error
    except Exception as error:  # anything a user's code can raise is a finding
        return f"raises {type(error).__name__}: {error}"
    return None
