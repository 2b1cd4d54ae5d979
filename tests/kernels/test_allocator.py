"""Freed memory stays with the process, so that a step does not pay for its pages anew."""

import os
import platform
import subprocess
import sys

import pytest

from jitgrad._core.settings import read_settings

PROGRAM = """
import resource
import numpy as np
import jitgrad
x = jitgrad.tensor(np.ones(1_000_000, "f4"))
def step():
    y = x * x
    z = y + x
    w = z * y
    return ((w + x) * z) * y
step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def page_faults(**environment):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=os.environ | environment, capture_output=True, text=True, check=True
    )
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc is asked to keep memory")
@pytest.mark.skipif(os.environ.get("JITGRAD_JIT") == "0", reason="asked for at the first compiled kernel")
def test_a_step_finds_its_memory_again():
    kept, given_back = page_faults(JITGRAD_KEEP_MEMORY="1"), page_faults(JITGRAD_KEEP_MEMORY="0")
    assert kept < 4000  # a single array of each step would be 20 * 977 pages
    assert given_back > 4 * kept


def test_the_setting():
    assert read_settings({}).keep_memory
    assert not read_settings({"JITGRAD_KEEP_MEMORY": "0"}).keep_memory
