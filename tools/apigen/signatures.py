"""Parameters of the generated methods and functions, and the arguments that hand them on."""

import ast
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from textwrap import dedent
from typing import Any

from jitgrad._ops.kinds import Face
from jitgrad._ops.maps import Elementwise
from jitgrad._ops.outputs import FACTORS_FIRST

from .declarations import Item
from .templates import listed


@dataclass
class Signature:
    """Parameters as written, the tensor first; what a call hands on by position, by name and as `**rest`."""

    parameters: list[str] = field(default_factory=list)
    positional: list[str] = field(default_factory=list)
    named: list[str] = field(default_factory=list)
    rest: str = ""
    returned: str = "Any"

    @property
    def head(self) -> str:
        """What stands between the parentheses of the definition."""
        return ", ".join(self.parameters)

    @property
    def call(self) -> str:
        """What stands between the parentheses of a call that hands everything on."""
        rest = [f"**{self.rest}"] if self.rest else []
        return ", ".join([*self.positional, *(f"{name}={name}" for name in self.named), *rest])

    @property
    def operands(self) -> str:
        """The arguments by position, as a tuple."""
        return f"({listed(self.positional)})"

    @property
    def statics(self) -> str:
        """The arguments by name, as a tuple."""
        return f"({listed(self.named)})"

    @property
    def mapping(self) -> str:
        """The arguments by name, as a dict."""
        rest = [f"**{self.rest}"] if self.rest else []
        return "{" + ", ".join([*(f'"{name}": {name}' for name in self.named), *rest]) + "}"

    def with_more(self) -> "Signature":
        """The same with any number of further arguments by position."""
        return replace(self, parameters=["*more: Any" if text == "*" else text for text in self.parameters])

    def as_method(self) -> "Signature":
        """The same with the tensor as `self`."""
        return replace(self, parameters=["self", *self.parameters[1:]], positional=["self", *self.positional[1:]])


def signature(item: Item) -> Signature:
    """The signature of an item's function."""
    found = of_face(item) if isinstance(item, Face) else of_elementwise(item)
    return found.with_more() if item.name in FACTORS_FIRST else found


def by_old_order(item: Item, name: str, function: str, found: Signature, out: bool = False) -> str:
    """The lines that see to a call with the factors before what they multiply, for the ops that torch takes so."""
    if item.name not in FACTORS_FIRST:
        return ""
    rest = ", out=out" if out else ""
    return f'if more:\n    return factors_first("{name}", {function}, ({", ".join(found.positional)}, *more){rest})'


def of_elementwise(op: Elementwise) -> Signature:
    """Operands by position, numbers and flags by name."""
    keywords = [f"{name}: Any" + (f" = {op.defaults[name]!r}" if name in op.defaults else "") for name in op.statics]
    parameters = [f"{name}: Any" for name in op.inputs] + (["*", *keywords] if keywords else [])
    return Signature(parameters, list(op.inputs), list(op.statics))


def of_face(face: Face) -> Signature:
    """What the face's function declares; with NumPy's names too, where it wants them."""
    found = of_source(face.function)
    return with_numpy_names(found) if face.numpy else found


def of_source(function: Callable[..., Any]) -> Signature:
    """The signature as its source spells it: evaluated, annotations and defaults would lose their names."""
    tree = ast.parse(dedent(inspect.getsource(function)))
    definition = next(node for node in tree.body if isinstance(node, ast.FunctionDef))
    declared = definition.args
    found = Signature(returned=unparse_annotation(definition.returns))
    ordered = [*declared.posonlyargs, *declared.args]
    defaults = [None] * (len(ordered) - len(declared.defaults)) + declared.defaults
    for place, (arg, default) in enumerate(zip(ordered, defaults, strict=True)):
        found.parameters.append(spell(arg, default))
        found.positional.append(arg.arg)
        if place + 1 == len(declared.posonlyargs):
            found.parameters.append("/")
    if declared.vararg:
        found.parameters.append("*" + spell(declared.vararg))
        found.positional.append("*" + declared.vararg.arg)
    elif declared.kwonlyargs:
        found.parameters.append("*")
    for arg, default in zip(declared.kwonlyargs, declared.kw_defaults, strict=True):
        found.parameters.append(spell(arg, default))
        found.named.append(arg.arg)
    if declared.kwarg:
        found.parameters.append("**" + spell(declared.kwarg))
        found.rest = declared.kwarg.arg
    return found


def with_numpy_names(declared: Signature) -> Signature:
    """The same, with `axis` and `keepdims` as keywords for `dim` and `keepdim`.

    A `dim` that must be given can then be left out: it may come as `axis`.
    """
    required = [text.startswith("dim:") and "=" not in text for text in declared.parameters]
    parameters = ["dim: Any = None" if dim else text for text, dim in zip(declared.parameters, required, strict=True)]
    if "*" not in parameters:
        parameters.append("*")
    parameters.append("axis: Any = None")
    handed = {"dim": "dim if axis is None else axis"}
    if "keepdim" in declared.positional:
        parameters.append("keepdims: builtins.bool = False")
        handed["keepdim"] = "keepdim or keepdims"
    return replace(declared, parameters=parameters, positional=[handed.get(name, name) for name in declared.positional])


def spell(arg: ast.arg, default: ast.expr | None = None) -> str:
    """One parameter as written."""
    text = f"{arg.arg}: {unparse_annotation(arg.annotation)}"
    return text if default is None else f"{text} = {ast.unparse(default)}"


def unparse_annotation(annotation: ast.expr | None) -> str:
    """The annotation with Python's types under names that no method hides (`Tensor.float` and others do)."""
    if annotation is None:
        return "Any"
    return re.sub(r"(?<!\.)\b(bool|float|int)\b", r"builtins.\1", ast.unparse(annotation))
