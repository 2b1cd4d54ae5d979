"""`python memory.py PACKAGE WORKLOAD STEPS`: the peak of the process and what the steps added, MiB, as JSON."""

import importlib
import json
import resource
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.workloads import mlp

STATUS = Path("/proc/self/status")


def peak():
    """The largest resident size so far, or since `forget_peak`, MiB."""
    if STATUS.exists():
        return int(STATUS.read_text().split("VmHWM:")[1].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def forget_peak():
    """Start anew at the present size, which compiling or loading may have exceeded; possible on Linux only."""
    if STATUS.exists():
        Path("/proc/self/clear_refs").write_text("5")


def main(package, workload, steps):
    module = importlib.import_module(package)
    warm = mlp(module, "mlp_tiny_sgd")  # the library's own footprint, compiled kernels included
    for _ in range(3):
        warm()
    highest = peak()
    forget_peak()
    before = peak()
    step = mlp(module, workload)
    for _ in range(int(steps)):
        step()
    print(json.dumps({"peak": max(highest, peak()), "added": peak() - before}))


if __name__ == "__main__":
    main(*sys.argv[1:])
