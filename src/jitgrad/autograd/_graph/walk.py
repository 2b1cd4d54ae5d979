"""A graph from its outputs to its leaves: nodes, names, and what the nodes keep alive."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..._engine.node import LEAF, RELEASED, Node, target
from ..._tensor.base import TensorBase
from ..._tensor.edges import GradientEdge
from ..._tensor.saved import Packed
from ..._tensor.views import edge_of

Array = np.ndarray[Any, Any]
_FOLDERS = re.compile(r".*[/\\]")
_LINE = re.compile(r'^  File "(.+)", line (\d+), in (.+)$', re.MULTILINE)


def roots_of(outputs: Any, caller: str) -> list[Node]:
    """The nodes behind tensors, edges or nodes, one or several.

    TypeError for anything else, RuntimeError for a tensor that takes no gradient.
    """
    several = isinstance(outputs, Iterable) and not isinstance(outputs, (TensorBase, GradientEdge))
    found: list[Node] = []
    for output in outputs if several else (outputs,):
        if isinstance(output, Node):
            found.append(output)
        elif isinstance(output, GradientEdge):
            found.append(output.node)
        elif isinstance(output, TensorBase):
            edge = edge_of(output)
            if edge is None:
                raise RuntimeError(
                    f"{caller}: the tensor does not require grad and does not have a grad_fn, so there is no graph behind it"
                )
            found.append(target(edge)[0])
        else:
            raise TypeError(
                f"{caller}: expected a Tensor, a GradientEdge or a node, or a sequence of them, but got {type(output).__name__}"
            )
    if not found:
        raise RuntimeError(f"{caller}: there are no outputs")
    return list(dict.fromkeys(found))


def nodes_below(roots: Sequence[Node]) -> list[Node]:
    """All nodes that a run from `roots` comes to, newest first, leaves last in the order in which they are met."""
    seen = dict.fromkeys(roots)
    todo = list(reversed(roots))
    while todo:
        for edge in todo.pop().edges():
            if edge is not None:
                node = target(edge)[0]
                if node not in seen:
                    seen[node] = None
                    todo.append(node)
    return sorted(seen, key=lambda node: node.number)


# ---- names
class Names:
    """What the user calls leaves, other tensors and arrays. `params`: a module, a dict, or pairs of name and tensor."""

    def __init__(self, params: Any = None) -> None:
        self.leaves: dict[Node, str] = {}
        self.outputs: dict[tuple[Node, int], str] = {}
        self.arrays: dict[int, str] = {}
        self.kept: list[Any] = []  # the arrays, which are known by their `id`
        for name, tensor in pairs(params):
            if not isinstance(tensor, TensorBase):
                raise TypeError(f"params: '{name}' is no Tensor but {type(tensor).__name__}")
            edge = edge_of(tensor)
            if edge is not None and edge.number == LEAF:
                self.leaves.setdefault(edge, name)
            elif edge is not None:
                self.outputs.setdefault(target(edge), name)
            self.arrays.setdefault(id(tensor.array), name)
            self.kept.append(tensor.array)

    def label(self, node: Node) -> str:
        """The name of a node's class; of a leaf its own name too."""
        kind = node.name().rpartition("::")[2]
        name = self.leaves.get(node)
        return kind if name is None else f"{kind}({name})"

    def of_value(self, held: Held) -> str | None:
        """The name of a saved value that is a tensor of the user's."""
        if held.array is not None and id(held.array) in self.arrays:
            return self.arrays[id(held.array)]
        return None if held.edge is None else self.leaves.get(held.edge)


def pairs(params: Any) -> Iterable[tuple[str, Any]]:
    """Names and tensors. TypeError where there are none to be found."""
    if params is None:
        return ()
    if hasattr(params, "named_parameters"):
        return params.named_parameters()  # type: ignore[no-any-return]
    if isinstance(params, Mapping):
        return params.items()
    if isinstance(params, TensorBase) or not isinstance(params, Iterable):
        raise TypeError(
            f"params should be a Module, a dict of tensors or pairs of name and tensor, not {type(params).__name__}"
        )
    listed = [tuple(pair) if isinstance(pair, (tuple, list)) else (pair,) for pair in params]
    if any(len(pair) != 2 for pair in listed):
        raise TypeError("params should be pairs of name and tensor, as `named_parameters()` gives them")
    return listed


# ---- what nodes keep
Piece = tuple[int, int]  # an identity of some memory, and how many bytes it has


class Held(NamedTuple):
    """A value that a node keeps for its backward. `pieces` is the memory it keeps alive: all that a view is a view of."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    pieces: tuple[Piece, ...]
    edge: Node | None
    array: Array | None  # None where the value is packed away by hooks


def held_by(node: Node) -> list[Held]:
    """What a node keeps alive; nothing once it was released."""
    found = []
    for name, value, edge in node.kept_values():
        if isinstance(value, np.ndarray):
            found.append(Held(name, value.shape, value.dtype.name, tuple(pieces_of(value)), edge, value))
        elif type(value) is Packed:
            shape, dtype, _ = value._like
            found.append(Held(name, shape, dtype.name, tuple(pieces_of(value.value)), edge, None))
    return found


def is_released(node: Node) -> bool:
    """Whether the node had saved values and let them go."""
    return any(value is RELEASED for _, value, _ in node.kept_values())


def pieces_of(value: Any, depth: int = 3) -> Iterator[Piece]:
    """The memory that a value keeps alive, as far as it can be told: arrays, tensors, bytes, what says its `nbytes`, and containers of these."""
    if isinstance(value, TensorBase):
        value = value.array
    if isinstance(value, np.ndarray):
        while isinstance(value.base, np.ndarray):
            value = value.base
        yield id(value if value.base is None else value.base), value.nbytes
    elif isinstance(value, (bytes, bytearray)):
        yield id(value), len(value)
    elif isinstance(value, (tuple, list, dict)):
        for part in (value.values() if isinstance(value, dict) else value) if depth else ():
            yield from pieces_of(part, depth - 1)
    elif isinstance(nbytes := getattr(value, "nbytes", None), int):
        yield id(value), nbytes
    elif isinstance(getattr(value, "array", None), np.ndarray):
        yield from pieces_of(value.array, 0)


def line_of(node: Node) -> str:
    """`file:line in function` of the innermost call outside the library, where the node was recorded in anomaly mode; else nothing."""
    trace = None if node.rare is None else node.rare.traceback
    calls = _LINE.findall(trace) if isinstance(trace, str) else []
    if not calls:
        return ""
    file, line, function = calls[-1]
    return f"{_FOLDERS.sub('', file)}:{line} in {function}"
