"""Kernels of users inside compiled functions: called from the program, guarded, and harmless when they raise."""

import subprocess
import sys

import numba
import numpy as np
import pytest

import jitgrad as torch
from jitgrad import nn, optim
from tests.compiler.steps import assert_same

SCALE = 2.0


@torch.jit_function
def scan(x, decay):
    y = np.empty_like(x)
    acc = x.dtype.type(0)
    for i in range(x.size):
        acc = decay * acc + x[i]
        y[i] = acc
    return y


@scan.backward
def scan_backward(grad, x, decay, y):
    g = np.empty_like(x)
    acc = x.dtype.type(0)
    for i in range(x.size - 1, -1, -1):
        acc = decay * acc + grad[i]
        g[i] = acc
    return g


@torch.jit_function(outputs=1)
def energy(x, w):
    """A number, and scratch for the backward."""
    s = np.zeros(x.shape[0], x.dtype)
    total = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            s[i] += x[i, j] * w[j]
        total += s[i] ** 2
    return total, s


@energy.backward
def energy_backward(grad, x, w, total, s, needs):
    gx, gw = np.zeros_like(x), np.zeros_like(w)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            gx[i, j] = 2 * grad * s[i] * w[j]
            gw[j] += 2 * grad * s[i] * x[i, j]
    return gx, gw


@torch.jit_function(outputs=2)
def split(x):
    """Two outputs, one of which is a view of the input."""
    return x[::2], x * x.dtype.type(3)


@split.backward
def split_backward(first, second, x, a, b):
    g = second * x.dtype.type(3)
    for i in range(first.size):
        g[2 * i] += first[i]
    return g


@torch.jit_function(mutates=["table"])
def push(table, x, at):
    table[at] = x[0]


@push.backward
def push_backward(grad, table, x, at):
    g = np.zeros_like(x)
    g[0] = grad[at]
    grad[at] = 0
    return grad, g


@torch.jit_function
@numba.njit(fastmath=False)
def cube(x):
    return x * x * x


@cube.backward
@numba.njit
def cube_backward(grad, x, y):
    return 3 * x * x * grad


@cube.double_backward
def cube_rule(grad, x, y):
    return 3 * x * x * grad


@torch.jit_function
def scaled(x):
    y = np.empty_like(x)
    for i in range(x.size):
        y[i] = x[i] * SCALE
    return y


@torch.jit_function
def positive(x):
    for i in range(x.size):
        if x[i] < 0:
            raise ValueError("a negative element")
    return np.sqrt(x)


@positive.backward
def positive_backward(grad, x, y):
    return grad / (2 * y)


def trainer(loss, width=6, optimizer=lambda p: optim.Adam(p, lr=0.01)):
    """A linear layer, a vector, and a step that minimizes `loss(layer(x), vector)`."""
    torch.manual_seed(0)
    model = nn.ParameterList([nn.Parameter(torch.randn(4, width)), nn.Parameter(torch.randn(width))])
    chosen = optimizer(model.parameters())

    def step(x):
        chosen.zero_grad()
        value = loss(x @ model[0], model[1])
        value.backward()
        chosen.step()
        return value

    return model, step


LOSSES = {
    "forward_and_backward": lambda h, w: scan(h.sum(1).tanh(), 0.5).pow(2).mean(),
    "number_scratch_needs": lambda h, w: energy(h, w) * 0.1,
    "input_without_gradient": lambda h, w: energy(h.detach(), w),
    "two_outputs": lambda h, w: split(h.reshape(-1) * 2)[0].sum() + split(w)[1].pow(2).sum(),
    "one_of_two_outputs": lambda h, w: split(h.reshape(-1))[1].pow(2).sum() + w.sum(),
    "transposed_input": lambda h, w: energy(h.t().contiguous().t(), w),
    "strided_input": lambda h, w: energy(h[:, ::2], w[::2]),
    "mutation": lambda h, w: push(w * 2, h[0] * h[1], 3).pow(2).sum(),
    "jitted": lambda h, w: cube(h).mean() + cube(w).sum(),
    "twice": lambda h, w: scan(scan(w, 0.5), 0.25).sum() + h.sum(),
}  # fmt: skip


@pytest.mark.parametrize("name", LOSSES)
def test_training_steps(name):
    (model, inner), (other, eager) = trainer(LOSSES[name]), trainer(LOSSES[name])
    step, x = torch.compile(inner), torch.randn(5, 4)
    for _ in range(4):
        a, b = step(x), eager(x)
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a.item(), b.item(), rtol=2e-6)
    assert step.history == []
    assert len(step.versions) == 1
    assert_same(model, other, 5e-6)


def test_the_kernels_are_called_from_the_program():
    _, inner = trainer(LOSSES["forward_and_backward"])
    step = torch.compile(inner)
    step(torch.ones(5, 4)), step(torch.ones(5, 4))
    assert "scan_call" in step.source()
    assert "u_scan_backward_" in step.source()
    assert "u_scan_" in step.graph()


def test_a_second_derivative_by_the_rule():
    def step(x):
        (g,) = torch.autograd.grad(cube(x).sum(), x, create_graph=True)
        (h,) = torch.autograd.grad(g.sum(), x)
        return g.detach(), h

    compiled = torch.compile(step)
    for _ in range(3):
        x = torch.tensor([1.0, -2.0], requires_grad=True)
        g, h = compiled(x)
        assert g.tolist() == [3.0, 12.0]
        assert h.tolist() == [6.0, -12.0]
    assert compiled.history == []


def test_a_compiled_function_is_differentiable_through_a_kernel():
    compiled = torch.compile(lambda x: scan(x, 0.5) * 2)
    for _ in range(3):
        x = torch.ones(3, requires_grad=True)
        compiled(x).sum().backward()
        assert x.grad.tolist() == [3.5, 3.0, 2.0]
    assert compiled.history == []


def test_a_global_of_a_kernel_is_guarded():
    global SCALE
    compiled = torch.compile(lambda x: scaled(x) + 1)
    x = torch.ones(2)
    assert [compiled(x).tolist() for _ in range(2)] == [[3.0, 3.0]] * 2
    SCALE = 5.0
    assert [compiled(x).tolist() for _ in range(2)] == [[6.0, 6.0]] * 2
    SCALE = 2.0
    assert compiled(x).tolist() == [3.0, 3.0]
    assert compiled.history == []


def test_another_backward_is_noticed():
    @torch.jit_function
    def double(x):
        return 2 * x

    @double.backward
    def first(grad, x, y):
        return 2 * grad

    def step(x):
        return torch.autograd.grad(double(x).sum(), x)[0]

    compiled = torch.compile(step)
    x = torch.ones(2, requires_grad=True)
    assert [compiled(x).tolist() for _ in range(2)] == [[2.0, 2.0]] * 2

    @double.backward
    def second(grad, x, y):
        return 7 * grad

    assert [compiled(x).tolist() for _ in range(2)] == [[7.0, 7.0]] * 2


def test_an_exception_in_a_kernel_changes_nothing():
    def make():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Dropout(0.5))
        optimizer = optim.Adam(model.parameters(), lr=0.1)

        def step(x, y):
            optimizer.zero_grad()
            loss = (model(x) * positive(y)).sum()
            loss.backward()
            optimizer.step()
            return loss

        return model, optimizer, step

    model, optimizer, inner = make()
    step, x, y = torch.compile(inner), torch.randn(3, 4), torch.ones(3)
    step(x, y), step(x, y)
    assert step.history == []
    before = [t.clone() for t in [*model.parameters(), *model.buffers()]]
    states = [{k: v.clone() for k, v in optimizer.state[p].items()} for p in model.parameters()]
    for _ in range(2):
        with pytest.raises(ValueError, match="a negative element"):
            step(x, -y)
    assert all(torch.equal(a, b) for a, b in zip(before, [*model.parameters(), *model.buffers()], strict=True))
    assert all(p.grad is None for p in model.parameters())
    for p, state in zip(model.parameters(), states, strict=True):
        assert all(torch.equal(optimizer.state[p][key], value) for key, value in state.items())
    assert np.isfinite(step(x, y).item())
    assert len(step.versions) == 1


def test_results_of_another_shape_run_eagerly():
    @torch.jit_function
    def leading(x):
        return x[: int(x[0])].copy()

    def step(x):
        x.add_(0)
        return leading(x * 1).sum()

    compiled = torch.compile(step)
    assert [compiled(torch.tensor([2.0, 3.0, 5.0])).item() for _ in range(2)] == [5.0, 5.0]
    x = torch.tensor([3.0, 3.0, 5.0])
    version = x._version
    assert compiled(x).item() == 11.0
    assert x._version == version + 1


def test_scratch_that_shares_memory_with_an_input_is_kept():
    """The input's place in the arena is given again before the backward runs."""

    @torch.jit_function(outputs=1)
    def halves(x):
        return x * x, x[::2]

    @halves.backward
    def back(grad, x, y, held):
        g = np.zeros_like(grad)
        for i in range(held.size):
            g[2 * i] = held[i] * grad[2 * i]
        return g

    def step(x):
        loss = (halves(x * 3).reshape(4, 16) @ torch.ones(16, 16)).sum()
        return torch.autograd.grad(loss, x)[0]

    compiled = torch.compile(step)
    x = torch.arange(64.0).requires_grad_()
    expected = step(x).tolist()
    assert [compiled(x).tolist() for _ in range(3)] == [expected] * 3
    assert compiled.history == []


# ---------------------------------------------------------------- elementwise functions
@torch.elementwise
def swish(x, beta):
    return x / (1 + torch.exp(-beta * x))


@torch.elementwise
def pair(x, y):
    return x * y, x + y * y


@torch.scalar_function(partials=[lambda x: 1 + 6 * x])
def bumpy(x):
    total = x
    for k in range(3):
        total = total + k * x * x
    return total


@torch.elementwise
def with_loop(x):
    return bumpy(x) * 2


ELEMENTWISE = {
    "one": lambda h, w: swish(h, w).pow(2).sum(),
    "several": lambda h, w: (pair(h, w)[0] * 2 + pair(h, w)[1]).mean(),
    "opaque": lambda h, w: (with_loop(h) + 1).sum() + w.sum(),
}


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_functions_fuse(name):
    (model, inner), (other, eager) = trainer(ELEMENTWISE[name]), trainer(ELEMENTWISE[name])
    step, x = torch.compile(inner), torch.randn(5, 4)
    for _ in range(4):
        np.testing.assert_allclose(step(x).item(), eager(x).item(), rtol=2e-6)
    assert step.history == []
    assert "_call" not in step.source()
    assert_same(model, other, 5e-6)


# ---------------------------------------------------------------- autograd.Function
class Traced(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.exp() * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x.exp() * (1 + x)


class Leaves(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.tensor(np.tanh(x.numpy()))

    @staticmethod
    def backward(ctx, grad):
        return grad


def test_a_function_on_tensors_is_traced():
    def loss(h, w):
        return Traced.apply(h).sum() + Traced.apply(w).sum()

    (model, inner), (other, eager) = trainer(loss), trainer(loss)
    step, x = torch.compile(inner), torch.randn(5, 4)
    for _ in range(4):
        np.testing.assert_allclose(step(x).item(), eager(x).item(), rtol=2e-6)
    assert step.history == []
    assert_same(model, other, 5e-6)


def test_a_function_that_leaves_for_numpy_is_a_break_that_names_the_way():
    step = torch.compile(lambda x: Leaves.apply(x * 2))
    with pytest.warns(RuntimeWarning, match=r"numpy.*test_user_kernels\.py:\d+.*jit_function"):
        step(torch.ones(2))
    np.testing.assert_allclose(step(torch.ones(2) * 2).numpy(), np.tanh([4.0, 4.0]), rtol=1e-6)


def test_a_second_process_finds_the_program(tmp_path):
    """With the kernels in it; and one whose kernel says something else does not find it."""
    script = tmp_path / "script.py"
    text = (
        "import sys, numpy as np, jitgrad as torch\n"
        "@torch.jit_function\n"
        "def inner(x):\n"
        "    return x * FACTOR\n"
        "step = torch.compile(lambda x: inner(x) + 1)\n"
        "step(torch.ones(2)); print(step(torch.ones(2)).tolist()[0])\n"
    )
    environment = {"JITGRAD_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": "src", "PATH": ""}
    found = []
    for factor in ("2.0", "2.0", "100.0"):
        script.write_text(text.replace("FACTOR", factor))
        done = subprocess.run([sys.executable, str(script)], check=True, capture_output=True, env=environment, text=True)
        found.append(float(done.stdout))
    assert found == [3.0, 3.0, 101.0]
