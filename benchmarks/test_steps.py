"""Steps inside one process: ops, nodes, layers, training steps, functions of many elements."""

import pytest

from benchmarks.workloads import STEPS


@pytest.mark.parametrize("name", STEPS)
def test_step(race, name):
    build, per = STEPS[name]
    race(name, build, per)
