"""Every example runs as a reader would run it, silently where nothing is wrong."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name):
    command = [sys.executable, "-W", "error", str(EXAMPLES / name)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_train_mlp_reaches_its_accuracy():
    lines = run("train_mlp.py").splitlines()
    accuracy = float(re.search(r"accuracy ([\d.]+)%$", lines[-1])[1])
    assert accuracy >= 97.0


def test_train_mlp_is_short():
    assert len((EXAMPLES / "train_mlp.py").read_text().splitlines()) < 60


def test_worked_example():
    output = run("worked_example.py")
    assert "tensor(28.) tensor(14.)" in output
    assert "RuntimeError: Trying to backward through the graph a second time" in output
    assert "StraightThroughClampBackward\ntensor([20., 10.])" in output


def test_engine_from_scratch():
    assert run("engine_from_scratch.py").endswith("loss 49.0: dloss/dw = 28.0, dloss/db = 14.0, dloss/dx = 42.0\n")


def test_compile_step():
    output = run("compile_step.py")
    eager, compiled = (re.search(rf"^{word}: .* loss ([\d.]+)$", output, re.M)[1] for word in ("eager", "compiled"))
    assert float(eager) < 0.01
    assert float(compiled) < 0.01
    assert "captured: 18 tensors" in output


def test_every_example_is_tested():
    tests = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    assert [path.name for path in EXAMPLES.glob("*.py") if f'"{path.stem}' not in tests] == []


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_every_example_says_how_to_run_it_or_what_it_shows(path):
    assert path.read_text().startswith('"""')
