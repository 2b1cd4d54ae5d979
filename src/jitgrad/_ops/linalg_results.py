"""Named results of linear algebra, and its error."""

from __future__ import annotations

from typing import Any, NamedTuple

from .results import Printed


class LinAlgError(RuntimeError):
    """A matrix that an algorithm can't work on: singular, or not positive definite."""

    __module__ = "jitgrad.linalg"


class SignLogabsdet(NamedTuple):
    """Sign and logarithm of the magnitude of a determinant."""

    sign: Any
    logabsdet: Any


class SlogdetResult(Printed, SignLogabsdet):
    """Of `linalg.slogdet`."""

    __slots__ = ()
    title = "linalg_slogdet"


class LogabsdetResult(Printed, SignLogabsdet):
    """Of `slogdet`."""

    __slots__ = ()
    title = "slogdet"


class InverseInfo(NamedTuple):
    """An inverse, and whether it could be computed."""

    inverse: Any
    info: Any


class InvExResult(Printed, InverseInfo):
    """Of `linalg.inv_ex`."""

    __slots__ = ()
    title = "linalg_inv_ex"


class ResultInfo(NamedTuple):
    """A solution, and whether it could be computed."""

    result: Any
    info: Any


class SolveExResult(Printed, ResultInfo):
    """Of `linalg.solve_ex`."""

    __slots__ = ()
    title = "linalg_solve_ex"


class FactorInfo(NamedTuple):
    """A Cholesky factor, and whether it could be computed."""

    L: Any
    info: Any


class CholeskyExResult(Printed, FactorInfo):
    """Of `linalg.cholesky_ex`."""

    __slots__ = ()
    title = "linalg_cholesky_ex"


class OrthogonalTriangular(NamedTuple):
    """A = Q @ R."""

    Q: Any
    R: Any


class QrResult(Printed, OrthogonalTriangular):
    """Of `linalg.qr`."""

    __slots__ = ()
    title = "linalg_qr"


class ValuesVectors(NamedTuple):
    """Eigenvalues and eigenvectors."""

    eigenvalues: Any
    eigenvectors: Any


class EighResult(Printed, ValuesVectors):
    """Of `linalg.eigh`."""

    __slots__ = ()
    title = "linalg_eigh"


class SingularParts(NamedTuple):
    """A = U @ diag(S) @ Vh."""

    U: Any
    S: Any
    Vh: Any


class OldParts(NamedTuple):
    """A = U @ diag(S) @ V.T."""

    U: Any
    S: Any
    V: Any


class SvdOldResult(Printed, OldParts):
    """Of `svd`."""

    __slots__ = ()
    title = "svd"


class SvdResult(Printed, SingularParts):
    """Of `linalg.svd`."""

    __slots__ = ()
    title = "linalg_svd"


class LeastSquares(NamedTuple):
    """The solution of a least squares problem and what else is known of it."""

    solution: Any
    residuals: Any
    rank: Any
    singular_values: Any


class LstsqResult(Printed, LeastSquares):
    """Of `linalg.lstsq`."""

    __slots__ = ()
    title = "linalg_lstsq"


class SolutionMatrix(NamedTuple):
    """The solution of a triangular system, and its matrix."""

    solution: Any
    cloned_coefficient: Any


class TriangularResult(Printed, SolutionMatrix):
    """Of `triangular_solve`."""

    __slots__ = ()
    title = "triangular_solve"


class PermutedFactors(NamedTuple):
    """A = P @ L @ U."""

    P: Any
    L: Any
    U: Any


class LuResult(Printed, PermutedFactors):
    """Of `linalg.lu`."""

    __slots__ = ()
    title = "linalg_lu"


class LuUnpackResult(Printed, PermutedFactors):
    """Of `lu_unpack`."""

    __slots__ = ()
    title = "lu_unpack"


class CompactFactors(NamedTuple):
    """Both factors in one matrix, and the exchanges of rows."""

    LU: Any
    pivots: Any


class LuFactorResult(Printed, CompactFactors):
    """Of `linalg.lu_factor`."""

    __slots__ = ()
    title = "linalg_lu_factor"


class CheckedFactors(NamedTuple):
    """The same, and whether the matrix is singular."""

    LU: Any
    pivots: Any
    info: Any


class LuFactorExResult(Printed, CheckedFactors):
    """Of `linalg.lu_factor_ex`."""

    __slots__ = ()
    title = "linalg_lu_factor_ex"
