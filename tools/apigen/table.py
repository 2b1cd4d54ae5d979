"""`docs/ops.md`: a row for each name of the public API that is declared in `jitgrad._ops`."""

from collections.abc import Iterable
from typing import Final

from jitgrad._ops.kinds import ONE_OP, Face, General, Op
from jitgrad._ops.maps import Elementwise

from .common_case import whole_map
from .declarations import Item, items_by_name
from .templates import render

PAGE: Final = """
    <!-- written by tools/gen_api.py from the declarations in jitgrad._ops; do not edit -->
    # Ops

    All {count} names that are declared in [jitgrad._ops](../src/jitgrad/_ops). One that ends in `_` writes into its
    first tensor.

    - **As**: `jitgrad.NAME(input, ...)` is a function, `input.NAME(...)` a method, `input.NAME` a property.
    - **Node**: the name of `grad_fn`; several where it depends on the call. Other functions that are called in between
      leave nodes of their own, which are not repeated here; none is named where there is no gradient.
    - **Kind**: an elementwise op is one scalar expression, a linear op comes with its transpose, a general op with its
      backward; a composite is ordinary code over other ops.

    | name | aliases | as | in place | node | kind |
    |---|---|---|---|---|---|
    {rows}
"""


def table_file() -> str:
    """The page."""
    found = named_items()
    rows = "\n".join(row(items) for items in found.values())
    return render(PAGE, count=str(len(found)), rows=rows)


def named_items() -> dict[str, list[Item]]:
    """The items of each name: method, function and in-place twin may be declared apart."""
    found: dict[str, list[Item]] = {}
    for item in items_by_name():
        if (item.method or item.public) and not item.name.startswith("_"):
            found.setdefault(item.name, []).append(item)
    return found


def row(items: list[Item]) -> str:
    """The line of one name."""
    name = items[0].name
    plain = [item for item in items if item.inplace != "only"]
    ops = [op for item in items for op in ops_of(item)]
    with_gradient = [op for op in ops if has_gradient(op)]
    cells = [
        code([name if plain else f"{name}_"]),
        code(alias for item in items for alias in item.aliases),
        ", ".join(forms(plain or items)),
        code(f"{name}_" for item in items if item.inplace),
        code(node for op in with_gradient for node in node_names(op)),
        ", ".join(sorted({op.kind for op in with_gradient or ops})) or "composite",
    ]
    return f"| {' | '.join(cells)} |"


def code(names: Iterable[str]) -> str:
    """The names, each once, as code."""
    return ", ".join(f"`{name}`" for name in dict.fromkeys(names))


def forms(items: list[Item]) -> list[str]:
    """How the name is called."""
    function = any(item.public for item in items)
    reached = any(item.method for item in items)
    property_ = any(isinstance(item, Face) and item.prop for item in items)
    return ["function"] * function + (["property"] if property_ else ["method"] * reached)


def ops_of(item: Item) -> list[Op]:
    """The ops that an item is or that its function names."""
    if isinstance(item, Elementwise):
        return [item]
    function = ONE_OP.get(item.function, item.function)
    named = [function.__globals__.get(name) for name in function.__code__.co_names]
    return [value for value in named if isinstance(value, Op)]


def has_gradient(op: Op) -> bool:
    """Whether a call of the op is recorded under the op's own node."""
    if isinstance(op, Elementwise):
        return op.floats and not op.refuses and not whole_map(op).is_condition
    return not isinstance(op, General) or op.backward is not None or op.accelerator is not None


def node_names(op: Op) -> list[str]:
    """The names of an op's nodes: the usual one, then those where an operand is a number."""
    return [op.node, *op.nodes.values()] if isinstance(op, Elementwise) else [op.node]
