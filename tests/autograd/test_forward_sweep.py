"""Every differentiable op in forward mode against the same op in reverse mode.

For tangents t of the inputs and gradients u of the outputs u . (J t) must equal (J' u) . t; and the gradient of u . (J t) must be the tangent of
J' u, by which each mode is also differentiated by the other. No op may be left out of the table.
"""

import functools

import numpy as np
import pytest

import jitgrad as jg
import jitgrad.nn.functional as F
from jitgrad import _ops
from jitgrad._ops.kinds import OPS, Dispatch
from jitgrad._ops.maps import Elementwise
from jitgrad._tensor import dual_rules
from jitgrad._tensor.dual import Level, alias

UNARY = {
    (-2.0, 2.0): ["relu", "abs", "neg", "exp", "exp2", "expm1", "sigmoid", "sin", "cos", "tanh", "sinh", "cosh", "asinh", "atan", "erf", "erfc",
                  "deg2rad", "rad2deg", "sinc", "frac", "floor", "ceil", "trunc", "sign", "sgn", "round", "square", "nan_to_num"],
    (0.2, 3.0): ["log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal"],
    (-0.9, 0.9): ["asin", "acos", "atanh", "tan"],
    (1.2, 3.0): ["acosh"],
}  # fmt: skip
ACTIVATIONS = ["leaky_relu", "relu6", "hardtanh", "hardsigmoid", "hardswish", "hardshrink", "softshrink", "elu", "celu", "selu", "gelu", "silu",
               "mish", "softplus", "logsigmoid", "tanhshrink", "softsign"]  # fmt: skip
SPECIAL = ["digamma", "erfcx", "erfinv", "i0", "i0e", "i1", "i1e", "gammaln", "log_ndtr", "ndtri"]
BINARY = ["add", "sub", "rsub", "mul", "div", "pow", "maximum", "minimum", "fmax", "fmin", "hypot", "atan2", "logaddexp", "logaddexp2", "xlogy",
          "copysign", "fmod", "remainder"]  # fmt: skip
X, Y, P, M, B, V = ["x", "y", "p", "m", "b", "v"]  # shapes: (3, 4); (3, 4); (3, 4) positive; (4, 2); (2, 3, 4); (4,)
SHAPES = {X: (3, 4), Y: (3, 4), P: (3, 4), M: (4, 2), B: (2, 3, 4), V: (4,), "s": (3, 3), "c": (2, 4, 2), "i": (2, 2, 4), "w": (2,)}
INDEX = np.array([2, 0, 1, 2])
ROWS = np.array([[0, 2, 1, 0], [1, 1, 0, 2]])
MASK = np.array([[True, False, True, True], [False, True, False, True], [True, True, False, False]])


def i(array):
    return jg.tensor(array, dtype=jg.float64) if isinstance(array, float) else jg.tensor(array)


def symmetric(s):
    return s @ s.mT + 3 * jg.eye(3, dtype=jg.float64)


def strided_write(x, v):
    y = x.clone()
    y.t()[1:3] = v[:3]
    y[0] *= y[1]
    y.as_strided((2,), (5,), 1).mul_(v[:2])
    return y.squeeze_().t_()


CASES = {
    **{name: (lambda x, name=name: getattr(jg, name)(x), (key,)) for key, names in UNARY.items() for name in names},
    **{name: (lambda x, name=name: getattr(F, name)(x), (X,)) for name in ACTIVATIONS},
    **{name: (lambda x, y, name=name: getattr(jg, name)(x, y), (P, P)) for name in BINARY},
    **{name: (lambda x, name=name: getattr(jg.special, name)(x), ((0.2, 0.8),)) for name in SPECIAL},
    "polygamma": (lambda x: jg.special.polygamma(2, x), (P,)),
    "multigammaln": (lambda x: jg.special.multigammaln(x + 2, 2), (P,)),
    "gammainc": (lambda x: jg.special.gammainc(i(1.5), x) * jg.special.gammaincc(i(1.5), x), (P,)),
    "zeta": (lambda x: jg.special.zeta(i(2.5), x) + jg.special.zeta(2.5, x), (P,)),
    "add scaled": (lambda x, y: jg.add(x, y, alpha=2), (X, Y)),
    "sub scaled": (lambda x, y: jg.sub(x, y, alpha=2), (X, Y)),
    "rsub scaled": (lambda x, y: jg.rsub(x, y, alpha=2), (X, Y)),
    "div trunc": (lambda x, y: jg.div(x, y, rounding_mode="trunc"), (P, P)),
    "div floor": (lambda x, y: jg.div(x, y, rounding_mode="floor"), (P, P)),
    "numbers": (lambda x: (3 - x) * 2 / x + 2**x + x**3 + 1.5 * x - x % 2, (P,)),
    "broadcast": (lambda x, b: x.unsqueeze(0) * b + b.exp(), (X, B)),
    "one operand broadcast": (lambda v: v + jg.zeros(3, 4, dtype=jg.float64), (V,)),
    "addcmul": (lambda x, y, p: jg.addcmul(x, y, p, value=2), (X, Y, P)),
    "addcdiv": (lambda x, y, p: jg.addcdiv(x, y, p, value=2), (X, Y, P)),
    "lerp": (jg.lerp, (X, Y, P)),
    "where": (lambda x, y: jg.where(i(MASK), x, y), (X, Y)),
    "clamp": (lambda x: x.clamp(-0.5, 0.5) + x.clamp(min=0) + x.clamp(max=1), (X,)),
    "clamp tensors": (lambda x, y: x.clamp(y, y + 1) + x.clamp_min(y) + x.clamp_max(y), (X, Y)),
    "masked_fill": (lambda x: x.masked_fill(i(MASK), 2.0), (X,)),
    "fill": (lambda x, v: jg.fill(x, v[0]) * x, (X, V)),
    "zero_": (lambda x: x.clone().zero_() + x, (X,)),
    "fill_": (lambda x, v: x.clone().fill_(v[1]) * x.clone().fill_(2.0), (X, V)),
    "threshold": (lambda x: F.threshold(x, 0.1, 2.0), (X,)),
    "prelu": (lambda b: F.prelu(b, jg.tensor([0.1, 0.2, 0.3], dtype=jg.float64)), (B,)),
    "prelu weight": (F.prelu, (X, V)),
    "logit": (lambda x: jg.logit(x) + jg.logit(x, eps=0.3), ((0.2, 0.8),)),
    "heaviside": (lambda x, y: x * jg.heaviside(x.detach(), y.detach()), (X, Y)),
    "round decimals": (lambda x: jg.round(x, decimals=1) + x, (X,)),
    "softmax": (lambda x: x.softmax(1), (X,)),
    "log_softmax": (lambda x: x.log_softmax(0), (X,)),
    "logsumexp": (lambda x: x.logsumexp((0, 1)), (X,)),
    "logcumsumexp": (lambda x: x.logcumsumexp(1), (X,)),
    "sum": (lambda x: x.sum() + x.sum(1), (X,)),
    "mean": (lambda x: x.mean() + x.mean(0), (X,)),
    "nansum": (jg.nansum, (X,)),
    "var": (lambda x: x.var() + x.var(1), (X,)),
    "var_mean": (lambda x: sum(jg.var_mean(x, 1)) + sum(jg.std_mean(x, 1)), (X,)),
    "std": (lambda x: x.std() + x.std(0), (X,)),
    "prod": (lambda x: x.prod() + x.prod(1), (X,)),
    "cumprod": (lambda x: x.cumprod(1), (X,)),
    "cumsum": (lambda x: x.cumsum(0), (X,)),
    "cummax": (lambda x: x.cummax(1).values, (X,)),
    "cummin": (lambda x: x.cummin(1).values, (X,)),
    "max": (lambda x: x.max() + x.max(1).values.sum() + x.amax(0).sum(), (X,)),
    "min": (lambda x: x.min() + x.min(1).values.sum() + x.amin(0).sum(), (X,)),
    "aminmax": (lambda x: sum(jg.aminmax(x)), (X,)),
    "median": (lambda x: x.median() + x.median(1).values.sum(), (X,)),
    "nanmedian": (lambda x: x.nanmedian() + x.nanmedian(1).values.sum(), (X,)),
    "mode": (lambda x: x.mode(1).values, (X,)),
    "norm": (lambda x: x.norm() + x.norm(1) + x.norm(3, dim=0).sum() + x.norm(float("inf")), (X,)),
    "nuclear norm": (lambda x: jg.linalg_matrix_norm(x, "nuc"), (X,)),
    "cdist": (lambda x, s: jg.cdist(x[:, :3], s) + jg.cdist(x[:, :3], s, p=3), (X, "s")),
    "renorm": (lambda x: jg.renorm(x, 2, 0, 1.0), (X,)),
    "matrix_exp": (jg.matrix_exp, ("s",)),
    "dist": (jg.dist, (X, Y)),
    "sort": (lambda x: x.sort(1).values * x.sort(0, descending=True, stable=True).values, (X,)),
    "topk": (lambda x: x.topk(2, 1).values, (X,)),
    "kthvalue": (lambda x: x.kthvalue(2, 1).values, (X,)),
    "mm": (lambda x, m: x @ m, (X, M)),
    "bmm": (lambda b, c: b.bmm(c), (B, "c")),
    "mv": (lambda x, v: x.mv(v), (X, V)),
    "dot": (lambda v: v.dot(v), (V,)),
    "vdot": (lambda v: jg.vdot(v, v * v), (V,)),
    "matmul": (lambda b, m: b @ m, (B, M)),
    "addmm": (lambda w, x, m: jg.addmm(w, x, m, beta=2, alpha=3), ("w", X, M)),
    "addmv": (lambda x, v: jg.addmv(x[:, 0], x, v), (X, V)),
    "addr": (lambda x, v: jg.addr(x, x[:, 0], v), (X, V)),
    "addbmm": (lambda b, c: jg.addbmm(b[0, :, :2], b, c), (B, "c")),
    "baddbmm": (lambda b, c: jg.baddbmm(b[:, :, :2], b, c), (B, "c")),
    "linear": (lambda x, m, w: F.linear(x, m.t(), w), (X, M, "w")),
    "linear in one kernel": (lambda b, x, v: F.linear(b, x, v[:3]) + F.linear(b, x), (B, X, V)),
    "linear without bias": (lambda x, m: F.linear(x, m.t()), (X, M)),
    "cross": (lambda s: jg.cross(s, s * s, dim=1), ("s",)),
    "trace": (lambda s: s.trace(), ("s",)),
    "inv": (lambda s: jg.linalg.inv(symmetric(s)), ("s",)),
    "det": (jg.linalg.det, ("s",)),
    "det of a singular matrix": (lambda s: jg.linalg.det(jg.cat([s[:2], s[:1]])), ("s",)),
    "slogdet": (lambda s: jg.linalg.slogdet(symmetric(s)).logabsdet, ("s",)),
    "solve": (lambda s, y: jg.linalg.solve(symmetric(s), y), ("s", Y)),
    "solve_triangular": (lambda s, y: jg.linalg.solve_triangular(symmetric(s).tril(), y, upper=False), ("s", Y)),
    "lu": (lambda s: tuple(jg.linalg.lu(s))[1:], ("s",)),
    "lu_factor": (lambda s: jg.linalg.lu_factor(s)[0], ("s",)),
    "cholesky": (lambda s: jg.linalg.cholesky(symmetric(s)), ("s",)),
    "qr": (lambda s: jg.linalg.qr(symmetric(s)), ("s",)),
    "eigh": (lambda s: jg.linalg.eigh(symmetric(s)).eigenvalues, ("s",)),
    "svd": (lambda x: jg.linalg.svd(x, full_matrices=False).S, (X,)),
    "pinv": (jg.linalg.pinv, (X,)),
    "views": (lambda b: (b.permute(2, 0, 1)[1:, 0].t().unsqueeze(1).squeeze(1).expand(2, 3, 3).diagonal(0, 1, 2) * b[:, :, 1]), (B,)),
    "more views": (lambda b: b.view(6, 4).transpose(0, 1).squeeze().unfold(1, 2, 2).reshape(-1) * b.unflatten(0, (2, 1)).squeeze((1,)).reshape(24),
                   (B,)),
    "reshape of a transpose": (lambda x: x.t().reshape(-1) * x.view_as(x).flatten(), (X,)),
    "whole views": (lambda x: x[...] * x[:, ::2].reshape(6).sum() * x.expand(3, 4), (X,)),
    "as_strided": (lambda x: x.as_strided((2, 2), (1, 4), 1) * x.clone().as_strided((2, 2), (1, 1), 0), (X,)),
    "to float32 and back": (lambda x: (x.float() * 2).double(), (X,)),
    "copy_": (lambda x, v: jg.zeros(3, 4, dtype=jg.float64).copy_(v) * x, (X, V)),
    "writes": (strided_write, (X, V)),
    "index": (lambda x: x[i(INDEX)] * x[:, i(INDEX)][0], (X,)),
    "index by mask": (lambda x: x[i(MASK)], (X,)),
    "index_put": (lambda x, v: x.index_put((i(INDEX[:2]), i(INDEX[:2])), v[:2]) + x.index_put((i(INDEX[:1]),), v, accumulate=True), (X, V)),
    "index_select": (lambda x: x.index_select(0, i(INDEX)), (X,)),
    "index_add": (lambda x: jg.zeros(3, 4, dtype=jg.float64).index_add(0, i(INDEX[:3]), x, alpha=2), (X,)),
    "index_copy": (lambda x, y: x.index_copy(0, i(INDEX[:2]), y[:2]), (X, Y)),
    "index_fill": (lambda x, v: x.index_fill(0, i(INDEX[:2]), 3.0) + x.index_fill(0, i(INDEX[:1]), v[0]), (X, V)),
    "index_reduce": (lambda x, y: x.index_reduce(0, i(INDEX[:3]), y, "amax") * x.index_reduce(0, i(INDEX[:3]), y, "prod"), (P, P)),
    "masked_select": (lambda x: x.masked_select(i(MASK)), (X,)),
    "masked_scatter": (lambda x, y: x.masked_scatter(i(MASK), y), (X, Y)),
    "take": (lambda x: x.take(i(INDEX)), (X,)),
    "put": (lambda x, v: x.put(i(INDEX[:3]), v[:3], accumulate=True), (X, V)),
    "gather": (lambda x: x.gather(0, i(ROWS)), (X,)),
    "scatter": (lambda x, y: x.scatter(0, i(ROWS[:1]), y) + x.scatter(0, i(ROWS), 2.0), (X, Y)),
    "scatter_add": (lambda x, y: x.scatter_add(0, i(ROWS), y), (X, Y)),
    "scatter_reduce": (lambda x, y: x.scatter_reduce(0, i(ROWS), y, "amin") * x.scatter_reduce(0, i(ROWS), y, "mean"), (P, P)),
    "scatters of views": (lambda x, v: x.select_scatter(v, 0, 1) + x.slice_scatter(x[:2] * 2, 0, 1) + x.diagonal_scatter(v[:3]), (X, V)),
    "as_strided_scatter": (lambda x, v: x.as_strided_scatter(v[:3], (3,), (4,), 1), (X, V)),
    "cat": (lambda x, y: jg.cat([x, jg.zeros(1, 4, dtype=jg.float64), y]), (X, Y)),
    "stack": (lambda x, y: jg.stack([x, y, x], 1), (X, Y)),
    "block_diag": (jg.block_diag, (X, V)),
    "split": (lambda x: x.split(2, 1) + x.unbind(0) + x.split([1, 3], 1), (X,)),
    "unsafe_split": (lambda x: x.unsafe_split(2, 1) + x.unsafe_split_with_sizes([1, 3], 1), (X,)),
    "rearranged": (lambda x: x.repeat(2, 1)[:3] + x.flip(1) + x.roll(1, 0) + x.tril() + x.triu() + x.clone(), (X,)),
    "rot90": (lambda s: s.rot90() + s.diag_embed()[0] + s.diag().unsqueeze(0), ("s",)),
    "narrow_copy": (lambda x: jg.narrow_copy(x, 1, 1, 2), (X,)),
    "nll of each": (lambda x: F.nll_loss(x, i(INDEX[:3]), reduction="none") ** 2, (X,)),
    "nll": (lambda x: F.nll_loss(x, i(INDEX[:3])), (X,)),
    "nll of images": (lambda b: F.nll_loss(b.unsqueeze(2), i(INDEX[:2].reshape(2, 1, 1).repeat(4, 2))), (B,)),
    "cross_entropy": (lambda x: F.cross_entropy(x, i(INDEX[:3])), (X,)),
    "cross_entropy smoothed": (lambda x: F.cross_entropy(x, i(INDEX[:3]), label_smoothing=0.1), (X,)),
    "losses": (lambda x, y: F.mse_loss(x, y) + F.smooth_l1_loss(x, y) + F.huber_loss(x, y) + F.l1_loss(x, y), (X, Y)),
    "bce": (lambda p, q: F.binary_cross_entropy(p / 4, q / 4), (P, P)),
    "bce with logits": (lambda x, p: F.binary_cross_entropy_with_logits(x, p / 4), (X, P)),
    "embedding": (lambda x: F.embedding(i(INDEX), x) ** 2, (X,)),
    "nextafter": (jg.nextafter, (X, Y)),
    "frexp": (lambda x: jg.frexp(x).mantissa, (P,)),
    "layer_norm": (lambda x, v: F.layer_norm(x, (4,), v, v * 2), (X, V)),
    "batch_norm": (lambda b: F.batch_norm(b, None, None, jg.tensor([1.0, 2.0, 3.0], dtype=jg.float64), None, training=True), (B,)),
    "repeat_interleave": (lambda x: x.repeat_interleave(2, 0), (X,)),
    "angle": (lambda x: jg.angle(x) + x, (X,)),
    "isclose": (lambda x: x * jg.isclose(x.detach(), x.detach()), (X,)),
}  # fmt: skip
NEVER = {  # declared differentiable, but only met where nothing can have a tangent
    "_fill_": "a number is written", "_zero": "zeros are written", "_view_dtype": "bits of another dtype", "_heaviside": "no derivative in torch",
    "_zeta_2": "no derivative by the first operand, which alone is a tensor",
}  # fmt: skip


def case_of(name):
    """Function and kinds of input: from the table, or, for an elementwise op that it has not, the op itself between 0 and 1."""
    if name in CASES:
        return CASES[name]
    op = OPS[name]
    statics = tuple(op.defaults.get(static, 0.5) for static in op.statics)
    return lambda *args: Dispatch.invoke(op, args, statics), ((0.2, 0.8),) * len(op.inputs)


def inputs_of(name):
    """Deterministic float64 inputs for a case."""
    random = np.random.default_rng(len(name) * 7 + 3)
    found = []
    for kind in case_of(name)[1]:
        low, high = kind if isinstance(kind, tuple) else (0.3, 2.5) if kind == P else (-2.0, 2.0)
        shape = SHAPES.get(kind, (3, 4))
        count = int(np.prod(shape))
        steps = random.permutation(count).reshape(shape) / count + random.random(shape) / 50  # no two alike
        found.append(jg.tensor(low + (high - low) * steps))
    return found


def noise(x, seed):
    return jg.tensor(np.random.default_rng(seed).standard_normal(x.shape))


def inner(a, b):
    return sum((x * y).sum() for x, y in zip(a, b, strict=True))


@functools.cache
def run(name):
    """Pairs of numbers that must agree, and the names of the ops that were handed tangents."""
    seen = set()

    def rule(op, inputs, statics, tangents):
        if any(tangent is not None for tangent in tangents):
            seen.add(getattr(op, "name", ""))
        return dual_rules.call(op, inputs, statics, tangents)

    function, leaves = case_of(name)[0], [x.requires_grad_() for x in inputs_of(name)]
    ts = [noise(x, 5 + k) for k, x in enumerate(leaves)]
    level = Level(rule, 0)
    level.enter()
    try:
        duals = [alias(x) for x in leaves]
        for dual, t in zip(duals, ts, strict=True):
            for outside in level.outwards():
                outside.give(dual, t)
                break
        out = function(*duals)
        outs = [x for x in (out if isinstance(out, tuple) else (out,)) if x.requires_grad]
        us = [noise(x, 11 + k) for k, x in enumerate(outs)]
        found = [level.of(x) for x in outs]
        grads = jg.autograd.grad(outs, leaves, us, retain_graph=True, allow_unused=True, materialize_grads=True)
        turned = [level.of(g) for g in grads]
        for x, t in zip(outs, found, strict=True):
            assert t is None or (t.shape, t.dtype) == (x.shape, x.dtype)
        pushed = inner(us, [x.detach() * 0 if t is None else t for x, t in zip(outs, found, strict=True)])
        twice = [x.detach() * 0 for x in leaves]
        if pushed.requires_grad:
            twice = jg.autograd.grad(pushed, leaves, allow_unused=True, materialize_grads=True)
        first = (pushed.item(), inner(grads, ts).item())
        second = [(a.tolist(), (x.detach() * 0 if b is None else b).tolist()) for a, b, x in zip(twice, turned, leaves, strict=True)]
    finally:
        level.leave()
    return first, second, frozenset(seen)


@pytest.mark.parametrize("name", CASES)
def test_forward_and_reverse_mode_agree(name):
    check(name)


def check(name):
    """Both identities of the module's docstring."""
    (forward, backward), second, _ = run(name)
    assert forward == pytest.approx(backward, rel=1e-6, abs=1e-6)
    for a, b in second:
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def differentiable():
    """The names of the ops that have a derivative."""
    _ops.load_all()
    for name, op in OPS.items():
        if isinstance(op, Elementwise):
            if op.floats and not op.refuses and not op.map("t" * len(op.inputs)).is_condition:
                yield name
        elif (op.kind == "linear" or op.backward is not None) and "stream" not in op.statics:
            yield name


def left_out():
    """The ops that the table does not meet."""
    return sorted(set(differentiable()) - frozenset().union(*(run(name)[2] for name in CASES)) - set(NEVER))


def test_elementwise_ops_beside_the_table():
    for name in left_out():
        if isinstance(OPS[name], Elementwise):
            check(name)


def test_no_op_is_left_out():
    left = [name for name in left_out() if not isinstance(OPS[name], Elementwise)]
    assert left == [], f"CASES has no call of {' '.join(left)}"
