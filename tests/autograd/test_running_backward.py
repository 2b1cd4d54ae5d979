"""What a program can ask while a backward runs, by the names below torch's public ones."""

import gc
import warnings
from importlib import import_module

import pytest

from tests.libraries import function, leaf


def names(nodes):
    return [node.name().split("::")[-1] for node in nodes]


def test_current_node_in_backward_of_function(lib):
    seen = []

    def backward(ctx, grad):
        seen.append(type(lib._C._current_autograd_node()).__name__)
        return grad

    function(lib, lambda ctx, x: x + 1, backward).apply(leaf(lib, 2.0)).backward()
    assert seen == ["MadeBackward"]
    assert lib._C._current_autograd_node() is None


def test_current_node_in_hooks(lib):
    x = leaf(lib, 2.0)
    y = x.exp()
    seen = []
    y.register_hook(lambda grad: seen.append(lib._C._current_autograd_node() is y.grad_fn))
    x.register_hook(lambda grad: seen.append(type(lib._C._current_autograd_node()).__name__))
    y.sin().backward()
    assert seen == [True, "AccumulateGrad"]


def test_current_node_of_inner_backward(lib):
    seen = []

    def backward(ctx, grad):
        with lib.enable_grad():
            inner = leaf(lib, 1.0)
            inner.register_hook(lambda g: seen.append(type(lib._C._current_autograd_node()).__name__))
            inner.cos().backward()
        seen.append(type(lib._C._current_autograd_node()).__name__)
        return grad

    function(lib, lambda ctx, x: x + 1, backward, "Outer").apply(leaf(lib, 2.0)).backward()
    assert seen == ["AccumulateGrad", "OuterBackward"]


def test_each_backward_has_a_number(lib):
    seen = []
    y = leaf(lib, 3.0).clone()
    y.register_hook(lambda grad: seen.append(lib._C._current_graph_task_id()))
    y.register_hook(lambda grad: seen.append(lib._C._current_graph_task_id()))
    for _ in range(3):
        y.backward(retain_graph=True)
    first = seen[0]
    assert [k - first for k in seen] == [0, 0, 1, 1, 2, 2]
    assert lib._C._current_graph_task_id() == -1


def test_order_of_execution_is_foreseen(lib):
    x = leaf(lib, 0.5)
    y = x.cosh()
    z = y.exp() * x.tanh()
    foreseen, happened = [], []
    z.register_hook(lambda grad: foreseen.extend(lib._C._current_graph_task_execution_order()))
    todo = [z.grad_fn]
    while todo:
        node = todo.pop()
        if node not in happened:
            node.register_prehook(lambda grads, node=node: happened.append(node))
            todo += [below for below, _ in node.next_functions if below is not None]
    happened.clear()
    with lib.autograd.set_multithreading_enabled(False):
        z.backward()
    assert list(dict.fromkeys(names(happened))) == names(foreseen)
    assert foreseen == list(dict.fromkeys(happened))


def test_order_of_a_part(lib):
    a, b = leaf(lib, 1.0), leaf(lib, 2.0)
    y = (a * b).log()
    foreseen = []
    y.register_hook(lambda grad: foreseen.extend(lib._C._current_graph_task_execution_order()))
    with lib.autograd.set_multithreading_enabled(False):
        lib.autograd.grad(y, a)
    assert names(foreseen) == ["LogBackward0", "MulBackward0", "AccumulateGrad"]


def test_order_is_refused(lib):
    y = leaf(lib, 1.0).sin()
    with pytest.raises(RuntimeError, match="should only be called during the backward pass"):
        lib._C._current_graph_task_execution_order()
    y.register_hook(lambda grad: lib._C._current_graph_task_execution_order())
    with pytest.raises(RuntimeError, match="expects the current backward to be executed with multithreading disabled"):
        y.backward()


def will_run(lib, node):
    return lib._C._will_engine_execute_node(node)


def test_which_nodes_will_run(lib):
    a, b = leaf(lib, 1.0), leaf(lib, 2.0)
    y = a * b
    beside = y.sin()
    out = y.exp()
    accumulators = [node for node, _ in y.grad_fn.next_functions]
    seen = []
    out.register_hook(lambda grad: seen.append([will_run(lib, node) for node in (*accumulators, y.grad_fn, beside.grad_fn)]))
    out.backward(retain_graph=True)
    out.backward(inputs=[a], retain_graph=True)
    assert seen == [[True, True, True, False], [True, False, True, False]]


def test_which_nodes_will_run_below_a_function(lib):
    """The accelerated run makes no table of nodes."""
    x = leaf(lib, 1.0)
    y = x.exp()
    seen = []

    def backward(ctx, grad):
        seen.append([will_run(lib, node) for node in (y.grad_fn, beside.grad_fn)])
        return grad

    beside = y.sin()
    function(lib, lambda ctx, x: x + 1, backward).apply(y).backward()
    assert seen == [[True, False]]


def test_questions_that_are_refused(lib):
    x = leaf(lib, 1.0)
    y = x.exp()
    with pytest.raises(RuntimeError, match="should only be called during the backward pass"):
        will_run(lib, y.grad_fn)
    with pytest.raises(RuntimeError, match="_will_engine_execute_node expects an grad_fn, but got"):
        will_run(lib, y)
    below = y.grad_fn.next_functions[0][0]
    y.register_hook(lambda grad: will_run(lib, below))
    with pytest.raises(RuntimeError, match=r"we are currently running autograd.grad\(\)"):
        lib.autograd.grad(y, x)


def test_hook_put_on_the_node_that_unpacks(lib):
    """It runs after this very call, in both runs, and is told of no incoming gradients."""

    def unpack(tensor):
        def halve(results, grads):
            told.append(grads)
            return tuple(part / 2 for part in results)

        lib._C._current_autograd_node().register_hook(halve)
        return tensor

    for retain_inner in (False, True):
        told = []
        x = leaf(lib, 0.3)
        with lib.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpack):
            y = x.exp()
            if retain_inner:
                y.retain_grad()
            y.backward()
        assert told == [()]
        assert x.grad.item() == pytest.approx(1.3498588 / 2, rel=1e-6)


def test_delayed_error(lib):
    x, y = leaf(lib, 1.0), leaf(lib, 2.0)
    late = lib._C._functions.DelayedError("too late", 2)
    a, b = late(x, y)
    assert a.item() == 1.0
    assert b.grad_fn.name() == "torch::autograd::Error"
    with pytest.raises(RuntimeError, match="too late"):
        (a * b).backward()
    z = leaf(lib, 5.0)
    assert lib.autograd.grad(a * z, z)[0].item() == 1.0  # it is not run where nothing below it is asked for
    with pytest.raises(TypeError, match="expected 2 arguments, got 1 instead"):
        late(x)
    with pytest.raises(RuntimeError, match="Requires two arguments, got 1"):
        lib._C._functions.DelayedError("alone")


def test_undefined_gradient(lib):
    x = leaf(lib, 1.5)
    seen = []

    def backward(ctx, grad):
        seen.append(grad)
        return grad

    y = function(lib, lambda ctx, x: x * 1, backward).apply(x)
    gone = lib._C._functions.UndefinedGrad()(y)
    assert gone.item() == 1.5
    assert gone.grad_fn.name() == "torch::autograd::UndefinedGradBackward"
    gone.backward()
    assert [grad.item() for grad in seen] == [0.0]
    assert not lib._C._functions.UndefinedGrad()(y.detach()).requires_grad
    with pytest.raises(TypeError, match="expected 1 arguments, got 0 instead"):
        lib._C._functions.UndefinedGrad()()


def test_nodes_by_name(lib):
    y = leaf(lib, 1.0) * 3
    kinds = lib._C._functions
    assert isinstance(y.grad_fn, kinds.MulBackward0)
    assert not isinstance(y.grad_fn, kinds.AddBackward0)
    assert isinstance(y.grad_fn.next_functions[0][0], kinds.AccumulateGrad)
    with pytest.raises(AttributeError):
        kinds.nothing


def test_version_counters_by_number(lib):
    x = leaf(lib, 2.0).clone()
    y = x.exp().exp()
    inner = y.grad_fn.next_functions[0][0]
    assert inner is not None
    kept = x.clone()
    square = kept * kept
    kept.add_(0)
    lib._C._autograd._unsafe_set_version_counter((kept,), (0,))
    assert kept._version == 0
    square.sum().backward()
    lib._C._autograd._unsafe_set_version_counter((kept,), (5,))
    assert kept._version == 5
    with pytest.raises(RuntimeError, match="Cannot set a version_counter to a value below 0: -2"):
        lib._C._autograd._unsafe_set_version_counter((kept,), (-2,))


def test_weak_reference(lib):
    x = leaf(lib, 1.0)
    reference = lib._C._WeakTensorRef(x)
    assert not reference.expired()
    gc.disable()
    try:
        del x
        assert reference.expired()
    finally:
        gc.enable()


def test_warns_again_when_told_to(lib):
    x = leaf(lib, 2.0)
    lib.set_warn_always(True)
    try:
        for _ in range(2):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                (x * x).backward(create_graph=True)
            x.grad = None
            assert ["create_graph=True will create a reference cycle" in str(w.message) for w in caught] == [True]
    finally:
        lib.set_warn_always(False)
    assert not lib.is_warn_always_enabled()


def test_leaf_with_other_memory_is_another_end(lib):
    """After `set_` the graph made before leads elsewhere."""
    x = leaf(lib, 1.0, 2.0)
    edge = lib.autograd.graph.get_gradient_edge(x)
    y = (x * 3).sum()
    with lib.no_grad():
        x.set_(lib.tensor([5.0, 6.0]))
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        lib.autograd.grad(y, x, retain_graph=True)
    assert lib.autograd.grad(y, edge, retain_graph=True)[0].tolist() == [3.0, 3.0]
    y.backward()
    (x * 4).sum().backward()
    assert x.grad.tolist() == [7.0, 7.0]


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")
def test_forward_mode_names_the_op_that_lacks_it(lib):
    forward = import_module(f"{lib.__name__}.autograd.forward_ad")
    with forward.dual_level():
        dual = forward.make_dual(lib.tensor([1.5]), lib.tensor([1.0]))
        with pytest.raises(NotImplementedError, match="Trying to use forward AD with igamma that does not support it"):
            lib.igamma(dual, dual)


def test_no_accelerator(lib):
    assert not lib.accelerator.is_available()
    assert lib.accelerator.current_accelerator(True) is None
    assert lib.accelerator.device_count() == 0
