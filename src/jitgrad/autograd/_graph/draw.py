"""`draw`: a graph as DOT and as SVG."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

from ..._engine.node import LEAF, Node, target
from . import svg
from .svg import Box
from .tables import size_of
from .trace import BackwardTrace, value_of
from .walk import Held, Names, held_by, is_released, nodes_below, roots_of

__all__ = ["Drawing", "draw"]


class Drawing:
    """The result of `draw`. `dot` is its text for Graphviz, `svg` the picture; a notebook shows it.

    `omitted` is the number of nodes that were left out because there were more than `max_nodes`.
    """

    def __init__(
        self, boxes: list[Box], edges: list[tuple[int, int]], omitted: int, to_the_right: bool, title: str
    ) -> None:
        self.boxes, self.edges, self.omitted = boxes, edges, omitted
        self._to_the_right, self._title = to_the_right, title
        self._svg: str | None = None

    @property
    def svg(self) -> str:
        """The picture as SVG text."""
        if self._svg is None:
            self._svg = svg.render(self.boxes, self.edges, self._to_the_right, self._title)
        return self._svg

    @property
    def dot(self) -> str:
        """The graph in the language of Graphviz."""
        lines = [
            "digraph backward {",
            f"  rankdir={'LR' if self._to_the_right else 'TB'};",
            '  node [shape=box, style="rounded,filled", fontname="Helvetica"];',
        ]
        for k, box in enumerate(self.boxes):
            paper, frame, ink = svg.COLOURS[box.kind]
            label = "\\n".join(quoted(text) for text in (box.heading, *[text for text, _ in box.lines]))
            lines.append(f'  n{k} [label="{label}", fillcolor="{paper}", color="{frame}", fontcolor="{ink}"];')
        for start, end in self.edges:
            style = " [style=dashed]" if self.boxes[end].kind == "none" else ""
            lines.append(f"  n{start} -> n{end}{style};")
        return "\n".join([*lines, "}"]) + "\n"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture to a file: `.svg`, or `.dot` or `.gv`. ValueError for another ending."""
        ending = Path(path).suffix.lower()
        if ending not in (".svg", ".dot", ".gv"):
            raise ValueError(f"draw: can save as .svg, .dot or .gv, not as '{ending or path}'")
        Path(path).write_text(self.svg if ending == ".svg" else self.dot, encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        left = f", {self.omitted:,} nodes left out" if self.omitted else ""
        return f"<drawing of a graph: {len(self.boxes):,} boxes, {len(self.edges):,} arrows{left}>"


def quoted(text: str) -> str:
    """A text for a quoted string of DOT."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")


def draw(
    outputs: Any,
    params: Any = None,
    *,
    trace: BackwardTrace | None = None,
    max_nodes: int = 200,
    direction: str = "down",
) -> Drawing:
    """A picture of the graph behind `outputs`: a box per node, with the values it saved, and the arrows that a backward run follows.

    `outputs`: a tensor, a `GradientEdge` or a node, or several of them. `params` names tensors: a module, a dict, or pairs of name and
    tensor; leaves are shown by their names, and so are saved values and results that are among them. `trace`, from
    `trace_backward`, adds when each node ran and with what gradient. Of a graph of more than `max_nodes` nodes those are drawn that
    a backward comes to first, and one box says how many are not. `direction`: "down" or "right". RuntimeError for a tensor that takes
    no gradient, TypeError for what is no tensor, ValueError for another direction.

    >>> import jitgrad
    >>> w = jitgrad.ones(3, requires_grad=True)
    >>> picture = jitgrad.autograd.graph.draw((w * w).sum(), {"w": w})
    >>> picture
    <drawing of a graph: 3 boxes, 3 arrows>
    >>> print(picture.dot)
    digraph backward {
    ...
      n1 -> n2;
      n1 -> n2;
    }
    """
    if direction not in ("down", "right"):
        raise ValueError(f"draw: direction should be 'down' or 'right', not {direction!r}")
    if isinstance(max_nodes, bool) or not isinstance(max_nodes, int) or max_nodes < 1:
        raise ValueError(f"draw: max_nodes should be a positive number, not {max_nodes!r}")
    names = Names(params)
    nodes = nodes_below(roots_of(outputs, "draw"))
    chosen = choose(nodes, max_nodes)
    boxes = [box_of(node, names, trace) for node in chosen]
    omitted = len(nodes) - len(chosen)
    edges = arrows(chosen, boxes, omitted, max_nodes)
    heading = names.label(nodes[0]) if nodes else ""
    return Drawing(boxes, edges, omitted, direction == "right", f"The graph behind {heading}: {len(nodes):,} nodes")


def choose(nodes: list[Node], most: int) -> list[Node]:
    """The nodes to be drawn: in the order of a run, each with its leaves, until there are enough."""
    chosen: dict[Node, None] = {}
    for node in nodes:
        for one in (node, *[target(edge)[0] for edge in node.edges() if edge is not None and edge.number == LEAF]):
            if len(chosen) >= most:
                return list(chosen)
            chosen[one] = None
    return list(chosen)


def arrows(chosen: list[Node], boxes: list[Box], omitted: int, most: int) -> list[tuple[int, int]]:
    """The edges between boxes; adds boxes for inputs that take no gradient, and one for all nodes that are left out."""
    place = {node: k for k, node in enumerate(chosen)}
    rest = -1
    edges: list[tuple[int, int]] = []
    for k, node in enumerate(chosen):
        for edge in node.edges():
            below = None if edge is None else target(edge)[0]
            if below is None:
                edges.append((k, len(boxes)))
                boxes.append(Box("none", "no gradient"))
            elif below in place:
                edges.append((k, place[below]))
            else:
                if rest < 0:
                    rest = len(boxes)
                    boxes.append(Box("more", f"{omitted:,} more nodes", ((f"not drawn: max_nodes={most}", "plain"),)))
                if (k, rest) not in edges[-len(node.edges()) :]:
                    edges.append((k, rest))
    return edges


# ---- what a box says
def box_of(node: Node, names: Names, trace: BackwardTrace | None) -> Box:
    """The box of a node."""
    step = None if trace is None else trace.find(node)
    if node.number == LEAF:
        return leaf_box(node, names, step)
    lines = [(text, "plain") for text in results_of(node, names)]
    held = held_by(node)
    lines += [(saved_line(value, names), "plain") for value in held[:6]]
    if len(held) > 6:
        lines.append((f"and {len(held) - 6} more saved values", "plain"))
    if not held and is_released(node):
        lines.append(("saved values released", "faint"))
    if step is not None:
        came = ", ".join(value_of(grad) for grad in step.gradients_in)
        lines.append((f"step {step.index + 1}: gradient {came}", "gradient"))
    return Box("op", clipped(names.label(node)), tuple((clipped(text), ink) for text, ink in lines))


def leaf_box(node: Node, names: Names, step: Any) -> Box:
    """The box of a leaf."""
    meta = node.meta
    name = names.leaves.get(node)
    lines = [] if name is None else [("AccumulateGrad", "plain")]
    lines.append((f"{list(meta.shape)} {meta.dtype.name}", "plain"))
    if step is not None:
        lines.append((f"step {step.index + 1}: grad = {value_of(step.accumulated)}", "gradient"))
    return Box("leaf", clipped(name if name is not None else names.label(node)), tuple(lines))


def clipped(text: str, most: int = 56) -> str:
    """A text that is not too long for a box: its middle is left out."""
    return text if len(text) <= most else f"{text[: most // 2]}...{text[3 - most // 2 :]}"


def results_of(node: Node, names: Names) -> list[str]:
    """Names and shapes of a node's outputs."""
    found = []
    for index in range(min(node.outputs, 3)):
        meta = node.output_meta(index)
        shape = "" if meta is None else f" {list(meta.shape)}"
        found.append(names.outputs.get((node, index), "result") + shape)
    return found if node.outputs <= 3 else [f"{node.outputs} results"]


def saved_line(held: Held, names: Names) -> str:
    """What is said of a saved value: name, shape and bytes."""
    name = names.of_value(held)
    equal = "" if name is None else f" = {name}"
    if held.array is None:
        return (
            f"saved {held.name}{equal} {list(held.shape)}, packed: {size_of(sum(nbytes for _, nbytes in held.pieces))}"
        )
    return f"saved {held.name}{equal} {list(held.shape)}, {size_of(math.prod(held.shape) * held.array.itemsize)}"
