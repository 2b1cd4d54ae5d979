"""`differentiable=True`: steps that later gradients go through, by parameters, gradients, state and options."""

import pytest

from tests.libraries import leaf, lib

__all__ = ["lib"]

# class, options, names of the state
CASES = {
    "sgd": ("SGD", {}, ()),
    "momentum": ("SGD", {"momentum": 0.9, "dampening": 0.25, "weight_decay": 0.1}, ("momentum_buffer",)),
    "nesterov": ("SGD", {"momentum": 0.9, "nesterov": True, "maximize": True}, ("momentum_buffer",)),
    "adam": ("Adam", {"weight_decay": 0.1}, ("exp_avg", "exp_avg_sq")),
    "amsgrad": ("Adam", {"amsgrad": True}, ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")),
    "adamw": ("AdamW", {"weight_decay": 0.2}, ("exp_avg", "exp_avg_sq")),
    "rmsprop": ("RMSprop", {"weight_decay": 0.1}, ("square_avg",)),
    "centered": ("RMSprop", {"centered": True, "momentum": 0.5}, ("square_avg", "momentum_buffer", "grad_avg")),
    "adagrad": ("Adagrad", {"lr_decay": 0.01, "weight_decay": 0.1}, ("sum",)),
    "adadelta": ("Adadelta", {"weight_decay": 0.1}, ("square_avg", "acc_delta")),
    "adamax": ("Adamax", {"weight_decay": 0.1}, ("exp_avg", "exp_inf")),
    "nadam": ("NAdam", {"weight_decay": 0.1}, ("mu_product", "exp_avg", "exp_avg_sq")),
    "nadam, decoupled": ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}, ("mu_product", "exp_avg", "exp_avg_sq")),
    "radam": ("RAdam", {"weight_decay": 0.1}, ("exp_avg", "exp_avg_sq")),
    "radam, rectified": ("RAdam", {"betas": (0.5, 0.8)}, ("exp_avg", "exp_avg_sq")),
    "asgd": ("ASGD", {}, ("ax",)),
    "rprop": ("Rprop", {}, ("prev", "step_size")),
}
START = {"grad_avg": 0.01}  # small, for what stands under the root


def given(lib, names):
    """A parameter, its gradient and a state, all of which take gradients."""
    p, g = leaf(lib, 0.3, -0.8, 1.4, dtype="float64"), leaf(lib, 0.5, 0.7, -0.4, dtype="float64")
    state = {name: leaf(lib, *[START.get(name, 1.0) * k for k in (0.6, 1.2, 0.9)], dtype="float64") for name in names}
    if "mu_product" in state:
        state["mu_product"] = lib.tensor(0.7, dtype=lib.float64, requires_grad=True)
    return p, g, state


def more_state(lib, kind):
    """What a state has besides, of which nothing takes a gradient."""
    step = {} if kind == "SGD" else {"step": lib.tensor(3.0, dtype=lib.float64)}
    return step | ({"eta": lib.tensor(0.2, dtype=lib.float64), "mu": lib.tensor(0.5, dtype=lib.float64)} if kind == "ASGD" else {})


def stepped(lib, kind, options, p, g, state):
    """The parameter and the state after a step."""
    p = p.clone()
    p.grad = g
    optimizer = getattr(lib.optim, kind)([p], differentiable=True, **{"lr": 0.3, **options})
    held = optimizer.state[p]
    held.update({name: value.clone() for name, value in state.items()})
    held.update(more_state(lib, kind))
    optimizer.step()
    return (p, *[held[name] for name in state])


@pytest.mark.parametrize("name", CASES)
def test_a_step_has_gradients_by_all_it_reads(lib, name):
    kind, options, names = CASES[name]
    if lib.__name__ == "torch" and kind == "ASGD":
        pytest.skip("torch writes to what it saved")
    p, g, state = given(lib, names)

    def outputs(p, g, *state):
        return stepped(lib, kind, options, p, g, dict(zip(names, state, strict=True)))

    assert lib.autograd.gradcheck(outputs, (p, g, *state.values()))


@pytest.mark.parametrize("name", CASES)
def test_its_values_are_those_of_a_plain_step(name):
    lib = pytest.importorskip("jitgrad")
    kind, options, names = CASES[name]
    p, g, state = given(lib, names)
    recorded = stepped(lib, kind, options, p, g, state)
    plain = p.detach().clone().requires_grad_()
    plain.grad = g.detach()
    optimizer = getattr(lib.optim, kind)([plain], lr=0.3, **options)
    optimizer.state[plain].update({key: value.detach().clone() for key, value in state.items()})
    optimizer.state[plain].update(more_state(lib, kind))
    optimizer.step()
    for have, want in zip(recorded, (plain, *[optimizer.state[plain][key] for key in names]), strict=True):
        assert lib.allclose(have, want, rtol=1e-12)


def meta_loss(lib, kind, options):
    """The loss after two steps, as a function of the options that are tensors."""
    p = leaf(lib, 0.4, -0.2, dtype="float64").clone()
    optimizer = getattr(lib.optim, kind)([p], differentiable=True, **options)
    for _ in range(2):
        loss = ((p.sum() * 3 - 1) ** 2).mean()
        loss.backward(inputs=(p,), create_graph=True)
        optimizer.step()
        optimizer.zero_grad()
    return ((p.sum() * 3 - 1) ** 2).mean()


@pytest.mark.filterwarnings("ignore:Using backward")
@pytest.mark.parametrize(
    ("kind", "options", "names"),
    [
        ("SGD", {}, ("lr", "weight_decay")),
        ("SGD", {"momentum": 0.5}, ("lr", "weight_decay")),
        ("Adam", {}, ("lr", "weight_decay", "beta1", "beta2")),
        ("AdamW", {}, ("lr", "weight_decay", "beta1", "beta2")),
        ("RMSprop", {}, ("lr",)),
        ("Adagrad", {}, ("lr",)),
    ],
)
def test_gradients_by_options(lib, kind, options, names):
    if lib.__name__ == "torch" and (options or kind in ("RMSprop", "Adagrad")):
        pytest.skip("torch cuts the history there")
    values = {"lr": 0.01, "weight_decay": 0.3, "beta1": 0.9, "beta2": 0.99}

    def of(*tensors):
        chosen = dict(zip(names, tensors, strict=True))
        if "beta1" in chosen:
            chosen["betas"] = chosen.pop("beta1"), chosen.pop("beta2")
        return meta_loss(lib, kind, {**options, **chosen})

    assert lib.autograd.gradcheck(of, tuple(lib.tensor(values[name], dtype=lib.float64, requires_grad=True) for name in names))


def test_the_first_step_begins_a_state():
    lib = pytest.importorskip("jitgrad")  # torch cuts the history of the first buffer
    g = leaf(lib, 1.0, 2.0)
    p = (g.detach() * 0).requires_grad_().clone()
    p.grad = g
    optimizer = lib.optim.SGD([p], lr=0.5, momentum=0.9, dampening=0.5, differentiable=True)
    with lib.no_grad():
        optimizer.step()
    assert p.tolist() == [-0.5, -1.0]
    assert optimizer.state[p]["momentum_buffer"].tolist() == [1.0, 2.0]
    (grad,) = lib.autograd.grad(p.sum(), g)
    assert grad.tolist() == [-0.5, -0.5]


def test_leaves_are_refused_and_other_tensors_taken(lib):
    x = leaf(lib, 1.0)
    optimizer = lib.optim.SGD([x], lr=0.1, differentiable=True)
    x.grad = lib.ones(1)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        optimizer.step()
    with pytest.raises(ValueError, match="can't optimize a non-leaf Tensor"):
        lib.optim.SGD([x * 1], lr=0.1)
