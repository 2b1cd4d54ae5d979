"""The page about kernels runs as it is printed, and what it promises about cost holds."""

import re
from pathlib import Path

import numpy as np
import pytest

import jitgrad
from jitgrad._core.settings import settings
from tests.hot_path.counting import counts
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
def test_the_glue_makes_few_calls():
    """One jitted forward and one jitted backward, and around them no more Python than a built-in op has."""
    x, seed = tensor(np.linspace(-1.0, 1.0, 64)), tensor(np.ones(64), grad=False)
    scan = make_scan()
    x.grad = tensor(np.zeros(64), grad=False)
    ours = counts(lambda: scan(x, 0.5).backward(seed))
    plain = counts(lambda: x.exp().backward(seed))
    assert (
        ours.python <= plain.python + 3
    )  # the arguments are looked up, and Numba names the type of each array it returns
    assert ours.kernels <= 2
    assert ours.arrays == 0  # the two that the kernels return are theirs
