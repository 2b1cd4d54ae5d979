"""Linear algebra: values against their defining equations, gradients against differences, singular matrices, errors, names of nodes."""

import numpy as np
import pytest

from tests.libraries import lib

__all__ = ["lib"]
RANDOM = np.random.default_rng(5)
SQUARE = RANDOM.standard_normal((2, 3, 3)) + 2 * np.eye(3)
POSITIVE = SQUARE @ SQUARE.swapaxes(-1, -2)
TALL, WIDE = RANDOM.standard_normal((4, 3)), RANDOM.standard_normal((3, 4))


def check_gradient(lib, call, *arrays):
    """First and second derivatives by differences, with the package's own gradcheck."""
    inputs = [lib.tensor(a, requires_grad=True) for a in arrays]
    assert lib.autograd.gradcheck(call, inputs)
    assert lib.autograd.gradgradcheck(call, inputs)


def same(tensor, expected):
    np.testing.assert_allclose(np.asarray(tensor.tolist()), expected, rtol=1e-9, atol=1e-9)


def test_systems(lib):
    a, b = lib.tensor(SQUARE), lib.tensor(SQUARE[..., :2])
    eye = np.broadcast_to(np.eye(3), SQUARE.shape)
    same(lib.linalg.inv(a) @ a, eye)
    same(a @ lib.linalg.solve(a, b), SQUARE[..., :2])
    same(lib.linalg.solve(a, b.mT, left=False) @ a, SQUARE[..., :2].swapaxes(-1, -2))
    same((a @ lib.linalg.solve(a, b[..., 0])[..., None])[..., 0], SQUARE[..., 0])
    same(lib.linalg.det(a), np.linalg.det(SQUARE))
    same(lib.logdet(lib.tensor(POSITIVE)), np.log(np.linalg.det(POSITIVE)))
    sign, size = lib.linalg.slogdet(-a)
    same(sign * size.exp(), np.linalg.det(-SQUARE))
    assert lib.logdet(lib.tensor([[-1.0]])).isnan()


def test_decompositions(lib):
    a, p = lib.tensor(SQUARE), lib.tensor(POSITIVE)
    low, up = lib.linalg.cholesky(p), lib.linalg.cholesky(p, upper=True)
    same(low @ low.mT, POSITIVE)
    same(up.mT @ up, POSITIVE)
    for matrix in (TALL, WIDE):
        q, r = lib.linalg.qr(lib.tensor(matrix))
        same(q @ r, matrix)
        same(r, np.triu(np.asarray(r.tolist())))
        u, s, vh = lib.linalg.svd(lib.tensor(matrix), full_matrices=False)
        same((u * s) @ vh, matrix)
        same(lib.linalg.pinv(lib.tensor(matrix)), np.linalg.pinv(matrix))
    values, vectors = lib.linalg.eigh(p)
    same((vectors * values[..., None, :]) @ vectors.mT, POSITIVE)
    same(lib.linalg.svdvals(a), np.linalg.svd(SQUARE, compute_uv=False))
    assert lib.linalg.matrix_rank(lib.tensor([[1.0, 2.0], [2.0, 4.0]])).item() == 1
    same(lib.linalg.matrix_norm(a, 2), np.linalg.norm(SQUARE, 2, (-2, -1)))


@pytest.mark.parametrize(
    ("name", "array"),
    [("inv", SQUARE), ("det", SQUARE), ("pinv", TALL), ("pinv", WIDE), ("svdvals", TALL), ("svdvals", WIDE), ("matrix_power", SQUARE)],
)
def test_gradients(name, array):
    lib = pytest.importorskip("jitgrad")
    more = (-2,) if name == "matrix_power" else ()
    check_gradient(lib, lambda a: getattr(lib.linalg, name)(a, *more), array)


def test_matrix_functions(lib):
    a, p = lib.tensor(SQUARE), lib.tensor(POSITIVE)
    low = lib.linalg.cholesky(p)
    same(lib.linalg.matrix_exp(a) @ lib.linalg.matrix_exp(-a), np.broadcast_to(np.eye(3), SQUARE.shape))
    same(lib.matrix_exp(lib.tensor([[0.0, 30.0], [-30.0, 0.0]], dtype=lib.float64)), [[np.cos(30), np.sin(30)], [-np.sin(30), np.cos(30)]])
    same(lib.linalg.cond(a), np.linalg.cond(SQUARE))
    same(lib.linalg.cond(a, 1), np.linalg.cond(SQUARE, 1))
    assert lib.linalg.cond(lib.ones(2, 2), 1).isinf()
    same(p @ lib.cholesky_solve(a, low), SQUARE)
    same(p @ lib.cholesky_inverse(low.mT, upper=True), np.broadcast_to(np.eye(3), SQUARE.shape))
    found = lib.linalg.lstsq(lib.tensor(TALL), lib.tensor(TALL[:, :1]), driver="gelsd")
    same(found.solution, np.linalg.lstsq(TALL, TALL[:, :1], rcond=None)[0])
    assert found.rank.item() == 3
    same(found.singular_values, np.linalg.svd(TALL, compute_uv=False))
    cube = RANDOM.standard_normal((2, 3, 6))
    same(lib.linalg.tensorinv(lib.tensor(cube)), np.linalg.tensorinv(cube))
    same(lib.linalg.tensorsolve(lib.tensor(cube), lib.ones(2, 3, dtype=lib.float64)), np.linalg.tensorsolve(cube, np.ones((2, 3))))


def test_lu(lib):
    for matrix in (SQUARE, TALL, WIDE):
        a = lib.tensor(matrix, requires_grad=True)
        found = lib.linalg.lu(a)
        same(found.P @ found.L @ found.U, matrix)
        assert not found.P.requires_grad
        compact, pivots = lib.linalg.lu_factor(a)
        assert pivots.dtype is lib.int32
        same(lib.lu_unpack(compact, pivots).L, found.L.tolist())
    compact, pivots, info = lib.linalg.lu_factor_ex(lib.tensor(SQUARE))
    assert info.tolist() == [0, 0]
    right = lib.tensor(SQUARE[..., :2])
    same(lib.tensor(SQUARE) @ lib.linalg.lu_solve(compact, pivots, right), right.tolist())
    same(lib.tensor(SQUARE).mT @ lib.linalg.lu_solve(compact, pivots, right, adjoint=True), right.tolist())
    same(lib.linalg.lu_solve(compact, pivots, right.mT, left=False) @ lib.tensor(SQUARE), right.mT.tolist())
    assert lib.linalg.lu_factor_ex(lib.ones(2, 2)).info.item() == 2
    with pytest.raises(RuntimeError, match=r"U\[2,2\] is zero and using it on lu_solve would result in a division by zero"):
        lib.linalg.lu_factor(lib.ones(2, 2))
    with pytest.raises(RuntimeError, match="pivots should be a Tensor of scalar type"):
        lib.linalg.lu_solve(compact, pivots.long(), right)


def test_gradients_of_lu():
    lib = pytest.importorskip("jitgrad")
    for matrix in (SQUARE, TALL, WIDE):
        check_gradient(lib, lambda a: tuple(lib.linalg.lu(a))[1:], matrix)
        check_gradient(lib, lambda a: lib.linalg.lu_factor(a)[0], matrix)
    check_gradient(lib, lambda a, b: lib.linalg.lu_solve(*lib.linalg.lu_factor(a), b), SQUARE, SQUARE[..., :2])


def test_distances_and_bounded_norms(lib):
    x, y = lib.tensor(TALL), lib.tensor(TALL[:2] * 2)
    for p in (0.0, 1.0, 2.0, 3.0, float("inf")):
        same(lib.cdist(x, y, p), [[np.linalg.norm(a - b, p) for b in TALL[:2] * 2] for a in TALL])
    scaled = lib.renorm(x, 2, 0, 1.0)
    same(scaled.norm(dim=1), np.minimum(np.linalg.norm(TALL, axis=1), 1 / (1 + 1e-7 / np.linalg.norm(TALL, axis=1))))
    with pytest.raises(RuntimeError, match="renorm: expected maxnorm to be >= 0 but got -1"):
        lib.renorm(x, 2, 0, -1.0)
    with pytest.raises(RuntimeError, match=r"X1 and X2 must have the same number of columns. X1: 3 X2: 4"):
        lib.cdist(x, lib.ones(2, 4))


def test_gradients_of_matrix_functions():
    lib = pytest.importorskip("jitgrad")
    check_gradient(lib, lib.linalg.matrix_exp, SQUARE)
    check_gradient(lib, lib.linalg.cond, SQUARE)
    check_gradient(lib, lambda a: lib.renorm(a, 3, 0, 1.0), TALL)
    for p in (1.0, 2.0, 3.0):
        check_gradient(lib, lambda a, b, p=p: lib.cdist(a, b, p), TALL, WIDE[:, :3] + 5)


def test_the_largest_magnitude_of_one_number(monkeypatch):
    """What NumPy makes of a 0-d array is no array, and a kernel reads the header of what it gets."""
    norms = pytest.importorskip("jitgrad._ops.norms")
    extreme, seen = norms.extreme, []
    monkeypatch.setattr(norms, "extreme", lambda array, *rest: (seen.append(type(array)), extreme(np.asarray(array), *rest))[1])
    assert norms.norm_of(np.array(-3.0), np.inf, (), False) == 3.0
    assert seen == [np.ndarray]


def test_gradients_of_factors():
    lib = pytest.importorskip("jitgrad")
    check_gradient(lib, lambda a: lib.linalg.cholesky(a @ a.mT), SQUARE)
    check_gradient(lib, lambda a: lib.linalg.cholesky(a @ a.mT, upper=True), SQUARE[0])
    check_gradient(lib, lambda a: lib.linalg.eigvalsh(a + a.mT), SQUARE)
    check_gradient(lib, lambda a: lib.linalg.eigh(a + a.mT)[1].square(), SQUARE[0])
    check_gradient(lib, lambda a: lib.linalg.slogdet(a)[1], SQUARE)
    check_gradient(lib, lib.linalg.solve, SQUARE, SQUARE[..., :2])
    check_gradient(lib, lambda a, b: lib.linalg.solve_triangular(a, b, upper=True), SQUARE, SQUARE[..., :2])
    for matrix in (TALL, WIDE):
        check_gradient(lib, lambda a: tuple(lib.linalg.qr(a)), matrix)
        check_gradient(lib, lambda a: tuple(x.abs() for x in lib.linalg.svd(a, full_matrices=False)), matrix)


def test_the_gradient_of_a_determinant_is_right_for_a_singular_matrix():
    lib = pytest.importorskip("jitgrad")  # torch says 0 here
    a = lib.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=lib.float64, requires_grad=True)
    lib.linalg.det(a).backward()
    same(a.grad, [[4.0, -2.0], [-2.0, 1.0]])


def test_singular_matrices_are_named(lib):
    bad = lib.tensor([[1.0, 2.0], [2.0, 4.0]])
    with pytest.raises(lib.linalg.LinAlgError, match=r"linalg.inv: The diagonal element 2 is zero, the inversion could not be completed"):
        lib.linalg.inv(bad)
    with pytest.raises(lib.linalg.LinAlgError, match=r"linalg.inv: \(Batch element 1\)"):
        lib.linalg.inv(lib.stack([lib.eye(2), bad]))
    with pytest.raises(RuntimeError, match=r"torch.linalg.solve: The solver failed because the input matrix is singular"):
        lib.linalg.solve(bad, bad)
    with pytest.raises(lib.linalg.LinAlgError, match=r"not positive-definite \(the leading minor of order 2"):
        lib.linalg.cholesky(lib.tensor([[1.0, 2.0], [2.0, 1.0]]))
    assert lib.linalg.inv_ex(bad).info.item() == 2
    assert lib.linalg.cholesky_ex(lib.tensor([[1.0, 2.0], [2.0, 1.0]])).info.item() == 2
    assert lib.linalg.inv_ex(lib.eye(2)).info.item() == 0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda t: t.linalg.inv(t.ones(2, 3)), "linalg.inv: A must be batches of square matrices, but they are 2 by 3 matrices"),
        (lambda t: t.linalg.inv(t.ones(3)), "linalg.inv: The input tensor A must have at least 2 dimensions."),
        (lambda t: t.linalg.inv(t.ones(2, 2).long()), "linalg.inv: Expected a floating point or complex tensor as input. Got Long"),
        (lambda t: t.linalg.inv(t.ones(2, 2).half()), "linalg.inv: Low precision dtypes not supported. Got Half"),
        (lambda t: t.linalg.qr(t.ones(2, 2), mode="x"), "qr received unrecognized mode 'x'"),
        (lambda t: t.linalg.eigh(t.ones(2, 2), UPLO="x"), "Expected UPLO argument to be 'L' or 'U', but got x"),
        (lambda t: t.linalg.multi_dot([t.ones(2, 2)]), r"multi_dot\(\): expected at least 2 tensors but got 1"),
        (lambda t: t.linalg.cross(t.ones(2), t.ones(2)), "linalg.cross: inputs dimension -1 must have length 3. Got 2 and 2"),
        (lambda t: t.linalg.matrix_power(t.ones(2), 2), "linalg.matrix_power: The input tensor A must have at least 2 dimensions."),
    ],
)
def test_refusals(lib, call, words):
    with pytest.raises(RuntimeError, match=words):
        call(lib)


def test_node_names(lib):
    a = lib.tensor(SQUARE[0], requires_grad=True)
    nodes = {
        "LinalgDetBackward0": lib.linalg.det(a),
        "LinalgInvExBackward0": lib.inverse(a),
        "LinalgSlogdetBackward0": lib.slogdet(a)[1],
        "LinalgSolveExBackward0": lib.linalg.solve(a, a),
        "LinalgCholeskyExBackward0": lib.linalg.cholesky(a @ a.mT),
        "LinalgQrBackward0": lib.linalg.qr(a).R,
        "LinalgEighBackward0": lib.linalg.eigvalsh(a),
        "LinalgSvdBackward0": lib.linalg.svdvals(a),
        "LinalgPinvBackward0": lib.linalg.pinv(a),
        "LinalgCrossBackward0": lib.linalg.cross(a, a),
        "LinalgSolveTriangularBackward0": lib.linalg.solve_triangular(a, a, upper=True),
        "TraceBackward0": a.trace(),
        "VdotBackward0": lib.vdot(a[0], a[1]),
        "AddmvBackward0": lib.addmv(a[0], a, a[1]),
        "AddrBackward0": lib.addr(a, a[0], a[1]),
        "AddbmmBackward0": lib.addbmm(a, a[None], a[None]),
        "BaddbmmBackward0": lib.baddbmm(a[None], a[None], a[None]),
        "DistBackward0": lib.dist(a, a * 2),
    }
    assert {result.grad_fn.name() for result in nodes.values()} == set(nodes)
    assert all(result.grad_fn.name() == name for name, result in nodes.items())


def test_products_of_many_factors(lib):
    a, b, c = lib.ones(2, 30), lib.ones(30, 4), lib.ones(4)
    same(lib.linalg.multi_dot([a, b, c]), [120.0, 120.0])
    same(lib.linalg.matrix_power(lib.tensor(SQUARE), 5), np.linalg.matrix_power(SQUARE, 5))
    same(lib.linalg.matrix_power(lib.tensor(SQUARE), 0), np.broadcast_to(np.eye(3), SQUARE.shape))


def test_what_beta_zero_multiplies_is_not_read(lib):
    empty = lib.full((2,), float("nan"))
    same(lib.addmv(empty, lib.eye(2), lib.ones(2), beta=0), [1.0, 1.0])
    same(lib.baddbmm(empty, lib.eye(2)[None], lib.eye(2)[None], beta=0), np.eye(2)[None])


EQUATIONS = ["ij,jk->ik", "ij,jk", "bij,bjk->bik", "ij,ij->", "ij,kj->", "ij->ji", "ii->i", "ii", "i,j->ij", "ij,j->i", "...ij,...jk", "ij,jk,kl->il",
             "ij->j", "i...->...", "iji->j", "ab,cd->adbc", "bi,bj,bk->bijk"]  # fmt: skip


@pytest.mark.parametrize("equation", EQUATIONS)
def test_einsum_agrees_with_numpy(equation):
    lib = pytest.importorskip("jitgrad")
    terms = equation.partition("->")[0].split(",")
    arrays = [RANDOM.standard_normal((3,) * (len(term.replace("...", "")) + 2 * ("..." in term))) for term in terms]
    same(lib.einsum(equation, *[lib.tensor(a) for a in arrays]), np.einsum(equation, *arrays))
    assert lib.autograd.gradcheck(lambda *xs: lib.einsum(equation, *xs), [lib.tensor(a, requires_grad=True) for a in arrays])


def test_einsum_broadcasts_and_takes_lists(lib):
    a, b = lib.ones(1, 3), lib.ones(2, 3)
    same(lib.einsum("ij,ij->ij", a, b), np.ones((2, 3)))
    same(lib.einsum("ij,kj->ik", a, b), np.full((1, 2), 3.0))
    same(lib.einsum(a, [0, 1], b, [2, 1], [2, 0]), np.full((2, 1), 3.0))
    assert lib.einsum("ij->ji", b)._is_view()


@pytest.mark.parametrize(
    ("equation", "words"),
    [
        ("ij,jk->il", r"einsum\(\): output subscript l does not appear in the equation for any input operand"),
        ("ijk,ij", r"einsum\(\): the number of subscripts in the equation \(3\) does not match the number of dimensions \(2\) for operand 0"),
        ("ij,jk->ii", r"einsum\(\): output subscript i appears more than once in the output"),
        ("ij,..k", r"einsum\(\): found '.' for operand 1 that is not part of any ellipsis"),
        ("ij", r"einsum\(\): more operands were provided than specified in the equation"),
        ("i1,jk", r"einsum\(\): invalid subscript given at index 1 in the equation string"),
        ("ij,ij", r"einsum\(\): subscript i has size 3 for operand 1 which does not broadcast with previously seen size 2"),
        ("ii,jk", r"einsum\(\): subscript i is repeated for operand 0 but the sizes don't match, 3 != 2"),
    ],
)
def test_einsum_says_what_does_not_fit(lib, equation, words):
    with pytest.raises(RuntimeError, match=words):
        lib.einsum(equation, lib.ones(2, 3), lib.ones(3, 2))


def test_tensordot_and_its_like(lib):
    a, b = lib.ones(2, 3, 4), lib.ones(4, 3, 5)
    assert lib.tensordot(a, b, dims=([1, 2], [1, 0])).shape == (2, 5)
    assert lib.tensordot(a, lib.ones(4, 6), dims=1).shape == (2, 3, 6)
    assert lib.tensordot(a, b, dims=0).shape == (2, 3, 4, 4, 3, 5)
    with pytest.raises(RuntimeError, match="contracted dimensions need to match, but first has size 2 in dim 0 and second has size 4 in dim 0"):
        lib.tensordot(a, b, dims=([0], [0]))
    same(lib.inner(lib.tensor([[1.0, 2.0]]), lib.tensor([3.0, 4.0])), [11.0])
    same(lib.kron(lib.tensor([1.0, 2.0]), lib.tensor([[1.0], [3.0]])), [[1.0, 2.0], [3.0, 6.0]])


CONTRACTIONS = {
    "row by matrix": (lambda lib, x, m: x @ m, "SqueezeBackward4"),
    "einsum of two": (lambda lib, x, m: lib.einsum("i,ij->j", x, m), "ViewBackward0"),
    "einsum of rows": (lambda lib, x, m: lib.einsum("ij->j", m), "SumBackward1"),
    "einsum to a number": (lambda lib, x, m: lib.einsum("ij,ij->", m, m), "ViewBackward0"),
    "einsum of one to a number": (lambda lib, x, m: lib.einsum("ii->", m), "SumBackward1"),
    "einsum without sum": (lambda lib, x, m: lib.einsum("i,j->ij", x, x), "MulBackward0"),
}


@pytest.mark.parametrize("name", CONTRACTIONS)
def test_nodes_of_contractions(lib, name):
    call, node = CONTRACTIONS[name]
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    y = call(lib, x, lib.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True))
    assert y.grad_fn.name() == node
    assert y._is_view() == (node == "ViewBackward0")
    y.sum().backward()


def test_outer_product_of_a_column(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    y = lib.outer(x, x)
    assert [node.name() for node, _ in y.grad_fn.next_functions] == ["ViewBackward0", "torch::autograd::AccumulateGrad"]


NOT_FINITE = {
    "cholesky": (lambda lib, a: lib.linalg.cholesky(a), "is not positive-definite .the leading minor of order 2"),
    "svd": (lambda lib, a: lib.linalg.svd(a), "linalg.svd: The algorithm failed to converge because the input matrix contained non-finite values"),
    "svdvals": (lambda lib, a: lib.linalg.svdvals(a), "linalg.svd: The algorithm failed to converge"),
    "pinv": (lambda lib, a: lib.linalg.pinv(a), "linalg.svd: The algorithm failed to converge"),
}


@pytest.mark.parametrize("case", NOT_FINITE)
def test_not_finite(lib, case):
    call, words = NOT_FINITE[case]
    matrix = lib.tensor([[2.0, 0.0], [float("nan"), 1.0]])
    with pytest.raises(RuntimeError, match=words):
        call(lib, matrix)
    assert lib.linalg.cholesky_ex(matrix)[1].item() == 2
