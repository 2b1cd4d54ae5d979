"""`python memory.py PACKAGE WORKLOAD STEPS`: the peak of the process and what the steps added, MiB, as JSON."""

import importlib
import json
import resource
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.workloads import mlp


def peak():
    """The largest resident size so far, MiB."""
    scale = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale / 2**20


def main(package, workload, steps):
    module = importlib.import_module(package)
    warm = mlp(module, "mlp_tiny_sgd")  # the library's own footprint, compiled kernels included
    for _ in range(3):
        warm()
    before = peak()
    step = mlp(module, workload)
    for _ in range(int(steps)):
        step()
    print(json.dumps({"peak": peak(), "added": peak() - before}))


if __name__ == "__main__":
    main(*sys.argv[1:])
