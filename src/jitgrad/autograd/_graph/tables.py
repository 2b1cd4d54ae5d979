"""Tables of text, for a terminal and for a notebook."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Final

ROWS: Final = 60  # more are left out in the middle, and it says so
Row = Sequence[str]


def shortened(rows: Sequence[Row], limit: int, what: str) -> list[Row | str]:
    """The rows, or the first and the last with a sentence between them."""
    if len(rows) <= limit:
        return list(rows)
    tail = limit // 3
    left_out = len(rows) - limit
    return [*rows[: limit - tail], f"... {left_out:,} more {what} ...", *rows[len(rows) - tail :]]


def text_table(head: Row, rows: Iterable[Row | str], right: Iterable[int] = ()) -> str:
    """Columns side by side, two blanks between them; those numbered in `right` are set flush right. A row that is one string stands alone."""
    rows = list(rows)
    full = [head, *[row for row in rows if not isinstance(row, str)]]
    widths = [max(map(len, column)) for column in zip(*full, strict=True)]
    flush = set(right)

    def line(row: Row) -> str:
        cells = [
            cell.rjust(width) if k in flush else cell.ljust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        return "  ".join(cells).rstrip()

    rule = "  ".join("-" * width for width in widths)
    return "\n".join([line(head), rule, *[row if isinstance(row, str) else line(row) for row in rows]])


def html_table(caption: str, head: Row, rows: Iterable[Row | str], right: Iterable[int] = ()) -> str:
    """The same as HTML, all text escaped."""
    flush = set(right)

    def cells(row: Row, kind: str) -> str:
        style = [
            "text-align:right;font-variant-numeric:tabular-nums" if k in flush else "text-align:left"
            for k in range(len(row))
        ]
        return "".join(
            f'<{kind} style="{how}">{html.escape(cell)}</{kind}>' for cell, how in zip(row, style, strict=True)
        )

    body = "".join(
        f'<tr><td colspan="{len(head)}">{html.escape(row)}</td></tr>'
        if isinstance(row, str)
        else f"<tr>{cells(row, 'td')}</tr>"
        for row in rows
    )
    return (f"<table><caption>{html.escape(caption)}</caption><thead><tr>{cells(head, 'th')}</tr></thead>"
            f"<tbody>{body}</tbody></table>")  # fmt: skip


def counted(count: int, what: str) -> str:
    """A number of things."""
    return f"{count:,} {what}{'s' * (count != 1)}"


def size_of(count: int) -> str:
    """A number of bytes as people read it."""
    if count < 1024:
        return f"{count} B"
    for unit in ("KiB", "MiB", "GiB"):
        count_of_unit = count / 1024 ** (1 + ("KiB", "MiB", "GiB").index(unit))
        if count_of_unit < 1000 or unit == "GiB":
            return f"{count_of_unit:.1f} {unit}"
    raise AssertionError
