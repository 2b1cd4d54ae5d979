"""Modules beside torch's: printing, state, gradients, hooks."""

import numpy as np
import pytest

import jitgrad
from jitgrad import nn

torch = pytest.importorskip("torch")

MODULES = {
    "linear": lambda n: n.Linear(3, 4, bias=False),
    "activations": lambda n: n.Sequential(
        n.ReLU(True), n.LeakyReLU(0.2, True), n.ELU(2.0), n.GELU("tanh"), n.SiLU(), n.Sigmoid(), n.Tanh(),
        n.Softplus(2.0), n.LogSigmoid(), n.Softmax(1), n.LogSoftmax(dim=-1), n.Dropout(0.1), n.Identity(1, a=2),
        n.Flatten(), n.Unflatten(1, (2, 2)),
    ),
    "losses": lambda n: n.ModuleList(
        [n.MSELoss(), n.L1Loss(), n.SmoothL1Loss(), n.HuberLoss(), n.CrossEntropyLoss(), n.NLLLoss(), n.BCELoss(),
         n.BCEWithLogitsLoss()]
    ),
    "norms": lambda n: n.ModuleList(
        [n.LayerNorm(3), n.LayerNorm([2, 3], eps=1e-3, bias=False), n.LayerNorm(3, elementwise_affine=False),
         n.BatchNorm1d(3), n.BatchNorm1d(3, 1e-3, None, False, False)]
    ),
    "tables": lambda n: n.ModuleList(
        [n.Embedding(5, 2), n.Embedding(5, 2, -1, 1.0, 3.0, True)]
    ),
    "containers": lambda n: n.ModuleDict(
        {"list": n.ModuleList([n.Linear(1, 2), n.Linear(1, 2), n.ReLU(), n.Linear(1, 2)]), "none": n.ModuleList(),
         "deep": n.Sequential(n.Sequential(n.Sequential(n.Linear(1, 1)), n.ReLU()))}
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_printing_and_names(name):
    ours, theirs = MODULES[name](nn), MODULES[name](torch.nn)
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    for (key, value), expected in zip(ours.state_dict().items(), theirs.state_dict().values(), strict=True):
        assert tuple(value.shape) == tuple(expected.shape), key
        assert str(value.dtype).split(".")[1] == str(expected.dtype).split(".")[1], key
    assert [n for n, _ in ours.named_parameters()] == [n for n, _ in theirs.named_parameters()]
    assert [n for n, _ in ours.named_modules()] == [n for n, _ in theirs.named_modules()]
    assert {k: dict(v) for k, v in ours.state_dict()._metadata.items()} == theirs.state_dict()._metadata


def network(n):
    return n.Sequential(
        n.Linear(4, 8), n.BatchNorm1d(8), n.Tanh(), n.Sequential(n.LayerNorm(8), n.GELU()), n.Linear(8, 3)
    )


def twins(dtype=np.float64):
    """The same network in both packages, with torch's start."""
    theirs = network(torch.nn).double()
    ours = network(nn).double()
    ours.load_state_dict({key: tensor(jitgrad, value.numpy()) for key, value in theirs.state_dict().items()})
    return ours, theirs


def tensor(package, array):
    return package.tensor(np.array(array))


def close(ours, theirs):
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-9, atol=1e-12)


def test_training_of_a_network():
    torch.manual_seed(0)
    ours, theirs = twins()
    rng = np.random.default_rng(0)
    optimizers = [p.optim.SGD(m.parameters(), lr=0.1, momentum=0.9) for p, m in ((jitgrad, ours), (torch, theirs))]
    for _ in range(5):
        x, y = rng.standard_normal((6, 4)), rng.integers(0, 3, 6)
        losses = []
        for package, model, optimizer in zip((jitgrad, torch), (ours, theirs), optimizers, strict=True):
            optimizer.zero_grad()
            loss = package.nn.functional.cross_entropy(
                model(tensor(package, x)), tensor(package, y), label_smoothing=0.1
            )
            loss.backward()
            package.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            losses.append(loss)
        close(*losses)
    for (name, value), expected in zip(ours.state_dict().items(), theirs.state_dict().values(), strict=True):
        close(value, expected), name
    x = rng.standard_normal((6, 4))
    close(ours.eval()(tensor(jitgrad, x)), theirs.eval()(tensor(torch, x)))


def test_backward_hooks_see_the_same():
    seen = {jitgrad: [], torch: []}
    torch.manual_seed(0)
    x = np.random.default_rng(1).standard_normal((5, 4))
    for package, model in zip((jitgrad, torch), twins(), strict=True):

        def note(module, grad_in, grad_out, found=seen[package]):
            found.extend(None if g is None else g.detach().numpy().copy() for g in (*grad_in, *grad_out))
            return tuple(None if g is None else g * 2 for g in grad_in)

        for module in model.modules():
            module.register_full_backward_hook(note)
        given = tensor(package, x).requires_grad_()
        model(given).sin().sum().backward()
        seen[package].append(given.grad.numpy())
    assert len(seen[jitgrad]) == len(seen[torch]) > 10
    for ours, theirs in zip(seen[jitgrad], seen[torch], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-12)


def error_of(action, *args):
    try:
        action(*args)
    except Exception as error:
        return type(error), str(error)
    return None


def wrong_states(n, package):
    good = n.Sequential(n.Linear(2, 3), n.ReLU()).state_dict()
    yield {**good, "0.weight": package.ones(2, 2)}
    yield {**good, "more": package.ones(1), "0.more": package.ones(1), "7.weight": package.ones(1)}
    yield {"0.weight": good["0.weight"]}
    yield {"0.weight": package.ones(1), "x": package.ones(1)}
    yield 3


def test_errors_of_loading_read_the_same():
    for states in zip(wrong_states(nn, jitgrad), wrong_states(torch.nn, torch), strict=True):
        pairs = zip((nn, torch.nn), states, strict=True)
        ours, theirs = (error_of(n.Sequential(n.Linear(2, 3), n.ReLU()).load_state_dict, state) for n, state in pairs)
        assert ours == theirs


WRONG = [
    lambda p: setattr(p.nn.Linear(1, 1), "weight", 3),
    lambda p: setattr(p.nn.Linear(1, 1), "weight", p.ones(1)),
    lambda p: setattr(p.nn.Sequential(p.nn.ReLU()), "0", "a"),
    lambda p: p.nn.Linear(1, 1).register_parameter("a.b", None),
    lambda p: p.nn.Linear(1, 1).register_buffer("weight", None),
    lambda p: p.nn.Linear(1, 1).add_module("weight", p.nn.ReLU()),
    lambda p: p.nn.Linear(1, 1).nothing,
    lambda p: p.nn.Linear(1, 1).get_submodule("a.b"),
    lambda p: p.nn.Linear(1, 1).get_parameter("nothing"),
    lambda p: p.nn.Linear(1, 1).get_buffer("weight"),
    lambda p: p.nn.Module(3),
    lambda p: p.nn.Module()(3),
    lambda p: p.nn.Sequential(3),
    lambda p: p.nn.ModuleList([1]),
    lambda p: p.nn.ModuleList()[0],
    lambda p: p.nn.ModuleDict([1]),
    lambda p: p.nn.Dropout(-1),
    lambda p: p.nn.Embedding(3, 2, padding_idx=5),
    lambda p: p.nn.BatchNorm1d(2)(p.ones(1, 2)),
    lambda p: p.nn.BatchNorm1d(2)(p.ones(2)),
    lambda p: p.nn.functional.mse_loss(p.ones(1), p.ones(1), reduction="all"),
    lambda p: p.nn.functional.binary_cross_entropy(p.ones(1), p.ones(2)),
    lambda p: p.nn.functional.batch_norm(p.ones(2, 2), None, None, training=True, eps=0.0),
    lambda p: p.nn.init.calculate_gain("x"),
    lambda p: p.nn.init.xavier_normal_(p.ones(1)),
    lambda p: p.nn.Linear(1, 1).train(1),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_errors_read_the_same(number):
    ours, theirs = (error_of(WRONG[number], p) for p in (jitgrad, torch))
    assert ours is not None
    kind, words = theirs
    words = words.replace("torch.nn.modules.container", "jitgrad.nn.modules.container")
    assert ours == (kind, words)
