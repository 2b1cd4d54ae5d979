"""Whole processes: import, first gradient, start of the demo, memory."""

import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.race import Row

HAS_TORCH = importlib.util.find_spec("torch") is not None
IMPORT = "import time; t = time.perf_counter(); import {0}; print(time.perf_counter() - t)"
GRADIENT = """\
import time; t = time.perf_counter()
import {0} as torch
x = torch.ones(8, requires_grad=True)
(x * x).sum().backward()
print(time.perf_counter() - t)
"""


def output(*command, **environment):
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, check=True, env={**os.environ, **environment}
    )
    return done.stdout


def seconds(program, **environment):
    return float(output("-c", program, **environment))


@pytest.fixture
def once(benchmark):
    """Runs a function once under the fixture, which wants to see something timed."""
    return lambda function: benchmark.pedantic(function, rounds=1, iterations=1)


def test_import(once, report, smoke):
    packages = ["jitgrad", "numpy", *(["torch"] if HAS_TORCH else [])]

    def measure():
        for package in packages:
            seconds(IMPORT.format(package))  # bytecode and the file cache
        rounds = [[seconds(IMPORT.format(package)) for package in packages] for _ in range(1 if smoke else 9)]
        return [min(column) * 1e3 for column in zip(*rounds, strict=True)]

    ours, numpy, *rest = once(measure)
    report(Row("import", ours, numpy, "ms", "numpy"))
    for torch in rest:
        report(Row("import", ours, torch, "ms"))


def test_first_gradient(once, report, smoke, tmp_path):
    def measure():
        cold, warm, torch = [], [], []
        for number in range(1 if smoke else 3):
            folder = str(tmp_path / str(number))
            cold.append(seconds(GRADIENT.format("jitgrad"), JITGRAD_CACHE_DIR=folder))
            for _ in range(1 if smoke else 3):
                warm.append(seconds(GRADIENT.format("jitgrad"), JITGRAD_CACHE_DIR=folder))
                torch += [seconds(GRADIENT.format("torch"))] if HAS_TORCH else []
        return min(cold), min(warm), min(torch, default=None)

    cold, warm, torch = once(measure)
    report(Row("import and first gradient, cold cache", cold, torch, "s"))
    report(Row("import and first gradient, warm cache", warm, torch, "s"))


def test_demo(once, report, tmp_path):
    """One epoch of the demo as a whole process; nearly all of it is the way to the first step."""

    def measure():
        began = time.perf_counter()
        output(
            "-m", "jitgrad", "demo", "--epochs", "1", "--out", str(tmp_path), JITGRAD_CACHE_DIR=str(tmp_path / "cache")
        )
        return time.perf_counter() - began

    report(Row("demo of one epoch, cold cache", once(measure), None, "s"))
    report(Row("demo of one epoch, warm cache", min(measure(), measure()), None, "s"))


@pytest.mark.parametrize("workload", ["mlp_mnist_sgd", "mlp_big_sgd"])
def test_memory(once, report, smoke, workload):
    script = str(Path(__file__).with_name("memory.py"))
    steps = "2" if smoke else "20"

    def measure():
        packages = ["jitgrad", *(["torch"] if HAS_TORCH else [])]
        return [json.loads(output(script, package, workload, steps)) for package in packages]

    found = once(measure)
    for key, meaning in (("peak", "peak of the process"), ("added", "added by model and steps")):
        ours, *rest = [answer[key] for answer in found]
        report(Row(f"{workload}: {meaning}", ours, *(rest or [None]), unit="MiB"))
