"""Text with gaps: templates are indented where they stand and name what goes in."""

import re
from textwrap import dedent, indent
from typing import Final

LONE_GAP: Final = re.compile(r"( *)\{(\w+)\}")


def render(template: str, **parts: str) -> str:
    """The template, dedented, with its `{gaps}` filled in; ends with a newline.

    A gap alone on its line takes any number of lines, each indented as the gap is; none at all remove the line.
    """
    lines = []
    for line in dedent(template).strip("\n").split("\n"):
        gap = LONE_GAP.fullmatch(line)
        if gap is None:
            lines.append(line.format_map(parts))
        elif parts[gap[2]]:
            lines.append(indent(parts[gap[2]].rstrip("\n"), gap[1]))
    return "\n".join(lines) + "\n"


def docstring(text: str) -> str:
    """The text in quotes; those of several lines close on a line of their own."""
    text = text.strip()
    return f'"""{text}\n"""' if "\n" in text else f'"""{text}"""'


def listed(names: list[str]) -> str:
    """The inside of a tuple, with a comma after each element: right for one and for none too."""
    return ", ".join(names) + "," if names else ""
