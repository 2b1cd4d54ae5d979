"""Products of vectors and matrices beside `matmul`: added to something, of three-vectors, of many factors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core.dtypes import bool_, scalar_dtype
from .._core.meta import Meta
from .._core.shapes import broadcast_shapes, check_dot, wrap_dim
from .axes import HALF, LONG, SINGLE
from .kinds import Array, Tensor, composite, general, linear
from .matmul import check_kinds, product


# ---------------------------------------------------------------- traces and dots
@linear(node="TraceBackward0", name="_trace")
def trace_op(input: Array) -> Array:
    return np.asarray(np.trace(input, dtype=input.dtype if input.dtype.kind == "f" else LONG))


@trace_op.adjoint
def _(grad: Array, like: Meta) -> Array:
    full = np.zeros(like.shape, grad.dtype)
    np.fill_diagonal(full, grad)
    return full


@composite
def trace(input: Tensor) -> Tensor:
    """The sum of a matrix's diagonal; integers in int64. RuntimeError for another rank."""
    if input.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {input.ndim}")
    if input.meta.kind is bool_:
        raise NotImplementedError("\"trace\" not implemented for 'Bool'")
    return trace_op(input)


@general(node="VdotBackward0", saves={"input": ("other",), "other": ("input",)}, name="_vdot")
def vdot_op(input: Array, other: Array) -> Array:
    return product(input[None, :], other[:, None]).reshape(())


@vdot_op.rule
def _(grad: Tensor, input: Tensor, other: Tensor, needs: tuple[bool, bool]) -> tuple[Any, Any]:
    return (grad * other if needs[0] else None), (grad * input if needs[1] else None)


@composite
def vdot(input: Tensor, other: Tensor) -> Tensor:
    """`dot`: all numbers are real."""
    check_dot(input.meta.shape, other.meta.shape)
    if input.meta.kind is not other.meta.kind:
        names = [x.meta.kind.scalar_name for x in (input, other)]
        raise RuntimeError(f"vdot : expected both vectors to have same dtype, but found {names[0]} and {names[1]}")
    return vdot_op(input, other)


@composite(method=False)
def linalg_vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """Sums of products along `dim`; the other axes broadcast."""
    return (x * y).sum(dim)


# ---------------------------------------------------------------- three-vectors
@general(node="LinalgCrossBackward0", saves={"input": ("other",), "other": ("input",)}, name="_cross")
def cross_op(input: Array, other: Array, dim: int) -> Array:
    a, b = np.broadcast_arrays(input, other)
    return np.asarray(np.cross(a, b, axis=dim), order="C")


@cross_op.rule
def _(grad: Tensor, input: Tensor, other: Tensor, needs: tuple[bool, bool], dim: int) -> tuple[Any, Any]:
    return (cross_op(other, grad, dim) if needs[0] else None), (cross_op(grad, input, dim) if needs[1] else None)


@composite(method=False)
def linalg_cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """The vector at right angles to two vectors of length 3 along `dim`; the other axes broadcast."""
    if input.ndim != other.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    at = wrap_dim(dim, input.ndim)
    n, m = input.meta.shape[at], other.meta.shape[at]
    if n != 3 or m != 3:
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3. Got {n} and {m}")
    broadcast_shapes(input.meta.shape, other.meta.shape)
    if input.meta.kind is not other.meta.kind:
        first = input * other.new_ones((), dtype=other.meta.kind)
        input, other = first, other.to(first.meta.kind)
    return cross_op(input, other, at)


@composite
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """`linalg.cross`, by default along the first axis of length 3."""
    if dim is None:
        shape = broadcast_shapes(input.meta.shape, other.meta.shape)
        if 3 not in shape:
            raise RuntimeError("no dimension of size 3 in input")
        dim = shape.index(3)
    return linalg_cross(input, other, dim=dim)


# ---------------------------------------------------------------- products added to something
def scaled(array: Array, factor: float) -> Array:
    """array * factor in the array's dtype, for integers with the whole part of the factor."""
    return array if factor == 1 else array * array.dtype.type(factor)


def added(input: Array, result: Array, beta: float, alpha: float) -> Array:
    """beta * input + alpha * result; what `beta` = 0 multiplies is not read."""
    if result.dtype == HALF:
        return added(input.astype(SINGLE), result.astype(SINGLE), beta, alpha).astype(HALF)
    result = scaled(result, alpha)
    return np.asarray(result if result.dtype.type(beta) == 0 else scaled(input, beta) + result, order="C")


def check_factors(kind: Any, **factors: Any) -> None:
    """RuntimeError for a fraction among integers."""
    for name, factor in factors.items():
        if not kind.is_floating_point and scalar_dtype(factor).is_floating_point:
            raise RuntimeError(f"For integral input tensors, argument {name} must not be a floating point number.")


@general(node="AddmvBackward0", saves={"mat": ("vec",), "vec": ("mat",)}, name="_addmv")
def addmv_op(input: Array, mat: Array, vec: Array, beta: float, alpha: float) -> Array:
    return added(input, product(mat, vec[:, None])[:, 0], beta, alpha)


@addmv_op.rule
def _(grad: Tensor, mat: Tensor, vec: Tensor, needs: tuple[bool, ...], beta: float, alpha: float) -> tuple[Any, ...]:
    wide = grad if alpha == 1 else grad * alpha
    first = (grad if beta == 1 else grad * beta) if needs[0] else None
    return first, (wide.outer(vec) if needs[1] else None), (mat.t().mv(wide) if needs[2] else None)


@composite(inplace="write")
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * input + alpha * (mat @ vec); input broadcasts. RuntimeError where shapes or dtypes don't fit."""
    if mat.ndim != 2 or vec.ndim != 1 or input.ndim > 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {input.ndim}, {mat.ndim}, {vec.ndim}")
    n, m = mat.meta.shape
    if m != vec.meta.shape[0] or (input.meta.numel not in (1, n)):
        raise RuntimeError(f"size mismatch, got input ({n if input.ndim == 0 else input.meta.shape[0]}), mat ({n}x{m}), vec ({vec.meta.shape[0]})")
    if len({x.meta.kind for x in (input, mat, vec)}) > 1:
        names = [x.meta.kind.scalar_name for x in (input, mat, vec)]
        raise RuntimeError(f"addmv input tensors must have the same dtype, but got {names[0]}, {names[1]}, and {names[2]}")
    return addmv_op(input, mat, vec, beta, alpha)


@general(node="AddrBackward0", saves={"vec1": ("vec2",), "vec2": ("vec1",)}, name="_addr")
def addr_op(input: Array, vec1: Array, vec2: Array, beta: float, alpha: float) -> Array:
    if input.dtype == bool:
        return np.asarray((input & bool(beta)) | (np.logical_and.outer(vec1, vec2) & bool(alpha)), order="C")
    return added(input, np.multiply.outer(vec1, vec2), beta, alpha)


@addr_op.rule
def _(grad: Tensor, vec1: Tensor, vec2: Tensor, needs: tuple[bool, ...], beta: float, alpha: float) -> tuple[Any, ...]:
    first = (grad if beta == 1 else grad * beta) if needs[0] else None
    return first, (grad.mv(vec2) * alpha if needs[1] else None), (grad.t().mv(vec1) * alpha if needs[2] else None)


@composite(inplace="write")
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * input + alpha * outer(vec1, vec2); input broadcasts and dtypes promote."""
    for number, vector in ((1, vec1), (2, vec2)):
        if vector.ndim != 1:
            raise RuntimeError(f"addr: Expected 1-D argument vec{number}, but got {vector.ndim}-D")
    shape = (vec1.meta.shape[0], vec2.meta.shape[0])
    input.expand(shape)  # refuses what can't be
    tensors = [input, vec1, vec2]
    if len({x.meta.kind for x in tensors}) > 1:
        kind = (input.new_ones((1,)) * vec1.new_ones((1,)) * vec2.new_ones((1,))).meta.kind
        tensors = [x.to(kind) for x in tensors]
    check_factors(tensors[0].meta.kind, beta=beta, alpha=alpha)
    return addr_op(*tensors, beta, alpha)


def check_batches(function: str, input: Tensor, batch1: Tensor, batch2: Tensor) -> None:
    """RuntimeError unless two stacks of matrices fit, and have the dtype of what they are added to."""
    for number, batch in ((1, batch1), (2, batch2)):
        if batch.ndim != 3:
            raise RuntimeError(f"batch{number} must be a 3D tensor")
    a, b = batch1.meta.shape, batch2.meta.shape
    if a[0] != b[0]:
        raise RuntimeError(f"batch1 and batch2 must have same number of batches, got {a[0]} and {b[0]}")
    if a[2] != b[1]:
        raise RuntimeError(f"Incompatible matrix sizes for bmm ({a[1]}x{a[2]} and {b[1]}x{b[2]})")
    check_kinds(function, batch1, batch2)
    check_kinds(function, input, batch1)


@general(node="AddbmmBackward0", saves={"batch1": ("batch2",), "batch2": ("batch1",)}, name="_addbmm")
def addbmm_op(input: Array, batch1: Array, batch2: Array, beta: float, alpha: float) -> Array:
    count, n, m = batch1.shape
    left, right = batch1.transpose(1, 0, 2).reshape(n, count * m), batch2.reshape(count * m, batch2.shape[2])
    return added(input, product(left, right), beta, alpha)


@general(node="BaddbmmBackward0", saves={"batch1": ("batch2",), "batch2": ("batch1",)}, name="_baddbmm")
def baddbmm_op(input: Array, batch1: Array, batch2: Array, beta: float, alpha: float) -> Array:
    return added(input, product(batch1, batch2), beta, alpha)


for _op in (addbmm_op, baddbmm_op):

    @_op.rule
    def _(grad: Tensor, batch1: Tensor, batch2: Tensor, needs: tuple[bool, ...], beta: float, alpha: float) -> tuple[Any, ...]:
        first = (grad if beta == 1 else grad * beta) if needs[0] else None
        wide = grad if alpha == 1 else grad * alpha
        if grad.ndim == 2:
            wide = wide.unsqueeze(0).expand((batch1 if batch1 is not None else batch2).meta.shape[0], *grad.meta.shape)
        return first, (wide.bmm(batch2.transpose(1, 2)) if needs[1] else None), (batch1.transpose(1, 2).bmm(wide) if needs[2] else None)


@composite(inplace="write")
def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * input + alpha * the sum of the products of two stacks of matrices; input broadcasts."""
    wrap_dim(2, batch1.ndim), wrap_dim(2, batch2.ndim)
    shape = (batch1.meta.shape[1], batch2.meta.shape[2])
    input.expand(shape)  # refuses what can't be
    check_batches("addbmm", input, batch1, batch2)
    return addbmm_op(input, batch1, batch2, beta, alpha)


@composite(inplace="write")
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * input + alpha * the products of two stacks of matrices, one by one; input broadcasts."""
    wrap_dim(2, batch1.ndim), wrap_dim(2, batch2.ndim)
    shape = (batch1.meta.shape[0], batch1.meta.shape[1], batch2.meta.shape[2])
    input.expand(shape)  # refuses what can't be
    check_batches("baddbmm", input, batch1, batch2)
    return baddbmm_op(input, batch1, batch2, beta, alpha)


# ---------------------------------------------------------------- many factors
@composite(method=False)
def linalg_multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """The product of matrices in the cheapest order; the first and the last may be vectors."""
    count = len(tensors)
    if count < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {count}")
    for k, x in enumerate(tensors):
        if x.ndim != 2 and (x.ndim != 1 or 0 < k < count - 1):
            wanted = "1D or 2D" if k in (0, count - 1) else "2D"
            raise RuntimeError(f"multi_dot(): {'the first' if k == 0 else 'the last' if k == count - 1 else f'tensor {k}'} "
                               f"{'tensor ' if k in (0, count - 1) else ''}must be {wanted} but got {x.ndim}D")  # fmt: skip
    factors = list(tensors)
    row, column = factors[0].ndim == 1, factors[-1].ndim == 1
    factors[0] = factors[0].unsqueeze(0) if row else factors[0]
    factors[-1] = factors[-1].unsqueeze(-1) if column else factors[-1]
    for k in range(count - 1):
        if factors[k].meta.shape[1] != factors[k + 1].meta.shape[0]:
            raise RuntimeError(f"multi_dot(): tensors {k} and {k + 1} with shapes {list(tensors[k].meta.shape)} and "
                               f"{list(tensors[k + 1].meta.shape)} cannot be multiplied")  # fmt: skip
    sizes = [factors[0].meta.shape[0], *(x.meta.shape[1] for x in factors)]
    result = chained(factors, cheapest(sizes), 0, count - 1)
    shape = (*(() if row else sizes[:1]), *(() if column else sizes[-1:]))
    return result.view(shape) if row or column else result


def cheapest(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """Where to split each run of matrices so that the fewest multiplications are needed."""
    count = len(sizes) - 1
    cost = {(k, k): 0 for k in range(count)}
    split: dict[tuple[int, int], int] = {}
    for length in range(2, count + 1):
        for i in range(count - length + 1):
            j = i + length - 1
            found = [(cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)]
            cost[i, j], split[i, j] = min(found)
    return split


def chained(factors: Sequence[Tensor], split: dict[tuple[int, int], int], first: int, last: int) -> Tensor:
    """The product of a run of matrices."""
    if first == last:
        return factors[first]
    k = split[first, last]
    return chained(factors, split, first, k).mm(chained(factors, split, k + 1, last))


@composite(method=False)
def chain_matmul(*matrices: Tensor) -> Tensor:
    """`linalg.multi_dot` of its arguments."""
    return linalg_multi_dot(matrices) if len(matrices) > 1 else matrices[0]


@composite(method=False)
def linalg_matrix_power(A: Tensor, n: int) -> Tensor:
    """A square matrix (or a stack of them) to a whole power; a negative one is a power of the inverse."""
    if A.ndim < 2:
        raise RuntimeError("linalg.matrix_power: The input tensor A must have at least 2 dimensions.")
    rows, columns = A.meta.shape[-2:]
    if rows != columns:
        raise RuntimeError(f"linalg.matrix_power: A must be batches of square matrices, but they are {rows} by {columns} matrices")
    if n == 0:
        return A.new_zeros(A.meta.shape).copy_(A * 0 + unit(A))
    base, left = (A, n) if n > 0 else (A.inverse(), -n)
    result = None
    while left:
        if left & 1:
            result = base if result is None else result.matmul(base)
        left >>= 1
        base = base.matmul(base) if left else base
    return result.clone() if result is A else result


def unit(A: Tensor) -> Tensor:
    """The unit matrix of the shape of square matrices."""
    n = A.meta.shape[-1]
    return A.new_ones(n).diag()


@composite
def matrix_power(input: Tensor, n: int) -> Tensor:
    """`linalg.matrix_power`."""
    return linalg_matrix_power(input, n)


@composite(method=False)
def linalg_diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonals of matrices in two axes; a view."""
    return A.diagonal(offset, dim1, dim2)


