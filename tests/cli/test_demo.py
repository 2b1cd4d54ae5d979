"""`python -m jitgrad demo`: output, files, accuracy, and what happens without the optional packages."""

import os
import re

import numpy as np
import pytest

WITHOUT_EXTRAS = """\
import sys
for name in ("tqdm", "matplotlib", "safetensors"):
    sys.modules[name] = None
"""


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("demo")


@pytest.fixture
def without_extras(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_EXTRAS)
    paths = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"PYTHONPATH": os.pathsep.join(paths)}


def test_trains_to_its_accuracy_and_says_so(command, out):
    done = command("demo", "--out", out)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^kernels   (compiling|loading) \.\.\. \d+ ready in [\d.]+ s", done.stdout, re.MULTILINE)
    assert float(re.search(r"^result    ([\d.]+)% of 359 held-out", done.stdout, re.MULTILINE)[1]) >= 97.0
    rows = re.findall(r"^ +(\d+) +[\d.]+ +[\d.]+ +[\d.]+% +([\d.]+)%$", done.stdout, re.MULTILINE)
    assert [int(number) for number, _ in rows] == [1, *range(3, 31, 3)]
    assert "690/690" in done.stderr or "100%" in done.stderr
    assert "arning" not in done.stderr


def test_saves_weights_that_can_be_loaded(out):
    load_file = pytest.importorskip("safetensors.numpy").load_file
    weights = load_file(out / "weights.safetensors")
    shapes = [(128, 64), (128,), (64, 128), (64,), (10, 64), (10,)]
    names = [f"{layer}.{kind}" for layer in (0, 2, 4) for kind in ("weight", "bias")]
    assert {name: array.shape for name, array in weights.items()} == dict(zip(names, shapes, strict=True))
    assert all(array.dtype == np.float32 and np.isfinite(array).all() for array in weights.values())


def test_draws_a_picture(out):
    pytest.importorskip("matplotlib")
    picture = out / "digits.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 10_000


def test_same_seed_same_run_other_seed_other_run(command, tmp_path):
    def table(seed):
        done = command("demo", "--epochs", 2, "--seed", seed, "--out", tmp_path)
        assert done.returncode == 0, done.stderr
        return re.findall(r"^ +\d+ .*%$", done.stdout, re.MULTILINE)

    assert table(3) == table(3) != table(4)


def test_without_extras_it_is_plain_and_complete(command, tmp_path, without_extras):
    done = command("demo", "--epochs", 1, "--out", tmp_path / "out", **without_extras)
    assert done.returncode == 0, done.stderr
    assert "10% 20% 30%" in done.stderr
    assert "pip install safetensors" in done.stdout
    assert "pip install matplotlib" in done.stdout
    with np.load(tmp_path / "out" / "weights.npz") as weights:
        assert weights["0.weight"].shape == (128, 64)
    assert not (tmp_path / "out" / "digits.png").exists()


def test_a_folder_that_cannot_be_made(command, tmp_path):
    (tmp_path / "file").write_text("")
    done = command("demo", "--out", tmp_path / "file" / "sub")
    assert done.returncode == 1
    assert "can't make the folder" in done.stderr
    assert "Traceback" not in done.stderr
