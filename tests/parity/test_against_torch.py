"""Values, gradients and gradients of gradients beside torch's, on inputs that torch's databases do not hold.

Each case is written once and run by both packages: broadcast operands, expressions that share subexpressions, kinks and
infinities, layouts, dtypes.
"""

import numpy as np
import pytest

import jitgrad

torch = pytest.importorskip("torch")
RNG = np.random.Generator(np.random.PCG64(7))


def normal(*shape):
    return RNG.standard_normal(shape)


def positive(*shape):
    return RNG.random(shape) + 0.1


X, Y, ROW, COLUMN, SCALAR = normal(3, 4), normal(3, 4), normal(4), normal(3, 1), normal()
P, Q = positive(3, 4), positive(4)
KINKS = np.array([-np.inf, -1.0, -0.0, 0.0, 0.5, 1.0, 3.0, 6.0, np.inf])

# name: (function of the package and tensors, arrays)
CASES = {
    "shared subexpression": (lambda t, x, y: (x * y + x) * (x * y), [X, Y]),
    "diamond": (lambda t, x: (x * x) * (x * x) + x, [X]),
    "broadcast row": (lambda t, x, r: (x + r) * r - x / r, [X, Q]),
    "broadcast column and row": (lambda t, c, r: c * r + c.exp() * r.sin(), [COLUMN, ROW]),
    "0-d with matrix": (lambda t, s, x: s * x + s, [SCALAR, X]),
    "Python scalars on both sides": (lambda t, x: 2 * x - 3 / (x + 0.25) + (x - 1) ** 2 + 2**x, [P]),
    "power": (lambda t, x, y: x**y, [P, Y]),
    "powers of zero": (lambda t, x: x**2 + x**1.0 + x**3, [np.array([0.0, -1.0, 2.0])]),
    "chain of transcendentals": (lambda t, x: t.tanh(t.log(t.exp(x).sqrt() + 1).sigmoid()), [X]),
    "log1p and expm1 near zero": (lambda t, x: t.log1p(x) * t.expm1(x), [1e-9 * normal(5)]),
    "maximum of equals": (lambda t, x: t.maximum(x, x * 1.0) + t.minimum(x, 0 * x), [X]),
    "relu and abs at kinks": (lambda t, x: t.relu(x) + x.abs(), [KINKS]),
    "clamp at its bounds": (lambda t, x: x.clamp(-1.0, 1.0), [KINKS]),
    "softplus far out": (lambda t, x: t.nn.functional.softplus(x), [np.array([-800.0, -30.0, 0.0, 30.0, 800.0])]),
    "where": (lambda t, x, y: t.where(x > 0, x * y, y * y), [X, Y]),
    "sum over a dimension": (lambda t, x: (x.sum(0) * x.sum(1, keepdim=True)).exp(), [0.3 * X]),
    "mean and var": (lambda t, x: (x - x.mean(1, keepdim=True)) / (x.var(1, keepdim=True) + 1e-5).sqrt(), [X]),
    "amax of ties": (lambda t, x: x.amax(1) * 2 + x.amin(), [np.array([[1.0, 3.0, 3.0], [0.0, 0.0, -1.0]])]),
    "prod with zeros": (lambda t, x: x.prod(1), [np.array([[1.0, 0.0, 3.0], [0.0, 0.0, -1.0], [2.0, 3.0, 4.0]])]),
    "cumsum": (lambda t, x: x.cumsum(1) * x, [X]),
    "logsumexp": (lambda t, x: t.logsumexp(x, 1) + x.logsumexp(0).sum(), [30 * X]),
    "softmax": (lambda t, x: t.softmax(x, 1) * t.log_softmax(x, 0), [X]),
    "norm": (lambda t, x: x.norm() + x.norm(dim=1), [X]),
    "matmul": (lambda t, x, y: x @ y.T @ x, [X, Y]),
    "matmul of batches": (lambda t, x, y: t.matmul(x, y), [normal(2, 1, 3, 4), normal(5, 4, 2)]),
    "matrix and vector": (lambda t, x, r: (x @ r).unsqueeze(0) @ x, [X, ROW]),
    "linear": (lambda t, x, w, b: t.nn.functional.linear(x, w, b).tanh(), [X, normal(5, 4), normal(5)]),
    "permute and reshape": (lambda t, x: x.permute(2, 0, 1).reshape(4, -1) ** 2, [normal(2, 3, 4)]),
    "expand": (lambda t, r: r.expand(3, 4).contiguous() * r, [ROW]),
    "negative steps": (lambda t, x: x.flip(0, 1) * x, [X]),
    "slices": (lambda t, x: x[1:, ::2] * x[0, 1:3] + x[-1, None, :2], [X]),
    "index with repeats": (lambda t, x: x[[0, 2, 0, 0]] ** 2, [X]),
    "gather": (lambda t, x: x.gather(1, (x > 0).long()), [X]),
    "cat, stack, split": (lambda t, x, y: t.stack(t.cat([x, y * x], 1).split(2, 1)).sum(0), [X, Y]),
    "diagonal, tril": (lambda t, x: x[:, :3].tril() @ x[:3] + x.diagonal().sum(), [X]),
    "masked_fill": (lambda t, x: x.masked_fill(x > 0.5, 2.0) * x, [X]),
    "mse": (lambda t, x, y: t.nn.functional.mse_loss(x, y), [X, Y]),
    "huber": (lambda t, x, y: t.nn.functional.huber_loss(3 * x, y, delta=0.7), [X, Y]),
    "cross entropy": (lambda t, x: t.nn.functional.cross_entropy(x, t.tensor([1, 3, 0])), [X]),
    "smoothed, ignoring": (
        lambda t, x: t.nn.functional.cross_entropy(x, t.tensor([1, -100, 0]), label_smoothing=0.1), [X]),
    "binary cross entropy": (
        lambda t, x: t.nn.functional.binary_cross_entropy_with_logits(9 * x, (x > 0.2).to(x.dtype)), [X]),
    "layer norm": (lambda t, x, w: t.nn.functional.layer_norm(x, (4,), w), [X, ROW]),
    "gelu, silu, elu": (
        lambda t, x: t.nn.functional.gelu(x) + t.nn.functional.silu(x) * t.nn.functional.elu(x), [3 * X]),
    "empty": (lambda t, x: (x.exp() * x).sum(0), [normal(0, 3)]),
}  # fmt: skip
FIRST_ORDER_ONLY = {"relu and abs at kinks", "clamp at its bounds"}  # infinities: differences of NaN
DTYPES = {"float64": 1e-9, "float32": 3e-4}


def derivatives(package, function, arrays, dtype, second):
    """Result, gradients under a fixed cotangent, and gradients of those; None where nothing depends on a leaf."""
    leaves = [package.tensor(array.astype(dtype)).requires_grad_() for array in arrays]
    result = function(package, *leaves)
    cotangent = package.tensor(np.cos(np.arange(result.numel(), dtype=dtype)).reshape(tuple(result.shape)))
    grads = package.autograd.grad(result, leaves, cotangent, create_graph=second)
    again = [None] * len(leaves)
    if second and any(grad.requires_grad for grad in grads):
        total = sum((grad * grad.detach().cos()).sum() for grad in grads if grad.requires_grad)
        again = package.autograd.grad(total, leaves, allow_unused=True)
    return [result, *grads, *again]


def equal(ours, theirs, tolerance):
    if ours is None or theirs is None:
        assert all(t is None or not t.detach().numpy().any() for t in (ours, theirs))
        return
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert str(ours.dtype).split(".")[-1] == str(theirs.dtype).split(".")[-1]
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CASES)
def test_derivatives(name, dtype):
    function, arrays = CASES[name]
    second = name not in FIRST_ORDER_ONLY
    ours = derivatives(jitgrad, function, arrays, dtype, second)
    theirs = derivatives(torch, function, arrays, dtype, second)
    assert ours[0].requires_grad == theirs[0].requires_grad
    for mine, reference in zip(ours, theirs, strict=True):
        equal(mine, reference, DTYPES[dtype])


def node_names(package, name):
    function, arrays = CASES[name]
    leaves = [package.tensor(array).requires_grad_() for array in arrays]
    todo, seen, found = [function(package, *leaves).grad_fn], [], []
    while todo:
        node = todo.pop(0)
        if node is None or node in seen:
            found.append(None if node is None else "seen")
            continue
        seen.append(node)
        found.append(node.name().removeprefix("torch::autograd::"))
        todo += [target for target, _ in node.next_functions]
    return found


# One node where torch has two: docs/differences.md, "The graph".
ONE_NODE = {
    "cross entropy": ["NllLossBackward0", "AccumulateGrad"],
}


@pytest.mark.parametrize("name", sorted(CASES.keys() - ONE_NODE.keys() - {"smoothed, ignoring"}))
def test_node_names(name):
    assert node_names(jitgrad, name) == node_names(torch, name)


@pytest.mark.parametrize("name", ONE_NODE)
def test_fused_nodes(name):
    assert node_names(jitgrad, name) == ONE_NODE[name] != node_names(torch, name)


def train(package, steps=20):
    """Losses of an MLP from fixed weights, by each of two optimizers in turn."""
    rng = np.random.Generator(np.random.PCG64(3))
    x = package.tensor(rng.standard_normal((32, 8)).astype("f4"))
    y = package.tensor(rng.integers(0, 5, 32))
    model = package.nn.Sequential(
        package.nn.Linear(8, 16),
        package.nn.Tanh(),
        package.nn.Linear(16, 16),
        package.nn.ReLU(),
        package.nn.Linear(16, 5),
    )
    with package.no_grad():
        for parameter in model.parameters():
            parameter.copy_(package.tensor(rng.standard_normal(tuple(parameter.shape)).astype("f4") * np.float32(0.3)))
    losses = []
    for optimizer in (
        package.optim.Adam(model.parameters(), lr=0.01, weight_decay=0.01),
        package.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True),
    ):
        for _ in range(steps):
            optimizer.zero_grad()
            loss = package.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            package.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
    return losses


def test_training_follows_torch():
    np.testing.assert_allclose(train(jitgrad), train(torch), rtol=2e-4)


ERRORS = {
    "shapes that do not broadcast": lambda t: t.zeros(2, 3) + t.zeros(2, 4),
    "matrices that do not fit": lambda t: t.zeros(2, 3) @ t.zeros(2, 3),
    "dimension out of range": lambda t: t.zeros(2, 3).sum(5),
    "index out of range": lambda t: t.zeros(3)[[1000]],
    "target out of range": lambda t: t.nn.functional.cross_entropy(t.zeros(1, 2), t.tensor([5])),
    "scatter out of range": lambda t: t.zeros(3).scatter_add(0, t.tensor([3]), t.ones(1)),
    "reshape": lambda t: t.zeros(6).reshape(4, -1),
    "in-place on a leaf": lambda t: t.zeros(3, requires_grad=True).add_(1),
    "backward of a vector": lambda t: (t.ones(3, requires_grad=True) * 2).backward(),
    "backward of nothing": lambda t: t.ones(()).backward(),
    "an integer that requires grad": lambda t: t.tensor([1]).requires_grad_(),
    "numpy of what requires grad": lambda t: t.ones(3, requires_grad=True).numpy(),
    "item of many": lambda t: t.ones(3).item(),
    "truth of many": lambda t: bool(t.ones(3)),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    with pytest.raises(Exception) as theirs:
        ERRORS[name](torch)
    with pytest.raises(theirs.type) as ours:
        ERRORS[name](jitgrad)
    assert str(ours.value).split()[:4] == str(theirs.value).split()[:4]
