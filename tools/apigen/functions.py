"""What `jitgrad._tensor._functions` gets for each item: the function, its aliases, the in-place twin."""

import inspect
from typing import Final

from jitgrad._ops.kinds import Face
from jitgrad._ops.outputs import WITH_OUT

from .common_case import is_common
from .declarations import Item, reference
from .methods import guarded, home
from .signatures import Signature, by_old_order, signature
from .templates import docstring, listed, render

FACE: Final = """
    def {name}({head}) -> {returned}:
        {doc}
        {by_old_order}
        {by_out}
        {body}
"""

ELEMENTWISE: Final = """
    def {name}({head}) -> Any:
        {doc}
        {by_out}
        {by_method}
        return invoke({op}, {operands}, {statics})
"""

BY_METHOD: Final = """
    if isinstance({first}, Tensor):
        return Tensor.{name}({call})
"""

BY_OUT: Final = """
    if out is not None:
        return write_out("{name}", {name}, ({positional}), {mapping}, out)
"""

INPLACE: Final = """
    def {name}_(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        {doc}
        return {value}
"""


def functions(item: Item) -> list[str]:
    """All definitions that an item leads to."""
    parts = []
    if item.inplace != "only":
        parts.append(function(item))
        parts += [f"{alias} = {item.name}\n" for alias in item.aliases]
    if item.inplace:
        parts.append(inplace_function(item))
        parts += [f"{alias}_ = {item.name}_\n" for alias in item.aliases]
    return parts


def function(item: Item) -> str:
    """The function; where the method has straight-line code, by way of that."""
    found = signature(item)
    head, by_out = with_out(item.name, found)
    if isinstance(item, Face):
        return render(
            FACE,
            name=item.name,
            head=head,
            returned=found.returned,
            doc=docstring(inspect.getdoc(item.function) or ""),
            by_old_order=by_old_order(item, item.name, item.name, found, out=True),
            by_out=by_out,
            body=guarded(item.name, f"{home(item)}({found.call})", found.parameters),
        )
    by_method = ""
    if is_common(item) and item.method:
        by_method = render(BY_METHOD, first=item.inputs[0], name=item.name, call=found.call)
    return render(
        ELEMENTWISE,
        name=item.name,
        head=head,
        doc=docstring(item.doc),
        by_out=by_out,
        by_method=by_method,
        op=reference(item),
        operands=found.operands,
        statics=found.statics,
    )


def with_out(name: str, found: Signature) -> tuple[str, str]:
    """The parameters, with `out` where torch has it and the declaration doesn't, and the lines that see to it."""
    if name not in WITH_OUT or any(text.startswith("out:") for text in found.parameters):
        return found.head, ""
    parameters = [*found.parameters]
    if not any(text.startswith("*") and not text.startswith("**") for text in parameters):
        parameters.insert(len(parameters) - bool(found.rest), "*")
    parameters.insert(len(parameters) - bool(found.rest), "out: Any = None")
    return ", ".join(parameters), render(BY_OUT, name=name, positional=listed(found.positional), mapping=found.mapping)


def inplace_function(item: Item) -> str:
    """The in-place twin, by way of the method where there is one."""
    name = item.name
    value = f"input.{name}_(*args, **kwargs)" if item.method else f'inplace({name}, "{name}_", input, args, kwargs)'
    return render(INPLACE, name=name, doc=docstring(f"In-place `{name}`."), value=value)
