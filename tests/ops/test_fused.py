"""A fused backward against its rule: the same gradients, without and with a graph of the backward."""

import numpy as np
import pytest

import jitgrad
from jitgrad._ops import load_all
from jitgrad._ops.kinds import OPS, General, Linear
from jitgrad.nn import functional as F

RNG = np.random.Generator(np.random.PCG64(4))
X, Y = RNG.normal(size=(3, 4, 70)), RNG.normal(size=(3, 4, 70))
ROWS = RNG.normal(size=(40, 70))
UNIT = 1 / (1 + np.exp(-Y))
CLASSES = RNG.integers(0, 70, 40)
CLASSES[3] = -100
W70, W4 = RNG.random(70) + 0.5, RNG.random(4) + 0.5
INDICES = RNG.integers(0, 40, (5, 3))


def classes():
    return jitgrad.tensor(CLASSES)


def weights(x, values):
    return jitgrad.tensor(values).to(x.dtype)


def maybe(x, wanted):
    return weights(x, W70) if wanted else None


def unit(x):
    return weights(x, UNIT)


CASES = {
    "_softmax": [(lambda x, d=d: x.softmax(d), X) for d in (0, 1, 2)],
    "_log_softmax": [(lambda x, d=d: x.log_softmax(d), X) for d in (0, 1, 2)],
    "_var": [(lambda x: x.var((0, 2)), X), (lambda x: x.var(), X)],
    "_std": [(lambda x: x.std(1, keepdim=True), X)],
    "_logsumexp": [(lambda x: x.logsumexp((0, 1)), X), (lambda x: x.logsumexp(2, keepdim=True), X)],
    "_amax": [(lambda x: x.amax((0, 2)), X.round())],
    "_amin": [(lambda x: x.amin(1), X.round())],
    "_vector_norm": [(lambda x, p=p: x.norm(p, 1), X) for p in (0, 0.5, 1, 1.5, 2, 3, np.inf, -np.inf)],
    "_mse_loss": [(lambda x, r=r: F.mse_loss(x, weights(x, Y), reduction=r), X) for r in ("none", "mean", "sum")],
    "_smooth_l1_loss": [(lambda x, r=r: F.smooth_l1_loss(x, weights(x, Y), reduction=r, beta=0.5), X) for r in ("none", "mean")],
    "_huber_loss": [(lambda x, r=r: F.huber_loss(x, weights(x, Y), reduction=r, delta=0.5), X) for r in ("none", "mean")],
    "_bce": [(lambda x, w=w: F.binary_cross_entropy(x, unit(x), maybe(x, w)), UNIT) for w in (False, True)],
    "_bce_logits": [
        (lambda x, w=w, p=p: F.binary_cross_entropy_with_logits(x, unit(x), maybe(x, w), pos_weight=maybe(x, p)), X)
        for w in (False, True)
        for p in (False, True)
    ],
    "_nll_NllLossBackward0": [(lambda x, r=r: F.nll_loss(x, classes(), weights(x, W70), reduction=r), ROWS) for r in ("none", "mean", "sum")],
    "_nll_NllLoss2DBackward0": [(lambda x: F.nll_loss(x, jitgrad.tensor(CLASSES[:15] % 4).view(3, 5).repeat(1, 14), weights(x, W4)), X)],
    "_cross_entropy": [
        (lambda x, r=r, w=w: F.cross_entropy(x, classes(), maybe(x, w), reduction=r), ROWS)
        for r in ("none", "mean", "sum")
        for w in (False, True)
    ],
    "_layer_norm": [
        (lambda x, n=n: F.layer_norm(x, x.shape[-n:], x[(0,) * (3 - n)] + 2, x[(1,) * (3 - n)]), X) for n in (1, 2)
    ] + [(lambda x: F.layer_norm(x, (70,)), X)],
    "_batch_norm": [
        (lambda x, t=t: F.batch_norm(x, weights(x, W4), weights(x, W4), x[0, :, 0] + 2, x[1, :, 0], t), X) for t in (False, True)
    ] + [(lambda x: F.batch_norm(x, None, None, training=True), ROWS)],
    "_embedding": [
        (lambda x, f=f: F.embedding(jitgrad.tensor(INDICES), x, padding_idx=int(INDICES[0, 0]), scale_grad_by_freq=f), ROWS) for f in (False, True)
    ],
}  # fmt: skip
FAMILIES = {"extremes", "statistics", "norms", "scans", "softmax", "losses", "classes", "normalization", "embedding", "random", "reductions"}


def same_dropout(x):
    jitgrad.manual_seed(3)
    return F.dropout(x, 0.4)


CASES["_dropout"] = [(same_dropout, X)]


def test_none_is_left_out():
    load_all()
    fused = {name for name, op in OPS.items() if isinstance(op, General) and not isinstance(op, Linear) and op.accelerator is not None}
    here = {name for name in fused if OPS[name].function.__module__.rpartition(".")[2] in FAMILIES}
    assert here == set(CASES)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize("name", CASES)
def test_fused_is_the_rule(name, dtype):
    tolerance = {"float64": 1e-10, "float32": 1e-4, "float16": 3e-2}[dtype]
    for call, values in CASES[name]:
        if dtype == "float16" and name == "_bce":
            values = values.clip(0.1, 0.9)
        x = jitgrad.tensor(values, dtype=getattr(jitgrad, dtype), requires_grad=True)
        turned = jitgrad.tensor(np.ascontiguousarray(values.T), dtype=x.dtype).permute(*range(values.ndim)[::-1]).requires_grad_()
        found = []
        for operand, graph in ((x, False), (x, True), (turned, False)):
            result = call(operand)
            cotangent = jitgrad.tensor(np.cos(np.arange(result.numel())).reshape(result.shape), dtype=x.dtype)
            (grad,) = jitgrad.autograd.grad(result, operand, cotangent, create_graph=graph)
            assert grad.dtype is x.dtype
            found.append(grad.detach().numpy().astype(np.float64))
        scale = max(1.0, np.abs(found[0][np.isfinite(found[0])]).max())
        for other in found[1:]:
            np.testing.assert_allclose(found[0] / scale, other / scale, rtol=tolerance, atol=tolerance)
