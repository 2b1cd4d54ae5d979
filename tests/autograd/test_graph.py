"""`autograd.graph` and `Variable`: nodes, hooks over several gradients."""

import warnings

import pytest

import jitgrad
from tests.libraries import function, leaf


def test_nodes(lib):
    Node = lib.autograd.graph.Node
    x = leaf(lib, 1.0)
    y = x * 2
    made = function(lib, lambda ctx, x: x * 1, lambda ctx, grad: grad).apply(x)
    for node in (y.grad_fn, y.grad_fn.next_functions[0][0], made.grad_fn):
        assert isinstance(node, Node)
        assert issubclass(type(node), Node)
    assert not isinstance(y, Node)
    assert y.grad_fn is y.grad_fn
    assert y.grad_fn.name() == "MulBackward0"


def test_a_hook_over_several_gradients():
    """As documented by torch, whose release 2.13 itself does not count the leaves."""
    lib = jitgrad
    a, b = leaf(lib, 1.0), leaf(lib, 2.0)
    c, d = a * b, a * b
    seen = []
    handle = lib.autograd.graph.register_multi_grad_hook((a, b, c, d), lambda grads: seen.append([g is not None for g in grads]))
    c.backward(retain_graph=True)
    c.backward(inputs=(a,), retain_graph=True)
    (c + d).backward(retain_graph=True)
    assert seen == [[True, True, True, False], [True, False, True, False], [True] * 4]
    handle.remove()
    c.backward()
    assert len(seen) == 3


def test_values_of_such_a_hook():
    lib = jitgrad
    a, b = leaf(lib, 1.0), leaf(lib, 2.0)
    seen = []
    lib.autograd.graph.register_multi_grad_hook((a, b), lambda grads: seen.append([g.item() for g in grads]))
    (a * b + a).backward()
    assert seen == [[3.0, 1.0]]


def test_a_hook_on_the_first_gradient(lib):
    a, b = leaf(lib, 1.0), leaf(lib, 2.0)
    c = a * b
    seen = []
    handle = lib.autograd.graph.register_multi_grad_hook((a, b, c), lambda grad: seen.append(grad.item()), mode="any")
    (c * 5).backward(retain_graph=True)
    (c * 7).backward(retain_graph=True)
    assert seen == [5.0, 7.0]
    handle.remove()
    c.backward()
    assert len(seen) == 2
    with pytest.raises(ValueError, match="Expects mode to be one of"):
        lib.autograd.graph.register_multi_grad_hook((a,), print, mode="some")


def test_variable(lib):
    Variable = lib.autograd.Variable
    x = Variable(lib.ones(2), requires_grad=True)
    assert isinstance(x, lib.Tensor)
    assert isinstance(lib.ones(1), Variable)
    assert not isinstance(3, Variable)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_the_abstract_node(lib):
    node = lib.autograd.graph.Node
    y = leaf(lib, 1.0).exp()
    accumulator = y.grad_fn.next_functions[0][0]
    for one in (y.grad_fn, accumulator):
        assert isinstance(one, node)
        assert issubclass(type(one), node)
        assert node not in type(one).mro()
    assert not any(isinstance(x, node) for x in (None, 1, node, type(y.grad_fn), y))
    assert issubclass(lib.autograd.function.BackwardCFunction, node)
    with pytest.raises(TypeError, match="abstract class Node"):
        node()


def test_a_hook_on_several_tensors_needs_their_gradients(lib):
    x = leaf(lib, 1.0)
    with pytest.raises(AssertionError, match="Expected gradient function to be set"):
        lib.autograd.graph.register_multi_grad_hook((x, lib.ones(1)), print)
    handle = lib.autograd.graph.register_multi_grad_hook((x, lib.ones(1)), print, mode="any")
    assert type(handle).__name__ == "_MultiHandle"


def test_anomaly_mode_notes_in_the_metadata(lib):
    with lib.autograd.set_detect_anomaly(True):
        x = leaf(lib, 1.0)
        y = x.exp()
        (first,) = lib.autograd.grad(y, x, create_graph=True)
    assert list(y.grad_fn.metadata) == ["traceback_"]
    assert any("test_graph" in line for line in y.grad_fn.metadata["traceback_"])
    assert first.grad_fn.metadata["parent_"] is y.grad_fn


def test_an_anomaly_where_warnings_are_errors(lib, capsys):
    with lib.autograd.set_detect_anomaly(True), warnings.catch_warnings():
        warnings.simplefilter("error")
        a = leaf(lib, 1.0) + 1
        b = a**2
        a += 1
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            b.sum().backward()
    assert "Error detected in PowBackward0" in capsys.readouterr().err


def test_streams_are_not_warned_of(lib):
    assert lib.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(False) is None
    lib.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(True)


def test_node_that_a_gradient_comes_to(lib):
    node_of = lib.autograd.graph._get_grad_fn_or_grad_acc
    x = leaf(lib, 1.0)
    y = x.exp()
    assert node_of(y) is y.grad_fn
    assert node_of(x) is y.grad_fn.next_functions[0][0]
    with pytest.raises(AssertionError, match="Expected gradient function to be set"):
        node_of(x.detach())
