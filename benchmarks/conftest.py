"""One thread, a fair environment, the `race` between the two packages, and the table at the end.

python -m pytest benchmarks             the figures (some minutes; leave the machine alone meanwhile)
python -m pytest benchmarks --smoke     that everything runs (figures mean nothing)
"""

import gc
import os
import sys

if "numpy" in sys.modules:
    raise RuntimeError("run the benchmarks in a process of their own: they set the threads before numpy is imported")
for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"
for variable in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):  # they choose slower kernels than the machine has
    os.environ.pop(variable, None)

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode, a checkout makes it once

import pytest

from benchmarks.race import Burst, Row, table

try:
    import torch
except ImportError:
    torch = None
else:
    torch.set_num_threads(1)

import jitgrad

ROWS = pytest.StashKey[list]()


def pytest_addoption(parser):
    parser.addoption("--smoke", action="store_true", help="run every benchmark for a moment only")


def pytest_configure(config):
    config.stash[ROWS] = []


def pytest_terminal_summary(terminalreporter, config):
    if config.stash[ROWS]:
        terminalreporter.section("jitgrad beside torch, one thread" + (", SMOKE" if config.getoption("smoke") else ""))
        for line in table(config.stash[ROWS]):
            terminalreporter.write_line(line)


@pytest.fixture
def smoke(request):
    return request.config.getoption("smoke")


@pytest.fixture
def report(request):
    """Adds a row to the table."""
    return request.config.stash[ROWS].append


@pytest.fixture
def race(benchmark, report, smoke):
    """race(name, build, per): time build(jitgrad) and, in between, build(torch); `per` things are done by a step."""

    def run(name, build, per=1):
        rounds, seconds = (2, 0.001) if smoke else (40, 0.02)
        ours = Burst(build(jitgrad), seconds)
        theirs = Burst(build(torch), seconds) if torch else None
        gc.collect()
        gc.freeze()
        # the fixture's own figures are of whole bursts
        benchmark.pedantic(ours, setup=theirs, rounds=rounds, iterations=1)
        row = Row(name, ours.best / per * 1e6, theirs and theirs.best / per * 1e6)
        benchmark.extra_info.update(us=row.ours, torch_us=row.theirs, ratio=row.ratio)
        report(row)

    yield run
    gc.unfreeze()
