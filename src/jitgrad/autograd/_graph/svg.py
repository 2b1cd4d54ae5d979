"""A laid out graph as SVG text: boxes with a heading and lines, arrows in smooth curves. No fonts are measured: widths are those of a wide one."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Final, NamedTuple

from .layout import Layout, Point, lay_out

FONT: Final = "Helvetica, Arial, 'DejaVu Sans', sans-serif"
HEADING, TEXT = 13, 11  # sizes in pixels
LINE: Final = 15.0
MARGIN: Final = 20.0
COLOURS: Final = {  # of a kind of box: paper, frame, heading
    "op": ("#e8f0fa", "#4477aa", "#16212c"),
    "leaf": ("#e9f5ec", "#2a8a4a", "#16412a"),
    "none": ("#ffffff", "#9aa5b1", "#66727f"),
    "more": ("#fdf3dc", "#b7791f", "#6b4710"),
}
INK: Final = {"plain": "#4a5b6c", "gradient": "#b3455a", "faint": "#66727f"}  # of the lines of a box
_WIDTHS: Final = {  # of DejaVu Sans, which is wider than Helvetica and Arial, in thousandths of the size
    **dict.fromkeys("ijl'|", 300), **dict.fromkeys(" .,:;!-/\\()[]{}frt", 400), **dict.fromkeys("mwMW@%=+<>~", 900),
    **dict.fromkeys("ABDGHNOQRUV&", 750),
}  # fmt: skip


class Box(NamedTuple):
    """What a box says: its kind (see `COLOURS`), a heading, and lines with the kind of ink of each."""

    kind: str
    heading: str
    lines: tuple[tuple[str, str], ...] = ()


def width_of(text: str, size: float, bold: bool = False) -> float:
    """About how wide a text is, rather too wide than too narrow."""
    return (
        sum(_WIDTHS.get(character, 660 if ord(character) < 0x2E80 else 1000) for character in text)
        * size
        * (1.13 if bold else 1)
        / 1000
    )


def size_of_box(box: Box) -> Point:
    """Width and height of a box."""
    if box.kind == "none":
        return width_of(box.heading, TEXT) + 18, 20.0
    widths = [width_of(box.heading, HEADING, True), *[width_of(text, TEXT) for text, _ in box.lines]]
    return max(60.0, max(widths) + 24), 30.0 + LINE * len(box.lines)


def render(boxes: Sequence[Box], edges: Sequence[tuple[int, int]], to_the_right: bool, title: str) -> str:
    """The picture of boxes and arrows between them, ranks running down or to the right."""
    sizes = [size_of_box(box) for box in boxes]
    light = [boxes[end].kind != "op" for _, end in edges]
    if to_the_right:
        layout = exchanged(lay_out([(height, width) for width, height in sizes], edges, light))
        corners = [(x, y - height / 2) for (x, y), (_, height) in zip(layout.boxes, sizes, strict=True)]
    else:
        layout = lay_out(sizes, edges, light)
        corners = [(x - width / 2, y) for (x, y), (width, _) in zip(layout.boxes, sizes, strict=True)]
    width, height = layout.width + 2 * MARGIN, layout.height + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" role="img" '
        f'font-family="{FONT}">',
        f"<title>{html.escape(title)}</title>",
        '<rect width="100%" height="100%" rx="10" fill="#ffffff"/>',
        f'<g transform="translate({MARGIN:.0f} {MARGIN:.0f})">',
        '<g fill="none" stroke="#33475b" stroke-width="1.4">',
        *[
            curve(points, boxes[end].kind == "none", to_the_right)
            for points, (_, end) in zip(layout.arrows, edges, strict=True)
        ],
        "</g>",
        *[drawn(box, corner, size) for box, corner, size in zip(boxes, corners, sizes, strict=True)],
        "</g>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def exchanged(layout: Layout) -> Layout:
    """The same with the axes exchanged."""
    return Layout(
        [(y, x) for x, y in layout.boxes],
        [[(y, x) for x, y in points] for points in layout.arrows],
        layout.height,
        layout.width,
    )


def curve(points: Sequence[Point], faint: bool, to_the_right: bool) -> str:
    """An arrow: straight where it passes a rank, in a curve from rank to rank.

    The head is a path of its own, since not all programs draw markers.
    """
    (x, y), *rest = points
    path = [f"M{x:.1f} {y:.1f}"]
    for k, (a, b) in enumerate(rest):
        if k % 2 == 0:
            path.append(f"L{a:.1f} {b:.1f}")
        elif to_the_right:
            path.append(f"C{(x + a) / 2:.1f} {y:.1f} {(x + a) / 2:.1f} {b:.1f} {a:.1f} {b:.1f}")
        else:
            path.append(f"C{x:.1f} {(y + b) / 2:.1f} {a:.1f} {(y + b) / 2:.1f} {a:.1f} {b:.1f}")
        x, y = a, b
    head = f"M{x - 7:.1f} {y - 3.5:.1f}L{x:.1f} {y:.1f}L{x - 7:.1f} {y + 3.5:.1f}z" if to_the_right else (
        f"M{x - 3.5:.1f} {y - 7:.1f}L{x:.1f} {y:.1f}L{x + 3.5:.1f} {y - 7:.1f}z")  # fmt: skip
    style = ' stroke="#9aa5b1" stroke-dasharray="5 4"' if faint else ""
    fill = "#9aa5b1" if faint else "#33475b"
    return f'<path d="{"".join(path)}"{style}/><path d="{head}" fill="{fill}" stroke="none"/>'


def drawn(box: Box, corner: Point, size: Point) -> str:
    """A box with its text."""
    (x, y), (width, height) = corner, size
    paper, frame, ink = COLOURS[box.kind]
    middle = x + width / 2
    frame_of = (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{paper}" stroke="{frame}"'
    )
    if box.kind == "none":
        return f'{frame_of} rx="10" stroke-dasharray="5 4"/>{text_at(middle, y + 14, box.heading, ink)}'
    lines = [f'{frame_of} rx="8" stroke-width="1.5"/>', text_at(middle, y + 20, box.heading, ink, True)]
    lines += [text_at(middle, y + 36 + LINE * k, text, INK[how]) for k, (text, how) in enumerate(box.lines)]
    return "".join(lines)


def text_at(x: float, y: float, text: str, ink: str, heading: bool = False) -> str:
    """A line of text, centred."""
    how = f'font-size="{HEADING}" font-weight="bold"' if heading else f'font-size="{TEXT}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {how} text-anchor="middle" fill="{ink}">{html.escape(text)}</text>'
