"""What is made of decompositions and systems: the matrix exponential, condition numbers, least squares, tensors as matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .decompositions import check_matrix, linalg_pinv, linalg_svdvals
from .joining import cat
from .kinds import Array, Tensor, composite, general
from .linalg_results import LstsqResult, TriangularResult
from .linear_systems import adjoint, check_square, linalg_inv, linalg_solve, singular_rows_op, solve_triangular_op
from .norms import linalg_matrix_norm
from .vector_products import unit

# ---------------------------------------------------------------- the exponential
# Numerator of the diagonal Pade approximant of degree 13 of exp, and up to which 1-norm it holds to float64 (Higham 2005).
PADE = (64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000, 10559470521600, 670442572800, 33522128640,
        1323241920, 40840800, 960960, 16380, 182, 1)  # fmt: skip
LIMIT = 5.371920351148152


def exponential(A: Array) -> Array:
    """exp of square matrices: scaled down, approximated, squared up again."""
    n = A.shape[-1]
    if not A.size:
        return A.copy()
    norm = float(np.abs(A).sum(-2).max())
    squarings = max(0, math.ceil(math.log2(norm / LIMIT))) if LIMIT < norm < math.inf else 0
    x = A / 2.0**squarings
    powers = [np.broadcast_to(np.eye(n), A.shape), x @ x]
    for _ in range(5):
        powers.append(powers[-1] @ powers[1])
    odd = x @ np.asarray(sum(PADE[2 * k + 1] * power for k, power in enumerate(powers)))
    even = np.asarray(sum(PADE[2 * k] * power for k, power in enumerate(powers)))
    found = np.linalg.solve(even - odd, even + odd)
    for _ in range(squarings):
        found = found @ found
    return found


@general(node="LinalgMatrixExpBackward0", saves=("A",), name="_matrix_exp")
def matrix_exp_op(A: Array) -> Array:
    return np.asarray(exponential(A.astype(np.float64)), A.dtype, order="C")


@matrix_exp_op.rule
def _(grad: Tensor, A: Tensor) -> Tensor:
    """The upper right block of exp([[A.T, grad], [0, A.T]])."""
    turned, n = adjoint(A), A.meta.shape[-1]
    upper, lower = cat([turned, grad], -1), cat([turned * 0, turned], -1)
    return matrix_exp_op(cat([upper, lower], -2)).narrow(-2, 0, n).narrow(-1, n, n)


@composite(method=False)
def linalg_matrix_exp(A: Tensor) -> Tensor:
    """The exponential of a square matrix, or of each in a stack."""
    check_square("linalg.matrix_exp", A)
    return matrix_exp_op(A)


@composite
def matrix_exp(input: Tensor) -> Tensor:
    """`linalg.matrix_exp`."""
    return linalg_matrix_exp(input)


# ---------------------------------------------------------------- condition numbers
@composite(method=False)
def linalg_cond(A: Tensor, p: Any = None) -> Tensor:
    """norm(A) * norm(inverse of A) for a norm of `linalg.matrix_norm`, by default 2; inf for a singular matrix."""
    if A.ndim < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    if not A.meta.numel:
        return A.new_zeros(A.meta.shape[:-2])
    if p is None or p in (2, -2):
        s = linalg_svdvals(A)
        largest, smallest = s.select(-1, 0), s.select(-1, -1)
        return smallest / largest if p == -2 else largest / smallest
    if p not in ("fro", "nuc", 1, -1, math.inf, -math.inf):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    check_square(f"linalg.cond(ord={p})", A)
    singular = (singular_rows_op(A) != 0).unsqueeze(-1).unsqueeze(-1)
    safe = unit(A).where(singular, A)
    found = linalg_matrix_norm(A, p) * linalg_matrix_norm(linalg_inv(safe), p)
    return found.masked_fill(singular.squeeze(-1).squeeze(-1), math.inf)


# ---------------------------------------------------------------- systems by their factors
def check_factor(function: str, A: Tensor, B: Tensor) -> None:
    """RuntimeError unless the shapes go together."""
    check_square(function, A)
    if B.meta.shape[-2] != A.meta.shape[-1]:
        n, (rows, columns) = A.meta.shape[-1], B.meta.shape[-2:]
        raise RuntimeError(f"Incompatible matrix sizes for {function}: each A matrix is {n} by {n} but each b matrix is {rows} by {columns}")


@composite
def cholesky_solve(input: Tensor, input2: Tensor, upper: bool = False) -> Tensor:
    """The X with A @ X = input, where `input2` is the Cholesky factor of A."""
    check_factor("cholesky_solve", input2, input)
    lower = adjoint(input2) if upper else input2
    return solve_triangular_op(adjoint(lower), solve_triangular_op(lower, input, False, False), True, False)


@composite
def cholesky_inverse(input: Tensor, upper: bool = False) -> Tensor:
    """The inverse of A, whose Cholesky factor is the input."""
    check_square("cholesky_inverse", input)
    return cholesky_solve(unit(input).expand(input.meta.shape), input, upper)


@composite
def triangular_solve(input: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False) -> Any:
    """(solution, cloned_coefficient) of A @ X = input for a triangular A, or of its transpose."""
    check_factor("triangular_solve", A, input)
    matrix, upper_of = (adjoint(A), not upper) if transpose else (A, upper)
    return TriangularResult(solve_triangular_op(matrix, input, upper_of, unitriangular), A.clone())


# ---------------------------------------------------------------- least squares
@composite(method=False)
def linalg_lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> Any:
    """(solution, residuals, rank, singular_values) of the least squares problem A @ X = B: A (..., m, n), B (..., m, k) or a vector (m).

    The solution of least norm, by the pseudo-inverse. Residuals and singular values as far as the LAPACK driver of that name gives them.
    """
    check_matrix("torch.linalg.lstsq", A)
    vector = B.ndim + 1 == A.ndim
    right = B.unsqueeze(-1) if vector else B
    if right.meta.shape[-2] != A.meta.shape[-2]:
        raise RuntimeError(f"torch.linalg.lstsq: input.size(-2) should match other.size({-1 if vector else -2})")
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(f"torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss), but got {driver}")
    s = linalg_svdvals(A.detach())
    m, n = A.meta.shape[-2:]
    cut = float(np.finfo(A.meta.dtype).eps) * max(m, n) if rcond is None else rcond
    rank = (s > s.amax(-1, keepdim=True) * cut).sum(-1) if s.meta.shape[-1] else s.sum(-1).long()
    solution = linalg_pinv(A, rtol=cut).matmul(right)
    none = A.new_empty(0).detach()
    over = m > n and driver in ("gels", "gelsd", "gelss") and bool((rank == n).all())
    residuals = (A.matmul(solution) - right).square().sum(-2) if over else solution.flatten().narrow(0, 0, 0)
    solution = solution.squeeze(-1) if vector else solution
    return LstsqResult(solution, residuals, none.long() if driver == "gels" else rank, s if driver in ("gelsd", "gelss") else none)


# ---------------------------------------------------------------- tensors as matrices
@composite(method=False)
def linalg_tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """The inverse of a tensor as a matrix between its first `ind` axes and the rest."""
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    first, last = A.meta.shape[:ind], A.meta.shape[ind:]
    if math.prod(first) != math.prod(last):
        raise RuntimeError("Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
                           f"{math.prod(last)} != {math.prod(first)}")  # fmt: skip
    return linalg_inv(A.reshape(math.prod(first), math.prod(last))).reshape(*last, *first)


@composite(method=False)
def linalg_tensorsolve(A: Tensor, B: Tensor, dims: Any = None) -> Tensor:
    """The X with tensordot(A, X, X.ndim) = B; the axes of A in `dims` are moved to its end first."""
    if dims is not None:
        A = A.movedim(tuple(dims), tuple(range(A.ndim - len(dims), A.ndim)))
    shape = A.meta.shape[B.ndim :]
    rows, columns = math.prod(A.meta.shape[: B.ndim]), math.prod(shape)
    if rows != columns:
        raise RuntimeError("Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), but got "
                           f"{columns} != {rows}")  # fmt: skip
    return linalg_solve(A.reshape(rows, columns), B.reshape(-1)).reshape(shape)
