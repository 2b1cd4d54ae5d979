"""What calls of the user's own code may cost, guarded without a clock: custom Functions, and ops under saved-tensor hooks."""

import pytest

import jitgrad as torch
from jitgrad._core.settings import settings
from tests.hot_path.counting import Counts, counts
from tests.hot_path.test_counts import at_most

pytestmark = pytest.mark.skipif(not settings.jit, reason="counts compiled kernels")


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad


class Two(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y, x + y

    @staticmethod
    def backward(ctx, a, b):
        x, y = ctx.saved_tensors
        return a * y + b, a * x + b


def of_square():
    x, seed = torch.ones(64, requires_grad=True), torch.ones(64)

    def step():
        x.grad = None
        Square.apply(x).backward(seed)

    return step


def of_two():
    x, y, seed = torch.ones(64, requires_grad=True), torch.ones(64, requires_grad=True), torch.ones(64)

    def step():
        x.grad = y.grad = None
        torch.autograd.backward(Two.apply(x, y), (seed, seed))

    return step


def under_hooks():
    x, seed = torch.ones(64, requires_grad=True), torch.ones(64)

    def step():
        x.grad = None
        with torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
            y = (x * x).exp()
        y.backward(seed)

    return step


STEPS = {
    "square": (of_square, Counts(python=34, kernels=3, arrays=4)),
    "two": (of_two, Counts(python=60, kernels=6, arrays=8)),
    "hooks": (under_hooks, Counts(python=112, kernels=4, arrays=9)),
}


@pytest.mark.parametrize("name", STEPS)
def test_step(name):
    make, allowed = STEPS[name]
    assert at_most(counts(make()), allowed)
