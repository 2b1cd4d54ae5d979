"""For each property of `opcheck` an op that is wrong in that one way: it fails there, and nowhere else."""

import numpy as np
import pytest

import jitgrad
from jitgrad._core.settings import settings
from jitgrad.autograd.kernels import jit_function, opcheck
from jitgrad.autograd.kernels.properties import PROPERTIES
from tests.kernels_user.cases import tensor

Function = jitgrad.autograd.Function


def doubled(backward, forward=lambda x: x + x):
    """A kernel with a given backward."""
    return jit_function(forward, backward, name="doubled")


def right(grad, x, y):
    return grad + grad


def reads_one_further(grad, x, y):
    out = np.empty_like(x)
    for i in range(x.size):
        out[i] = grad[i] + grad[i]
        if x[i + 1] != x[i + 1] and x[i + 1] == x[i + 1]:  # never so, but read
            out[i] = 0.0
    return out


def wrong_for_large(grad, x, y):
    out = grad + grad
    for i in range(x.size):
        if x.ravel()[i] > 1.0:
            out.ravel()[i] += grad.ravel()[i]
    return out


def without_rule():
    op = doubled(lambda grad, x, y: x * grad + x * grad, lambda x: x * x)
    op.double_backward(lambda grad, x, y: (x + x).detach() * grad)
    return op


def widening(x):
    return x * np.float64(2.0)


class ByMemory(Function):
    """Reads an argument in the order of its memory."""

    @staticmethod
    def forward(ctx, x):
        return 2.0 * jitgrad.from_numpy(np.array(x.detach().numpy().ravel(order="K"))).reshape(x.shape)

    @staticmethod
    def backward(ctx, grad):
        return 2.0 * grad


class GradientByMemory(Function):
    """Reads the gradient in the order of its memory."""

    @staticmethod
    def forward(ctx, x):
        return x * 2.0

    @staticmethod
    def backward(ctx, grad):
        array = grad.detach().numpy()
        if 0 in array.strides:
            return grad * 2.0
        return 2.0 * jitgrad.from_numpy(array.ravel(order="K").copy()).reshape(array.shape)


def one_too_many(grad, x, y):
    return np.zeros(1, x.dtype) if x.size == 0 else grad + grad


def wrong_without_axes(x):
    return x * 2.0 if x.ndim else x + x.detach()


def greatest(x):
    if x.size == 0:
        raise ValueError("nothing is the greatest of nothing")
    return x.max()


def all_of_the_greatest(grad, x, y):
    out = np.zeros_like(x)
    for i in range(x.size):
        if x.flat[i] == y:
            out.flat[i] = grad
    return out


def swallowing(x):
    out = np.zeros_like(x)
    for i in range(x.size):
        if x.flat[i] == x.flat[i]:
            out.flat[i] = x.flat[i] + x.flat[i]
    return out


def touching(x):
    array = x.detach().numpy()
    array += 0.0
    return x * 2.0


class Sharing(Function):
    """Its output is its argument's memory, and nobody knows."""

    @staticmethod
    def forward(ctx, x):
        array = x.detach().numpy()
        return jitgrad.from_numpy(array if min(array.strides, default=0) >= 0 else array.copy())

    @staticmethod
    def backward(ctx, grad):
        return grad


class Growing(Function):
    """Writes over the gradient that it is handed."""

    @staticmethod
    def forward(ctx, x):
        return x * 2.0

    @staticmethod
    def backward(ctx, grad):
        return grad.mul_(2.0)


class Counting:
    """The last bit depends on how often it was called."""

    def __init__(self):
        self.calls = 0

    def __call__(self, x):
        self.calls += 1
        return x * (2.0 + 4e-16 * (self.calls % 2))


class Scratch(Function):
    """Each backward changes what the next one reads."""

    @staticmethod
    def forward(ctx, x):
        ctx.scratch = jitgrad.full_like(x.detach(), 2.0)
        return x * 2.0

    @staticmethod
    def backward(ctx, grad):
        found = grad * ctx.scratch
        ctx.scratch.mul_(2.0)
        return found


class Hoarding:
    """Keeps something of every call."""

    def __init__(self):
        self.kept = []

    def __call__(self, x):
        self.kept.append(np.ones(3))
        return x * 2.0


X = np.array([[0.5, -1.0, 2.0], [0.25, 0.75, -0.125]])
WRONG = {
    "bounds": (lambda: doubled(reads_one_further), X[0]),
    "gradient": (lambda: doubled(wrong_for_large), X),
    "second derivative": (without_rule, X),
    "float32": (lambda: doubled(lambda grad, x, y: (grad + grad).astype(x.dtype), widening), X),
    "layouts of arguments": (lambda: ByMemory.apply, X),
    "layouts of gradients": (lambda: GradientByMemory.apply, X),
    "size 0": (lambda: doubled(one_too_many), X[0]),
    "0-d": (lambda: wrong_without_axes, X),
    "ties": (lambda: doubled(all_of_the_greatest, greatest), X),
    "NaN and infinity": (lambda: doubled(right, swallowing), X),
    "read-only arguments": (lambda: touching, X),
    "aliasing": (lambda: Sharing.apply, X),
    "writes into arguments": (lambda: Growing.apply, X),
    "determinism": (Counting, X),
    "saved values": (lambda: Scratch.apply, X),
    "leaks": (Hoarding, X),
}
COMPILED = {"bounds", "float32"}  # what plain Python does otherwise, or can't do


def test_there_is_one_for_each():
    assert set(WRONG) == set(PROPERTIES)


@pytest.mark.parametrize("name", WRONG)
def test_it_fails_there_and_nowhere_else(name):
    if name in COMPILED and not settings.jit:
        pytest.skip("about compiled code")
    make, values = WRONG[name]
    report = opcheck(make(), tensor(values), raise_exception=False)
    assert [found.property for found in report.failures] == [name], str(report)
    assert report.failures[0].words
    assert "float" in report.failures[0].input


def test_the_right_forms_of_them_pass():
    for op in (doubled(right), doubled(lambda grad, x, y: x * grad + x * grad, lambda x: x * x), lambda x: x * 2.0):
        assert opcheck(op, tensor(X))


def test_what_the_function_refuses_is_no_failure():
    report = opcheck(doubled(all_of_the_greatest, greatest), tensor(X), raise_exception=False)
    refused = {found.property: found.words for found in report.findings if found.verdict == "refused"}
    assert refused["size 0"] == "nothing is the greatest of nothing"
