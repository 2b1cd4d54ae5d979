"""The page about kernels runs as it is printed, and what it promises about cost holds."""

import re
import timeit
from pathlib import Path

import numpy as np
import pytest

import jitgrad
from jitgrad._core.settings import settings
from tests.kernels_user.cases import make_scan, tensor

PAGE = Path(__file__).parents[2] / "docs" / "custom_kernels.md"


def blocks():
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def test_the_page_runs_from_the_loop_to_the_model(capsys):
    first, *rest = blocks()
    scope = {}
    for block in (first, *rest[:4]):
        exec(compile(block, str(PAGE), "exec"), scope)
    printed = capsys.readouterr().out
    assert "opcheck of scan\n  bounds: holds" in printed
    assert "fails" not in printed
    assert scope["gain"].item() == pytest.approx(0.3, abs=1e-3)
    exec(compile("import numba\n" + rest[4], str(PAGE), "exec"), scope)
    assert scope["f"](jitgrad.tensor([10.0])).item() == pytest.approx(4.0)


def test_every_block_is_run_or_a_fragment():
    assert len(blocks()) == 7
    assert blocks()[-1].startswith("@scan.double_backward")


@pytest.mark.skipif(not settings.jit, reason="about compiled code")
def test_the_glue_of_64_elements_costs_about_what_a_builtin_op_does():
    """Below 4 us where `x.exp()` and its backward take 3.4; as a ratio, because machines differ."""
    x, seed = tensor(np.linspace(-1.0, 1.0, 64)), tensor(np.ones(64), grad=False)
    scan = make_scan()
    scan(x, 0.5).backward(seed)
    (plan,) = scan._signatures.values()
    array, y, grad = x.detach().numpy(), scan(x, 0.5).detach().numpy(), seed.numpy()

    def ours():
        scan(x, 0.5).backward(seed)

    def kernels():
        plan.entry(array, 0.5)
        plan.back(grad, array, 0.5, y)

    def builtin():
        x.exp().backward(seed)

    best = dict.fromkeys((ours, kernels, builtin), 1.0)
    for _ in range(25):
        for call in best:
            best[call] = min(best[call], timeit.timeit(call, number=200) / 200)
    assert best[ours] - best[kernels] < 1.6 * best[builtin]
