"""`info` and `cache`: what they print and remove."""

import platform

import numpy as np
import pytest

from jitgrad.cli import cache, info

GRADIENT = """\
import jitgrad as torch
x = torch.ones(3, requires_grad=True)
(x * x).sum().backward()
"""


def values(text, width=9):
    return {line[:width].strip(): line[width:] for line in text.splitlines()}


def test_info_names_everything(command):
    done = command("info")
    assert (done.returncode, done.stderr) == (0, "")
    found = values(done.stdout)
    assert list(found) == ["jitgrad", "python", "numpy", "numba", "extras", "jit", "threads", "BLAS", "cache"]
    assert found["python"].startswith(platform.python_version())
    assert found["numpy"] == np.__version__
    assert "cores" in found["threads"]


def test_info_without_the_jit(command):
    done = command("info", JITGRAD_JIT="0")
    assert (done.returncode, done.stderr) == (0, "")
    assert values(done.stdout)["jit"].startswith("off")


def test_a_package_that_is_not_installed_has_no_version():
    assert info._version("surely-not-installed") is None


def test_an_empty_cache(command, tmp_path):
    done = command("cache", "info", JITGRAD_CACHE_DIR=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert values(done.stdout) == {"folder": str(tmp_path), "kernels": "0", "size": "0 B"}


def test_clear_removes_the_kernels_and_only_them(command, tmp_path):
    folder = tmp_path / "cache"
    compiled = folder / "k-0123456789abcdef"
    compiled.mkdir(parents=True)
    (compiled / "jitgrad_add_float32_0123.py").write_text("# a kernel\n")
    (tmp_path / "other").write_text("stays")
    environment = {"JITGRAD_CACHE_DIR": str(folder)}
    assert values(command("cache", "info", **environment).stdout)["kernels"] == "1"
    done = command("cache", "clear", **environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("removed 1 kernel, 11 B")
    assert values(command("cache", "info", **environment).stdout)["kernels"] == "0"
    assert (tmp_path / "other").read_text() == "stays"
    assert command("cache", "clear", **environment).stdout.startswith("removed 0 kernels")


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1 << 20, "1.0 MiB"),
        (5 << 30, "5.0 GiB"),
        (2 << 40, "2048.0 GiB"),
    ],
)
def test_sizes(count, text):
    assert cache.size(count) == text


def test_no_folder_at_all(monkeypatch, capsys):
    monkeypatch.setattr("jitgrad._kernels.store.cache_dir", lambda: None)
    assert cache.info() == 0
    assert cache.clear() == 0
    assert "in memory only" in cache.summary()
    assert "JITGRAD_CACHE_DIR" in capsys.readouterr().out
