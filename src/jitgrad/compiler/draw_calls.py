"""The source of draws: the same words, and the same arithmetic, as the kernels in `_kernels/random.py`, 1024 words at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from .expressions import type_of
from .operations import Draw


def draw_lines(writer: Any, op: Draw) -> list[str]:
    """The lines of a draw."""
    out = op.outs[0]
    writer.loaded.add(out.number)
    writer.functions.add("words")
    words, target = f"words_{op.number}", writer.layout.pointer(out)
    if op.kind == "normal":
        return normal_lines(writer, op, words, target)
    lines = [f"{words} = at_u8({writer.layout.scratch(out, 1024 * 8)})"]
    if op.kind == "uniform":
        return lines + uniform_lines(op, words, target, out.numel, op.low, op.span, type_of(out.dtype))
    text = f"u1({words}[c] < u8({int(op.low)}))"
    if op.kind == "integers":
        text = f"i8({int(op.low)}) + i8(({words}[c] * u8({int(op.span)})) >> u8(32))"
    return lines + chunks(op, words, out.numel, 1024, "(count + 3) // 4", [f"{target}[part * 1024 + c] = {text}"])


def chunks(op: Draw, words: str, count: int, room: int, blocks: str, body: list[str]) -> list[str]:
    """A loop over chunks of words, and in it one over the elements made of them."""
    return [
        f"for part in range({(count + room - 1) // room}):",
        f"    count = min({count} - part * {room}, {room})",
        f"    words({words}, start_{op.number} + u8(part * 256), seed_{op.number}, {blocks})",
        "    for c in range(count):",
        *("        " + line for line in body),
    ]


def uniform_lines(op: Draw, words: str, target: str, count: int, low: float, span: float, word: str) -> list[str]:
    """Uniform numbers: of 24 bits of a word, or of 53 of two."""
    if word == "f4":
        scale = float(np.float32(span) * np.float32(2.0**-24))
        text = f"{target}[part * 1024 + c] = f4(np.int32({words}[c] >> u8(8))) * f4({scale!r}) + f4({low!r})"
        return chunks(op, words, count, 1024, "(count + 3) // 4", [text])
    body = [
        f"bits = f8(np.int32({words}[2 * c] >> u8(5))) * 67108864.0 + f8(np.int32({words}[2 * c + 1] >> u8(6)))",
        f"{target}[part * 512 + c] = bits * {span * 2.0**-53!r} + {low!r}",
    ]
    return chunks(op, words, count, 512, "(count + 1) // 2", body)


def normal_lines(writer: Any, op: Draw, words: str, target: str) -> list[str]:
    """Normal numbers: pairs, by Box and Muller's transform."""
    out = op.outs[0]
    n, word = out.numel, type_of(out.dtype)
    even = n + n % 2
    writer.functions |= {"sqrt", "log", "sin", "cos"}
    room = writer.layout.scratch(out, 1024 * 8 + even * out.dtype.itemsize)
    unit = f"unit_{op.number}"
    lines = [f"{words} = at_u8({room})", f"{unit} = at_{word}({room} + {1024 * 8})"]
    lines += uniform_lines(op, words, unit, even, 0.0, 1.0, word)
    radius = f"sqrt({word}(-2) * log({word}(1) - {unit}[2 * c])) * {word}({op.span!r})"
    angle = f"{word}(6.283185307179586) * {unit}[2 * c + 1]"
    lines += [
        f"for c in range({n // 2}):",
        f"    radius = {radius}",
        f"    angle = {angle}",
        f"    {target}[2 * c] = radius * cos(angle) + {word}({op.low!r})",
        f"    {target}[2 * c + 1] = radius * sin(angle) + {word}({op.low!r})",
    ]
    if n % 2:
        last = f"sqrt({word}(-2) * log({word}(1) - {unit}[{n - 1}])) * {word}({op.span!r})"
        lines.append(f"{target}[{n - 1}] = {last} * cos({word}(6.283185307179586) * {unit}[{n}]) + {word}({op.low!r})")
    return lines
