"""The page on forward mode runs, and gives what it says."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "forward_mode.md"


def test_the_code_of_the_page():
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 4
    names = {}
    exec(compile("\n".join(blocks), str(PAGE), "exec"), names)
    assert names["hessian_times_v"].tolist() == [6.0, 12.0]
    assert names["per_sample"](names["x"], names["jitgrad"].ones(3, 2)).tolist() == [[2.0, 2.0]] * 3
    assert names["tangent"].tolist() == pytest.approx([1.0, 2.718282])
    assert names["gradients"]["weight"].tolist() == [[0.0, 1.0]]
