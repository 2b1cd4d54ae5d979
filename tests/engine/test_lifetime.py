"""Nothing is kept alive longer than needed, and no circle is made: reference counts alone free a graph."""

import gc
import weakref

import pytest

import jitgrad as torch
from tests.libraries import leaf


@pytest.fixture(autouse=True)
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def nodes_of(*results):
    """Weak references to all nodes behind the results."""
    found, todo = {}, [x.grad_fn for x in results]
    while todo:
        node = todo.pop()
        if node is not None and id(node) not in found:
            found[id(node)] = node
            todo += [below for below, _ in node.next_functions]
    return [weakref.ref(node) for node in found.values()]


def written(x):
    y = x * 1
    y.exp_()
    return y


def written_view(x):
    y = x * 1
    y[0].exp_()
    return y


GRAPHS = {
    "result saved": lambda x: x.exp(),
    "templates": lambda x: (x.tanh() + 1).relu() * x,
    "numbers": lambda x: (x * 2 + 1).exp() / 3,
    "broadcast": lambda x: (x * torch.ones(4, 1)).sigmoid(),
    "several outputs": lambda x: x.split(2),
    "unbound": lambda x: x.unbind(0),
    "reduced": lambda x: x.max(1)[0],
    "sum": lambda x: x.exp().sum(0),
    "norm": lambda x: x.norm(),
    "matrix product": lambda x: (x @ x).exp(),
    "masked": lambda x: x.masked_fill(x > 0.5, 0.0).sqrt(),
    "written": written,
    "written view": written_view,
    "softmax": lambda x: torch.log_softmax(x, 1),
}


@pytest.mark.parametrize("graph", GRAPHS)
def test_a_graph_dies_with_its_result(graph):
    x = (torch.arange(16.0) / 16).reshape(4, 4).requires_grad_()
    result = GRAPHS[graph](x)
    results = result if isinstance(result, (tuple, list)) else (result,)
    nodes = nodes_of(*results)
    assert nodes
    del result, results, x
    assert [node() for node in nodes if node() is not None] == []


@pytest.mark.parametrize("graph", GRAPHS)
def test_after_a_backward_and_after_a_second_derivative(graph):
    x = (torch.arange(1.0, 17.0) / 16).reshape(4, 4).requires_grad_()
    result = GRAPHS[graph](x)
    results = result if isinstance(result, (tuple, list)) else (result,)
    total = sum(part.sum() for part in results)
    (first,) = torch.autograd.grad(total, x, create_graph=True)
    if first.requires_grad:
        first.sum().backward(retain_graph=True)
    total.backward()
    nodes = nodes_of(total)
    del result, results, total, first, x
    assert [node() for node in nodes if node() is not None] == []


def test_hooks_and_retained_gradients():
    x = leaf(torch, 1.0)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: None)
    z = y.exp()
    z.backward()
    nodes = nodes_of(z)
    del z, y, x
    assert [node() for node in nodes if node() is not None] == []


def test_a_leaf_dies_when_nobody_refers_to_it():
    x = leaf(torch, 1.0)
    alive = weakref.ref(x)
    y = x * 2
    y.backward()
    del x, y
    assert alive() is None


def test_saved_arrays_go_when_a_node_was_run():
    x = torch.ones(4, requires_grad=True)
    y = x.exp()
    z = y * y
    array = weakref.ref(y.array)
    del y
    assert array() is not None
    z.sum().backward()
    assert array() is None


def test_saved_arrays_stay_when_the_graph_is_kept():
    x = torch.ones(4, requires_grad=True)
    y = x.exp()
    array = weakref.ref(y.array)
    z = (y * y).sum()
    del y
    z.backward(retain_graph=True)
    assert array() is not None
    z.backward()
    assert array() is None


def test_an_intermediate_gradient_is_let_go_during_the_run():
    """At most a few gradients of a long chain are alive at a time."""
    arrays, most = [], 0

    def note(grad):
        nonlocal most
        arrays.append(weakref.ref(grad.numpy()))
        most = max(most, sum(array() is not None for array in arrays))

    y = torch.ones(8, requires_grad=True)
    for _ in range(50):
        y = y * 1.5
        y.register_hook(note)
    y.sum().backward()
    assert most <= 4
