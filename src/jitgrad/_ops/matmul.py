"""Matrix products: bilinear ops, whose derivatives are products with the other operand transposed."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .._core.dtypes import scalar_dtype
from .._core.errors import argument_error
from .._core.shapes import broadcast_shapes, check_bmm, check_dot, check_mm, check_mv, matmul_shape
from .._kernels import products
from .kinds import Array, Optional, Tensor, composite, general
from .views import unsafe_view_op

SINGLE, DOUBLE, HALF = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.float16)
C_NAMES: Final = {"float32": "float", "float64": "double", "float16": "c10::Half", "int64": "long long", "int32": "int", "int16": "short",
                  "int8": "signed char", "uint8": "unsigned char", "bool": "bool"}  # fmt: skip
OTHER: Final = {"input": ("mat2",), "mat2": ("input",)}


def check_kinds(function: str, first: Tensor, second: Tensor) -> None:
    """Both operands of a product must have one dtype."""
    a, b = first.meta.kind, second.meta.kind
    if a is not b:
        if function == "addmm":
            raise RuntimeError(f"mat1 and mat2 must have the same dtype, but got {a.scalar_name} and {b.scalar_name}")
        if function == "mm":
            raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {C_NAMES[a.name]} != {C_NAMES[b.name]}")
        raise RuntimeError(f"expected scalar type {a.scalar_name} but found {b.scalar_name}")


def stored(matrix: Array) -> tuple[Array, int]:
    """A C-contiguous matrix (or stack) and whether it is the transpose of the given one."""
    if matrix.flags.c_contiguous:
        return matrix, 0
    turned = matrix.swapaxes(-1, -2)
    return (turned, 1) if turned.flags.c_contiguous else (np.ascontiguousarray(matrix), 0)


def product(a: Array, b: Array) -> Array:
    """a @ b for matrices, or stacks of them of equal length, of one dtype."""
    kind = a.dtype
    if kind == HALF:
        return product(a.astype(SINGLE), b.astype(SINGLE)).astype(HALF)
    out = np.empty((*a.shape[:-1], b.shape[-1]), kind)
    if kind not in (SINGLE, DOUBLE):
        return np.matmul(a, b, out=out)
    (a, turn_a), (b, turn_b) = stored(a), stored(b)
    (products.matmul if a.ndim == 2 else products.batched_matmul)[kind](a, turn_a, b, turn_b, out)
    return out


@general(node="MmBackward0", saves=OTHER, name="_mm")
def mm_op(input: Array, mat2: Array) -> Array:
    return product(input, mat2)


@general(node="BmmBackward0", saves=OTHER, name="_bmm")
def bmm_op(input: Array, mat2: Array) -> Array:
    return product(input, mat2)


def _declare_backward(op: Any, turned: Any) -> None:
    """Both products differentiate alike, whether of matrices or of stacks of them; `turned` transposes one."""

    @op.rule
    def _(grad: Tensor, input: Tensor, mat2: Tensor, needs: tuple[bool, bool]) -> tuple[Tensor, Tensor]:
        return (op(grad, turned(mat2)) if needs[0] else None), (op(turned(input), grad) if needs[1] else None)

    @op.fused
    def _(grad: Array, input: Array, mat2: Array, needs: tuple[bool, bool]) -> tuple[Array | None, Array | None]:
        return (product(grad, mat2.swapaxes(-1, -2)) if needs[0] else None), (product(input.swapaxes(-1, -2), grad) if needs[1] else None)


_declare_backward(mm_op, lambda matrix: matrix.t())
_declare_backward(bmm_op, lambda stack: stack.transpose(-1, -2))


@general(node="MvBackward0", saves={"input": ("vec",), "vec": ("input",)}, name="_mv")
def mv_op(input: Array, vec: Array) -> Array:
    return product(input, vec[:, None])[:, 0]


@mv_op.rule
def _(grad: Tensor, input: Tensor, vec: Tensor, needs: tuple[bool, bool]) -> tuple[Tensor, Tensor]:
    return (grad.outer(vec) if needs[0] else None), (input.t().mv(grad) if needs[1] else None)


@general(node="DotBackward0", saves={"input": ("tensor",), "tensor": ("input",)}, name="_dot")
def dot_op(input: Array, tensor: Array) -> Array:
    return product(input[None, :], tensor[:, None])[0, 0, None].reshape(())


@dot_op.rule
def _(grad: Tensor, input: Tensor, tensor: Tensor, needs: tuple[bool, bool]) -> tuple[Tensor, Tensor]:
    return (grad * tensor if needs[0] else None), (grad * input if needs[1] else None)


@general(node="AddmmBackward0", saves={"mat1": ("mat2",), "mat2": ("mat1",)}, name="_addmm")
def addmm_op(input: Array, mat1: Array, mat2: Array, beta: float, alpha: float) -> Array:
    result = product(mat1, mat2)
    if alpha != 1:
        result *= result.dtype.type(alpha)
    if beta == 1:
        result += input
    elif beta != 0:
        result += input * result.dtype.type(beta)
    return result


@addmm_op.rule
def _(grad: Tensor, mat1: Tensor, mat2: Tensor, needs: tuple[bool, ...], beta: float, alpha: float) -> tuple[Tensor, ...]:
    scaled = grad if alpha == 1 else grad * alpha
    first = (grad if beta == 1 else grad * beta) if needs[0] else None
    return first, (scaled.mm(mat2.t()) if needs[1] else None), (mat1.t().mm(scaled) if needs[2] else None)


@addmm_op.fused
def _(grad: Array, mat1: Array, mat2: Array, needs: tuple[bool, ...], beta: float, alpha: float) -> tuple[Array | None, ...]:
    scaled = grad if alpha == 1 else grad * grad.dtype.type(alpha)
    first = (grad if beta == 1 else grad * grad.dtype.type(beta)) if needs[0] else None
    return first, (product(scaled, mat2.T) if needs[1] else None), (product(mat1.T, scaled) if needs[2] else None)


@general(node="AddmmBackward0", saves={"input": ("weight",), "weight": ("input",)}, name="_linear")
def linear_op(bias: Optional, input: Array, weight: Array) -> Array:
    """input @ weight.T + bias in one kernel; C-contiguous weight, any leading axes of input."""
    out = np.empty((*input.shape[:-1], weight.shape[0]), input.dtype)
    flat, matrix = np.ascontiguousarray(input), np.ascontiguousarray(weight)
    if bias is None:
        products.linear[input.dtype](flat, matrix, out)
    else:
        products.linear_bias[input.dtype](flat, matrix, np.ascontiguousarray(bias), out)
    return out


@linear_op.rule
def _(grad: Tensor, input: Tensor, weight: Tensor, needs: tuple[bool, ...]) -> tuple[Tensor, ...]:
    rows = grad.reshape(-1, grad.meta.shape[-1])
    first = rows.sum(0) if needs[0] else None
    return first, (grad.matmul(weight) if needs[1] else None), (rows.t().mm(input.reshape(-1, input.meta.shape[-1])) if needs[2] else None)


@linear_op.fused
def _(grad: Array, input: Array, weight: Array, needs: tuple[bool, ...]) -> tuple[Array | None, ...]:
    rows = grad.reshape(-1, grad.shape[-1])
    first = None
    if needs[0]:
        first = np.empty(grad.shape[-1:], grad.dtype)
        products.column_sum[grad.dtype](rows, first)
    second = product(rows, weight).reshape((*grad.shape[:-1], weight.shape[1])) if needs[1] else None
    return first, second, (product(rows.T, input.reshape(-1, input.shape[-1])) if needs[2] else None)


# ---------------------------------------------------------------- faces
@composite
def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """Product of two matrices. RuntimeError where shapes or dtypes don't fit."""
    if input.ndim != 2:
        raise RuntimeError("self must be a matrix")
    if mat2.ndim != 2:
        raise RuntimeError("mat2 must be a matrix")
    check_mm(input.meta.shape, mat2.meta.shape)
    check_kinds("mm", input, mat2)
    return mm_op(input, mat2)


@composite
def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """Products of two stacks of matrices, one by one: (b, n, m) and (b, m, p) give (b, n, p)."""
    check_bmm(input.meta.shape, mat2.meta.shape)
    check_kinds("bmm", input, mat2)
    return bmm_op(input, mat2)


@composite
def mv(input: Tensor, vec: Tensor) -> Tensor:
    """Product of a matrix and a vector."""
    check_mv(input.meta.shape, vec.meta.shape)
    check_kinds("mv", input, vec)
    return mv_op(input, vec)


@composite
def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """Sum of the products of two vectors' elements."""
    check_dot(input.meta.shape, tensor.meta.shape)
    if input.meta.kind is not tensor.meta.kind:
        raise RuntimeError("dot : expected both vectors to have same dtype, but found "
                           f"{input.meta.kind.scalar_name} and {tensor.meta.kind.scalar_name}")  # fmt: skip
    return dot_op(input, tensor)


@composite(aliases=("ger",))
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """The matrix of all products of an element of each vector."""
    for number, vector in ((1, input), (2, vec2)):
        if vector.ndim != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {'self' if number == 1 else 'vec2'}, but got {vector.ndim}-D")
    return input.reshape((input.meta.numel, 1)) * vec2


@composite(inplace="write")
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2); input broadcasts. RuntimeError where shapes or dtypes don't fit."""
    if mat1.ndim != 2:
        raise RuntimeError(f"mat1 must be a matrix, got {mat1.ndim}-D tensor")
    if mat2.ndim != 2:
        raise RuntimeError(f"mat2 must be a matrix, got {mat2.ndim}-D tensor")
    check_mm(mat1.meta.shape, mat2.meta.shape)
    check_kinds("addmm", mat1, mat2)
    if input.meta.kind is not mat1.meta.kind:
        raise RuntimeError(f"self and mat2 must have the same dtype, but got {input.meta.kind.scalar_name} and {mat2.meta.kind.scalar_name}")
    shape = (mat1.meta.shape[0], mat2.meta.shape[1])
    if not mat1.meta.kind.is_floating_point and any(scalar_dtype(n).is_floating_point for n in (beta, alpha)):
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    input.expand(shape)
    return addmm_op(input, mat1, mat2, beta, alpha)


@composite(operator="matmul")
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """Matrix product as `@`: vectors, matrices, and stacks whose leading axes broadcast."""
    try:
        a, b = input.meta.shape, other.meta.shape
    except AttributeError:  # an operand is no tensor
        first = not hasattr(input, "meta")
        raise argument_error("matmul", "input" if first else "other", 1 if first else 2, "Tensor", input if first else other) from None
    if len(a) == 2 and len(b) == 2:
        return input.mm(other)
    if not a or not b:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {len(a)}D and {len(b)}D")
    if len(a) == 1 and len(b) == 1:
        return input.dot(other)
    if len(a) == 2 and len(b) == 1:
        return input.mv(other)
    if len(a) == 1 and len(b) == 2:
        return input.unsqueeze(0).mm(other).squeeze_(0)
    return _stacked(input, other)


def _stacked(input: Tensor, other: Tensor) -> Tensor:
    """`matmul` where an operand has more than two axes."""
    shape = matmul_shape(input.meta.shape, other.meta.shape)
    check_kinds("matmul", input, other)
    left = input.unsqueeze(0) if input.ndim == 1 else input
    right = other.unsqueeze(-1) if other.ndim == 1 else other
    a, b = left.meta.shape, right.meta.shape
    if len(b) == 2:  # one matrix for all rows
        return unsafe_view_op(left.reshape(int(np.prod(a[:-1])), a[-1]).mm(right), shape)
    lead = broadcast_shapes(a[:-2], b[:-2])
    count = int(np.prod(lead))
    first = left.expand((*lead, *a[-2:])).reshape(count, *a[-2:])
    second = right.expand((*lead, *b[-2:])).reshape(count, *b[-2:])
    return unsafe_view_op(bmm_op(first, second), shape)


@composite(method=False, name="linear", planned="planned")
def linear_general(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input @ weight.T + bias: (..., in), (out, in) and (out) give (..., out). RuntimeError where shapes or dtypes don't fit."""
    try:
        w, x = weight.meta.shape, input.meta.shape
    except AttributeError:
        position, wrong = (2, weight) if hasattr(input, "meta") else (1, input)
        raise argument_error("linear", ("input", "weight")[position - 1], position, "Tensor", wrong) from None
    plain = weight.meta.plain and (bias is None or (bias.meta.shape == w[:1] and bias.meta.kind is weight.meta.kind))
    if len(w) == 2 and x and x[-1] == w[1] and plain and input.meta.kind is weight.meta.kind:
        return linear_op(bias, input, weight)
    if len(w) == 2 and len(x) == 2 and bias is not None:
        return bias.addmm(input, weight.t())
    if len(w) == 2 and x and x[-1] != w[1]:
        check_mm((int(np.prod(x[:-1])), x[-1]), w[::-1])
    if bias is not None:
        check_kinds("addmm", input, weight)
    result = input.matmul(weight.t() if weight.ndim else weight)
    return result if bias is None else result + bias
