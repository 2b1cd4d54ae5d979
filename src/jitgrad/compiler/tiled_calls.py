"""The source of a product in tiles: plain loops over tiles of rows and columns; see `_kernels/tiles.py`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def tiled_lines(
    writer: Any, sizes: tuple[int, int, int], a: tuple[str, int, int], b: tuple[str, int], result: str, width: int, turned: str
) -> list[str]:
    """c[m, n] = a[m, k] @ b[k, n]: `a` with its two strides, `b` with its rows' length; `turned`: memory for a `b` that lies transposed."""
    m, n, k = sizes
    lanes = 64 // width
    lines, (source, ldb) = [], b
    if turned:
        writer.functions.add("turn_block")
        source = f"turned_{writer.loops}_{len(writer.lines)}"
        lines += [
            f"{source} = {turned}",
            f"for i in range({n // lanes}):",
            f"    for j in range({k // lanes}):",
            f"        turn_block(offset({b[0]}, i * {lanes * ldb} + j * {lanes}), {ldb}, offset({source}, j * {lanes * n} + i * {lanes}), {n})",
        ]
        ldb = n
    for column, count, wide in blocks(n, 2 * lanes, lanes, *([n % lanes] if n % lanes else [])):
        for row, rows, tall in blocks(m, 8, 4, 2, 1):
            tile = f"tile_{tall}_{wide // lanes}"
            writer.functions.add(tile)
            last = f", {wide}" if wide < lanes else ""
            at_a, at_b = f"i * {tall * a[1]} + {row * a[1]}", f"j * {wide} + {column}"
            at_c = f"i * {tall * n} + j * {wide} + {row * n + column}"
            lines += [
                f"for j in range({count}):",
                f"    for i in range({rows}):",
                f"        {tile}({k}, offset({a[0]}, {at_a}), {a[1]}, {a[2]}, offset({source}, {at_b}), {ldb}, offset({result}, {at_c}), {n}{last})",
            ]
    return lines


def across_lines(writer: Any, sizes: tuple[int, int, int], a: tuple[str, int], b: tuple[str, int], result: str, width: int, turned: str) -> list[str]:
    """c[m, n] = a[m, k] @ b[n, k].T where `a` is the smaller one: it is turned, rows of `b` take its part, and tiles are turned when stored."""
    m, n, k = sizes
    lanes = 64 // width
    writer.functions |= {"turn_block", "tile_across"}
    source = f"turned_{writer.loops}_{len(writer.lines)}"
    return [
        f"{source} = {turned}",
        f"for i in range({m // lanes}):",
        f"    for j in range({k // lanes}):",
        f"        turn_block(offset({a[0]}, i * {lanes * a[1]} + j * {lanes}), {a[1]}, offset({source}, j * {lanes * m} + i * {lanes}), {m})",
        f"for i in range({n // lanes}):",
        f"    for j in range({m // lanes}):",
        f"        tile_across({k}, offset({b[0]}, i * {lanes * b[1]}), {b[1]}, 1, offset({source}, j * {lanes}), {m}, "
        f"offset({result}, j * {lanes * n} + i * {lanes}), {n})",
    ]


def blocks(length: int, *sizes: int) -> Iterator[tuple[int, int, int]]:
    """A length in blocks, large ones first: where each part begins, how many blocks it has, how large they are."""
    begin = 0
    for size in sizes:
        count = (length - begin) // size
        if count:
            yield begin, count, size
            begin += count * size
