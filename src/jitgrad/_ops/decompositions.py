"""Decompositions of matrices: QR, eigenvalues of symmetric ones, singular values; and what follows from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .axes import axes_of, restored
from .joining import cat
from .kinds import Array, Tensor, composite, general
from .linalg_results import EighResult, LinAlgError, QrResult, SvdOldResult, SvdResult
from .linear_systems import adjoint, check_floating, check_square, solve_triangular_op


def check_matrix(function: str, A: Tensor) -> None:
    """RuntimeError unless `A` is a matrix, or a stack of them, of float32 or float64."""
    if A.ndim < 2:
        raise RuntimeError(f"{function}: The input tensor A must have at least 2 dimensions.")
    check_floating(function, A)


def column(x: Tensor) -> Tensor:
    """A vector per matrix as a column."""
    return x.unsqueeze(-1)


def row(x: Tensor) -> Tensor:
    """A vector per matrix as a row."""
    return x.unsqueeze(-2)


def summed(*parts: Tensor | None) -> Any:
    """The sum of what is there."""
    total = None
    for part in parts:
        if part is not None:
            total = part if total is None else total + part
    return total


# ---------------------------------------------------------------- QR
@general(node="LinalgQrBackward0", saves=("result0", "result1"), outputs=2, name="_qr")
def qr_op(A: Array, mode: str) -> tuple[Array, Array]:
    if mode == "r":
        return np.empty(0, A.dtype), np.asarray(np.linalg.qr(A, mode="r"), order="C")
    q, r = np.linalg.qr(A, mode=mode)  # type: ignore[call-overload]
    return np.asarray(q, order="C"), np.asarray(r, order="C")


@qr_op.rule
def _(grads: Any, result0: Tensor, result1: Tensor, mode: str) -> Tensor:
    q, r, (grad_q, grad_r) = result0, result1, grads
    if mode == "r":
        raise RuntimeError("The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, mode='reduced') "
                           "if you are going to differentiate through linalg.qr.")  # fmt: skip
    rows, columns = q.meta.shape[-2], r.meta.shape[-1]
    if mode == "complete" and rows > columns:
        raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols.")
    if rows >= columns:
        return tall_pull(q, r, grad_q, grad_r)
    square, rest = r.narrow(-1, 0, rows), r.narrow(-1, rows, columns - rows)
    grad_square, grad_rest = (None, None) if grad_r is None else (grad_r.narrow(-1, 0, rows), grad_r.narrow(-1, rows, columns - rows))
    through = None if grad_rest is None else q.matmul(grad_rest)  # A = [X | Y] with X = Q R1, R2 = Q.T Y
    extra = None if grad_rest is None else q.matmul(rest).matmul(adjoint(grad_rest))
    left = tall_pull(q, square, summed(grad_q, extra), grad_square)
    return cat([left, q.matmul(rest * 0) if through is None else through], -1)


def tall_pull(q: Tensor, r: Tensor, grad_q: Any, grad_r: Any) -> Tensor:
    """The gradient of A = Q R with R square: (grad_Q + Q sym(M)) R^-T, where sym mirrors the lower triangle of M."""
    inner = summed(None if grad_r is None else r.matmul(adjoint(grad_r)), None if grad_q is None else -adjoint(grad_q).matmul(q))
    mirrored = inner.tril() + adjoint(inner.tril(-1))
    total = summed(grad_q, q.matmul(mirrored))
    return adjoint(solve_triangular_op(r, adjoint(total), True, False))


@composite(method=False)
def linalg_qr(A: Tensor, mode: str = "reduced") -> Any:
    """(Q, R) with A = Q @ R, Q with orthonormal columns and R upper triangular; "complete" for a square Q, "r" for R alone."""
    check_matrix("linalg.qr", A)
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'")
    return QrResult(*qr_op(A, mode))


@composite
def qr(input: Tensor, some: bool = True) -> Any:
    """`linalg.qr`."""
    return linalg_qr(input, "reduced" if some else "complete")


# ---------------------------------------------------------------- symmetric matrices
@general(node="LinalgEighBackward0", saves=("result0", "result1"), outputs=2, name="_eigh")
def eigh_op(A: Array, triangle: str) -> tuple[Array, Array]:
    values, vectors = np.linalg.eigh(A, triangle)  # type: ignore[call-overload]
    return np.asarray(values, order="C"), np.asarray(vectors, order="C")


@eigh_op.rule
def _(grads: Any, result0: Tensor, result1: Tensor) -> Tensor:
    """V (diag(grad_L) + skew(V^T grad_V) / (l_j - l_i)) V^T, which is symmetric."""
    values, vectors, (grad_values, grad_vectors) = result0, result1, grads
    inner = None
    if grad_vectors is not None:
        gaps = row(values) - column(values)
        gaps = gaps + gaps.new_ones(gaps.meta.shape[-1]).diag()
        turned = adjoint(vectors).matmul(grad_vectors)
        inner = (turned - adjoint(turned)) * 0.5 / gaps
    diagonal = None if grad_values is None else grad_values.diag_embed()
    return vectors.matmul(summed(inner, diagonal)).matmul(adjoint(vectors))


def check_triangle(UPLO: Any) -> str:
    """Which triangle to read: "L" or "U". RuntimeError for anything else."""
    if not isinstance(UPLO, str) or UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return UPLO.upper()


@composite(method=False)
def linalg_eigh(A: Tensor, UPLO: str = "L") -> Any:
    """(eigenvalues, eigenvectors) of a symmetric matrix, or of each in a stack, in ascending order; one triangle of A is read."""
    check_square("linalg.eigh", A)
    return EighResult(*eigh_op(A, check_triangle(UPLO)))


@composite(method=False)
def linalg_eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues of a symmetric matrix, or of each in a stack, in ascending order."""
    check_square("linalg.eigvalsh", A)
    return eigh_op(A, check_triangle(UPLO))[0]


# ---------------------------------------------------------------- singular values
def singular(A: Array, full: bool) -> Any:
    """NumPy's decomposition. LinAlgError for a matrix that is not finite."""
    try:
        return np.linalg.svd(A, full_matrices=full)
    except np.linalg.LinAlgError:
        why = "the input matrix contained non-finite values" if not np.isfinite(A).all() else "the input matrix is ill-conditioned"
        raise LinAlgError(f"linalg.svd: The algorithm failed to converge because {why}.") from None


@general(node="LinalgSvdBackward0", saves=("result0", "result1", "result2"), outputs=3, name="_svd")
def svd_op(A: Array, full: bool) -> tuple[Array, Array, Array]:
    u, s, vh = singular(A, full)
    return np.asarray(u, order="C"), np.asarray(s, order="C"), np.asarray(vh, order="C")


@svd_op.rule
def _(grads: Any, result0: Tensor, result1: Tensor, result2: Tensor) -> Tensor:
    """U [diag(grad_S) + (skew(U^T grad_U) / E) S + S (skew(V^T grad_V) / E)] V^T and the parts outside of both spaces."""
    s, k = result1, result1.meta.shape[-1]
    u, vh = result0.narrow(-1, 0, k), result2.narrow(-2, 0, k)
    grad_u, grad_s, grad_vh = grads
    grad_u = None if grad_u is None else grad_u.narrow(-1, 0, k)
    grad_v = None if grad_vh is None else adjoint(grad_vh.narrow(-2, 0, k))
    inner = None if grad_s is None else grad_s.diag_embed()
    gaps = row(s * s) - column(s * s)
    gaps = gaps + gaps.new_ones(k).diag()

    def skew(x: Tensor) -> Tensor:
        return (x - adjoint(x)) / gaps

    v = adjoint(vh)
    outside = []
    if grad_u is not None:
        along = adjoint(u).matmul(grad_u)
        inner = summed(inner, skew(along) * row(s))
        if u.meta.shape[-2] > k:
            outside.append(((grad_u - u.matmul(along)) / row(s)).matmul(vh))
    if grad_v is not None:
        along = vh.matmul(grad_v)
        inner = summed(inner, column(s) * skew(along))
        if v.meta.shape[-2] > k:
            outside.append((u / row(s)).matmul(adjoint(grad_v - v.matmul(along))))
    return summed(u.matmul(inner).matmul(vh), *outside)


@composite(method=False)
def linalg_svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> Any:
    """(U, S, Vh) with A = U @ diag(S) @ Vh, S descending; U and Vh square, or as small as can be without `full_matrices`."""
    check_matrix("linalg.svd", A)
    return SvdResult(*svd_op(A, bool(full_matrices)))


@composite(method=False)
def linalg_svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """The singular values of a matrix, or of each in a stack, descending."""
    check_matrix("linalg.svdvals", A)
    return svd_op(A, False)[1]


@composite
def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> Any:
    """(U, S, V) with A = U @ diag(S) @ V.T."""
    check_matrix("linalg.svd", input)
    u, s, vh = svd_op(input, not some)
    return SvdOldResult(u, s, adjoint(vh)) if compute_uv else SvdOldResult(u.detach() * 0, s, adjoint(vh).detach() * 0)


# ---------------------------------------------------------------- ranks and inverses of any shape
@composite(method=False)
def linalg_matrix_rank(A: Tensor, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Tensor:
    """How many singular values are larger than max(atol, rtol * the largest one), as int64."""
    check_matrix("linalg.matrix_rank", A)
    s = linalg_eigvalsh(A).abs() if hermitian else linalg_svdvals(A)
    s = s.detach()
    if not s.meta.shape[-1]:
        return s.sum(-1).long()
    return (s > cutoff(A, s, atol, rtol)).sum(-1)


def cutoff(A: Tensor, s: Tensor, atol: Any, rtol: Any) -> Tensor:
    """Below what a singular value counts as none."""
    zero: Any = 0.0 if atol is None else atol
    if rtol is None:
        eps = float(np.finfo(A.meta.dtype).eps) * max(A.meta.shape[-2:])
        rtol = (s.new_tensor(atol) if not hasattr(atol, "meta") else atol).le(0) * eps if atol is not None else eps
    relative = s.amax(-1, keepdim=True) * (column(rtol) if hasattr(rtol, "meta") and rtol.ndim else rtol)
    floor = zero if hasattr(zero, "meta") else s.new_tensor(zero)
    return relative.maximum(column(floor) if floor.ndim else floor)


@general(node="LinalgPinvBackward0", saves=("A", "result"), name="_pinv")
def pinv_op(A: Array, limit: Any, hermitian: bool) -> Array:
    """Singular values up to `limit` count as none."""
    if hermitian:
        s, u = np.linalg.eigh(A)
        vh = u.swapaxes(-1, -2)
    else:
        u, s, vh = singular(A, False)
    large = np.abs(s) > limit
    inverse = np.where(large, 1 / np.where(large, s, 1), 0)
    return np.asarray((vh.swapaxes(-1, -2) * inverse[..., None, :]) @ u.swapaxes(-1, -2), A.dtype, order="C")


@pinv_op.rule
def _(grad: Tensor, A: Tensor, result: Tensor) -> Tensor:
    """From dP = -P dA P + P P^T dA^T (1 - A P) + (1 - P A) dA^T P^T P, for matrices whose rank stays as it is."""
    P, Pt, Gt = result, adjoint(result), adjoint(grad)
    left, right = Gt.matmul(P).matmul(Pt), Pt.matmul(P).matmul(Gt)
    return -Pt.matmul(grad).matmul(Pt) + left - A.matmul(P.matmul(left)) + right - right.matmul(P).matmul(A)


@composite(method=False)
def linalg_pinv(A: Tensor, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Tensor:
    """The pseudo-inverse of a matrix, or of each in a stack; singular values up to max(atol, rtol * the largest one) count as none."""
    check_matrix("linalg.pinv", A)
    if not A.meta.numel:
        return adjoint(A).clone()
    s = linalg_eigvalsh(A.detach()).abs() if hermitian else linalg_svdvals(A.detach())
    return pinv_op(A, cutoff(A, s, atol, rtol).array, bool(hermitian))


@composite
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """`linalg.pinv`."""
    return linalg_pinv(input, rtol=rcond)


def singular_norm(A: Tensor, order: Any, dim: Any, keepdim: bool) -> Tensor:
    """Norms by singular values of the matrices in two axes: their sum ("nuc"), the largest (2) or the smallest (-2)."""
    dims = axes_of(dim, A.ndim)
    rows, columns = (k % A.ndim for k in dim)
    s = linalg_svdvals(A.permute(*(k for k in range(A.ndim) if k not in dims), rows, columns))
    result = s.sum(-1) if order == "nuc" else s.amax(-1) if order > 0 else s.amin(-1)
    return restored(result, A.meta.shape, dims, False) if keepdim else result
