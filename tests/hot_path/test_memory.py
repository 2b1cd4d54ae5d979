"""Training leaks nothing: no cycle is made, so memory stays flat with the cycle collector off."""

import gc
import weakref
from pathlib import Path

import pytest

import jitgrad as torch

STATUS = Path("/proc/self/status")
STEPS = 10_000


def resident():
    """Resident memory of this process in KiB."""
    return int(STATUS.read_text().split("VmRSS:")[1].split()[0])


@pytest.fixture
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def training_step(optimizer_class):
    model = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    optimizer = optimizer_class(model.parameters(), lr=0.01)
    x, y = torch.ones(32, 2), torch.zeros(32, 1)

    def step():
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


@pytest.mark.skipif(not STATUS.exists(), reason="reads /proc")
@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_memory_is_flat(no_collector, name):
    step = training_step(getattr(torch.optim, name))
    for _ in range(500):
        step()
    before = resident()
    for _ in range(STEPS):
        step()
    assert resident() - before < 1024


def test_a_graph_dies_with_its_last_tensor(no_collector):
    step = training_step(torch.optim.SGD)
    node = weakref.ref(step().grad_fn)
    assert node() is None


def test_no_object_is_left_to_the_collector(no_collector):
    step = training_step(torch.optim.SGD)
    step()
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(100):
        step()
    assert len(gc.get_objects()) - before < 20
    assert gc.collect() == 0
