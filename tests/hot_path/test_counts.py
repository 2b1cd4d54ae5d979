"""The hot path, guarded without a clock: what one recorded op, one node and one training step may do.

A number here may fall; it grows only for a reason that is worth its time on every op, and then in this file, knowingly.
"""

import pytest

import jitgrad as torch
from jitgrad._core.settings import settings
from tests.hot_path.counting import Counts, counts

pytestmark = pytest.mark.skipif(not settings.jit, reason="counts compiled kernels")

BINARY = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
}
UNARY = {"exp": lambda x, _: x.exp(), "tanh": lambda x, _: x.tanh(), "neg": lambda x, _: -x}
OPS = BINARY | UNARY


def leaves():
    return [torch.tensor([0.5, 1.5, 2.5], requires_grad=True) for _ in range(2)]


@pytest.mark.parametrize("name", OPS)
def test_recorded_op(name):
    """One Python call, one kernel, one array: the result."""
    x, y = leaves()
    assert at_most(counts(lambda: OPS[name](x, y)), Counts(python=2, kernels=1, arrays=1))  # 2: the lambda of OPS too


@pytest.mark.parametrize("name", OPS)
def test_op_without_recording(name):
    x, y = (leaf.detach() for leaf in leaves())
    assert at_most(counts(lambda: OPS[name](x, y)), Counts(python=2, kernels=1, arrays=1))


INPLACE = {
    "add_": lambda x, y: x.add_(y),
    "+=": lambda x, y: x.__iadd__(y),
    "sub_": lambda x, y: x.sub_(y),
    "mul_": lambda x, y: x.mul_(y),
    "div_": lambda x, y: x.div_(y),
    "exp_": lambda x, _: x.exp_(),
    "neg_": lambda x, _: x.neg_(),
}


@pytest.mark.parametrize("name", INPLACE)
def test_write_without_recording(name):
    """One Python call, one kernel over the array itself, one that counts the write."""
    x, y = (leaf.detach() for leaf in leaves())
    INPLACE[name](x, y)  # makes the version counter
    assert at_most(counts(lambda: INPLACE[name](x, y)), Counts(python=3, kernels=1, arrays=0))


def test_copy_without_recording():
    """From one array into another: no third."""
    x, y = (leaf.detach().clone() for leaf in leaves())
    assert at_most(counts(lambda: x.copy_(y)), Counts(python=4, kernels=0, arrays=0))


def test_recorded_copy():
    """Straight into the memory: neither the old value nor the new one is copied first."""
    source, target = leaves()[0], torch.zeros(3)

    def action():
        target.detach_()
        target.copy_(source)

    assert counts(action).arrays == 0


def backward_of_a_chain(operation, length):
    x, y = leaves()
    seed = torch.ones(3)

    def action():
        x.grad = y.grad = None
        result = x
        for _ in range(length):
            result = operation(result, y)
        result.backward(seed)

    return counts(action) - counts(lambda: forward_only(operation, length))


def forward_only(operation, length):
    x, y = leaves()
    for _ in range(length):
        x = operation(x, y)


NODES = {  # of one node, its part of the engine included
    "mul": Counts(
        python=2, kernels=2, arrays=1
    ),  # one for both gradients, one that adds to y's; one is written in place
    "add": Counts(python=2, kernels=1, arrays=0),  # one that adds to y's gradient; x's is handed on
    "tanh": Counts(python=1, kernels=1, arrays=0),  # in place of the gradient that came in
}


@pytest.mark.parametrize("name", NODES)
def test_backward_node(name):
    longer, shorter = (backward_of_a_chain(OPS[name], length) for length in (12, 2))
    per_node = Counts(*(count / 10 for count in longer - shorter))
    assert at_most(per_node, NODES[name])


def at_most(found, allowed):
    """True, or an assertion that shows both."""
    assert all(a <= b for a, b in zip(found, allowed, strict=True)), f"{found} exceeds {allowed}"
    return True


def training_step():
    """An SGD step of an MLP 2-16-16-1 on a batch of 32, as in the benchmark `mlp_tiny_sgd`."""
    model = torch.nn.Sequential(
        torch.nn.Linear(2, 16), torch.nn.ReLU(), torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = torch.ones(32, 2), torch.zeros(32, 1)

    def step():
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()

    return step


STEP = Counts(python=72, kernels=18, arrays=16)


def test_training_step():
    assert at_most(counts(training_step()), STEP)
