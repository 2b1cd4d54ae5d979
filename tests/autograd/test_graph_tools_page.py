"""The page about the tools runs as it is printed; the pictures are what `draw` gives."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import jitgrad

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "graph_tools.md"


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def test_the_page_runs(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scope, printed = {}, []
    for block in blocks("python"):
        exec(compile(block, str(PAGE), "exec"), scope)
        printed.append(capsys.readouterr().out)
    assert table(printed[0]) == table(blocks("text")[0])
    assert (tmp_path / "mlp.svg").read_text(encoding="utf-8").startswith("<svg")
    assert any("ReluBackward0" in line and line.endswith(" in <module>") for line in printed[3].splitlines())
    assert printed[-1].startswith("MulBackward0 saved 'other' for its backward")
    assert "Self CPU time total" in printed[-2]
    assert len(printed) == 7


def table(text):
    """The cells of a printed table; sequence numbers count from the smallest, since they go on through a process."""
    head, _, *rows = [re.split(r"\s{2,}", line.strip()) for line in text.strip().splitlines()]
    numbers = [int(row[3]) for row in rows if row[3] != "max"]
    return head, [[*row[:3], row[3] if row[3] == "max" else int(row[3]) - min(numbers), *row[4:]] for row in rows]


@pytest.mark.skipif(not (ROOT / "tools" / "draw_pictures.py").exists(), reason="not a checkout")
def test_the_pictures_are_up_to_date():
    command = [sys.executable, str(ROOT / "tools" / "draw_pictures.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert all(f"docs/images/{name}" in readme for name in ("worked_example.svg", "mlp.svg"))


def test_the_tools_load_when_they_are_used():
    code = """
import sys, jitgrad
names = lambda: {name.rpartition(".")[2] for name in sys.modules if name.startswith("jitgrad.autograd._graph.")}
assert names() == set(), names()
y = jitgrad.ones(2, requires_grad=True).exp().sum()
y.backward()
assert names() == set()
jitgrad.autograd.graph.save_compressed()
assert names() == {"storage"}
assert {"draw", "trace_backward", "saved_memory", "save_on_disk"} <= set(dir(jitgrad.autograd.graph))
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_unknown_name():
    with pytest.raises(AttributeError, match="no attribute 'drew'"):
        jitgrad.autograd.graph.drew
