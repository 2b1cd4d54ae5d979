"""The number of threads of matrix products."""

import os
import subprocess
import sys

import pytest

import jitgrad


def threads_in_a_process(**environment):
    code = (
        "import jitgrad\n"
        "x = jitgrad.ones(2, 2)\n"
        "x @ x\n"
        "from jitgrad._kernels import blas\n"
        "print(jitgrad.get_num_threads(), blas.get_threads())\n"
        "jitgrad.set_num_threads(2)\n"
        "print(jitgrad.get_num_threads(), blas.get_threads())\n"
    )
    names = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")
    clean = {k: v for k, v in os.environ.items() if k not in names}
    out = subprocess.run([sys.executable, "-c", code], env=clean | environment, capture_output=True, text=True, check=True)
    return out.stdout.split()


def test_one_by_default_and_two_on_request():
    assert threads_in_a_process() == ["1", "1", "2", "2"]


def test_the_environment_is_asked():
    assert threads_in_a_process(OMP_NUM_THREADS="2")[:2] == ["2", "2"]


@pytest.mark.parametrize(("wrong", "error"), [(0, RuntimeError), (-1, RuntimeError), (1.5, TypeError), (True, TypeError)])
def test_bad_numbers(wrong, error):
    before = jitgrad.get_num_threads()
    with pytest.raises(error):
        jitgrad.set_num_threads(wrong)
    assert jitgrad.get_num_threads() == before
