"""What the graph of a traced run is made of: values, how they are read, and the operations between them.

A `Value` is an array that is written once. A `View` reads one: for each axis of the view a stride in elements over the value's memory, and an
offset; `terms` add what index tensors say (gathering). An operation (`Map`, `Reduce`, `Gemm` ...) reads views and makes values; in the
graph nothing is ever overwritten. What the run changed for good (parameters, buffers, `.grad`) is a list of `Write` at the end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._expr import Expr

Shape = tuple[int, ...]
SINGLE = np.dtype(np.float32)


class Unsupported(Exception):
    """What the compiler has no form for; the text completes "runs eagerly: ..."."""


def contiguous_strides(shape: Shape) -> Shape:
    """Strides in elements of a C-contiguous array."""
    steps, step = [], 1
    for n in reversed(shape):
        steps.append(step)
        step *= n
    return tuple(reversed(steps))


@dataclass(eq=False)
class Source:
    """Where a value that no operation makes comes from.

    `kind`: "arg" (with `position`), "captured" (with `tensor`), "number" (the same for all elements), "constant" (with `array`),
    "position" (no memory: the address is the value).
    """

    kind: str
    position: int = -1
    tensor: Any = None
    array: Any = None


@dataclass(eq=False)
class Value:
    """An array that one operation, or a source, gives."""

    number: int
    shape: Shape
    dtype: np.dtype[Any]
    name: str
    op: Operation | None = None
    source: Source | None = None
    strides: Shape = ()
    constant: float | None = None  # the number that all elements are, where that is known

    @property
    def numel(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def label(self) -> str:
        """The name of its variable in the generated code."""
        return f"{self.name}_{self.number}"

    def whole(self) -> View:
        """All of it."""
        return View(self, self.shape, self.strides)

    def __repr__(self) -> str:
        return f"%{self.label}: {self.dtype.name}{list(self.shape)}"


@dataclass(frozen=True)
class Term:
    """A part of an address that an index tensor gives: stride * index, for an axis of `bound` elements.

    `index` has the axes of the view.
    """

    index: View
    stride: int
    bound: int
    ignored: int | None = None  # an index that stands for none, read as 0


@dataclass(frozen=True)
class View:
    """A way to read a value."""

    value: Value
    shape: Shape
    strides: Shape
    offset: int = 0
    terms: tuple[Term, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether it reads all elements in the order of memory."""
        value = self.value
        if value.source is not None and value.source.kind == "position":
            return False
        return (
            not self.terms
            and self.offset == 0
            and self.shape == value.shape
            and (self.strides == value.strides or value.numel <= 1)
        )

    def broadcast(self, shape: Shape) -> View:
        """Read as if repeated to a shape it is known to broadcast to."""
        if shape == self.shape:
            return self
        lead = len(shape) - len(self.shape)
        strides = tuple(0 if n == 1 != m else s for n, m, s in zip(self.shape, shape[lead:], self.strides, strict=True))
        terms = tuple(Term(term.index.broadcast(shape), term.stride, term.bound, term.ignored) for term in self.terms)
        return View(self.value, shape, (0,) * lead + strides, self.offset, terms)

    @property
    def constant(self) -> float | None:
        """The number that all elements are, where that is known."""
        return self.value.constant


@dataclass(eq=False)
class Operation:
    """What makes values out of views. `line` is the user's line it came from."""

    outs: list[Value]
    line: str = ""

    @property
    def reads(self) -> list[View]:
        """The views it reads."""
        raise NotImplementedError

    def describe(self) -> str:
        """What it does, as text."""
        raise NotImplementedError


@dataclass(eq=False)
class Map(Operation):
    """One expression per element, computed in `compute`; `operands` have the shape of the result. `raw` are read in their own dtype.

    An operand whose source is a "position" is the address that the view computes, not what lies there.
    """

    expr: Expr = None  # type: ignore[assignment]
    operands: dict[str, View] = field(default_factory=dict)
    compute: np.dtype[Any] = SINGLE
    raw: frozenset[str] = frozenset()

    @property
    def reads(self) -> list[View]:
        """The views it reads."""
        return list(self.operands.values())

    def describe(self) -> str:
        """What it does, as text."""
        return f"{self.expr!r} of " + ", ".join(
            f"{name}={view.value.label}{list(view.strides)}" for name, view in self.operands.items()
        )


@dataclass(eq=False)
class Reduce(Operation):
    """Sum ("sum", times `scale`), maximum or minimum over axes of a view, ascending; the result has the remaining axes."""

    kind: str = "sum"
    operand: View = None  # type: ignore[assignment]
    axes: Shape = ()
    divisor: float = 1.0

    @property
    def reads(self) -> list[View]:
        """The views it reads."""
        return [self.operand]

    def describe(self) -> str:
        """What it does, as text."""
        return f"{self.kind} of {self.operand.value.label} over {list(self.axes)}" + (
            f" / {self.divisor:g}" if self.divisor != 1 else ""
        )


@dataclass(eq=False)
class Gemm(Operation):
    """A product of matrices, or of stacks of them, by BLAS; each operand is row-major or the transpose of that."""

    a: View = None  # type: ignore[assignment]
    b: View = None  # type: ignore[assignment]

    @property
    def reads(self) -> list[View]:
        """The views it reads."""
        return [self.a, self.b]

    def describe(self) -> str:
        """What it does, as text."""
        return f"{self.a.value.label}{list(self.a.shape)} @ {self.b.value.label}{list(self.b.shape)}"


@dataclass(eq=False)
class Collect(Operation):
    """`base` (zeros for None) with the elements of `part` added, or written, at the places that `place`, a view of the result, gives."""

    base: View | None = None
    part: View = None  # type: ignore[assignment]
    strides: Shape = ()
    offset: int = 0
    terms: tuple[Term, ...] = ()
    add: bool = True

    @property
    def reads(self) -> list[View]:
        """The views it reads."""
        return [*([self.base] if self.base is not None else []), self.part, *(term.index for term in self.terms)]

    def describe(self) -> str:
        """What it does, as text."""
        return f"{'add' if self.add else 'put'} {self.part.value.label} into {'zeros' if self.base is None else self.base.value.label}"


@dataclass(eq=False)
class Update(Operation):
    """An optimizer's rule: new values of arrays of one size, element by element. `numbers` maps its params to scalars of the program."""

    exprs: tuple[Expr, ...] = ()
    operands: dict[str, View] = field(default_factory=dict)
    numbers: dict[str, str] = field(default_factory=dict)

    @property
    def reads(self) -> list[View]:
        """The views it reads."""
        return list(self.operands.values())

    def describe(self) -> str:
        """What it does, as text."""
        return "update of " + ", ".join(view.value.label for view in self.operands.values())


@dataclass(eq=False)
class Draw(Operation):
    """Random numbers from the next `blocks` of a stream: truth values that are set with probability `low` / 2**32 ("mask"), numbers from
    `low` to `low + span` ("uniform", "integers"), or normal ones about `low` with deviation `span`.
    """

    kind: str = "mask"
    low: float = 0
    span: float = 1
    stream: Any = None
    blocks: int = 0
    number: int = 0

    @property
    def reads(self) -> list[View]:
        """The views it reads."""
        return []

    def describe(self) -> str:
        """What it does, as text."""
        return f"{self.kind} random numbers, draw {self.number}"


@dataclass(frozen=True)
class Argument:
    """What a user's kernel is called with: an array over a view's memory ("array", or "copy" where it writes to it), the one element of
    a view ("element"), or a piece of source ("text").
    """

    kind: str
    view: View | None = None
    text: str = ""


@dataclass(eq=False)
class Call(Operation):
    """A call of a user's kernel. `results` says of each value it returns what becomes of it: ("out" for an array or "scalar" for a number,
    a Value that it is copied to), or the variable that keeps it for a later call ("number", "array", "copied" for an array that may share
    memory), or ("none", "").
    `after`: results of the call whose variables this one reads. `mutated`: argument position to the Value that it writes into.
    """

    word: str = ""
    arguments: list[Argument] = field(default_factory=list)
    results: list[tuple[str, Any]] = field(default_factory=list)
    variable: str = ""
    several: bool = False
    mutated: dict[int, Value] = field(default_factory=dict)
    after: list[View] = field(default_factory=list)

    @property
    def reads(self) -> list[View]:
        """The views it reads."""
        return [*(x.view for x in self.arguments if x.view is not None), *self.after]

    def describe(self) -> str:
        """What it does, as text."""
        return f"{self.word}(" + ", ".join(x.text if x.view is None else x.view.value.label for x in self.arguments) + ")"


@dataclass(eq=False)
class Rowwise(Operation):
    """A function of `_kernels/program_rows.py` over contiguous rows of `length` elements; `work`: room for so many int64."""

    function: str = ""
    operands: list[View] = field(default_factory=list)
    rows: int = 0
    length: int = 0
    numbers: tuple[int, ...] = ()
    work: int = 0

    @property
    def reads(self) -> list[View]:
        """The views it reads."""
        return list(self.operands)

    def describe(self) -> str:
        """What it does, as text."""
        return f"{self.function} of " + ", ".join(view.value.label for view in self.operands)


@dataclass(eq=False)
class Check:
    """Index tensors that must lie in [low, high) or equal `ignored`; `error` makes the exception from the value and its position."""

    index: View
    low: int
    high: int
    ignored: int | None
    error: Any


@dataclass(eq=False)
class Write:
    """A change that outlasts the call: `value` becomes the contents of a captured tensor; `bumps` writes are counted."""

    source: Source
    value: Value
