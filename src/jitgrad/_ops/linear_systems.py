"""Inverses, solutions and determinants. The factorisations are LAPACK's, by way of NumPy; every derivative is written in recorded ops."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.dtypes import float16
from .axes import DOUBLE
from .kinds import Array, Tensor, composite, general
from .linalg_results import CholeskyExResult, InvExResult, LinAlgError, LogabsdetResult, SlogdetResult, SolveExResult


# ---------------------------------------------------------------- checks
def check_square(function: str, A: Tensor, name: str = "A") -> None:
    """RuntimeError in torch's words unless `A` is a square matrix, or a stack of them, of float32 or float64."""
    if A.ndim < 2:
        raise RuntimeError(f"{function}: The input tensor {name} must have at least 2 dimensions.")
    rows, columns = A.meta.shape[-2:]
    if rows != columns:
        raise RuntimeError(f"{function}: {name} must be batches of square matrices, but they are {rows} by {columns} matrices")
    check_floating(function, A)


def check_floating(function: str, A: Tensor) -> None:
    """RuntimeError unless LAPACK takes the dtype."""
    if not A.meta.kind.is_floating_point:
        raise RuntimeError(f"{function}: Expected a floating point or complex tensor as input. Got {A.meta.kind.scalar_name}")
    if A.meta.kind is float16:
        raise RuntimeError(f"{function}: Low precision dtypes not supported. Got Half")


def adjoint(x: Tensor) -> Tensor:
    """The transposes of matrices in the last two axes."""
    return x.transpose(-2, -1)


def singular_row(array: Array) -> tuple[int, Array]:
    """The first zero on the diagonal of U in P A = L U of each matrix (1-based; 0 for none), and of which matrix the first is."""
    count, n = int(np.prod(array.shape[:-2])), array.shape[-1]
    info = np.zeros(count, np.int32)
    for place, matrix in enumerate(array.reshape(count, n, n)):
        work = matrix.astype(DOUBLE)
        for k in range(n):
            pivot = k + int(np.argmax(np.abs(work[k:, k])))
            if work[pivot, k] == 0:
                info[place] = k + 1
                break
            work[[k, pivot]] = work[[pivot, k]]
            work[k + 1 :] -= np.outer(work[k + 1 :, k] / work[k, k], work[k])
    return int(np.flatnonzero(info)[0]) if info.any() else -1, info.reshape(array.shape[:-2])


def singular(function: str, array: Array, what: str) -> LinAlgError:
    """The error for a matrix that has no inverse."""
    place, info = singular_row(array)
    batch = f" (Batch element {place})" if array.ndim > 2 else ""
    row = int(info.reshape(-1)[place]) if place >= 0 else array.shape[-1]
    if what == "inversion":
        return LinAlgError(f"{function}:{batch} The diagonal element {row} is zero, the inversion could not be completed because the input matrix is "
                           "singular.")  # fmt: skip
    return LinAlgError(f"{function}:{batch} The solver failed because the input matrix is singular.")


# ---------------------------------------------------------------- inverses
@general(node="LinalgInvExBackward0", saves=("result",), name="_inv")
def inv_op(A: Array, strict: bool) -> Array:
    try:
        return np.asarray(np.linalg.inv(A), order="C")
    except np.linalg.LinAlgError:
        if strict:
            raise singular("linalg.inv", A, "inversion") from None
        return np.full(A.shape, np.nan, A.dtype)


@inv_op.rule
def _(grad: Tensor, result: Tensor) -> Tensor:
    turned = adjoint(result)
    return -turned.matmul(grad).matmul(turned)


@composite(method=False)
def linalg_inv(A: Tensor) -> Tensor:
    """The inverse of a square matrix, or of each in a stack: shape (..., n, n). LinAlgError for a singular one."""
    check_square("linalg.inv", A)
    return inv_op(A, True)


@composite
def inverse(input: Tensor) -> Tensor:
    """`linalg.inv`."""
    return linalg_inv(input)


@general(name="_singular_rows", differentiable=())
def singular_rows_op(A: Array) -> Array:
    return np.asarray(singular_row(A)[1], np.int32)


@composite(method=False)
def linalg_inv_ex(A: Tensor, *, check_errors: bool = False) -> Any:
    """(inverse, info): `linalg.inv` that reports a singular matrix by an info other than 0, unless `check_errors`."""
    check_square("linalg.inv", A)
    return InvExResult(inv_op(A, check_errors), singular_rows_op(A))


# ---------------------------------------------------------------- solutions
def as_column(A: Tensor, B: Tensor, left: bool) -> bool:
    """Whether `B` is a vector (or a stack of them), as torch tells."""
    return B.ndim == 1 or (A.ndim - 1 == B.ndim and tuple(B.meta.shape) == tuple(A.meta.shape[:-1]))


@general(node="LinalgSolveExBackward0", saves=("A", "result"), name="_solve")
def solve_op(A: Array, B: Array) -> Array:
    try:
        return np.asarray(np.linalg.solve(A, B), order="C")
    except np.linalg.LinAlgError:
        raise singular("torch.linalg.solve", A, "solution") from None


@solve_op.rule
def _(grad: Tensor, A: Tensor, result: Tensor, needs: tuple[bool, bool]) -> tuple[Any, Any]:
    back = solve_op(adjoint(A), grad)
    return (-back.matmul(adjoint(result)) if needs[0] else None), (back if needs[1] else None)


def check_system(function: str, A: Tensor, B: Tensor, left: bool) -> None:
    """RuntimeError unless the shapes and dtypes of a system go together."""
    if A.meta.kind is not B.meta.kind:
        raise RuntimeError(f"{function}: Expected A and B to have the same dtype, but found A of type {A.meta.kind.scalar_name} and B of type "
                           f"{B.meta.kind.scalar_name} instead")  # fmt: skip
    rows, at = A.meta.shape[-2:], -2 if left else -1
    if B.meta.shape[at] != rows[1 if left else 0]:
        shown = " and ".join(f"{x.meta.shape[-2]}x{x.meta.shape[-1]}" for x in (A, B))
        raise RuntimeError(f"{function}: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} ({shown})")


@composite(method=False)
def linalg_solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """The X with A @ X = B, or X @ A = B unless `left`: A (..., n, n), B (..., n, k) or a vector (..., n); stacks broadcast.

    LinAlgError for a singular A.
    """
    check_square("linalg.solve", A)
    vector = as_column(A, B, left)
    if vector and not left:
        raise RuntimeError("linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. In this case linalg.solve is "
                           "equivalent to B / A.squeeze(-1)")  # fmt: skip
    right = B.unsqueeze(-1) if vector else B
    check_system("linalg.solve", A, right, left)
    found = solve_op(A, right) if left else adjoint(solve_op(adjoint(A), adjoint(right)))
    return found.squeeze(-1) if vector else found


@composite(method=False)
def linalg_solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> Any:
    """(result, info): `linalg.solve`; a singular matrix raises LinAlgError with `check_errors` and else gives an info other than 0."""
    check_square("linalg.solve", A)
    info = singular_rows_op(A)
    if bool((info != 0).any()) and not check_errors:
        return SolveExResult(B * float("nan"), info)
    return SolveExResult(linalg_solve(A, B, left=left), info)


@general(node="LinalgSolveTriangularBackward0", saves=("A", "result"), name="_solve_triangular")
def solve_triangular_op(A: Array, B: Array, upper: bool, unit: bool) -> Array:
    """A triangular system of matrices; the other triangle of A is not read."""
    matrix = np.triu(A) if upper else np.tril(A)
    if unit:
        matrix = matrix - matrix * np.eye(A.shape[-1], dtype=A.dtype) + np.eye(A.shape[-1], dtype=A.dtype)
    try:
        return np.asarray(np.linalg.solve(matrix, B), order="C")
    except np.linalg.LinAlgError:
        with np.errstate(all="ignore"):
            return np.full(np.broadcast_shapes(A.shape[:-2], B.shape[:-2]) + B.shape[-2:], np.inf, A.dtype)


@solve_triangular_op.rule
def _(grad: Tensor, A: Tensor, result: Tensor, needs: tuple[bool, bool], upper: bool, unit: bool) -> tuple[Any, Any]:
    back = solve_triangular_op(adjoint(A), grad, not upper, unit)
    full = -back.matmul(adjoint(result)) if needs[0] else None
    edge = int(unit)
    return (None if full is None else full.triu(edge) if upper else full.tril(-edge)), (back if needs[1] else None)


@composite(method=False)
def linalg_solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """The X with A @ X = B (X @ A = B unless `left`) for a triangular A, of which only that triangle is read; stacks broadcast."""
    check_square("linalg.solve_triangular", A)
    if B.ndim < 2:
        raise RuntimeError("linalg.solve_triangular: The input tensor B must have at least 2 dimensions.")
    check_system("linalg.solve_triangular", A, B, left)
    if left:
        return solve_triangular_op(A, B, upper, unitriangular)
    return adjoint(solve_triangular_op(adjoint(A), adjoint(B), not upper, unitriangular))


# ---------------------------------------------------------------- determinants
@general(node="LinalgDetBackward0", saves=("A", "result"), name="_det")
def det_op(A: Array) -> Array:
    return np.asarray(np.linalg.det(A), A.dtype)


@det_op.rule
def _(grad: Tensor, A: Tensor) -> Tensor:
    return grad.unsqueeze(-1).unsqueeze(-1) * cofactor_op(A)


@general(saves=("A",), name="_cofactor")
def cofactor_op(A: Array) -> Array:
    """The matrix of cofactors, det(A) times the transposed inverse, by singular values: right for singular matrices too."""
    u, s, vh = np.linalg.svd(A)
    n = s.shape[-1]
    others = np.stack([np.delete(s, k, -1).prod(-1) for k in range(n)], -1) if n else s
    sign = np.linalg.det(u) * np.linalg.det(vh)
    return np.asarray(sign[..., None, None] * ((u * others[..., None, :]) @ vh), A.dtype, order="C")


@cofactor_op.rule
def _(grad: Tensor, A: Tensor) -> Tensor:
    turned = adjoint(inv_op(A, False))
    size = det_op(A).unsqueeze(-1).unsqueeze(-1)
    along = (grad * turned).sum((-2, -1), keepdim=True)
    return size * (along * turned - turned.matmul(adjoint(grad)).matmul(turned))


@composite(method=False)
def linalg_det(A: Tensor) -> Tensor:
    """The determinant of a square matrix, or of each in a stack: (..., n, n) gives (...). Its gradient is finite for singular ones."""
    check_square("linalg.det", A)
    return det_op(A)


@composite
def det(input: Tensor) -> Tensor:
    """`linalg.det`."""
    return linalg_det(input)


@general(node="LinalgSlogdetBackward0", saves=("A",), outputs=2, name="_slogdet")
def slogdet_op(A: Array) -> tuple[Array, Array]:
    sign, size = np.linalg.slogdet(A)
    return np.asarray(sign, A.dtype), np.asarray(size, A.dtype)


@slogdet_op.rule
def _(grads: Any, A: Tensor) -> Tensor:
    if grads[1] is None:
        return A * 0
    return grads[1].unsqueeze(-1).unsqueeze(-1) * adjoint(inv_op(A, False))


@composite(method=False)
def linalg_slogdet(A: Tensor) -> Any:
    """(sign, logabsdet) of the determinant of a square matrix, or of each in a stack; sign 0 and -inf for a singular one."""
    check_square("linalg.slogdet", A)
    return SlogdetResult(*slogdet_op(A))


@composite
def slogdet(input: Tensor) -> Any:
    """`linalg.slogdet`."""
    check_square("linalg.slogdet", input)
    return LogabsdetResult(*slogdet_op(input))


@composite
def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant; NaN for a negative one."""
    check_square("logdet", input)
    sign, size = slogdet_op(input)
    return size.where(sign != -1, float("nan"))


# ---------------------------------------------------------------- Cholesky
@general(node="LinalgCholeskyExBackward0", saves=("result",), name="_cholesky")
def cholesky_op(A: Array, upper: bool, strict: bool) -> Array:
    try:
        found = factor(A.swapaxes(-1, -2) if upper else A)
    except np.linalg.LinAlgError:
        if strict:
            raise indefinite(A) from None
        found = np.full(A.shape, np.nan, A.dtype)
    return np.asarray(found.swapaxes(-1, -2) if upper else found, order="C")


def factor(A: Array) -> Array:
    """NumPy's factor; an undefined one, of a matrix with a NaN, is refused too."""
    found = np.linalg.cholesky(A)
    if np.isnan(np.diagonal(found, 0, -2, -1)).any():
        raise np.linalg.LinAlgError
    return found


def bad_minors(A: Array) -> Array:
    """The order of the first leading minor of each matrix that is not positive (1-based; 0 for none)."""
    flat = A.reshape(int(np.prod(A.shape[:-2])), *A.shape[-2:])
    info = np.zeros(len(flat), np.int32)
    for place, matrix in enumerate(flat):
        for k in range(1, len(matrix) + 1):
            try:
                factor(matrix[:k, :k])
            except np.linalg.LinAlgError:
                info[place] = k
                break
    return info.reshape(A.shape[:-2])


def indefinite(A: Array) -> LinAlgError:
    """The error for a matrix that is not positive definite."""
    info = bad_minors(A).reshape(-1)
    place = int(np.flatnonzero(info)[0]) if info.any() else 0
    batch = f" (Batch element {place})" if A.ndim > 2 else ""
    return LinAlgError(f"linalg.cholesky:{batch} The factorization could not be completed because the input is not positive-definite (the leading "
                       f"minor of order {int(info[place])} is not positive-definite).")  # fmt: skip


@cholesky_op.rule
def _(grad: Tensor, result: Tensor, upper: bool) -> Tensor:
    """L^-T sym(phi(L^T grad)) L^-1, where phi takes the lower triangle and half of the diagonal."""
    lower, grad = (adjoint(result), adjoint(grad)) if upper else (result, grad)
    inner = adjoint(lower).matmul(grad).tril()
    inner = inner - inner.diagonal(0, -2, -1).diag_embed() * 0.5
    turned = adjoint(lower)
    half = solve_triangular_op(turned, inner, True, False)
    full = adjoint(solve_triangular_op(turned, adjoint(half), True, False))
    return (full + adjoint(full)) * 0.5


@general(name="_bad_minors", differentiable=())
def bad_minors_op(A: Array) -> Array:
    return bad_minors(A)


@composite(method=False)
def linalg_cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    """The lower triangular L with A = L @ L.T (upper: U.T @ U) of a positive definite matrix, or of each in a stack.

    Only that triangle of A is read. LinAlgError for another matrix.
    """
    check_square("linalg.cholesky", A)
    return cholesky_op(A, upper, True)


@composite
def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """`linalg.cholesky`."""
    check_square("cholesky", input)
    return cholesky_op(input, upper, True)


@composite(method=False)
def linalg_cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> Any:
    """(L, info): `linalg.cholesky` that reports a matrix which isn't positive definite by an info other than 0, unless `check_errors`."""
    check_square("linalg.cholesky", A)
    return CholeskyExResult(cholesky_op(A, upper, check_errors), bad_minors_op(A))
