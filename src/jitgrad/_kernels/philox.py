"""The counter-based generator, compiled: `words` writes the vector instructions that eight blocks at a time take.

Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; SC 2011). LLVM's loop vectoriser finds 64-bit
products too dear and leaves the plain loop scalar (3.0 ms for 1e6 words where this takes 0.5); vectors named outright become whatever
the processor has. `language.words` is the plain twin.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .language import PHILOX_KEYS, PHILOX_MULTIPLIERS, PHILOX_ROUNDS

_I64, _I32 = ir.IntType(64), ir.IntType(32)
_WIDTH = 8
_VECTOR = ir.VectorType(_I64, _WIDTH)
_LOW = 0xFFFFFFFF


def _splat(builder: Any, value: Any) -> Any:
    single = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), value, ir.Constant(_I32, 0))
    zeros = ir.Constant(ir.VectorType(_I32, _WIDTH), [0] * _WIDTH)
    return builder.shuffle_vector(single, single, zeros)


def _constant(value: int) -> Any:
    return ir.Constant(_VECTOR, [value] * _WIDTH)


def _rounds(builder: Any, counter: Any, seed: Any) -> list[Any]:
    """The four words of the blocks numbered `counter`, a vector of 64-bit integers each."""
    low, half = _constant(_LOW), _constant(32)
    c = [builder.and_(counter, low), builder.lshr(counter, half), _constant(0), _constant(0)]
    keys = [builder.and_(seed, ir.Constant(_I64, _LOW)), builder.lshr(seed, ir.Constant(_I64, 32))]
    for _ in range(PHILOX_ROUNDS):
        a = builder.mul(c[0], _constant(PHILOX_MULTIPLIERS[0]))
        b = builder.mul(c[2], _constant(PHILOX_MULTIPLIERS[1]))
        k0, k1 = (_splat(builder, key) for key in keys)
        c = [builder.xor(builder.xor(builder.lshr(b, half), c[1]), k0), builder.and_(b, low),
             builder.xor(builder.xor(builder.lshr(a, half), c[3]), k1), builder.and_(a, low)]  # fmt: skip
        keys = [builder.and_(builder.add(key, ir.Constant(_I64, step)), ir.Constant(_I64, _LOW)) for key, step in zip(keys, PHILOX_KEYS, strict=True)]
    return c


def _interleaved(builder: Any, c: list[Any]) -> Any:
    """Word 0, 1, 2, 3 of the first block, then of the second and so on."""

    def joined(left: Any, right: Any) -> Any:
        count = left.type.count
        return builder.shuffle_vector(left, right, ir.Constant(ir.VectorType(_I32, 2 * count), list(range(2 * count))))

    every = joined(joined(c[0], c[1]), joined(c[2], c[3]))
    order = [word * _WIDTH + block for block in range(_WIDTH) for word in range(4)]
    return builder.shuffle_vector(every, every, ir.Constant(ir.VectorType(_I32, 4 * _WIDTH), order))


@intrinsic
def words(typing: Any, target: Any, start: Any, seed: Any, blocks: Any) -> Any:
    """Write the words of `blocks` blocks from number `start` on to `target` (uint64 each); rounded up to whole eights of blocks."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target, start, seed, blocks = arguments
        start, seed = (context.cast(builder, value, kind, types.uint64) for value, kind in zip((start, seed), signature.args[1:3], strict=True))
        blocks = context.cast(builder, blocks, signature.args[3], types.int64)
        places = ir.Constant(_VECTOR, list(range(_WIDTH)))
        before, loop, done = builder.block, builder.append_basic_block("eight"), builder.append_basic_block("filled")
        zero = ir.Constant(_I64, 0)
        builder.cbranch(builder.icmp_signed(">", blocks, zero), loop, done)
        builder.position_at_end(loop)
        at = builder.phi(_I64)
        counter = builder.add(_splat(builder, builder.add(start, at)), places)
        every = _interleaved(builder, _rounds(builder, counter, seed))
        where = builder.gep(target, [builder.mul(at, ir.Constant(_I64, 4))])
        builder.store(every, builder.bitcast(where, every.type.as_pointer()), align=8)
        following = builder.add(at, ir.Constant(_I64, _WIDTH))
        at.add_incoming(zero, before)
        at.add_incoming(following, loop)
        builder.cbranch(builder.icmp_signed("<", following, blocks), loop, done)
        builder.position_at_end(done)
        return context.get_dummy_value()

    return types.void(target, start, seed, blocks), generate
