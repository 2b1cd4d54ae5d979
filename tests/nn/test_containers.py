"""Containers of modules and of parameters."""

from collections import OrderedDict, namedtuple

import pytest

import jitgrad as torch
from jitgrad import nn


def names(module):
    return [type(child).__name__ for child in module]


def test_sequential():
    model = nn.Sequential(OrderedDict(first=nn.Linear(2, 3), second=nn.ReLU()))
    assert model(torch.ones(1, 2)).shape == (1, 3)
    assert model.first is model[0]
    assert names(model[1:]) == ["ReLU"]
    assert list(model[1:]._modules) == ["second"]
    model[-1] = nn.Tanh()
    assert names(model) == ["Linear", "Tanh"]
    assert model.second is model[1]
    assert len(model.append(nn.ELU())) == 3
    assert nn.Sequential()(3) == 3


def test_sequential_as_a_list():
    model = nn.Sequential(nn.ReLU(), nn.Tanh())
    assert names(model.insert(1, nn.ELU())) == ["ReLU", "ELU", "Tanh"]
    assert names(model.insert(-1, nn.GELU())) == ["ReLU", "ELU", "GELU", "Tanh"]
    del model[1]
    assert list(model._modules) == ["0", "1", "2"]
    assert type(model.pop(0)).__name__ == "ReLU"
    del model[:1]
    assert names(model.extend([nn.ReLU()])) == ["Tanh", "ReLU"]
    assert names(model + model) == ["Tanh", "ReLU"] * 2
    assert names(2 * model) == names(model * 2) == ["Tanh", "ReLU"] * 2
    model += nn.Sequential(nn.ELU())
    model *= 2
    assert names(model) == ["Tanh", "ReLU", "ELU"] * 2
    assert getattr(model, "5") is model[5]


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (lambda m: m[5], IndexError, "index 5 is out of range"),
        (lambda m: m.insert(9, nn.ReLU()), IndexError, "Index out of range: 9"),
        (lambda m: m.insert(0, 3), AssertionError, "module should be of type"),
        (lambda m: m.append(3), TypeError, "int is not a Module subclass"),
        (
            lambda m: m + nn.ModuleList([nn.ReLU()]),
            ValueError,
            "add operator supports only objects of Sequential class",
        ),
        (lambda m: m * 0, ValueError, "Non-positive multiplication factor 0"),
        (lambda m: m * "a", TypeError, "unsupported operand type"),
    ],
)
def test_sequential_refuses(wrong, error, words):
    with pytest.raises(error, match=words):
        wrong(nn.Sequential(nn.ReLU()))


def test_module_list():
    layers = nn.ModuleList([nn.Linear(1, 1) for _ in range(2)])
    layers.append(nn.ReLU()).extend(nn.Tanh() for _ in range(2))
    layers.insert(1, nn.ELU())
    layers += [nn.Linear(1, 1)]
    assert names(layers) == ["Linear", "ELU", "Linear", "ReLU", "Tanh", "Tanh", "Linear"]
    assert len(list(layers.parameters())) == 6
    assert names(layers[1:3]) == ["ELU", "Linear"]
    assert names(layers[-1:] + nn.ModuleList([nn.ReLU()])) == ["Linear", "ReLU"]
    assert type(layers.pop(-3)).__name__ == "Tanh"
    del layers[0], layers[0:1]
    assert repr(layers) == (
        "ModuleList(\n"
        "  (0): Linear(in_features=1, out_features=1, bias=True)\n"
        "  (1): ReLU()\n"
        "  (2): Tanh()\n"
        "  (3): Linear(in_features=1, out_features=1, bias=True)\n"
        ")"
    )
    assert repr(nn.ModuleList()) == "ModuleList()"
    with pytest.raises(NotImplementedError):
        layers(1)
    with pytest.raises(TypeError, match=r"ModuleList\.extend should be called with an iterable, but got int"):
        layers.extend(3)
    with pytest.raises(IndexError):
        layers[7]


def test_module_dict():
    table = nn.ModuleDict({"b": nn.ReLU(), "a": nn.Linear(1, 1)})
    table["c"] = nn.Tanh()
    assert list(table) == ["b", "a", "c"] == list(table.keys())
    assert table["a"] in table.values()
    assert "a" in table
    assert len(table) == 3
    del table["b"]
    assert type(table.pop("c")).__name__ == "Tanh"
    table.update([("d", nn.ReLU())])
    table.update(nn.ModuleDict({"e": nn.ELU()}))
    assert [name for name, _ in table.items()] == ["a", "d", "e"]
    assert [name for name, _ in table.named_parameters()] == ["a.weight", "a.bias"]
    with pytest.raises(KeyError, match="attribute 'items' already exists"):
        table["items"] = nn.ReLU()
    for wrong, error in ((3, TypeError), ([3], TypeError), ([("a", nn.ReLU(), 1)], ValueError)):
        with pytest.raises(error):
            table.update(wrong)
    table.clear()
    assert repr(table) == "ModuleDict()"


def test_parameter_list():
    weights = nn.ParameterList([torch.ones(2), nn.Parameter(torch.zeros(3)), 5])
    weights += [torch.ones(1)]
    assert [name for name, _ in weights.named_parameters()] == ["0", "1", "3"]
    assert isinstance(weights[0], nn.Parameter)
    assert weights[2] == 5
    weights[-1] = torch.zeros(4, 2)
    assert weights[3].shape == (4, 2)
    assert len(weights[1:3]) == 2
    assert weights[1:3][0] is weights[1]
    assert [type(w).__name__ for w in weights] == ["Parameter", "Parameter", "int", "Parameter"]
    assert "(2): Object of type: int" in repr(weights)
    assert "of size 4x2]" in repr(weights)
    for wrong, error in (
        (lambda: weights(1), RuntimeError), (lambda: weights.extend(torch.ones(2)), TypeError),
        (lambda: weights[4], IndexError),
    ):  # fmt: skip
        with pytest.raises(error):
            wrong()


def test_parameter_dict():
    weights = nn.ParameterDict({"b": torch.ones(2), "a": torch.zeros(1)})
    assert list(weights) == ["a", "b"]  # a plain dict is sorted
    assert [name for name, _ in weights.named_parameters()] == ["a", "b"]
    weights["c"] = 5
    assert weights.get("c") == 5
    assert weights.get("d", 6) == 6
    assert weights.setdefault("d", torch.ones(1)) is weights["d"]
    assert list(reversed(weights)) == ["d", "c", "b", "a"]
    assert weights.popitem()[0] == "d"
    assert weights.pop("c") == 5
    assert len(weights.copy()) == 2
    assert weights.copy()["a"] is weights["a"]
    assert list(weights.fromkeys(["x"], torch.ones(1))) == ["x"]
    joined = weights | nn.ParameterDict({"z": torch.ones(1)})
    assert list(joined) == ["a", "b", "z"]
    joined |= nn.ParameterDict([("y", torch.ones(1))])
    assert list(dict(joined.items())) == ["a", "b", "z", "y"]
    assert len(list(joined.values())) == 4
    with pytest.raises(TypeError, match="cannot be used as a key as it is not a string"):
        weights[3] = torch.ones(1)
    with pytest.raises(RuntimeError, match="ParameterDict should not be called"):
        weights(1)
    weights.clear()
    assert len(weights) == 0
    assert list(weights.parameters()) == []


def test_named_tuples_pass_through_a_hooked_module():
    pair = namedtuple("pair", "left right")

    class Twice(nn.Module):
        def forward(self, x):
            return pair(x * 2, x * 3)

    module = Twice()
    module.register_full_backward_hook(lambda *_: None)
    result = module(torch.ones(1, requires_grad=True))
    assert type(result) is pair
    assert result.right.item() == 3.0


def test_data_parallel_is_its_module():
    inner = nn.Linear(2, 3)
    model = nn.DataParallel(inner, device_ids=None)
    x = torch.ones(4, 2, requires_grad=True)
    assert model.module is inner
    assert list(model.state_dict()) == ["module.weight", "module.bias"]
    assert model(x).tolist() == inner(x).tolist()
    checkpointed = torch.utils.checkpoint.checkpoint(model, x, use_reentrant=False)
    checkpointed.sum().backward()
    assert inner.bias.grad.tolist() == [4.0] * 3
