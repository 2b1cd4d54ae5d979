"""How an elementwise kernel reads and writes its arrays.

`load` and `store` tell LLVM that what one element stores no other element reads. The loop then vectorises without a
test for overlap, also in place, where that test would send it to the scalar loop (10x slower). True of a kernel that
stores once per element, from what it loaded at the same position: an output may be an input, but not overlap one.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_I64 = ir.IntType(64)


def _scopes(builder: Any) -> Any:
    module = builder.module
    domain = module.add_metadata(["jitgrad elementwise"])
    return module.add_metadata([module.add_metadata(["loaded", domain])])


@intrinsic
def load(typing: Any, pointer: Any, index: Any) -> Any:
    """pointer[index], from an array that `store` changes at most at the same index."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        index = context.cast(builder, arguments[1], signature.args[1], types.intp)
        value = builder.load(builder.gep(arguments[0], [index]))
        value.set_metadata("alias.scope", _scopes(builder))
        return value

    return pointer.dtype(pointer, index), generate


@intrinsic
def store(typing: Any, pointer: Any, index: Any, value: Any) -> Any:
    """pointer[index] = value, the one store of this element."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0].dtype
        index = context.cast(builder, arguments[1], signature.args[1], types.intp)
        value = context.cast(builder, arguments[2], signature.args[2], kind)
        stored = builder.store(value, builder.gep(arguments[0], [index]))
        stored.set_metadata("noalias", _scopes(builder))
        return context.get_dummy_value()

    return types.void(pointer, index, value), generate


@intrinsic
def step(typing: Any, x: Any, axis: Any, rank: Any) -> Any:
    """Stride in elements of a Buffer along axis `axis` of a broadcast shape of rank `rank`; 0 where it is repeated."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        buffer = context.make_helper(builder, signature.args[0], value=arguments[0])
        axis, rank = (context.cast(builder, arguments[i], signature.args[i], types.intp) for i in (1, 2))
        own = builder.sub(axis, builder.sub(rank, builder.sext(buffer.rank, _I64)))
        zero, before = ir.Constant(_I64, 0), builder.block
        with builder.if_then(builder.icmp_signed(">=", own, zero)):
            length = builder.load(builder.gep(buffer.dims, [own]))
            width = context.get_abi_sizeof(context.get_data_type(signature.args[0].dtype))
            words = builder.sdiv(builder.load(builder.gep(buffer.strides, [own])), ir.Constant(_I64, width))
            words = builder.select(builder.icmp_signed("==", length, ir.Constant(_I64, 1)), zero, words)
            inside = builder.block
        result = builder.phi(_I64)
        result.add_incoming(zero, before)
        result.add_incoming(words, inside)
        return result

    return types.intp(x, axis, rank), generate
