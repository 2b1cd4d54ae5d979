"""Optimizers by themselves: groups, state, hooks, what they refuse, tensors that no kernel takes."""

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import jitgrad as torch
from jitgrad import optim

KINDS = [optim.SGD, optim.Adam, optim.AdamW, optim.RMSprop, optim.Adagrad]
OPTIONS = {
    optim.SGD: [{"momentum": 0.9}, {"weight_decay": 0.1}, {"momentum": 0.9, "nesterov": True}],
    optim.Adam: [{"amsgrad": True}, {"weight_decay": 0.1}],
    optim.AdamW: [{"amsgrad": True}, {"maximize": True}],
    optim.RMSprop: [{"centered": True, "momentum": 0.5}, {"centered": True}, {"momentum": 0.5}],
    optim.Adagrad: [{"lr_decay": 0.1, "initial_accumulator_value": 0.5}],
}
CASES = [(kind, options) for kind in KINDS for options in ({}, *OPTIONS[kind])]


def leaf(*values):
    return torch.tensor(values, requires_grad=True)


def descend(optimizer, params, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        sum((p * p).sum() for p in params).backward()
        optimizer.step()


@pytest.mark.parametrize(("kind", "options"), CASES)
def test_goes_downhill(kind, options):
    w = leaf(1.0, -2.0)
    sign = -1 if options.get("maximize") else 1
    descend(kind([w], lr=0.05, **options), [w], 10)
    assert (sign * (w * w).sum().item() < sign * 5) is True


@pytest.mark.parametrize(("kind", "options"), CASES)
def test_odd_tensors_get_the_same_values(kind, options):
    """Strided parameters, gradients of another layout, float16: the plain definition instead of a kernel."""
    start = np.arange(6.0).reshape(2, 3) / 4
    plain = torch.tensor(start, requires_grad=True)
    strided = torch.tensor(start.T.copy()).t().requires_grad_()
    other = torch.tensor(start, requires_grad=True)
    half = torch.tensor(start.astype(np.float16), requires_grad=True)
    params = [plain, strided, other, half]
    optimizer = kind(params, lr=0.05, **options)
    gradient = np.cos(start)
    for _ in range(3):
        plain.grad = torch.tensor(gradient)
        strided.grad = torch.tensor(gradient)
        other.grad = torch.tensor(gradient.T.copy()).t()
        half.grad = torch.tensor(gradient.astype(np.float16))
        optimizer.step()
    for odd in (strided, other):
        np.testing.assert_allclose(odd.detach().numpy(), plain.detach().numpy(), rtol=1e-12)
    assert half.dtype is torch.float16
    np.testing.assert_allclose(half.detach().numpy(), plain.detach().numpy(), rtol=0.05, atol=0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_is_a_write(kind):
    w = leaf(1.0, 2.0)
    optimizer = kind([w], lr=0.1)
    (w * w).sum().backward()
    before = w._version
    loss = (w * w).sum()
    optimizer.step()
    assert w._version == before + 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
    assert w.requires_grad
    assert w.is_leaf


@pytest.mark.parametrize("kind", KINDS)
def test_no_gradient_no_update(kind):
    w, idle = leaf(1.0), leaf(1.0)
    optimizer = kind([w, idle], lr=0.1)
    descend(optimizer, [w], 2)
    assert idle.item() == 1.0
    assert kind is optim.Adagrad or idle not in optimizer.state


@pytest.mark.parametrize("kind", KINDS)
def test_rate_as_a_tensor(kind):
    w, v = leaf(1.0), leaf(1.0)
    rate = torch.tensor(0.1)
    first, second = kind([w], lr=rate), kind([v], lr=0.1)
    descend(first, [w], 2)
    descend(second, [v], 2)
    assert w.item() == pytest.approx(v.item(), rel=1e-6)
    rate.fill_(0.0)
    before = w.item()
    descend(first, [w], 1)
    assert w.item() == before


def test_closure():
    w = leaf(1.0)
    optimizer = optim.SGD([w], lr=0.5)

    def closure():
        assert torch.is_grad_enabled()
        optimizer.zero_grad()
        loss = (w * w).sum()
        loss.backward()
        return loss

    with torch.no_grad():
        loss = optimizer.step(closure)
    assert loss.item() == 1.0
    assert w.item() == 0.0
    assert optimizer.step() is None


def test_zero_grad():
    w = leaf(1.0)
    optimizer = optim.SGD([w])
    (w * w).sum().backward()
    held = w.grad
    optimizer.zero_grad(set_to_none=False)
    assert w.grad is held
    assert held.item() == 0.0
    optimizer.zero_grad()
    assert w.grad is None
    optimizer.zero_grad(set_to_none=False)


# ---- groups
def test_groups_and_defaults():
    w, v = leaf(1.0), leaf(1.0)
    optimizer = optim.SGD([{"params": [w], "lr": 0.5}, {"params": v, "momentum": 0.9}], lr=0.1)
    assert [group["lr"] for group in optimizer.param_groups] == [0.5, 0.1]
    assert [group["momentum"] for group in optimizer.param_groups] == [0, 0.9]
    descend(optimizer, [w, v], 1)
    assert w.item() == 0.0
    assert v.item() == pytest.approx(0.8)
    optimizer.add_param_group({"params": [leaf(2.0)], "weight_decay": 1.0})
    assert len(optimizer.param_groups) == 3
    assert optimizer.param_groups[2]["weight_decay"] == 1.0
    assert optimizer.defaults["weight_decay"] == 0


def test_names():
    w, v = leaf(1.0), leaf(1.0)
    optimizer = optim.SGD([("w", w), ("v", v)])
    assert optimizer.param_groups[0]["param_names"] == ["w", "v"]
    assert optimizer.param_groups[0]["params"][1] is v
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["w", "v"]
    optimizer.load_state_dict(optim.SGD([w, v]).state_dict())
    assert optimizer.param_groups[0]["param_names"] == ["w", "v"]
    with pytest.raises(ValueError, match="should be with/without names"):
        optimizer.add_param_group({"params": [leaf(1.0)]})
    with pytest.raises(ValueError, match="Some param names are missing"):
        optim.SGD([("w", w), v])


def shared():
    return leaf(1.0)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: optim.SGD(leaf(1.0)), TypeError, "params argument given to the optimizer should be an iterable"),
        (lambda: optim.SGD([]), ValueError, "optimizer got an empty parameter list"),
        (lambda: optim.SGD([3]), TypeError, "optimizer can only optimize Tensors, but one of the params is int"),
        (lambda: optim.SGD([leaf(1.0) * 2]), ValueError, "can't optimize a non-leaf Tensor"),
        (lambda: optim.SGD([{"params": {leaf(1.0)}}]), TypeError, "organized in ordered collections"),
        (lambda: optim.SGD([leaf(1.0)]).add_param_group([leaf(1.0)]), TypeError, "param_group must be a dict"),
        (lambda: optim.SGD([leaf(1.0)], lr=-1), ValueError, "Invalid learning rate: -1"),
        (lambda: optim.SGD([leaf(1.0)], lr=float("nan")), ValueError, "Invalid learning rate: nan"),
        (lambda: optim.SGD([leaf(1.0)], lr=torch.ones(2)), ValueError, "Tensor lr must be 1-element"),
        (lambda: optim.SGD([leaf(1.0)], momentum=-1), ValueError, "Invalid momentum value: -1"),
        (lambda: optim.SGD([leaf(1.0)], nesterov=True), ValueError, "Nesterov momentum requires a momentum and zero"),
        (lambda: optim.SGD([leaf(1.0)], fused=True, foreach=True), RuntimeError, "`fused` and `foreach` cannot be"),
        (lambda: optim.SGD([leaf(1.0)], fused=True, differentiable=True), RuntimeError, "`fused` does not support"),
        (lambda: optim.Adam([leaf(1.0)], betas=(1.0, 0.9)), ValueError, "Invalid beta parameter at index 0: 1.0"),
        (lambda: optim.Adam([leaf(1.0)], betas=(0.9, -1.0)), ValueError, "Invalid beta parameter at index 1: -1.0"),
        (lambda: optim.Adam([leaf(1.0)], betas=(0.9, torch.tensor(0.9))), ValueError, "betas must be either both"),
        (lambda: optim.Adam([leaf(1.0)], eps=-1), ValueError, "Invalid epsilon value: -1"),
        (lambda: optim.Adam([leaf(1.0)], lr=torch.ones(()), foreach=True), ValueError, "lr as a Tensor is not supp"),
        (lambda: optim.AdamW([leaf(1.0)], weight_decay=-1), ValueError, "Invalid weight_decay value: -1"),
        (lambda: optim.RMSprop([leaf(1.0)], alpha=-1), ValueError, "Invalid alpha value: -1"),
        (lambda: optim.Adagrad([leaf(1.0)], lr_decay=-1), ValueError, "Invalid lr_decay value: -1"),
    ],
)
def test_refused(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_a_parameter_twice():
    w = leaf(1.0)
    with pytest.warns(UserWarning, match="duplicate parameters"):
        optim.SGD([w, w])
    with pytest.raises(ValueError, match="some parameters appear in more than one parameter group"):
        optim.SGD([{"params": [w]}, {"params": [w]}])


def test_a_default_that_is_required():
    class Own(optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {"rate": optim.optimizer.required})

    with pytest.raises(ValueError, match="required optimization parameter rate"):
        Own([leaf(1.0)])
    assert Own([{"params": [leaf(1.0)], "rate": 1}]).param_groups[0]["rate"] == 1
    with pytest.raises(NotImplementedError):
        Own([{"params": [leaf(1.0)], "rate": 1}]).step()


# ---- state
@pytest.mark.parametrize(("kind", "options"), CASES)
def test_saved_and_loaded(kind, options):
    w = leaf(1.0, -2.0)
    optimizer = kind([w], lr=0.05, **options)
    descend(optimizer, [w], 3)
    v = w.detach().clone().requires_grad_()
    other = kind([v], lr=1.0)
    other.load_state_dict(optimizer.state_dict())
    assert other.param_groups[0]["lr"] == 0.05
    descend(optimizer, [w], 3)
    descend(other, [v], 3)
    assert torch.equal(w, v)
    for name, value in optimizer.state[w].items():
        assert other.state[v][name] is not value


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))])
def test_copies(clone):
    w = leaf(1.0)
    optimizer = optim.Adam([w])
    descend(optimizer, [w], 2)
    twin = clone(optimizer)
    (v,) = twin.param_groups[0]["params"]
    assert v is not w
    descend(optimizer, [w], 2)
    descend(twin, [v], 2)
    assert torch.equal(w, v)
    assert twin.state[v]["step"].item() == 4


def test_state_that_does_not_fit():
    optimizer = optim.SGD([leaf(1.0)])
    for other in (optim.SGD([{"params": leaf(1.0)}, {"params": leaf(1.0)}]), optim.SGD([leaf(1.0), leaf(1.0)])):
        with pytest.raises(ValueError, match="loaded state dict"):
            optimizer.load_state_dict(other.state_dict())


def test_counts_of_steps_from_old_files():
    w = leaf(1.0)
    optimizer = optim.Adam([w])
    descend(optimizer, [w], 2)
    saved = optimizer.state_dict()
    saved["state"][0] = {**saved["state"][0], "step": 2}
    optimizer.load_state_dict(saved)
    descend(optimizer, [w], 1)
    assert optimizer.state[w]["step"].item() == 3
    assert optimizer.state[w]["step"].dtype is torch.float32


def test_state_in_the_dtype_of_the_parameter():
    w, v = leaf(1.0), torch.tensor([1.0], dtype=torch.float64, requires_grad=True)
    optimizer, other = optim.Adam([w]), optim.Adam([v])
    descend(optimizer, [w], 2)
    other.load_state_dict(optimizer.state_dict())
    assert other.state[v]["exp_avg"].dtype is torch.float64
    assert other.state[v]["step"].dtype is torch.float32


def test_dies_at_once():
    w = leaf(1.0)
    gc.disable()
    try:
        optimizer = optim.Adam([w])
        schedule = optim.lr_scheduler.StepLR(optimizer, 1)
        descend(optimizer, [w], 1)
        gone = weakref.ref(optimizer)
        del optimizer, schedule
        assert gone() is None
    finally:
        gc.enable()


# ---- hooks
def test_step_hooks():
    w, seen = leaf(1.0), []
    optimizer = optim.SGD([w], lr=0.1)
    handles = [
        optimizer.register_step_pre_hook(lambda o, args, kwargs: seen.append(("before", o, args, kwargs))),
        optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append(("after", o, args, kwargs))),
        optim.optimizer.register_optimizer_step_pre_hook(lambda *_: seen.append("global before")),
        optim.optimizer.register_optimizer_step_post_hook(lambda *_: seen.append("global after")),
    ]
    descend(optimizer, [w], 1)
    assert seen == ["global before", ("before", optimizer, (optimizer,), {}), ("after", optimizer, (optimizer,), {}),
                    "global after"]  # fmt: skip
    for handle in handles:
        handle.remove()
    descend(optimizer, [w], 1)
    assert len(seen) == 4
    assert not optimizer._hooked
    assert w.item() == pytest.approx(0.64)


def test_pre_hook_replaces_the_arguments():
    w = leaf(1.0)
    optimizer = optim.SGD([w])
    optimizer.register_step_pre_hook(lambda o, args, kwargs: ((*args, lambda: 5), kwargs))
    assert optimizer.step() == 5
    optimizer.register_step_pre_hook(lambda o, args, kwargs: 3)
    with pytest.raises(RuntimeError, match="must return None or a tuple of"):
        optimizer.step()


def test_hooks_of_an_optimizer_with_its_own_step():
    class Own(optim.SGD):
        def step(self, closure=None, *, extra=None):
            return extra

    seen = []
    optimizer = Own([leaf(1.0)])
    assert optimizer.step(extra=4) == 4
    optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append(kwargs))
    assert optimizer.step(extra=4) == 4
    assert seen == [{"extra": 4}]
    assert optimizer._opt_called


def test_state_hooks():
    optimizer, seen = optim.SGD([leaf(1.0)], lr=0.1), []
    optimizer.register_state_dict_pre_hook(lambda o: seen.append("saving"))
    optimizer.register_state_dict_post_hook(lambda o, state: {**state, "more": 1})
    optimizer.register_load_state_dict_pre_hook(lambda o, state: {k: v for k, v in state.items() if k != "more"})
    optimizer.register_load_state_dict_post_hook(lambda o: seen.append("loaded"))
    state = optimizer.state_dict()
    assert state["more"] == 1
    optimizer.load_state_dict(state)
    assert seen == ["saving", "loaded"]


def test_printing():
    assert repr(optim.SGD([leaf(1.0)], lr=0.5)) == (
        "SGD (\n"
        "Parameter Group 0\n"
        "    dampening: 0\n"
        "    differentiable: False\n"
        "    foreach: None\n"
        "    fused: None\n"
        "    lr: 0.5\n"
        "    maximize: False\n"
        "    momentum: 0\n"
        "    nesterov: False\n"
        "    weight_decay: 0\n"
        ")"
    )
