"""LU decompositions: P @ L @ U with the rows in an order that keeps them stable."""

from __future__ import annotations

from typing import Any

import numpy as np

from .joining import cat
from .kinds import Array, Tensor, composite, general
from .linalg_results import LinAlgError, LuFactorExResult, LuFactorResult, LuResult, LuUnpackResult
from .linear_systems import adjoint, check_system, solve_triangular_op


# ---------------------------------------------------------------- on arrays
def factored(A: Array) -> tuple[Array, Array]:
    """L below and U on and above the diagonal of one array (..., m, n), and the row that each step exchanged with its own (1-based int32)."""
    m, n = A.shape[-2:]
    count, steps = int(np.prod(A.shape[:-2])), min(A.shape[-2:])
    work = A.reshape(count, m, n).astype(np.float64)
    pivots = np.empty((count, steps), np.int32)
    every = np.arange(count)
    for k in range(steps):
        rows = k + np.argmax(np.abs(work[:, k:, k]), 1)
        pivots[:, k] = rows + 1
        work[every, rows], work[:, k] = work[:, k].copy(), work[every, rows].copy()
        pivot = work[:, k, k, None]
        work[:, k + 1 :, k] /= np.where(pivot == 0, 1.0, pivot)
        work[:, k + 1 :, k + 1 :] -= work[:, k + 1 :, k, None] * work[:, k, None, k + 1 :]
    return work.reshape(A.shape).astype(A.dtype), pivots.reshape(*A.shape[:-2], steps)


def permutation(pivots: Array, m: int, kind: Any) -> Array:
    """The matrix P of the exchanges."""
    flat = pivots.reshape(int(np.prod(pivots.shape[:-1])), pivots.shape[-1])
    order = np.broadcast_to(np.arange(m), (len(flat), m)).copy()
    every = np.arange(len(flat))
    for k, rows in enumerate(flat.T - 1):
        order[every, rows], order[:, k] = order[:, k].copy(), order[every, rows].copy()
    matrix = np.zeros((len(flat), m, m), kind)
    matrix[every[:, None], order, np.arange(m)] = 1
    return matrix.reshape(*pivots.shape[:-1], m, m)


def split_factors(LU: Array) -> tuple[Array, Array]:
    """L with ones on its diagonal, and U."""
    k = min(LU.shape[-2:])
    lower = np.tril(LU[..., :k], -1) + np.eye(LU.shape[-2], k, dtype=LU.dtype)
    return np.asarray(lower, order="C"), np.asarray(np.triu(LU[..., :k, :]), order="C")


# ---------------------------------------------------------------- derivatives
def lu_pull(grad_lower: Any, grad_upper: Any, P: Tensor, L: Tensor, U: Tensor) -> Tensor:
    """P L^-T [strict lower part of L^T grad_L + upper part of grad_U U^T] U^-T, where both are square.

    The rest of a tall L is A U^-1, the rest of a wide U is L^-1 A: their gradients go to those rows and columns, and to the square factors.
    """
    (m, k), n = L.meta.shape[-2:], U.meta.shape[-1]
    grad_lower = L * 0 if grad_lower is None else grad_lower
    grad_upper = U * 0 if grad_upper is None else grad_upper
    square, upper = L.narrow(-2, 0, k), U.narrow(-1, 0, k)

    def by_lower(x: Tensor) -> Tensor:
        return solve_triangular_op(adjoint(square), x, True, True)

    def by_upper(x: Tensor) -> Tensor:
        return adjoint(solve_triangular_op(upper, adjoint(x), True, False))

    top, left = grad_lower.narrow(-2, 0, k), grad_upper.narrow(-1, 0, k)
    below = beside = None
    if m > k:
        below = by_upper(grad_lower.narrow(-2, k, m - k))
        left = left - adjoint(L.narrow(-2, k, m - k)).matmul(below)
    if n > k:
        beside = by_lower(grad_upper.narrow(-1, k, n - k))
        top = top - beside.matmul(adjoint(U.narrow(-1, k, n - k)))
    inner = adjoint(square).matmul(top).tril(-1) + left.matmul(adjoint(upper)).triu()
    found = by_upper(by_lower(inner))
    found = cat([found, below], -2) if below is not None else cat([found, beside], -1) if beside is not None else found
    return P.matmul(found)


@general(node="LinalgLuBackward0", saves=("result0", "result1", "result2"), outputs=3, name="_lu")
def lu_op(A: Array) -> tuple[Array, Array, Array]:
    LU, pivots = factored(A)
    return permutation(pivots, A.shape[-2], A.dtype), *split_factors(LU)


@lu_op.rule
def _(grads: Any, result0: Tensor, result1: Tensor, result2: Tensor) -> Tensor:
    return lu_pull(grads[1], grads[2], result0, result1, result2)


@general(node="LinalgLuFactorExBackward0", saves=("result0", "P"), outputs=2, extras=("P",), name="_lu_factor")
def lu_factor_op(A: Array) -> tuple[Array, Array, Array]:
    LU, pivots = factored(A)
    return LU, pivots, permutation(pivots, A.shape[-2], A.dtype)


@lu_factor_op.rule
def _(grads: Any, result0: Tensor, P: Tensor) -> Tensor:
    lower, upper = unpacked(result0)
    k = lower.meta.shape[-1]
    return lu_pull(grads[0].narrow(-1, 0, k).tril(-1), grads[0].narrow(-2, 0, k).triu(), P, lower, upper)


def unpacked(LU: Tensor) -> tuple[Tensor, Tensor]:
    """L and U of a compact decomposition."""
    k = min(LU.meta.shape[-2:])
    corner = LU.new_ones(k).diag()
    eye = corner if LU.meta.shape[-2] == k else cat([corner, LU.new_zeros(LU.meta.shape[-2] - k, k)])
    return LU.narrow(-1, 0, k).tril(-1) + eye, LU.narrow(-2, 0, k).triu()


# ---------------------------------------------------------------- faces
def check_lu(function: str, A: Tensor, pivot: bool) -> None:
    """RuntimeError or NotImplementedError for what can't be decomposed."""
    if A.ndim < 2:
        raise RuntimeError(f"{function}: Expected tensor with 2 or more dimensions. Got size: {list(A.meta.shape)} instead")
    if not A.meta.kind.is_floating_point:
        raise NotImplementedError(f"\"lu_cpu\" not implemented for '{A.meta.kind.scalar_name}'")
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")


@composite(method=False)
def linalg_lu(A: Tensor, *, pivot: bool = True) -> Any:
    """(P, L, U) with A = P @ L @ U: a permutation, a lower triangle with ones on its diagonal and an upper one."""
    check_lu("linalg.lu", A, pivot)
    P, lower, upper = lu_op(A)
    return LuResult(P.detach(), lower, upper)


@general(name="_zero_pivot", differentiable=())
def zero_pivot_op(LU: Array) -> Array:
    """The first zero on the diagonal of U (1-based; 0 for none)."""
    zero = np.diagonal(LU, 0, -2, -1) == 0
    return np.asarray(np.where(zero.any(-1), zero.argmax(-1) + 1 if zero.shape[-1] else 0, 0), np.int32)


@composite(method=False)
def linalg_lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> Any:
    """(LU, pivots, info): the compact decomposition; info is the place of the first zero on the diagonal of U, or 0."""
    check_lu("linalg.lu_factor", A, pivot)
    LU, pivots = lu_factor_op(A)
    info = zero_pivot_op(LU)
    if check_errors and bool((info != 0).any()):
        k = int(info[info != 0][0])
        raise LinAlgError(f"torch.linalg.lu_factor_ex: U[{k},{k}] is zero and using it on lu_solve would result in a division by zero. If you still "
                          "want to perform the factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)")  # fmt: skip
    return LuFactorExResult(LU, pivots, info)


@composite(method=False)
def linalg_lu_factor(A: Tensor, *, pivot: bool = True) -> Any:
    """(LU, pivots): L and U in one matrix, and the row that each step exchanged with its own. RuntimeError for a singular matrix."""
    found = linalg_lu_factor_ex(A, pivot=pivot)
    if bool((found.info != 0).any()):
        k = int(found.info[found.info != 0][0])
        raise RuntimeError(f"torch.linalg.lu_factor: U[{k},{k}] is zero and using it on lu_solve would result in a division by zero. If you still "
                           "want to perform the factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)")  # fmt: skip
    return LuFactorResult(found.LU, found.pivots)


@general(name="_permutation", differentiable=())
def permutation_op(pivots: Array, like: Array) -> Array:
    return permutation(pivots, like.shape[-2], like.dtype)


@composite(method=False)
def linalg_lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """The X with A @ X = B (X @ A = B unless `left`; A.T for A with `adjoint`), where A has the decomposition (LU, pivots)."""
    if pivots.meta.kind.name != "int32":
        raise RuntimeError("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32")
    check_system("linalg.lu_solve", LU, B, left)
    P = permutation_op(pivots, LU.detach())
    right = B if left else B.transpose(-2, -1)
    if adjoint == left:  # A.T @ X = B
        turned = LU.transpose(-2, -1)
        found = solve_triangular_op(turned, solve_triangular_op(turned, right, False, False), True, True)
        found = P.matmul(found)
    else:
        found = solve_triangular_op(LU, solve_triangular_op(LU, P.transpose(-2, -1).matmul(right), False, True), True, False)
    return found if left else found.transpose(-2, -1)


@composite
def lu_solve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """`linalg.lu_solve` with its operands in another order."""
    return linalg_lu_solve(LU_data, LU_pivots, input)


@composite(method=False)
def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True) -> Any:
    """(P, L, U) of a compact decomposition; what isn't asked for is empty."""
    if LU_pivots.meta.kind.name != "int32":
        raise RuntimeError("torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\nNote: this function is intended "
                           "to be used with the output produced by torch.linalg.lu_factor")  # fmt: skip
    none = LU_data.new_empty(0)
    lower, upper = unpacked(LU_data) if unpack_data else (none, none)
    return LuUnpackResult(permutation_op(LU_pivots, LU_data.detach()) if unpack_pivots else none, lower, upper)


@composite
def lu(input: Tensor, pivot: bool = True, get_infos: bool = False) -> Any:
    """`linalg.lu_factor`, or `linalg.lu_factor_ex` with `get_infos`."""
    if get_infos:
        return linalg_lu_factor_ex(input, pivot=pivot)
    found = linalg_lu_factor(input, pivot=pivot)
    return found.LU, found.pivots


@composite(method=False)
def linalg_matmul(input: Tensor, other: Tensor) -> Tensor:
    """`matmul`."""
    return input.matmul(other)


