"""Long chains and lattices: no recursion anywhere, linear time."""

import subprocess
import sys
import time

import pytest

import jitgrad as torch
from tests.libraries import function, leaf

CHAIN = """
import gc, sys, threading
import jitgrad as torch
gc.disable()
one = torch.ones(1)

class Same(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clone()
    @staticmethod
    def backward(ctx, grad):
        return grad

steps = {
    "mul": lambda y: y * one, "scalar": lambda y: y + 1.0, "view": lambda y: y.view(1), "function": Same.apply,
    "several": lambda y: y.unbind(0)[0].unsqueeze(0), "in place": lambda y: y.mul_(1.0),
}
step, length = steps[sys.argv[1]], int(sys.argv[2])

def chain(length):
    x = torch.ones(1, requires_grad=True)
    y = x * 1
    for _ in range(length):
        y = step(y)
    return x, y

def work(length):
    x, y = chain(length)
    del y                      # freed without a backward
    x, y = chain(length)
    y.backward()
    assert x.grad.item() == 1.0
    del y                      # freed after one
    x, y = chain(min(length, 20_000))
    assert torch.autograd.grad(y, x)[0].item() == 1.0

work(length)
threading.stack_size(128 * 1024)
thread = threading.Thread(target=work, args=(min(length, 100_000),))
thread.start()
thread.join()
print("done")
"""


@pytest.mark.parametrize(("step", "length"), [("mul", 1_000_000), ("scalar", 20_000), ("view", 20_000), ("function", 20_000),
                                              ("several", 10_000), ("in place", 10_000)])  # fmt: skip
def test_a_chain_is_run_and_freed_without_recursion(step, length):
    done = subprocess.run([sys.executable, "-c", CHAIN, step, str(length)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr[-2000:]


@pytest.mark.parametrize("whole", [True, False])
def test_a_lattice_takes_linear_time(whole):
    """Each layer doubles the paths: 2 ** 30 of them in the deepest."""
    x = leaf(torch, 1.0, dtype="float64")
    y = x
    for _ in range(30):
        y = y + y
    z = x
    for _ in range(30):
        a, b = z * 0.5, z * 0.5
        z = a + b
    start = time.perf_counter()
    total = y + z
    got = x.grad if whole and total.backward() is None else torch.autograd.grad(total, x)[0]
    assert got.item() == 2.0**30 + 1
    assert time.perf_counter() - start < 1


def test_backward_inside_backward_goes_deep():
    def backward(ctx, grad):
        if ctx.depth == 0:
            return grad, None
        with torch.enable_grad():
            inner = leaf(torch, 1.0)
            deep.apply(inner, ctx.depth - 1).backward()
        return inner.grad * grad, None

    def forward(ctx, x, depth):
        ctx.depth = depth
        return x * 1

    deep = function(torch, forward, backward)
    x = leaf(torch, 1.0)
    deep.apply(x, 2_000).backward()
    assert x.grad.item() == 1.0
