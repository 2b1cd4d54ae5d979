"""The source of a call of a user's kernel: arrays over the program's memory in, a copy of what it returns out.

The GIL is held during the call, so that an exception can leave the program; results of another shape than in the trace end the program with
`CHANGED` before it has written anything for good.
"""

from __future__ import annotations

from typing import Any, Final

from .expressions import spelled, type_of
from .operations import Argument, Call, Value, View

CHANGED: Final = -4  # a kernel's result has another shape than in the trace


def call_lines(writer: Any, op: Call) -> list[str]:
    """The lines of a call."""
    lines = ["restore(token)"]
    for place, value in op.mutated.items():
        lines += filled_lines(writer, op, place, value)
    given = []
    for place, argument in enumerate(op.arguments):
        written = op.mutated.get(place)
        given.append(spelled_argument(writer, argument if written is None else Argument("array", written.whole())))
    lines.append(f"{op.variable} = {op.word}({', '.join(given)})")
    stores: list[str] = []
    for place, (how, what) in enumerate(op.results):
        text = f"{op.variable}[{place}]" if op.several else op.variable
        name = f"{op.variable}_{place}"
        if how == "none":
            continue
        lines.append(f"{name} = {text}" + (".copy()" if how == "copied" else ""))
        if how in ("out", "scalar"):
            checks, copies = stored_lines(writer, name, what, how == "scalar")
            lines += checks
            stores += copies
    return [*lines, "token = release(work)", *stores]


def filled_lines(writer: Any, op: Call, place: int, value: Value) -> list[str]:
    """A copy of an argument that the kernel writes to."""
    view = op.arguments[place].view
    assert isinstance(view, View)
    writer.loaded |= {view.value.number, value.number}
    return [f"for c in range({value.numel}):", f"    {writer.layout.pointer(value)}[c] = {writer.layout.pointer(view.value)}[c]"]


def spelled_argument(writer: Any, argument: Argument) -> str:
    """An argument in the source."""
    if argument.view is None:
        return argument.text
    value = argument.view.value
    writer.loaded.add(value.number)
    pointer = writer.layout.pointer(value)
    if argument.kind == "element":
        return f"{pointer}[0]"
    if type_of(value.dtype) == "u1" and value.dtype.kind == "b":
        pointer = f"at_b1(address({pointer}))"
    shape = "(" + "".join(f"{n}, " for n in value.shape) + ")"
    return f"shaped({pointer}, {shape})" + (".copy()" if argument.kind == "copy" else "")


def stored_lines(writer: Any, name: str, value: Value, number: bool) -> tuple[list[str], list[str]]:
    """What is tested of a result, and its copy to where it belongs."""
    target, word = writer.layout.pointer(value), type_of(value.dtype)
    writer.loaded.add(value.number)
    if number:
        return [], [f"{target}[0] = {word}({name})"]
    axes = range(len(value.shape))
    checks = []
    if value.shape:
        test = " or ".join(f"{name}.shape[{k}] != {n}" for k, n in enumerate(value.shape))
        checks = [f"if {test}:", f"    return {CHANGED}"]
    index = [f"i{k}" for k in axes]
    copies = [f"{'    ' * k}for i{k} in range({n}):" for k, n in enumerate(value.shape)]
    at = spelled(list(zip(index, value.strides, strict=True)), 0)
    copies.append(f"{'    ' * len(index)}{target}[{at}] = {word}({name}[{', '.join(index) or '()'}])")
    return checks, copies
