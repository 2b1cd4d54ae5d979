"""Faults that users met in other compilers and caches, as cases."""

import subprocess
import sys

import numba
import numpy as np
import pytest

import jitgrad as torch
from jitgrad.nn import functional as F
from tests.compiler.steps import quietly

NAN = float("nan")


def twice(compiled, *arguments):
    """The result of a second call, which runs the program; nothing may run eagerly."""
    compiled(*arguments)
    result = compiled(*arguments)
    assert compiled.history == []
    assert len(compiled.versions) == 1
    return result


# ---------------------------------------------------------------- values at edge points
def test_a_norm_at_the_origin_and_its_spelled_out_form():
    """S01: the one has a gradient of zero; the other what eager mode says."""

    def step(x):
        norm, squared = torch.autograd.grad(x.norm(), x)[0], torch.autograd.grad(x.norm() ** 2, x)[0]
        return norm, squared, torch.autograd.grad((x * x).sum().sqrt(), x)[0]

    x = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    norm, squared, spelled = twice(torch.compile(step), x)
    assert norm.tolist() == squared.tolist() == [0.0, 0.0, 0.0]
    np.testing.assert_array_equal(spelled.numpy(), step(x)[2].numpy())


def test_the_branch_not_taken_does_not_poison_the_one_taken():
    """S03: an incoming gradient of zero stays zero where the derivative is infinite."""

    def gradient(function):
        return torch.compile(lambda x: torch.autograd.grad(function(x).sum(), x)[0])

    a = twice(gradient(lambda x: torch.where(x > 0, torch.sqrt(x), x)), torch.tensor([-1.0, -4.0], requires_grad=True))
    b = twice(gradient(lambda x: torch.where(x <= 0, torch.exp(x), 1 + x)), torch.tensor([100.0], requires_grad=True))
    zero_one = torch.tensor([0.0, 1.0])
    c = twice(gradient(lambda x: (x / zero_one)[[1]]), torch.tensor([1.0, 1.0], requires_grad=True))
    assert (a.tolist(), b.tolist(), c.tolist()) == ([1.0, 1.0], [1.0], [0.0, 1.0])


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_cross_entropy_with_every_target_ignored(reduction):
    """S18."""
    x, y = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64, requires_grad=True), torch.tensor([-100, -100])

    def step(x, y):
        loss = F.cross_entropy(x, y, reduction=reduction)
        return loss.detach(), torch.autograd.grad(loss, x)[0]

    loss, grad = twice(torch.compile(step), x, y)
    assert np.isnan(loss.item()) if reduction == "mean" else loss.item() == 0
    assert grad.tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_cross_entropy_smoothed_with_one_target_ignored_and_a_bad_target():
    """S18."""
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64, requires_grad=True)

    def step(x, y):
        loss = F.cross_entropy(x, y, label_smoothing=0.1)
        return loss.detach(), torch.autograd.grad(loss, x)[0]

    compiled = torch.compile(step)
    loss, grad = twice(compiled, x, torch.tensor([0, -100]))
    assert loss.item() == pytest.approx(1.2632616875182228, rel=1e-12)
    np.testing.assert_allclose(grad.numpy(), [[-0.681058578630005, 0.681058578630005], [0, 0]], rtol=1e-12)
    with pytest.raises(IndexError):
        compiled(x, torch.tensor([0, 5]))


def test_an_index_out_of_range_raises():
    """S23: and memory that is nobody's is not read."""
    x, table = torch.tensor([1.0, 2.0, 3.0]), torch.ones(3, 2)
    cases = [
        (lambda i: x[i], IndexError, [0], [1000]), (lambda i: F.embedding(i, table), IndexError, [0], [5]),
        (lambda i: x.gather(0, i), RuntimeError, [0], [3]), (lambda i: torch.zeros(3).scatter_add(0, i, torch.ones(1)), RuntimeError, [0], [3]),
        (lambda i: F.cross_entropy(table[:1], i), IndexError, [0], [5]), (lambda i: x.index_select(0, i), IndexError, [0], [-4]),
    ]  # fmt: skip
    for function, kind, right, wrong in cases:
        compiled = torch.compile(function)
        twice(compiled, torch.tensor(right))
        for _ in range(2):
            with pytest.raises(kind):
                compiled(torch.tensor(wrong))
    assert twice(torch.compile(lambda i: x[i]), torch.tensor([-1])).tolist() == [3.0]


def test_nan_is_what_it_is():
    """S14: nothing assumes NaN away, and no order of operands turns it into a number."""
    compiled = torch.compile(lambda x: (torch.isnan(x), x != x, torch.relu(x), x.clamp(0, 1), torch.maximum(x, x * 0), x.max(), x.argmax()))
    isnan, differs, relu, clamped, larger, top, place = twice(compiled, torch.tensor([1.0, NAN, -1.0]))
    assert isnan.tolist() == differs.tolist() == [False, True, False]
    for found in (relu, clamped, larger):
        assert np.isnan(found.numpy()).tolist() == [False, True, False]
    assert np.isnan(top.item())
    assert place.item() == 1


# ---------------------------------------------------------------- caches
KERNELS = []
for factor in (2.0, 3.0):


    scope = {"np": np, "FACTOR": factor}
    plain = numba.njit(lambda x: x * FACTOR).py_func  # noqa: F821
    KERNELS.append(torch.jit_function(type(plain)(plain.__code__, scope, "scaled")))


def test_graphs_that_differ_in_little_do_not_share_a_program():
    """S24: operands swapped, other constants, other axes, kernels of equal bytecode over other globals, other dtypes and strides."""
    x, y = torch.tensor([[1.0, 2.0], [3.0, 5.0]]), torch.tensor([[7.0, 11.0], [13.0, 17.0]])
    pairs = [
        (lambda x, y: x - y, lambda x, y: y - x), (lambda x, y: x * 0.1 + y, lambda x, y: x * 0.2 + y),
        (lambda x, y: x.sum(0), lambda x, y: x.sum(1)),
        (lambda x, y: KERNELS[0](x), lambda x, y: KERNELS[1](x)), (lambda x, y: x @ y, lambda x, y: x.t() @ y),
        (lambda x, y: x[0], lambda x, y: x[1] * 1),
        (lambda x, y: x.clamp(0, 2), lambda x, y: x.clamp(0, 3)),
    ]  # fmt: skip
    for first, second in pairs:
        for function in (first, second):
            expected = function(x, y).tolist()
            compiled = torch.compile(function)
            assert quietly(compiled, x, y).tolist() == quietly(compiled, x, y).tolist() == expected
    compiled = torch.compile(lambda x: x + 0.1)
    single, double = torch.ones(3), torch.ones(3, dtype=torch.float64)
    turned = torch.arange(6.0).reshape(2, 3).t()
    for _ in range(2):
        for given in (single, double, turned, turned.contiguous()):
            np.testing.assert_allclose(compiled(given).numpy(), given.numpy() + 0.1, rtol=1e-6)


def run(script, environment):
    environment = {"PYTHONPATH": "src", "PATH": "", **environment}
    done = subprocess.run([sys.executable, str(script)], check=True, capture_output=True, env=environment, text=True)
    return done.stdout.split()


def test_a_callee_that_changes_is_noticed_by_another_process(tmp_path):
    """S12: the name of a stored program holds the digest of all that it calls."""
    (tmp_path / "main.py").write_text(
        "import jitgrad as torch, lib\n"
        "outer = torch.jit_function(lambda x: lib.inner(x) + 1)\n"
        "step = torch.compile(lambda x: outer(x) * 1)\n"
        "step(torch.ones(1)); print(step(torch.ones(1)).item(), len(step.versions))\n"
    )
    found = []
    for factor in (2, 100, 2):
        (tmp_path / "lib.py").write_text(f"def deepest(x):\n    return x * {factor}\ndef inner(x):\n    return deepest(x)\n")
        environment = {"JITGRAD_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": f"src:{tmp_path}", "PYTHONDONTWRITEBYTECODE": "1"}
        found += run(tmp_path / "main.py", environment)
    assert found == ["3.0", "1", "101.0", "1", "3.0", "1"]


def test_no_folder_to_write_to(tmp_path):
    """S13: HOME unusable, the cache folder a file: programs are compiled in memory, and a warning says so."""
    script, blocked = tmp_path / "main.py", tmp_path / "blocked"
    blocked.write_text("")
    script.write_text(
        "import warnings\nwarnings.simplefilter('ignore')\n"
        "import jitgrad as torch\n"
        "step = torch.compile(lambda x: (x * 2).sum())\n"
        "step(torch.ones(3)); print(step(torch.ones(3)).item(), len(step.versions))\n"
    )
    environment = {"HOME": "/nonexistent", "JITGRAD_CACHE_DIR": str(blocked / "cache"), "TMPDIR": str(tmp_path)}
    assert run(script, environment) == ["6.0", "1"]


def test_a_damaged_program_on_disk_is_made_anew(tmp_path):
    script = tmp_path / "main.py"
    script.write_text(
        "import jitgrad as torch\n"
        "step = torch.compile(lambda x: (x * 2).sum())\n"
        "step(torch.ones(3)); print(step(torch.ones(3)).item(), len(step.versions))\n"
    )
    cache = tmp_path / "cache"
    assert run(script, {"JITGRAD_CACHE_DIR": str(cache)}) == ["6.0", "1"]
    for path in cache.rglob("*.nb[ic]"):
        path.write_bytes(path.read_bytes()[:20])
    assert run(script, {"JITGRAD_CACHE_DIR": str(cache)}) == ["6.0", "1"]
