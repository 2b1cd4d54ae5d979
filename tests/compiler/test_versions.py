"""Version counters of what compiled steps write: counted together, told apart as eager counts them."""

import gc

import pytest

import jitgrad as torch
from jitgrad import nn, optim


def trainer():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step(x):
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    return model, step


def test_each_call_counts_as_many_writes_as_eager_mode_does():
    (model, step), (other, eager) = trainer(), trainer()
    compiled, x = torch.compile(step), torch.ones(2, 3)
    for _ in range(4):
        compiled(x), eager(x)
        assert [p._version for p in model.parameters()] == [p._version for p in other.parameters()]
    with torch.no_grad():
        model[0].bias.zero_(), other[0].bias.zero_()
    for _ in range(2):
        compiled(x), eager(x)
    assert [p._version for p in model.parameters()] == [p._version for p in other.parameters()]
    assert compiled.history == []


def test_a_value_saved_before_a_compiled_step_is_refused_after_it():
    model, step = trainer()
    compiled, x = torch.compile(step), torch.ones(2, 3)
    for _ in range(3):
        compiled(x)
    weight = model[2].weight
    result = (weight * weight).sum()
    before = weight._version
    compiled(x), compiled(x)
    with pytest.raises(RuntimeError, match=f"is at version {before + 2}; expected version {before} instead"):
        result.backward()


def test_two_programs_over_one_parameter_and_one_that_is_gone():
    weight = nn.Parameter(torch.ones(2))

    def scaled(factor):
        def step(x):
            with torch.no_grad():
                weight.mul_(factor)
            return (weight * x).sum().detach()

        return torch.compile(step)

    first, second, x = scaled(0.5), scaled(0.25), torch.ones(2)
    for _ in range(3):
        first(x), second(x)
    assert weight._version == 6
    del first
    gc.collect()
    third = scaled(2.0)
    for _ in range(3):
        second(x), third(x)
    assert weight._version == 12
    assert len(weight.vc.shared) == 2  # the one that is gone has become the counter's own
    weight.requires_grad_(False).add_(1)
    assert weight._version == 13


def test_a_step_that_writes_twice_counts_two():
    weight = torch.zeros(3)

    def step(x):
        weight.add_(x)
        weight.mul_(0.5)
        return weight.sum()

    compiled = torch.compile(step)
    for _ in range(3):
        compiled(torch.ones(3))
    assert weight._version == 6
    assert compiled.history == []


def test_forgotten_writes_of_others_stay_counted():
    model, step = trainer()
    compiled, x = torch.compile(step), torch.ones(2, 3)
    for _ in range(3):
        compiled(x)
    bias = model[0].bias
    before = bias._version
    with torch.autograd._unsafe_preserve_version_counter(bias), torch.no_grad():
        bias.zero_()
    assert bias._version == before
    compiled(x)
    assert bias._version == before + 1
