"""Walking a tree of modules, look-up by path, modes, conversions and printing."""

import pytest

import jitgrad as torch
from jitgrad import nn


def tree():
    shared = nn.Linear(2, 2)
    return nn.Sequential(shared, nn.ReLU(), nn.Sequential(shared, nn.BatchNorm1d(2)))


def test_walking():
    model = tree()
    assert [name for name, _ in model.named_modules()] == ["", "0", "1", "2", "2.1"]
    assert [name for name, _ in model.named_modules(remove_duplicate=False)] == ["", "0", "1", "2", "2.0", "2.1"]
    assert [name for name, _ in model.named_children()] == ["0", "1", "2"]
    assert [name for name, _ in model.named_parameters(prefix="net")] == [
        "net.0.weight", "net.0.bias", "net.2.1.weight", "net.2.1.bias"]  # fmt: skip
    assert len(list(model.named_parameters(remove_duplicate=False))) == 6
    assert list(model.parameters(recurse=False)) == []
    assert [name for name, _ in model.named_buffers()] == [
        "2.1.running_mean", "2.1.running_var", "2.1.num_batches_tracked"]  # fmt: skip
    assert len(list(model.modules())) == 5
    assert len(list(model.children())) == 3
    assert len(list(model.buffers())) == 3


def test_look_up():
    model = tree()
    assert model.get_submodule("") is model
    assert model.get_submodule("2.1") is model[2][1]
    assert model.get_parameter("2.0.weight") is model[0].weight
    assert model.get_buffer("2.1.running_mean") is model[2][1].running_mean
    model.set_submodule("2.1", nn.Tanh())
    assert isinstance(model[2][1], nn.Tanh)
    for wrong in (
        lambda: model.get_submodule("2.7"),
        lambda: model.get_submodule("0.weight"),
        lambda: model.get_parameter("2.0.training"),
        lambda: model.get_parameter("2.0.nothing"),
        lambda: model.get_buffer("0.weight"),
        lambda: model.set_submodule("0.weight", nn.Tanh()),
        lambda: model.set_submodule("7", nn.Tanh(), strict=True),
    ):
        with pytest.raises(AttributeError):
            wrong()
    with pytest.raises(ValueError, match="without a target name"):
        model.set_submodule("", nn.Tanh())
    with pytest.raises(ValueError, match=r"not an nn.Module"):
        model.set_submodule("1", 3)


def test_modes():
    model = tree()
    assert model.eval() is model
    assert not any(module.training for module in model.modules())
    model[2].train()
    assert model[0].training  # the shared one
    assert not model[1].training
    with pytest.raises(ValueError, match="training mode is expected to be boolean"):
        model.train(1)


def test_freezing_and_zeroing():
    model = tree()
    model.requires_grad_(False)
    assert not any(p.requires_grad for p in model.parameters())
    model.requires_grad_()
    model(torch.ones(4, 2)).sum().backward()
    model.zero_grad(set_to_none=False)
    assert all(p.grad is not None and p.grad.abs().max().item() == 0 for p in model.parameters())
    model.zero_grad()
    assert all(p.grad is None for p in model.parameters())


def test_apply_visits_children_first():
    seen = []
    nn.Sequential(nn.ReLU(), nn.Tanh()).apply(lambda m: seen.append(type(m).__name__))
    assert seen == ["ReLU", "Tanh", "Sequential"]


def test_conversions():
    model = tree()
    weight = model[0].weight
    model(torch.ones(4, 2)).sum().backward()
    assert model.double() is model
    assert model[0].weight is weight  # the parameter stays, its data changes
    assert weight.dtype is torch.float64
    assert weight.grad.dtype is torch.float64
    assert model[2][1].running_mean.dtype is torch.float64
    assert model[2][1].num_batches_tracked.dtype is torch.int64
    assert mirrored(model[2][1])
    assert model.to(torch.zeros(1))[0].weight.dtype is torch.float32
    assert model.to("cpu", torch.float16)[0].weight.dtype is torch.float16
    assert model.to(dtype=torch.float64)[0].weight.dtype is torch.float64
    assert model.float()[0].weight.dtype is torch.float32
    assert model.half()[0].bias.dtype is torch.float16
    assert model.type(torch.float32)[2][1].num_batches_tracked.dtype is torch.float32
    with pytest.raises(TypeError, match=r"nn.Module.to only accepts floating point or complex dtypes"):
        model.to(torch.int64)


def mirrored(module):
    return all(getattr(module, name) is buffer for name, buffer in module._buffers.items())


def test_printing():
    model = nn.Sequential(nn.Linear(2, 3, bias=False), nn.Sequential(nn.ReLU(inplace=True)), nn.Identity())
    assert repr(model) == (
        "Sequential(\n"
        "  (0): Linear(in_features=2, out_features=3, bias=False)\n"
        "  (1): Sequential(\n"
        "    (0): ReLU(inplace=True)\n"
        "  )\n"
        "  (2): Identity()\n"
        ")"
    )


def test_a_module_without_forward():
    with pytest.raises(NotImplementedError, match=r'Module \[Module\] is missing the required "forward" function'):
        nn.Module()(1)


def test_calls_hand_on_their_arguments():
    class Echo(nn.Module):
        def forward(self, *args, **kwargs):
            return args, kwargs

    echo = Echo()
    assert echo() == ((), {})
    assert echo(1) == ((1,), {})
    assert echo(1, 2, input=3) == ((1, 2), {"input": 3})
    assert echo(input=3) == ((), {"input": 3})
    assert echo(None) == ((None,), {})
    echo.register_forward_hook(lambda *_: None)
    assert echo() == ((), {})
    assert echo(1, 2, input=3) == ((1, 2), {"input": 3})
