"""Numba's error reports, shortened to what the author of a function needs: the reason, and the line of their own source."""

from __future__ import annotations

import dis
import linecache
import re
import traceback
import types
from typing import Any, Final

from .._core.errors import KernelError

_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
_PLACE: Final = re.compile(r"(?:at|Raised from|resolving callee type.*at) (\S[^\n(]*) \((\d+)\)")
_NAME: Final = re.compile(r"(?:name|attribute) '(\w+)'")
_FILE: Final = re.compile(r'^File "([^"]+)", line (\d+)', re.MULTILINE)
_SPECIFIC: Final = re.compile(r"(?:Numba)?\w*Error: (.+)")
_INSIDE: Final = re.compile(
    r" for '\$[^']*'|, defined at [^\n(]+ \(\d+\)|\.? Raised from .*"
)  # names that only Numba knows
_NOISE: Final = (
    "Failed in nopython mode pipeline",
    "Failed in full_array_analysis",
    "During:",
    "File ",
    "Enable logging",
    "This error may have been caused",
    "raised from",
)
READONLY: Final = "Cannot modify readonly array"


def line_of(path: str, number: int, name: str) -> str:
    """A place in a source, the way tracebacks show it, on lines of its own."""
    source = linecache.getline(path, number).strip()
    return f'\n  File "{path}", line {number}, in {name}' + (f"\n    {source}" if source else "")


def definition(function: types.FunctionType) -> str:
    """The place where a function is defined."""
    path, number = function.__code__.co_filename, function.__code__.co_firstlineno
    if function.__name__ != "<lambda>":
        for ahead in range(number, number + 12):  # the first line of a decorated function is its decorator
            if linecache.getline(path, ahead).lstrip().startswith(("def ", "async def ")):
                number = ahead
                break
    return line_of(path, number, function.__name__)


def place_of(text: str, function: types.FunctionType) -> str:
    """The innermost line of the user's source that a report of Numba names; else where the function is defined."""
    for path, number in _PLACE.findall(text):
        if "numba/" not in path.replace("\\", "/") and linecache.getline(path, int(number)):
            return line_of(path, int(number), _owner(function, path, int(number)))
    missing = _NAME.findall(text)[:1]
    for step in dis.get_instructions(function):
        if [step.argval] == missing and step.positions is not None and step.positions.lineno:
            return line_of(function.__code__.co_filename, step.positions.lineno, function.__name__)
    return definition(function)


def _owner(function: types.FunctionType, path: str, number: int) -> str:
    """The name of the function around a line: the one at hand, or the nearest `def` above."""
    if path == function.__code__.co_filename and number in {line for *_, line in function.__code__.co_lines()}:
        return function.__name__
    for above in range(number, max(0, number - 400), -1):
        found = re.match(r"\s*def (\w+)", linecache.getline(path, above))
        if found:
            return found[1]
    return function.__name__


def reason_of(error: BaseException) -> str:
    """The one sentence of a report that says what is wrong."""
    text = _COLOUR.sub("", str(error))
    specific = [found for found in _SPECIFIC.findall(text) if "No match" not in found and not found.startswith(_NOISE)]
    if READONLY in text:
        return next((found for found in specific if READONLY in found), READONLY)
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if line and not line.startswith(_NOISE)]
    first = lines[0] if lines else type(error).__name__
    if first.startswith("No implementation of function"):
        call = next((line.removeprefix(">>> ") for line in lines if line.startswith(">>> ")), "")
        detail = f": {specific[0]}" if specific else ""
        return f"Numba has no {call}{detail}" if call else first
    first = _INSIDE.sub("", first)
    if " " not in first:
        return f"Numba does not know {first} here"
    return first if len(first) < 300 else first[:300] + " ..."


def compile_error(function: types.FunctionType, what: str, error: BaseException) -> KernelError:
    """The error for a function that Numba can't compile; `what` says for what."""
    text = _COLOUR.sub("", str(error))
    return KernelError(
        f"{function.__name__} can't be compiled for {what}: {reason_of(error)}{place_of(text, function)}"
    )


def write_error(function: types.FunctionType, error: BaseException, place: str = "") -> KernelError:
    """The error for a function that writes into an argument it may only read."""
    text = _COLOUR.sub("", str(error))
    return KernelError(
        f"{function.__name__} writes into an argument that it may only read. Write into a copy, or declare it: "
        f'jit_function(..., mutates=("name",)).{place or place_of(text, function)}'
    )


def place_in_traceback(error: BaseException, function: types.FunctionType) -> str:
    """The deepest line of a traceback that lies in the function's own file."""
    path = function.__code__.co_filename
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    return line_of(path, frames[-1].lineno or 0, frames[-1].name) if frames else definition(function)


def spell(arguments: Any) -> str:
    """Types of arguments as the user would say them."""
    return "(" + ", ".join(str(argument) for argument in arguments) + ")"
