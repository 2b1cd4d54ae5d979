"""What `Tensor` gets for each item: the method, its operators and aliases, the in-place twin."""

import inspect
from typing import Final

from jitgrad._ops.kinds import Face
from jitgrad._ops.maps import Elementwise

from .common_case import CommonCase, is_common
from .declarations import AUGMENTED, REFLECTED, SIGNS, Item, operators, reference
from .forward import forward_method
from .inplace import inplace_method
from .signatures import by_old_order, signature
from .templates import docstring, render

ELEMENTWISE: Final = """
    def {name}({head}) -> Any:
        {doc}
        {guard}
        return invoke({op}, {operands}, {statics})
"""

GUARD: Final = """
    if not isinstance({y}, Tensor):
        return scalar_operand({op}, self, {y})
"""

NAMED: Final = """
    def {name}(self, {y}: Tensor | Number) -> Tensor:
        {doc}
        return {value}
"""

FACE: Final = """
    {decorator}
    def {name}({head}) -> {returned}:
        {doc}
        {by_old_order}
        {body}
"""

GUARDED: Final = """
    try:
        return {value}
    except AttributeError:
        check_operands("{name}", {operands})
        raise
"""

REFLECTED_METHOD: Final = """
    def __r{operator}__(self, other: Any) -> Any:
        return {value}
"""

def methods(item: Item) -> list[str]:
    """All definitions in `Tensor` that an item leads to."""
    parts = []
    if item.inplace != "only":
        parts += elementwise_methods(item) if isinstance(item, Elementwise) else face_methods(item)
        parts += [f"{alias} = {item.name}\n" for alias in item.aliases]
    if item.inplace and item.method:
        parts.append(inplace_method(item))
        parts += [f"{alias}_ = {item.name}_\n" for alias in item.aliases]
        augmented = item.operator or (item.augments if isinstance(item, Face) else "")
        if augmented in AUGMENTED:
            parts.append(f"__i{augmented}__ = {item.name}_\n")
    return parts


def elementwise_methods(op: Elementwise) -> list[str]:
    """The method of an elementwise op; an operator of two operands is that first, and a method by name besides."""
    if op.operator and len(op.inputs) == 2:
        name = f"__{op.operator}__"
        return [elementwise_method(op, name), *reflected_operator(op), *([named_operator(op)] if op.method else [])]
    method = elementwise_method(op, op.name)
    return [method, f"__{op.operator}__ = {op.name}\n"] if op.operator else [method]


def elementwise_method(op: Elementwise, name: str) -> str:
    """Straight-line code where the op has a common case, else a call of `invoke`."""
    if is_common(op):
        return forward_method(CommonCase(op), name)
    found = signature(op).as_method()
    guard = render(GUARD, y=op.inputs[1], op=reference(op)) if op.operator and len(op.inputs) == 2 else ""
    return render(
        ELEMENTWISE,
        name=name,
        head=found.head,
        doc=docstring(op.doc),
        guard=guard,
        op=reference(op),
        operands=found.operands,
        statics=found.statics,
    )


def reflected_operator(op: Elementwise) -> list[str]:
    """The operator with a number on its left, unless that is an op of its own."""
    if op.operator not in REFLECTED or f"r{op.operator}" in operators():
        return []
    return [render(REFLECTED_METHOD, operator=op.operator, value=f"scalar_first({reference(op)}, other, self)")]


def named_operator(op: Elementwise) -> str:
    """The method that does what the operator does."""
    y = op.inputs[1]
    value = f"self {SIGNS[op.operator]} {y}" if is_common(op) else f"invoke({reference(op)}, (self, {y}))"
    return render(NAMED, name=op.name, y=y, doc=docstring(op.doc), value=value)


def face_methods(face: Face) -> list[str]:
    """The method or property of a face, and its operators."""
    found = signature(face).as_method()
    method = render(
        FACE,
        decorator="@property" if face.prop else "",
        name=face.name,
        head=found.head,
        returned=found.returned,
        doc=docstring(inspect.getdoc(face.function) or ""),
        by_old_order=by_old_order(face, face.name, f"Tensor.{face.name}", found),
        body=guarded(face.name, f"{home(face)}({found.call})", found.parameters[1:]),
    )
    parts = [method]
    if face.operator:
        parts.append(f"__{face.operator}__ = {face.name}\n")
    if face.operator in REFLECTED:
        parts.append(render(REFLECTED_METHOD, operator=face.operator, value=f"{reference(face)}(other, self)"))
    return parts


def guarded(name: str, value: str, parameters: list[str]) -> str:
    """The line that returns a value; where it needs tensors, with a look at them if something was none: it costs nothing otherwise."""
    needed = [f'("{text[:-8]}", {text[:-8]}, {place})' for place, text in enumerate(parameters, 1)
              if text.endswith(": Tensor") and not text.startswith("*")]  # fmt: skip
    return render(GUARDED, name=name, value=value, operands=", ".join(needed)) if needed else f"return {value}"


def home(face: Face) -> str:
    """Where a face's function is: beside its op, or its spelled-out common case in a module of `_tensor`."""
    return f"{face.planned}.{face.name}" if face.planned else reference(face)
