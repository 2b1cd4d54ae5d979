"""The declared items: which there are, in which order, and what the generated code calls them."""

from collections.abc import Iterable
from typing import Final, TypeAlias

from jitgrad._ops import load_all
from jitgrad._ops.kinds import FACES, OPS, Face
from jitgrad._ops.maps import Elementwise

load_all()

Item: TypeAlias = Elementwise | Face

SIGNS: Final = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**",
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=",
    "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>",
}  # fmt: skip
COMPARISONS: Final = frozenset({"lt", "le", "gt", "ge", "eq", "ne"})
AUGMENTED: Final = frozenset(SIGNS) - COMPARISONS
REFLECTED: Final = AUGMENTED | {"matmul"}


def elementwise_ops() -> list[Elementwise]:
    """The elementwise ops that are public themselves, as declared."""
    return [op for op in OPS.values() if isinstance(op, Elementwise) and not op.name.startswith("_")]


def items() -> list[Item]:
    """All that methods or functions are written for, as declared."""
    return [*elementwise_ops(), *FACES.values()]


def items_by_name() -> list[Item]:
    """The same in the order of the generated files."""
    return sorted(items(), key=lambda item: item.name)


def operators() -> set[str]:
    """The operators that some item has; a reflected one (`rsub`) may be an item of its own."""
    return {item.operator for item in items() if item.operator}


def reference(item: Item) -> str:
    """The declared object as generated code names it: `ops_arithmetic.add`."""
    return f"ops_{item.module}.{item.function.__name__}"


def module_imports(items: Iterable[Item]) -> str:
    """The lines that import the modules of `_ops` under the names that `reference` uses."""
    return "\n".join(f"from .._ops import {name} as ops_{name}" for name in sorted({item.module for item in items}))


def function_names(item: Item) -> list[str]:
    """The item's name and aliases, and those of its in-place twin, as far as they exist."""
    names = [item.name, *item.aliases]
    plain = names if item.inplace != "only" else []
    return plain + [f"{name}_" for name in names if item.inplace]


def exported_names() -> list[str]:
    """The names of all generated functions, in order."""
    return sorted({name for item in items() if item.public for name in function_names(item)})
