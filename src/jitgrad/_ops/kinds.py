"""The kinds of op: what a declaration gives and what follows from it.

A declaration works on arrays; a rule works on tensors, which it only meets as arguments and whose methods it calls. Parameters
annotated `Array` are inputs (a tensor each), `Optional` inputs that may be None, `Arrays` a list of inputs, `Index` inputs that
take no gradient; all others are statics (numbers, shapes, strings). Rules and adjoints name what they want: `grad` or `grads`,
a saved value, a static, `needs` (a bool per differentiable input), `like` (the Meta of the input, or of each where there are
several).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeVar, cast, overload

import numpy as np

from .parameters import EMPTY, names, parameters

Array = np.ndarray[Any, Any]
Optional = Array | None
Arrays = Sequence[Array]
Index = Array
Tensor = Any  # a rule's view of a tensor
Function = Callable[..., Any]
F = TypeVar("F", bound=Function)
ROLES: Final = {"Array": "array", "Optional": "optional", "Arrays": "arrays", "Index": "index", "Indices": "indices", "Tensor": "array"}
OPS: Final[dict[str, Op]] = {}


class Dispatch:
    """The way from an op to a call of it; the tensor layer puts `invoke` here, so that rules and composites may call ops."""

    invoke: ClassVar[Callable[[Any, tuple[Any, ...], tuple[Any, ...]], Any]]
    refuse: ClassVar[Callable[[Any, str], Any]]  # a tensor, for a rule to return, whose own derivative is an error with this text


class Op:
    """What all kinds share: a name, torch's node name, inputs and statics.

    `view` marks ops whose result shares memory with the first input, `outputs` is the number of results (None: known only from
    the call, as with `split`), `public` whether methods and functions are generated for it.
    """

    kind: ClassVar[str]
    is_view = False
    node: str

    def __init__(self, function: Function, *, node: str | None = None, name: str | None = None, outputs: int | None = 1) -> None:
        self.function = function
        self.name = name or function.__name__
        self.node = node or camel(self.name) + "Backward0"
        self.outputs = outputs
        self.inputs: tuple[str, ...] = ()
        self.statics: tuple[str, ...] = ()
        self.defaults: dict[str, Any] = {}
        self.variadic = False
        self.differentiable: tuple[int, ...] = ()
        self._read(function)

    @property
    def doc(self) -> str:
        """The declaration's docstring."""
        return inspect.getdoc(self.function) or ""

    def _read(self, function: Function) -> None:
        inputs: list[str] = []
        statics: list[str] = []
        differentiable: list[int] = []
        for parameter in parameters(function):
            role = ROLES.get(parameter.annotation)
            if role is None:
                statics.append(parameter.name)
                if parameter.default is not EMPTY:
                    self.defaults[parameter.name] = parameter.default
                continue
            if role in ("arrays", "indices"):
                self.variadic = True
            if role in ("array", "optional", "arrays"):
                differentiable.append(len(inputs))
            inputs.append(parameter.name)
        self.inputs, self.statics, self.differentiable = tuple(inputs), tuple(statics), tuple(differentiable)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the op on tensors: inputs, then statics (by position or name)."""
        count = len(self.inputs)
        if not named and not self.variadic and len(arguments) >= count:
            return Dispatch.invoke(self, arguments[:count], arguments[count:])
        inputs = arguments[:count] + tuple(named.pop(name, None) for name in self.inputs[len(arguments) :])
        given = arguments[count:]
        statics = given + tuple(named.pop(name, self.defaults.get(name)) for name in self.statics[len(given) :])
        if named:
            raise TypeError(f"{self.name}() got an unexpected keyword argument '{next(iter(named))}'")
        if self.variadic:
            inputs = tuple(inputs[0])
        return Dispatch.invoke(self, inputs, statics)

    def __repr__(self) -> str:
        return f"<{self.kind} op {self.name}>"


class Injected:
    """A rule or adjoint together with the names of what it wants; calling it looks them up in a mapping."""

    __slots__ = ("function", "names")

    def __init__(self, function: Function) -> None:
        self.function = function
        self.names = names(function)

    def __call__(self, values: Mapping[str, Any]) -> Any:
        return self.function(*[values[name] for name in self.names])


class General(Op):
    """Forward on arrays; `rule` on tensors, recorded; optionally `fused`, on arrays, when no graph of the backward is wanted.

    `saves` names the inputs, results (`result`, or `result0`, `result1`...) and extras that the backward reads. A mapping gives for
    a name the inputs whose gradient reads it: it is saved only when one of those is needed. The forward may return more arrays than
    `outputs`; those are the `extras`, saved under the names given.
    """

    kind = "general"

    def __init__(self, function: Function, *, saves: Sequence[str] | Mapping[str, Sequence[str]] = (), extras: Sequence[str] = (),
                 differentiable: Sequence[str] | None = None, **rest: Any) -> None:  # fmt: skip
        super().__init__(function, **rest)
        self.extras = tuple(extras)
        wanted = saves if isinstance(saves, Mapping) else dict.fromkeys(saves)
        if differentiable is not None:
            self.differentiable = tuple(self.inputs.index(name) for name in differentiable)
        names = [self.inputs[index] for index in self.differentiable]
        self.saves = tuple((name, tuple(names.index(n) for n in readers) if readers is not None else None) for name, readers in wanted.items())
        self.backward: Injected | None = None
        self.accelerator: Injected | None = None
        self.whole = self.variadic or len(self.differentiable) == len(self.inputs)
        self.places = {name: index for index, name in enumerate(self.statics)}
        self.recipes: dict[tuple[bool, ...], Any] = {}  # how calls are recorded, kept by the tensor layer

    def forward(self, arrays: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
        if self.variadic:
            return self.function(arrays, *statics)
        return self.function(*arrays, *statics)

    def rule(self, function: Function) -> Function:
        """Decorator: the backward in recorded ops."""
        self.backward = Injected(function)
        return function

    def fused(self, function: Function) -> Function:
        """Decorator: the backward on arrays; must agree with the rule."""
        self.accelerator = Injected(function)
        return function


class Linear(General):
    """Forward and its transpose, both on arrays. Every derivative follows: the transpose of the transpose is the op itself.

    The adjoint takes `grad` (`grads` for several results) and the names it wants of `like`, `needs`, index inputs and statics.
    """

    kind = "linear"

    def __init__(self, function: Function, *, view: bool = False, **rest: Any) -> None:
        super().__init__(function, **rest)
        self.is_view = view
        indices = [name for place, name in enumerate(self.inputs) if place not in self.differentiable]
        self.saves = tuple((name, None) for name in indices)
        self.transposed: Adjoint | None = None

    def adjoint(self, function: Function) -> Function:
        """Decorator: the transpose."""
        self.accelerator = Injected(function)
        self.transposed = Adjoint(self, Injected(function))
        return function


# what torch calls the node of a recorded transpose: the last op that its backward is spelled out in, where ours is one node
TRANSPOSES: Final = {
    "CatBackward0": "SliceBackward0", "CloneBackward0": "CloneBackward0", "CumsumBackward0": "FlipBackward0",
    "DiagEmbedBackward0": "DiagonalBackward0", "ExpandBackward0": "SumBackward1", "FlipBackward0": "FlipBackward0",
    "GatherBackward0": "ScatterAddBackward0", "IndexBackward0": "IndexPutImplBackward0", "IndexSelectBackward0": "IndexAddBackward0",
    "MaskedSelectBackward0": "MaskedScatterBackward0", "MeanBackward0": "DivBackward1", "MeanBackward1": "DivBackward1",
    "PermuteBackward0": "PermuteBackward0", "RepeatBackward0": "SumBackward1", "RollBackward0": "RollBackward0",
    "SplitBackward0": "CatBackward0", "SplitWithSizesBackward0": "CatBackward0", "SqueezeBackward0": "UnsqueezeBackward0",
    "SqueezeBackward1": "UnsqueezeBackward0", "SqueezeBackward2": "UnsqueezeBackward0", "StackBackward0": "SelectBackward0",
    "SumBackward0": "ExpandBackward0", "SumBackward1": "ExpandBackward0", "TBackward0": "TBackward0", "TakeBackward0": "PutBackward0",
    "ToCopyBackward0": "ToCopyBackward0", "TransposeBackward0": "TransposeBackward0", "TrilBackward0": "TrilBackward0",
    "TriuBackward0": "TriuBackward0", "UnbindBackward0": "StackBackward0", "UnsqueezeBackward0": "SqueezeBackward1",
    "ViewBackward0": "ViewBackward0",
}  # fmt: skip


class Adjoint(Op):
    """The transpose of a linear op as an op of its own: what a recorded backward calls.

    Its inputs are the gradients of the op's results and the op's index inputs; its statics the values an adjoint may ask for.
    """

    kind = "adjoint"

    def __init__(self, op: Linear, function: Injected) -> None:
        self.op = op
        self.transpose = function
        self.function = function.function
        self.name = op.name + "_adjoint"
        self.node = TRANSPOSES.get(op.node) or op.node.removesuffix("0") + "Backward0"
        self.outputs = None
        self.variadic = True
        self.defaults = {}


def camel(name: str) -> str:
    """`log_softmax` -> `LogSoftmax`."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def _declare(kind: type[Op], given: tuple[Any, ...], options: dict[str, Any]) -> Any:
    def make(function: Function) -> Any:
        op = kind(function, **options)
        OPS[op.name] = op
        return op

    return make(given[0]) if given else make


@overload
def general(function: Function, /) -> General: ...
@overload
def general(**options: Any) -> Callable[[Function], General]: ...
def general(*function: Function, **options: Any) -> Any:
    """Declare a general op; see `General`."""
    return _declare(General, function, options)


@overload
def linear(function: Function, /) -> Linear: ...
@overload
def linear(**options: Any) -> Callable[[Function], Linear]: ...
def linear(*function: Function, **options: Any) -> Any:
    """Declare a linear op; see `Linear`."""
    return _declare(Linear, function, options)


class Face:
    """A public function over tensors, from which `tools/gen_api.py` writes methods and functions.

    `planned` names the module of `_tensor` that has its common case spelled out under the same name.

    `inplace` is "write" where torch has an in-place twin, "view" where that twin changes the shape of the tensor itself, "only" where
    torch has the twin alone; `augments` names the operator whose augmented assignment (`+=`) that twin is. `numpy` lets `dim` and
    `keepdim` also be called `axis` and `keepdims`.
    """

    def __init__(self, function: Function, *, name: str | None = None, method: bool = True, public: bool = True, inplace: str = "",
                 aliases: Sequence[str] = (), operator: str = "", augments: str = "", prop: bool = False,
                 planned: str = "", numpy: bool = False) -> None:  # fmt: skip
        self.function = function
        self.name = name or function.__name__.rstrip("_")
        self.method, self.public, self.inplace, self.aliases = method, public, inplace, tuple(aliases)
        self.operator, self.augments, self.prop, self.planned, self.numpy = operator, augments, prop, planned, numpy
        self.module = function.__module__.rpartition(".")[2]


FACES: Final[dict[str, Face]] = {}


@overload
def composite(function: F, /) -> F: ...
@overload
def composite(**options: Any) -> Callable[[F], F]: ...
def composite(*function: Function, **options: Any) -> Any:
    """Declare ordinary code over other ops as public; see `Face`. Returns the function unchanged."""

    def make(function: Function) -> Function:
        face = Face(function, **options)
        key = face.name if face.public else f".{face.name}"  # torch.where and Tensor.where take their arguments in another order
        key += "_" if face.inplace == "only" else ""
        if key in FACES:
            raise ValueError(f"{face.name} is declared twice")
        FACES[key] = face
        return function

    return make(function[0]) if function else make


ONE_OP: Final[dict[Any, Function]] = {}


def one_op(**options: Any) -> Callable[[F], F]:
    """Declare a face that comes down to one call of an op: the function returns (op, inputs, statics) of it.

    Its in-place twin then writes where it reads, without a second array, when nothing is recorded.
    """

    def make(choose: F) -> F:
        @functools.wraps(choose)
        def face(*arguments: Any, **named: Any) -> Any:
            return Dispatch.invoke(*choose(*arguments, **named))

        ONE_OP[face] = choose
        composite(**options)(face)
        return cast(F, face)

    return make
