"""The rarer optimizers: their steps, options and states beside torch's."""

import numpy as np
import pytest

import jitgrad
from tests.libraries import lib

__all__ = ["lib"]

CASES = {
    "adadelta": ("Adadelta", {}),
    "adadelta, all options": ("Adadelta", {"lr": 0.5, "rho": 0.8, "eps": 1e-3, "weight_decay": 0.1, "maximize": True, "foreach": True}),
    "adamax": ("Adamax", {"lr": 0.1, "weight_decay": 0.1}),
    "adamax, all options": ("Adamax", {"lr": 0.01, "betas": (0.8, 0.9), "eps": 1e-2, "weight_decay": 0.1, "maximize": True, "foreach": False}),
    "nadam": ("NAdam", {"lr": 0.1}),
    "nadam, all options": (
        "NAdam", {"lr": 0.01, "betas": (0.8, 0.9), "eps": 1e-2, "weight_decay": 0.1, "momentum_decay": 0.1, "maximize": True, "foreach": True},
    ),
    "nadam, decoupled": ("NAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    "radam": ("RAdam", {"lr": 0.1, "weight_decay": 0.1}),
    "radam, rectified soon": ("RAdam", {"lr": 0.1, "betas": (0.8, 0.9), "eps": 1e-2, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    "radam, never rectified": ("RAdam", {"lr": 0.01, "betas": (0.8, 0.6), "maximize": True}),  # the divisor of what is not used is zero
    "asgd": ("ASGD", {"lr": 0.1}),
    "asgd, averaging": ("ASGD", {"lr": 0.1, "t0": 2, "weight_decay": 0.1, "lambd": 0.1}),
    "asgd, all options": ("ASGD", {"lr": 0.01, "t0": 4, "alpha": 0.5, "weight_decay": 0.1, "lambd": 0.1, "maximize": True, "foreach": False}),
    "rprop": ("Rprop", {}),
    "rprop, all options": ("Rprop", {"lr": 0.1, "maximize": True, "step_sizes": (0.01, 0.2), "etas": (0.4, 1.5)}),
}  # fmt: skip


def problem(lib, kind, options, dtype="float32", turned=False):
    """A parameter, its optimizer, and a step on a loss whose gradient changes its sign."""
    start = lib.tensor([[1.0, -2.0, 3.0], [0.5, 0.0, -1.0]], dtype=getattr(lib, dtype))
    p = lib.nn.Parameter(start.t() if turned else start)
    optimizer = getattr(lib.optim, kind)([p], **options)

    def step(k):
        optimizer.zero_grad()
        ((p * p).sum() * 0.5 * (1 if k % 3 else -1) + (p * 2).sin().sum()).backward()
        optimizer.step()

    return p, optimizer, step


def assert_same_state(have, want, rtol, dtypes=True):
    torch = pytest.importorskip("torch")
    assert list(have) == list(want)
    for key, value in want.items():
        assert have[key].shape == value.shape
        assert not dtypes or str(have[key].dtype).split(".")[1] == str(value.dtype).split(".")[1]
        assert torch.allclose(torch.tensor(have[key].tolist(), dtype=value.dtype), value, atol=rtol, rtol=rtol)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("dtype", "turned"), [("float32", False), ("float64", False), ("float64", True)])
def test_steps_are_those_of_torch(name, dtype, turned):
    torch = pytest.importorskip("torch")
    (p, mine, step), (q, other, move) = (problem(lib, *CASES[name], dtype, turned) for lib in (jitgrad, torch))
    rtol = 1e-5 if dtype == "float32" else 1e-9
    for k in range(20):
        step(k)
        move(k)
    assert torch.allclose(torch.tensor(p.tolist(), dtype=q.dtype), q, rtol=rtol, atol=rtol)
    assert_same_state(mine.state[p], other.state[q], 1e-5 if dtype == "float32" else 1e-6)  # counts of torch's are float32
    assert repr(mine) == repr(other)


@pytest.mark.parametrize("kind", ["Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "Rprop"])
def test_each_parameter_counts_its_own_steps(kind):
    torch = pytest.importorskip("torch")

    def values(lib):
        params = [lib.ones(2, dtype=lib.float64, requires_grad=True) for _ in range(3)]
        optimizer = getattr(lib.optim, kind)(params, lr=0.1)
        for k in range(12):
            for place, p in enumerate(params):
                p.grad = lib.full((2,), 0.5 + 0.1 * k, dtype=lib.float64) if k % (place + 1) == 0 else None
            optimizer.step()
        assert [optimizer.state[p]["step"].item() for p in params] == [12, 6, 4]
        return [p.tolist() for p in params]

    assert np.allclose(values(jitgrad), values(torch), rtol=1e-7)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("back", [False, True], ids=["torch to jitgrad", "jitgrad to torch"])
def test_a_state_goes_over(name, back):
    torch = pytest.importorskip("torch")
    source, target = (jitgrad, torch) if back else (torch, jitgrad)
    (p, first, step), (q, second, move) = (problem(lib, *CASES[name], "float64") for lib in (source, target))
    for k in range(6):
        step(k)
    saved = first.state_dict()
    held = {key: (value.tolist(), str(value.dtype).split(".")[1]) for key, value in saved["state"][0].items()}
    saved["state"] = {0: {key: target.tensor(value, dtype=getattr(target, dtype)) for key, (value, dtype) in held.items()}}
    second.load_state_dict(saved)
    with target.no_grad():
        q.copy_(target.tensor(p.tolist()))
    for k in range(6, 12):
        step(k)
        move(k)
    assert np.allclose(p.tolist(), q.tolist(), rtol=1e-6, atol=1e-6)
    pair = (first.state[p], second.state[q]) if back else (second.state[q], first.state[p])
    assert_same_state(*pair, 1e-5, dtypes=False)  # what is loaded has the parameter's


@pytest.mark.parametrize("kind", ["Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "Rprop"])
def test_options_and_what_they_refuse(lib, kind):
    make = getattr(lib.optim, kind)
    w = lib.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match="Invalid learning rate: -1"):
        make([w], lr=-1)
    with pytest.raises(ValueError, match="Tensor lr must be 1-element"):
        make([w], lr=lib.ones(2))
    optimizer = make([w], lr=lib.tensor(0.25))
    w.grad = lib.ones(2)
    optimizer.step()
    assert (w < 1).all()
    again = make([w])
    again.load_state_dict(optimizer.state_dict())
    assert again.state[w]["step"].item() == 1
    torch = pytest.importorskip("torch")
    assert list(make([w]).defaults.items()) == list(getattr(torch.optim, kind)([torch.ones(1)]).defaults.items())


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        ("Adadelta", {"rho": 2}, "Invalid rho value: 2"),
        ("Adadelta", {"eps": -1}, "Invalid epsilon value: -1"),
        ("Adamax", {"betas": (1.0, 0.5)}, "Invalid beta parameter at index 0: 1.0"),
        ("NAdam", {"momentum_decay": -1}, "Invalid momentum_decay value: -1"),
        ("RAdam", {"betas": (0.5, 1.0)}, "Invalid beta parameter at index 1: 1.0"),
        ("ASGD", {"weight_decay": -1}, "Invalid weight_decay value: -1"),
        ("Rprop", {"etas": (2, 1)}, "Invalid eta values: 2, 1"),
    ],
)
def test_options_of_one_optimizer(lib, kind, options, words):
    with pytest.raises(ValueError, match=words):
        getattr(lib.optim, kind)([lib.ones(1)], **options)


def test_rprop_by_hand(lib):
    w = lib.ones(1, requires_grad=True)
    optimizer = lib.optim.Rprop([w], lr=0.1)
    seen = []
    for slope in (3.0, 1.0, -2.0, -2.0):  # the same sign: longer; another: shorter and not taken; then as after a stop
        w.grad = lib.tensor([slope])
        optimizer.step()
        seen.append(w.item())
    assert seen == pytest.approx([0.9, 0.78, 0.78, 0.84])


# ---------------------------------------------------------------- the schedule of weight averaging
@pytest.mark.parametrize(("strategy", "epochs"), [("cos", 4), ("linear", 4), ("cos", 0), ("linear", 1)])
def test_rates_of_weight_averaging(strategy, epochs):
    torch = pytest.importorskip("torch")

    def rates(lib):
        optimizer = lib.optim.SGD([{"params": [lib.ones(1)]}, {"params": [lib.ones(2)], "lr": lib.tensor(0.5)}], lr=0.05)
        schedule = lib.optim.swa_utils.SWALR(optimizer, swa_lr=[0.01, 0.02], anneal_epochs=epochs, anneal_strategy=strategy)
        found = []
        for _ in range(6):
            found += [float(group["lr"]) for group in optimizer.param_groups]
            optimizer.step()
            schedule.step()
        return found

    assert rates(jitgrad) == pytest.approx(rates(torch), rel=1e-5)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"swa_lr": 1.0, "anneal_strategy": "slow"}, "anneal_strategy must be one of 'cos' or 'linear', instead got slow"),
        ({"swa_lr": 1.0, "anneal_epochs": 1.5}, "anneal_epochs must be equal or greater than 0, got 1.5"),
        ({"swa_lr": [1.0, 2.0]}, "swa_lr must have the same length as optimizer.param_groups"),
    ],
)
def test_options_of_weight_averaging(lib, options, words):
    with pytest.raises(ValueError, match=words):
        lib.optim.swa_utils.SWALR(lib.optim.SGD([lib.ones(1)], lr=0.1), **options)
