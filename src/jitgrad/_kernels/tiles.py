"""Products of matrices in tiles of vector registers, for compiled steps on machines with 512-bit vectors.

A tile is 8 (or 4, 2, 1) rows by 1 or 2 vectors of columns, held in registers while the loop runs over the inner axis. Columns that fill no
vector are a tile of their own, whose loads and stores are masked. Nothing is packed: rows of `a` are read one element at a time at any strides,
rows of `b` as vectors. For matrices whose `b` fits the second-level cache that is as fast as the registers allow (128x784 by 784x256 in float32:
437 us where OpenBLAS takes 500, and 570 for a transposed `b`; Zen 4, 3.6 GHz).
A transposed `b` is turned first, in blocks of registers.
"""

from __future__ import annotations

import functools
from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_I64, _I32 = ir.IntType(64), ir.IntType(32)
_WIDE: Final = '"prefer-vector-width"="512"'
BYTES: Final = 64


def _vector(context: Any, pointer: Any) -> tuple[Any, Any, int]:
    """Element type, vector type and lanes for a pointer's dtype."""
    real = context.get_value_type(pointer.dtype)
    lanes = BYTES // (4 if pointer.dtype == types.float32 else 8)
    return real, ir.VectorType(real, lanes), lanes


def _function(builder: Any, name: str, kinds: list[Any]) -> tuple[Any, bool]:
    """A function of the module, and whether it has yet to be written."""
    found = builder.module.globals.get(name)
    if found is not None:
        return found, False
    made = ir.Function(builder.module, ir.FunctionType(ir.VoidType(), kinds), name)
    made.linkage = "internal"
    made.attributes.add("noinline")
    set.add(made.attributes, _WIDE)  # an attribute that llvmlite has no name for
    return made, True


def _vector_at(builder: Any, pointer: Any, index: Any, kind: Any) -> Any:
    return builder.bitcast(builder.gep(pointer, [index]), kind.as_pointer())


def _load(builder: Any, pointer: Any, index: Any, kind: Any, align: int) -> Any:
    found = builder.load(_vector_at(builder, pointer, index, kind))
    found.align = align
    return found


def _store(builder: Any, value: Any, pointer: Any, index: Any, align: int) -> None:
    builder.store(value, _vector_at(builder, pointer, index, value.type)).align = align


def _splat(builder: Any, value: Any, kind: Any) -> Any:
    nothing = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(nothing, value, ir.Constant(_I32, 0))
    return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(_I32, kind.count), [0] * kind.count))


class Masked:
    """Loads and stores of the first `count` lanes of a vector."""

    def __init__(self, builder: Any, count: Any, kind: Any, align: int) -> None:
        lanes = ir.Constant(ir.VectorType(_I64, kind.count), list(range(kind.count)))
        self.mask = builder.icmp_signed("<", lanes, _splat(builder, count, lanes.type))
        self.kind, self.align = kind, ir.Constant(_I32, align)

    def _call(self, builder: Any, what: str, result: Any, *arguments: Any) -> Any:
        name = f"llvm.masked.{what}.v{self.kind.count}f{512 // self.kind.count}.p0"
        function = builder.module.globals.get(name)
        if function is None:
            function = ir.Function(builder.module, ir.FunctionType(result, [argument.type for argument in arguments]), name)
        return builder.call(function, arguments)

    def load(self, builder: Any, pointer: Any) -> Any:
        place = builder.bitcast(pointer, self.kind.as_pointer())
        return self._call(builder, "load", self.kind, place, self.align, self.mask, ir.Constant(self.kind, None))

    def store(self, builder: Any, value: Any, pointer: Any) -> None:
        place = builder.bitcast(pointer, self.kind.as_pointer())
        self._call(builder, "store", ir.VoidType(), value, place, self.align, self.mask)


def _write_tile(function: Any, rows: int, columns: int, kind: Any, align: int, across: bool = False) -> None:
    """The body of a tile: rows x columns accumulators in a loop over the inner axis, then stored; `across`: turned before that.

    With `columns` 0 it is one vector of columns, of which the function's last argument says how many there are.
    """
    k, a, row_step, inner_step, b, ldb, c, ldc, *count = function.args
    entry, loop, done = (function.append_basic_block(name) for name in ("entry", "inner", "done"))
    builder = ir.IRBuilder(entry)
    letter = "f32" if align == 4 else "f64"
    name = f"llvm.fma.v{kind.count}{letter}"
    fma = function.module.globals.get(name) or ir.Function(function.module, ir.FunctionType(kind, [kind] * 3), name)
    starts = [builder.mul(ir.Constant(_I64, r), row_step) for r in range(rows)]
    masked = Masked(builder, count[0], kind, align) if count else None
    columns = columns or 1
    builder.branch(loop)
    builder.position_at_end(loop)
    place = builder.phi(_I64)
    held = [[builder.phi(kind) for _ in range(columns)] for _ in range(rows)]
    row = builder.gep(b, [builder.mul(place, ldb)])
    column = builder.gep(a, [builder.mul(place, inner_step)])
    if masked:
        vectors = [masked.load(builder, row)]
    else:
        vectors = [_load(builder, row, ir.Constant(_I64, kind.count * j), kind, align) for j in range(columns)]
    sums = []
    for r in range(rows):
        value = _splat(builder, builder.load(builder.gep(column, [starts[r]])), kind)
        sums.append([builder.call(fma, [value, vectors[j], held[r][j]]) for j in range(columns)])
    following = builder.add(place, ir.Constant(_I64, 1))
    place.add_incoming(ir.Constant(_I64, 0), entry)
    place.add_incoming(following, loop)
    for r in range(rows):
        for j in range(columns):
            held[r][j].add_incoming(ir.Constant(kind, None), entry)
            held[r][j].add_incoming(sums[r][j], loop)
    builder.cbranch(builder.icmp_signed("<", following, k), loop, done)
    builder.position_at_end(done)
    if across:
        sums = [[value] for value in _turned(builder, [row for row, in sums], kind)]
    for r in range(rows):
        target = builder.gep(c, [builder.mul(ir.Constant(_I64, r), ldc)])
        if masked:
            masked.store(builder, sums[r][0], target)
            continue
        for j in range(columns):
            _store(builder, sums[r][j], target, ir.Constant(_I64, kind.count * j), align)
    builder.ret_void()


def _call_tile(size: tuple[int, int], across: bool, context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """A call of the function of one tile, which is written at its first use in a module; rows 0: as many as a vector has lanes."""
    rows, columns = size
    real, kind, lanes = _vector(context, signature.args[1])
    word, pointer = _I64, real.as_pointer()
    name = f"jitgrad_tile_{rows}_{columns}_{'across_' * across}{signature.args[1].dtype}"
    kinds = [word, pointer, word, word, pointer, word, pointer, word, word]
    function, is_new = _function(builder, name, kinds[: len(arguments)])
    if is_new:
        _write_tile(function, rows or lanes, columns, kind, BYTES // lanes, across)
    builder.call(function, arguments)
    return context.get_dummy_value()


def _tile_maker(rows: int, columns: int, across: bool = False) -> Any:
    @intrinsic
    def tile(typing: Any, k: Any, a: Any, row_step: Any, inner_step: Any, b: Any, ldb: Any, c: Any, ldc: Any) -> Any:
        """c[rows, columns] = the sum over k >= 1 of a[row * row_step + k * inner_step] * b[k * ldb + column]; `across`: c[column, row]."""
        word = types.intp
        return types.void(word, a, word, word, b, word, c, word), functools.partial(_call_tile, (rows, columns), across)

    return tile


def _edge_maker(rows: int) -> Any:
    @intrinsic
    def edge(typing: Any, k: Any, a: Any, row_step: Any, inner_step: Any, b: Any, ldb: Any, c: Any, ldc: Any, count: Any) -> Any:
        """A tile of `count` columns, fewer than a vector has lanes."""
        word = types.intp
        return types.void(word, a, word, word, b, word, c, word, word), functools.partial(_call_tile, (rows, 0), False)

    return edge


tile_8_2, tile_8_1, tile_4_2, tile_4_1 = (_tile_maker(*size) for size in ((8, 2), (8, 1), (4, 2), (4, 1)))
tile_2_2, tile_2_1, tile_1_2, tile_1_1 = (_tile_maker(*size) for size in ((2, 2), (2, 1), (1, 2), (1, 1)))
tile_8_0, tile_4_0, tile_2_0, tile_1_0 = (_edge_maker(rows) for rows in (8, 4, 2, 1))
tile_across = _tile_maker(0, 1, True)


def _turned(builder: Any, rows: list[Any], kind: Any) -> list[Any]:
    """As many vectors as lanes, turned by exchanges of ever larger groups of lanes."""
    lanes, step = kind.count, 1
    mask = ir.VectorType(_I32, lanes)
    while step < lanes:
        low = [lane if not lane & step else lanes + lane - step for lane in range(lanes)]
        high = [lane + step if not lane & step else lanes + lane for lane in range(lanes)]
        turned = list(rows)
        for r in range(lanes):
            if not r & step:
                pair = rows[r], rows[r + step]
                turned[r] = builder.shuffle_vector(*pair, ir.Constant(mask, low))
                turned[r + step] = builder.shuffle_vector(*pair, ir.Constant(mask, high))
        rows, step = turned, 2 * step
    return rows


def _write_turn(function: Any, kind: Any, align: int) -> None:
    """The body of `turn_block`: lanes x lanes elements."""
    source, source_step, target, target_step = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    lanes = kind.count
    rows = [_load(builder, source, builder.mul(ir.Constant(_I64, r), source_step), kind, align) for r in range(lanes)]
    rows = _turned(builder, rows, kind)
    for r in range(lanes):
        _store(builder, rows[r], target, builder.mul(ir.Constant(_I64, r), target_step), align)
    builder.ret_void()


@intrinsic
def turn_block(typing: Any, source: Any, source_step: Any, target: Any, target_step: Any) -> Any:
    """target[j, i] = source[i, j] for a block of as many rows and columns as a vector has lanes."""
    word = types.intp
    signature = types.void(source, word, target, word)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        real, kind, _ = _vector(context, signature.args[0])
        pointer = real.as_pointer()
        function, is_new = _function(builder, f"jitgrad_turn_{signature.args[0].dtype}", [pointer, _I64, pointer, _I64])
        if is_new:
            _write_turn(function, kind, BYTES // kind.count)
        builder.call(function, arguments)
        return context.get_dummy_value()

    return signature, generate
