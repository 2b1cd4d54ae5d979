"""`Buffer`: how a kernel sees a NumPy array (Numba side; `language.py` holds the plain-Python side).

Numba's own array type costs 45 ns an argument to unbox and one compilation per rank. A kernel here only needs a pointer and, at
times, the shape, so a Buffer's unboxing loads those four fields straight from the array object: ``data, nd, dimensions, strides``
are the first members behind the object header in NumPy's ABI (``PyArrayObject_fields``, unchanged since NumPy 1.0). A call with
three arrays takes 64 ns instead of 137, and one compiled function serves every rank. Nothing is checked: whoever calls a
kernel vouches for dtype, alignment, byte order and layout. The caller's references keep the arrays alive during the call.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import NativeValue, intrinsic, models, register_model, unbox

_HEADER = object.__basicsize__  # where the fields begin; larger on a free-threaded build
_WORD = 8
_I64, _I32, _BYTE = ir.IntType(64), ir.IntType(32), ir.IntType(8)
_POINTER = _BYTE.as_pointer()
RELEASE_ABOVE = 4096  # elements; a smaller loop takes less time than letting the GIL go and coming back


class Buffer(types.Type):
    """A NumPy array of a known dtype and any rank."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        super().__init__(name=f"Buffer({dtype})")


@register_model(Buffer)
class BufferModel(models.StructModel):
    def __init__(self, manager: Any, buffer: Buffer) -> None:
        words = types.CPointer(types.intp)
        members = [("data", types.CPointer(buffer.dtype)), ("rank", types.int32), ("dims", words), ("strides", words)]
        super().__init__(manager, buffer, members)


@unbox(Buffer)
def unbox_buffer(kind: Buffer, array: Any, c: Any) -> NativeValue:
    """Load the four fields from the array object."""
    builder = c.builder
    buffer = c.context.make_helper(builder, kind)
    raw = builder.bitcast(array, _POINTER)

    def load(offset: int, like: ir.Type) -> Any:
        address = builder.gep(raw, [ir.Constant(_I64, offset)])
        return builder.load(builder.bitcast(address, like.as_pointer()))

    buffer.data = load(_HEADER, buffer.data.type)
    buffer.rank = load(_HEADER + _WORD, _I32)
    buffer.dims = load(_HEADER + 2 * _WORD, buffer.dims.type)
    buffer.strides = load(_HEADER + 3 * _WORD, buffer.strides.type)
    return NativeValue(buffer._getvalue())


def _helper(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return context.make_helper(builder, signature.args[0], value=arguments[0])


@intrinsic
def data(typing: Any, x: Any) -> Any:
    """Typed pointer to the first element."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _helper(context, builder, signature, arguments).data

    return types.CPointer(x.dtype)(x), generate


@intrinsic
def ndim(typing: Any, x: Any) -> Any:
    """Rank."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.sext(_helper(context, builder, signature, arguments).rank, _I64)

    return types.intp(x), generate


def _load_word(builder: Any, words: Any, index: Any) -> Any:
    return builder.load(builder.gep(words, [index]))


@intrinsic
def dim(typing: Any, x: Any, axis: Any) -> Any:
    """Length of an axis (not checked: 0 <= axis < ndim)."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        axis = context.cast(builder, arguments[1], signature.args[1], types.intp)
        return _load_word(builder, _helper(context, builder, signature, arguments).dims, axis)

    return types.intp(x, axis), generate


@intrinsic
def stride(typing: Any, x: Any, axis: Any) -> Any:
    """Stride of an axis in elements."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        axis = context.cast(builder, arguments[1], signature.args[1], types.intp)
        step = _load_word(builder, _helper(context, builder, signature, arguments).strides, axis)
        width = context.get_abi_sizeof(context.get_data_type(signature.args[0].dtype))
        return builder.sdiv(step, ir.Constant(_I64, width))

    return types.intp(x, axis), generate


@intrinsic
def size(typing: Any, x: Any) -> Any:
    """Number of elements: the product of the axes."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        buffer = _helper(context, builder, signature, arguments)
        rank = builder.sext(buffer.rank, _I64)
        entry, loop, done = builder.block, builder.append_basic_block("axis"), builder.append_basic_block("sized")
        one, zero = ir.Constant(_I64, 1), ir.Constant(_I64, 0)
        builder.cbranch(builder.icmp_signed(">", rank, zero), loop, done)
        builder.position_at_end(loop)
        axis, product = builder.phi(_I64), builder.phi(_I64)
        longer = builder.mul(product, _load_word(builder, buffer.dims, axis))
        following = builder.add(axis, one)
        axis.add_incoming(zero, entry)
        axis.add_incoming(following, loop)
        product.add_incoming(one, entry)
        product.add_incoming(longer, loop)
        builder.cbranch(builder.icmp_signed("<", following, rank), loop, done)
        builder.position_at_end(done)
        total = builder.phi(_I64)
        total.add_incoming(one, entry)
        total.add_incoming(longer, loop)
        return total

    return types.intp(x), generate


@intrinsic
def offset(typing: Any, pointer: Any, count: Any) -> Any:
    """The pointer to the element `count` places further on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.gep(arguments[0], [context.cast(builder, arguments[1], signature.args[1], types.intp)])

    return pointer(pointer, count), generate


def _declare(builder: Any, name: str, result: ir.Type, *parameters: ir.Type) -> Any:
    found = builder.module.globals.get(name)
    return found or ir.Function(builder.module, ir.FunctionType(result, parameters), name)


@intrinsic
def release(typing: Any, count: Any) -> Any:
    """Let the GIL go if `count` elements are worth it; returns the token that `restore` wants."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        count = context.cast(builder, arguments[0], signature.args[0], types.intp)
        before = builder.block
        large = builder.icmp_signed(">", count, ir.Constant(_I64, RELEASE_ABOVE))
        with builder.if_then(large, likely=False):
            saved = builder.call(_declare(builder, "PyEval_SaveThread", _POINTER), [])
            inside = builder.block
        token = builder.phi(_POINTER)
        token.add_incoming(ir.Constant(_POINTER, None), before)
        token.add_incoming(saved, inside)
        return token

    return types.voidptr(count), generate


@intrinsic
def restore(typing: Any, token: Any) -> Any:
    """Take the GIL back if `release` let it go."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        held = builder.icmp_unsigned("==", arguments[0], ir.Constant(_POINTER, None))
        with builder.if_then(builder.not_(held), likely=False):
            builder.call(_declare(builder, "PyEval_RestoreThread", ir.VoidType(), _POINTER), [arguments[0]])
        return context.get_dummy_value()

    return types.void(token), generate
