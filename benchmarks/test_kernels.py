"""Kernels of one's own: what they cost beyond their loops, beside torch's `autograd.Function` around the same loops."""

import gc

import pytest

import jitgrad
from benchmarks.conftest import torch
from benchmarks.kernels import CASES, bare, elementwise, op, wrapped
from benchmarks.race import Burst, Row


@pytest.fixture
def contest(benchmark, smoke):
    """Times several steps, burst by burst in turn; the best of each, in microseconds."""

    def run(**steps):
        rounds, seconds = (2, 0.001) if smoke else (40, 0.02)
        bursts = {name: Burst(step, seconds) for name, step in steps.items() if step is not None}
        gc.collect()
        gc.freeze()

        def everybody():
            for burst in bursts.values():
                burst()

        benchmark.pedantic(everybody, rounds=rounds, iterations=1)
        found = {name: bursts[name].best * 1e6 if name in bursts else None for name in steps}
        benchmark.extra_info.update(found)
        return found

    yield run
    gc.unfreeze()


@pytest.mark.parametrize("name", CASES)
def test_kernel(contest, report, name):
    found = contest(
        ours=op(name), loops=bare(name), function=wrapped(jitgrad, name), torch=wrapped(torch, name) if torch else None
    )
    report(Row(f"{name}: jit_function", found["ours"], found["loops"], rival="bare loops"))
    if torch:
        glue, theirs = (found[who] - found["loops"] for who in ("ours", "torch"))
        report(Row(f"{name}: beyond the loops", glue, theirs))
    report(Row(f"{name}: autograd.Function", found["function"], found["torch"]))


def test_elementwise(contest, report):
    found = contest(ours=elementwise(jitgrad), torch=elementwise(torch) if torch else None)
    report(Row("elementwise: tanh(x) * x of 64", found["ours"], found["torch"]))
