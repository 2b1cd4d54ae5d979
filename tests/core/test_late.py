"""Names that bring their module at the first use."""

import importlib
import subprocess
import sys

import pytest

import jitgrad

HOMES = ["jitgrad", "jitgrad.autograd", "jitgrad.autograd.graph", "jitgrad.optim"]


@pytest.mark.parametrize("name", HOMES)
def test_dir_lists_what_would_load(name):
    module = importlib.import_module(name)
    late = {*getattr(module, "_LATE_NAMES", ()), *getattr(module, "_LATE", ())}
    assert late
    assert late <= set(dir(module))
    for each in sorted(late):
        assert getattr(module, each) is not None


@pytest.mark.parametrize("name", HOMES)
def test_other_names_are_refused(name):
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'nothing_like_it'"):
        importlib.import_module(name).nothing_like_it


def test_listing_loads_nothing():
    program = "import sys, jitgrad; before = set(sys.modules); dir(jitgrad), dir(jitgrad.autograd); print(sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
    assert jitgrad.autograd.Function.__module__ == "jitgrad.autograd.function"
