"""What may be assigned to a module, under which name, and that attributes and tables never drift apart."""

import copy
import gc
import pickle
import weakref

import pytest

import jitgrad as torch
from jitgrad import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.register_buffer("mean", torch.zeros(2))
        self.register_buffer("scratch", None, persistent=False)
        self.inner = nn.Linear(2, 1)


def mirrored(module):
    """Every member is the attribute of its name."""
    tables = (module._parameters, module._buffers, module._modules)
    return all(module.__dict__[name] is member for table in tables for name, member in table.items())


def test_members_are_plain_attributes():
    net = Net()
    assert mirrored(net)
    assert [name for name, _ in net.named_parameters()] == ["weight", "inner.weight", "inner.bias"]
    assert [name for name, _ in net.named_buffers()] == ["mean"]
    assert net.scratch is None


def test_writing_to_a_table_changes_the_attribute():
    net = Net()
    other = nn.Parameter(torch.zeros(2))
    net._parameters["weight"] = other
    assert net.weight is other
    net._parameters.update(weight=None)
    assert net.weight is None
    assert net._parameters.pop("weight") is None
    assert not hasattr(net, "weight")
    assert net._buffers.popitem() == ("scratch", None)
    net._buffers.setdefault("more", torch.ones(1))
    net._buffers |= {"most": torch.ones(1)}
    assert mirrored(net)
    net._modules.clear()
    assert not hasattr(net, "inner")
    with pytest.raises(KeyError):
        net._modules.popitem()


def test_assigning_and_deleting_attributes_changes_the_tables():
    net = Net()
    net.mean = torch.ones(2)
    assert net._buffers["mean"] is net.mean
    net.mean = None
    net.weight = None
    net.inner = None
    assert net._parameters == {"weight": None}
    assert net._modules == {"inner": None}
    net.plain = 3
    net.plain = nn.Parameter(torch.ones(1))  # a plain attribute turns into a parameter
    net.mean = nn.Parameter(torch.ones(1))  # and a buffer too
    net.scratch = nn.ReLU()
    assert list(net._parameters) == ["weight", "plain", "mean"]
    assert list(net._modules) == ["inner", "scratch"]
    assert net._buffers == {}
    assert mirrored(net)
    for name in ("plain", "weight", "scratch"):
        delattr(net, name)
        assert not hasattr(net, name)
    with pytest.raises(AttributeError):
        del net.nothing


@pytest.mark.parametrize(
    ("assign", "error", "words"),
    [
        (
            lambda n: setattr(n, "weight", torch.ones(2)),
            TypeError,
            "cannot assign 'torch.FloatTensor' as parameter 'wei",
        ),
        (
            lambda n: setattr(n, "weight", 3),
            TypeError,
            "cannot assign 'int' as parameter 'weight' (torch.nn.Parameter or",
        ),
        (
            lambda n: setattr(n, "inner", 3),
            TypeError,
            "cannot assign 'int' as child module 'inner' (torch.nn.Module or",
        ),
        (
            lambda n: setattr(n, "mean", 3),
            TypeError,
            "cannot assign 'int' as buffer 'mean' (torch.nn.Buffer, torch.Tens",
        ),
        (
            lambda n: n.register_parameter("x", torch.ones(1)),
            TypeError,
            "cannot assign 'torch.FloatTensor' object to par",
        ),
        (lambda n: n.register_parameter("a.b", None), KeyError, "parameter name can't contain"),
        (lambda n: n.register_parameter("", None), KeyError, "parameter name can't be empty string"),
        (lambda n: n.register_parameter(3, None), TypeError, "parameter name should be a string. Got int"),
        (lambda n: n.register_parameter("forward", None), KeyError, "attribute 'forward' already exists"),
        (lambda n: n.register_buffer("x", 3), TypeError, "cannot assign 'int' object to buffer 'x'"),
        (lambda n: n.register_buffer("weight", None), KeyError, "attribute 'weight' already exists"),
        (lambda n: n.register_buffer("a.b", None), KeyError, "buffer name can't contain"),
        (lambda n: n.add_module("x", 3), TypeError, "int is not a Module subclass"),
        (lambda n: n.register_module("a.b", None), KeyError, 'module name can\'t contain ".", got: a.b'),
        (lambda n: n.add_module("mean", nn.ReLU()), KeyError, "attribute 'mean' already exists"),
        (lambda n: n.nothing, AttributeError, "'Net' object has no attribute 'nothing'"),
    ],
)
def test_refused(assign, error, words):
    net = Net()
    with pytest.raises(error) as caught:
        assign(net)
    assert words in caught.value.args[0]
    assert mirrored(net)


def test_a_computed_tensor_is_no_parameter():
    leaf = nn.Parameter(torch.ones(2))
    with pytest.raises(TypeError):
        Net().register_parameter("twice", leaf * 2)


@pytest.mark.parametrize(
    ("value", "words"), [(lambda: nn.Parameter(torch.ones(1)), "parameters"), (nn.ReLU, "module")], ids=str
)
def test_assignment_before_init(value, words):
    class Forgetful(nn.Module):
        def __init__(self):
            self.plain = 1
            self.member = value()

    with pytest.raises(AttributeError, match=f"cannot assign {words} before Module.__init__"):
        Forgetful()
    with pytest.raises(AttributeError, match="cannot assign buffer before"):
        nn.Module.__new__(nn.Module).register_buffer("x", None)


def test_init_takes_no_arguments():
    with pytest.raises(TypeError, match="unexpected keyword argument 'size'"):
        nn.Module(size=3)
    with pytest.raises(TypeError, match="takes 1 positional argument but 3 were given"):
        nn.Module(1, 2)


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m)), copy.copy])
def test_copies(clone):
    net = Net()
    net.extra = {"a": 1}
    twin = clone(net)
    assert mirrored(twin)
    assert twin._parameters is not net._parameters
    assert list(twin.state_dict()) == list(net.state_dict())
    assert twin.extra == {"a": 1}
    assert isinstance(twin.weight, nn.Parameter)
    assert twin.weight.requires_grad
    twin.weight = nn.Parameter(torch.zeros(5))
    assert net.weight.shape == (2,)


def test_deepcopy_keeps_shared_members_shared():
    net = Net()
    net.tied = net.weight
    twin = copy.deepcopy(net)
    assert twin.tied is twin.weight
    assert twin.weight is not net.weight


def test_a_subclass_may_restore_its_state_by_itself():
    class Own(Net):
        def __setstate__(self, state):
            self.__dict__.update(state)

    twin = copy.deepcopy(Own())
    assert twin.weight is twin._parameters["weight"]
    twin.weight = nn.Parameter(torch.zeros(3))
    assert twin.weight.shape == (3,)


def test_a_module_dies_at_once():
    gc.disable()
    try:
        net = Net()
        gone = weakref.ref(net.inner)
        del net
        assert gone() is None
    finally:
        gc.enable()


def test_registration_hooks():
    seen = []

    def note(module, name, member):
        seen.append((type(module).__name__, name))

    handles = [
        nn.modules.module.register_module_parameter_registration_hook(note),
        nn.modules.module.register_module_buffer_registration_hook(note),
        nn.modules.module.register_module_module_registration_hook(note),
    ]
    try:
        Net()
    finally:
        for handle in handles:
            handle.remove()
    assert seen == [("Net", "weight"), ("Net", "mean"), ("Net", "scratch"), ("Linear", "weight"), ("Linear", "bias"),
                    ("Net", "inner")]  # fmt: skip
    Net()
    assert len(seen) == 6


def test_a_registration_hook_may_replace_the_member():
    def frozen(module, name, member):
        return nn.Parameter(member.data, requires_grad=False)

    with nn.modules.module.register_module_parameter_registration_hook(frozen):
        layer = nn.Linear(2, 2)
    assert not layer.weight.requires_grad


def test_buffer_class():
    net = nn.Module()
    net.kept = nn.Buffer(torch.ones(2))
    net.lost = nn.Buffer(torch.ones(2), persistent=False)
    assert list(net.state_dict()) == ["kept"]
    assert [name for name, _ in net.named_buffers()] == ["kept", "lost"]
    net.lost = torch.zeros(2)  # stays what it is
    assert list(net.state_dict()) == ["kept"]


def test_parameter():
    data = torch.ones(2, 3)
    parameter = nn.Parameter(data, requires_grad=False)
    assert isinstance(parameter, torch.Tensor)
    assert not parameter.requires_grad
    assert repr(nn.Parameter(torch.tensor([1.0]))) == "Parameter containing:\ntensor([1.], requires_grad=True)"
    assert nn.Parameter().shape == (0,)
    data[0, 0] = 5.0
    assert parameter[0, 0].item() == 5.0  # shared memory
    twin = copy.deepcopy(nn.Parameter(data))
    assert type(twin) is nn.Parameter
    assert twin.requires_grad
    assert torch.equal(twin.detach(), data)
    assert type(pickle.loads(pickle.dumps(twin))) is nn.Parameter
