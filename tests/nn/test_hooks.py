"""Hooks around the call of a module and around its backward."""

import copy
import gc
import pickle
import weakref
from collections import OrderedDict

import pytest

import jitgrad as torch
from jitgrad import nn
from jitgrad.autograd._module_hooks import BackwardHook
from jitgrad.nn.modules import module as modules
from jitgrad.utils.hooks import RemovableHandle


class Double(nn.Module):
    def forward(self, x, *, shift=0.0):
        return x * 2 + shift


def value(module, *args, **kwargs):
    return module(torch.tensor(1.0), *args, **kwargs).item()


# ---- forward
def test_pre_hooks_replace_arguments():
    module = Double()
    module.register_forward_pre_hook(lambda m, args: args[0] + 1)
    module.register_forward_pre_hook(lambda m, args: (args[0] * 10,))
    assert value(module) == 40
    module.register_forward_pre_hook(lambda m, args: (args[0] + 2,), prepend=True)
    assert value(module) == 80
    module.register_forward_pre_hook(lambda m, args, kwargs: (args, {"shift": 5.0}), with_kwargs=True)
    assert value(module) == 85
    module.register_forward_pre_hook(lambda m, args, kwargs: 3, with_kwargs=True)
    with pytest.raises(RuntimeError, match="forward pre-hook must return None or a tuple of"):
        value(module)


def test_hooks_replace_results():
    module = Double()
    seen = []
    module.register_forward_hook(lambda m, args, result: result + 1)
    module.register_forward_hook(lambda m, args, kwargs, result: seen.append((kwargs, result.item())), with_kwargs=True)
    module.register_forward_hook(lambda m, args, result: result * 10, prepend=True)
    assert value(module, shift=2.0) == 41
    assert seen == [({"shift": 2.0}, 41)]


def test_removal_brings_back_the_bare_call():
    module = Double()
    first = module.register_forward_hook(lambda m, args, result: result + 1)
    with module.register_forward_pre_hook(lambda m, args: (args[0] + 1,)):
        assert value(module) == 5
    first.remove()
    first.remove()
    assert module._hooked
    assert value(module) == 2
    assert not module._hooked
    module.register_forward_hook(lambda m, args, result: result + 1)
    assert value(module) == 3


def test_always_called_hooks_run_when_the_call_raises():
    class Fails(nn.Module):
        def forward(self, x):
            raise ValueError("no")

    module, seen = Fails(), []
    module.register_forward_hook(lambda m, args, result: seen.append(("once", result)), always_call=True)
    module.register_forward_hook(lambda m, args, result: seen.append("never"))
    everywhere = modules.register_module_forward_hook(lambda m, a, r: seen.append("global"), always_call=True)
    with everywhere, pytest.raises(ValueError, match="no"):
        module(1)
    assert seen == ["global", ("once", None)]

    def breaks(m, args, result):
        raise KeyError("too")

    module.register_forward_hook(breaks, always_call=True)
    with (
        pytest.warns(UserWarning, match="raised an exception that was silenced"),
        pytest.raises(ValueError, match="no"),
    ):
        module(1)


def test_global_hooks_see_every_module():
    seen = []
    handles = [
        modules.register_module_forward_pre_hook(lambda m, args: seen.append(("before", type(m).__name__))),
        modules.register_module_forward_hook(lambda m, args, result: seen.append(("after", type(m).__name__))),
    ]
    model = nn.Sequential(nn.ReLU())
    own = model.register_forward_pre_hook(lambda m, args: seen.append("own"))
    model(torch.ones(1))
    assert seen == [("before", "Sequential"), "own", ("before", "ReLU"), ("after", "ReLU"), ("after", "Sequential")]
    for handle in (*handles, own):
        handle.remove()
    model(torch.ones(1))
    assert not model._hooked
    assert not model[0]._hooked
    assert len(seen) == 5


# ---- backward
def layer_with_input():
    layer = nn.Linear(2, 2, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    return layer, torch.tensor([[1.0, 1.0]], requires_grad=True)


def test_full_backward_hook_sees_both_gradients():
    layer, x = layer_with_input()
    seen = []
    layer.register_full_backward_hook(lambda m, grad_in, grad_out: seen.append((m, grad_in, grad_out)))
    layer(x).sum().backward()
    ((module, (grad_in,), (grad_out,)),) = seen
    assert module is layer
    assert grad_in.tolist() == [[4.0, 6.0]]
    assert grad_out.tolist() == [[1.0, 1.0]]
    assert x.grad.tolist() == [[4.0, 6.0]]


def test_full_backward_hook_replaces_the_gradient_of_the_input():
    layer, x = layer_with_input()
    layer.register_full_backward_hook(lambda m, grad_in, grad_out: (grad_in[0] * 10,))
    layer.register_full_backward_hook(lambda m, grad_in, grad_out: grad_in[0] + 1)
    layer.register_full_backward_hook(lambda m, grad_in, grad_out: [grad_in[0] * 2], prepend=True)
    layer(x).sum().backward()
    assert x.grad.tolist() == [[81.0, 121.0]]
    assert layer.weight.grad.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_full_backward_pre_hook_replaces_the_gradient_of_the_output():
    layer, x = layer_with_input()
    seen = []
    layer.register_full_backward_pre_hook(lambda m, grad_out: grad_out[0] * 3)
    layer.register_full_backward_pre_hook(lambda m, grad_out: seen.append(grad_out[0].tolist()))
    layer.register_full_backward_hook(lambda m, grad_in, grad_out: seen.append(grad_out[0].tolist()))
    layer(x).sum().backward()
    assert seen == [[[3.0, 3.0]], [[3.0, 3.0]]]
    assert x.grad.tolist() == [[12.0, 18.0]]


def test_arguments_that_are_no_tensors_are_none():
    class Scale(nn.Module):
        def forward(self, x, factor, y):
            return x * factor, "text", y + 1

    seen = []
    module = Scale()
    module.register_full_backward_hook(lambda m, grad_in, grad_out: seen.append((grad_in, grad_out)))
    x, y = torch.tensor(1.0, requires_grad=True), torch.tensor(2.0)
    result = module(x, 3.0, y)
    assert result[1] == "text"
    result[0].backward()
    ((grad_in, grad_out),) = seen
    assert grad_in[0].item() == 3.0
    assert grad_in[1] is None
    assert grad_out[0].item() == 1.0
    assert grad_out[1:] == (None, None)


def test_no_input_asks_for_a_gradient():
    layer, _ = layer_with_input()
    seen = []
    handle = layer.register_full_backward_hook(lambda m, grad_in, grad_out: seen.append(grad_in))
    with pytest.warns(UserWarning, match="Full backward hook is firing when gradients are computed"):
        layer(torch.ones(1, 2)).sum().backward()
    assert seen == [(None,)]
    handle.remove()
    layer.register_full_backward_hook(lambda m, grad_in, grad_out: grad_out)
    with (
        pytest.warns(UserWarning, match="Full backward hook is firing"),
        pytest.raises(RuntimeError, match="should always return None or None for all"),
    ):
        layer(torch.ones(1, 2)).sum().backward()


def test_wrong_number_of_gradients():
    layer, x = layer_with_input()
    handle = layer.register_full_backward_hook(lambda m, grad_in, grad_out: grad_in * 2)
    with pytest.raises(RuntimeError, match="Backward hook returned an invalid number of grad_input, got 2, but expec"):
        layer(x).sum().backward()
    handle.remove()
    layer.register_full_backward_pre_hook(lambda m, grad_out: grad_out * 2)
    with pytest.raises(RuntimeError, match="Backward pre hook returned an invalid number of grad_output, got 2, but"):
        layer(x).sum().backward()


def test_result_that_cannot_be_watched():
    class Lists(nn.Module):
        def forward(self, x):
            return [x * 2]

    module = Lists()
    module.register_full_backward_hook(lambda *_: None)
    with pytest.warns(UserWarning, match="module output should be a Tensor or a tuple of Tensors"):
        module(torch.ones(1, requires_grad=True))


def test_no_hook_runs_without_recording():
    layer, x = layer_with_input()
    layer.register_full_backward_hook(lambda *_: 1 / 0)
    with torch.no_grad():
        assert layer(x).tolist() == [[3.0, 7.0]]


def test_global_backward_hooks():
    layer, x = layer_with_input()
    seen = []
    after = modules.register_module_full_backward_hook(lambda m, gi, go: seen.append("after"))
    before = modules.register_module_full_backward_pre_hook(lambda m, go: seen.append("before"))
    with after, before:
        layer(x).sum().backward()
    layer(x).sum().backward()
    assert seen == ["before", "after"]


def test_a_graph_with_hooks_dies_at_once(monkeypatch):
    made = []

    class Watched(BackwardHook):
        def __init__(self, *args):
            super().__init__(*args)
            made.append(weakref.ref(self))

    monkeypatch.setattr("jitgrad.nn.modules._calls.BackwardHook", Watched)
    layer, x = layer_with_input()
    layer.register_full_backward_hook(lambda *_: None)
    gc.disable()
    try:
        loss = layer(x).sum()
        assert made[0]() is not None
        del loss
        assert made[0]() is None
    finally:
        gc.enable()


# ---- handles
def note(*_):
    """A hook that can be pickled."""


def test_hooks_are_copied_with_their_module():
    module = Double()
    module.register_forward_hook(note)
    for twin in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert list(twin._forward_hooks.values()) == [note]
        assert twin._hooked
        assert value(twin) == 2


def test_handle_outlives_its_table():
    table = OrderedDict()
    handle = RemovableHandle(table)
    del table
    handle.remove()


def test_handle_with_extra_tables():
    table, marks, more = OrderedDict(), OrderedDict(), OrderedDict()
    handle = RemovableHandle(table, extra_dict=[marks, more])
    for one in (table, marks, more):
        one[handle.id] = True
    state = pickle.loads(pickle.dumps((handle, table, marks, more)))
    state[0].remove()
    assert not any(state[1:])
    handle.remove()
    assert not table
    assert not marks
    assert not more
    assert RemovableHandle(table, extra_dict=marks).id > handle.id


def test_pickled_handle_of_a_dead_table():
    handle = RemovableHandle(OrderedDict())
    gc.collect()
    pickle.loads(pickle.dumps(handle)).remove()
