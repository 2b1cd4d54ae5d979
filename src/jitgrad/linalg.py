"""Linear algebra: `jitgrad.linalg.inv(A)` and the like, after `torch.linalg`. Factorisations are LAPACK's, float32 and float64.

>>> import jitgrad
>>> jitgrad.linalg.det(jitgrad.tensor([[2.0, 0.0], [0.0, 3.0]]))
tensor(6.)
"""

from ._ops.linalg_results import LinAlgError
from ._tensor._functions import (
    linalg_cholesky as cholesky,
    linalg_cholesky_ex as cholesky_ex,
    linalg_cross as cross,
    linalg_det as det,
    linalg_diagonal as diagonal,
    linalg_eigh as eigh,
    linalg_eigvalsh as eigvalsh,
    linalg_inv as inv,
    linalg_inv_ex as inv_ex,
    linalg_matrix_norm as matrix_norm,
    linalg_matrix_power as matrix_power,
    linalg_matrix_rank as matrix_rank,
    linalg_multi_dot as multi_dot,
    linalg_norm as norm,
    linalg_pinv as pinv,
    linalg_qr as qr,
    linalg_slogdet as slogdet,
    linalg_solve as solve,
    linalg_solve_ex as solve_ex,
    linalg_solve_triangular as solve_triangular,
    linalg_svd as svd,
    linalg_svdvals as svdvals,
    linalg_vander as vander,
    linalg_vecdot as vecdot,
    linalg_vector_norm as vector_norm,
)

__all__ = [
    "LinAlgError",
    "cholesky",
    "cholesky_ex",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "inv_ex",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "svd",
    "svdvals",
    "vander",
    "vecdot",
    "vector_norm",
]
