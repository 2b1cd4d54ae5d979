"""Hooks of tensors, leaves and nodes: order, replacement, removal, interplay with retained gradients and in-place writes."""

import pytest

from tests.libraries import function, identity, leaf


def test_order_of_everything(lib):
    x, log = leaf(lib, 1.0), []
    y = x * 2
    y.register_hook(lambda g: log.append("first"))
    y.grad_fn.register_prehook(lambda grads: log.append("before"))
    y.retain_grad()
    y.register_hook(lambda g: log.append(("second", y.grad is None)) or g * 2)
    y.grad_fn.register_hook(lambda results, grads: log.append(("after", results[0].tolist(), results[1], grads[0].tolist())))
    y.sum().backward()
    assert log == ["first", ("second", True), "before", ("after", [4.0], None, [2.0])]
    assert y.grad.tolist() == [2.0]
    assert x.grad.tolist() == [4.0]


def test_order_at_a_leaf(lib):
    x, log = leaf(lib, 1.0), []
    accumulator = (x * 1).grad_fn.next_functions[0][0]
    x.register_hook(lambda g: log.append(("tensor", g.item())) or g * 3)
    x.register_post_accumulate_grad_hook(lambda p: log.append(("accumulated", p is x, p.grad.item())))
    accumulator.register_prehook(lambda grads: log.append(("before", grads[0].item())))
    accumulator.register_hook(lambda results, grads: log.append(("after", results, grads[0].item())))
    (x * 2).sum().backward()
    assert log == [("tensor", 2.0), ("before", 6.0), ("accumulated", True, 6.0), ("after", (), 6.0)]


def test_a_hook_may_free_the_gradient(lib):
    x = leaf(lib, 1.0)

    def step(p):
        with lib.no_grad():
            p -= p.grad
        p.grad = None

    x.register_post_accumulate_grad_hook(step)
    (x * 0.25).sum().backward()
    assert (x.tolist(), x.grad) == ([0.75], None)


@pytest.mark.parametrize("whole", [True, False])
def test_replacement_goes_on(lib, whole):
    x = leaf(lib, 1.0)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: g + 1)
    z = y * 3
    (z.backward if whole else lambda: setattr(x, "grad", lib.autograd.grad(z, x)[0]))()
    assert x.grad.tolist() == [62.0]


def test_what_grad_captures(lib):
    """Of a node that runs, what its hooks have not seen yet; of others, what the hooks made."""
    x = leaf(lib, 1.0)
    for inputs, expected in ((lambda x, z: [z, x], [3.0, 60.0]), (lambda x, z: [z], [30.0])):
        z = x * 2
        z.register_hook(lambda g: g * 10)
        assert [g.item() for g in lib.autograd.grad(z * 3, inputs(x, z))] == expected
    x.register_hook(lambda g: g * 100)
    assert lib.autograd.grad(x * 3, x)[0].item() == 300.0


def test_inputs_of_backward_and_hooks(lib):
    x, log = leaf(lib, 1.0), []
    z = x * 2
    z.register_hook(lambda g: log.append("tensor"))
    z.grad_fn.register_prehook(lambda grads: log.append("before"))
    z.grad_fn.register_hook(lambda results, grads: log.append(("after", results)))
    (z * 3).backward(inputs=[z])
    assert log == ["tensor", "before", ("after", (None, None))]
    assert (z.grad.item(), x.grad) == (3.0, None)


def test_removal(lib):
    x, log = leaf(lib, 1.0), []
    y = x * 2
    handles = [y.register_hook(lambda g, k=k: log.append(k)) for k in range(3)]
    handles[1].remove()
    handles[1].remove()
    with handles[2]:
        y.backward(retain_graph=True)
    y.backward(retain_graph=True)
    assert log == [0, 2, 0]
    handles[0].remove()
    y.backward()
    assert log == [0, 2, 0]
    assert x.grad.tolist() == [6.0]


def test_removal_and_addition_during_a_run(lib):
    """The hooks of a run are those that were there when it came to them."""
    x, log, handles = leaf(lib, 1.0), [], []
    y = x * 2

    def first(g):
        log.append("first")
        handles[0].remove()
        handles[1].remove()
        y.register_hook(lambda g: log.append("late"))

    handles.append(y.register_hook(first))
    handles.append(y.register_hook(lambda g: log.append("second")))
    z = y.sum()
    z.backward(retain_graph=True)
    assert log == ["first", "second"]
    z.backward()
    assert log == ["first", "second", "late"]


WRONG = {
    "dtype": (lambda lib, y: y.register_hook(lambda g: g.double()), RuntimeError,
              "hook '<lambda>' has changed the type of value .was torch.FloatTensor got torch.DoubleTensor"),
    "shape": (lambda lib, y: y.register_hook(lambda g: lib.ones(3)), RuntimeError, "hook '<lambda>' has changed the size of value"),
    "no tensor": (lambda lib, y: y.register_hook(lambda g: 3.0), TypeError, "expected Variable, but hook returned 'float'"),
    "no tuple before": (lambda lib, y: y.grad_fn.register_prehook(lambda gs: gs[0]), TypeError, "expected tuple, but hook returned 'Tensor'"),
    "two before": (lambda lib, y: y.grad_fn.register_prehook(lambda gs: gs * 2), RuntimeError, r"incorrect number of values \(got 2, but expected 1"),
    "one after": (lambda lib, y: y.grad_fn.register_hook(lambda rs, gs: rs[:1]), RuntimeError, r"incorrect number of values \(got 1, but expected 2"),
    "shape after": (lambda lib, y: y.grad_fn.register_hook(lambda rs, gs: (lib.ones(3), None)), RuntimeError, "has changed the size of value"),
    "an error": (lambda lib, y: y.register_hook(lambda g: 1 / 0), ZeroDivisionError, "division"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_wrong_hooks(lib, case):
    register, error, message = WRONG[case]
    x = leaf(lib, 1.0)
    y = x * 2
    register(lib, y)
    with pytest.raises(error, match=message):
        y.sum().backward()
    (x * 5).sum().backward()
    assert x.grad.tolist() == [5.0]


def test_hooks_of_nodes_replace(lib):
    x = leaf(lib, 1.0)
    y = x * 2
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 10,))
    y.grad_fn.register_hook(lambda results, grads: (results[0] + 1, None))
    y.backward()
    assert x.grad.tolist() == [21.0]
    y = x * 2
    y.grad_fn.register_hook(lambda results, grads: (None, None))
    x.grad = None
    y.backward()
    assert x.grad is None


def test_hooks_see_that_no_gradient_came(lib):
    log = []
    x = leaf(lib, 1.0, 2.0)
    p, q = (x * 1).unbind(0)
    q.register_hook(lambda g: log.append(("q", g)))
    p.register_hook(lambda g: log.append(("p", g.item())))
    p.grad_fn.register_prehook(lambda grads: log.append([None if g is None else g.item() for g in grads]))
    (p * 3).backward()
    assert log == [("q", None), ("p", 3.0), [3.0, None]]
    assert x.grad.tolist() == [3.0, 0.0]

    cut = function(lib, lambda ctx, x: x * 1, lambda ctx, grad: None)
    y, log = leaf(lib, 1.0), []
    y.register_hook(log.append)
    y.register_post_accumulate_grad_hook(lambda p: log.append("accumulated"))
    cut.apply(y).backward()
    assert log == [None, "accumulated"]
    assert y.grad is None


def test_registration_is_refused(lib):
    constant, made = lib.ones(1), leaf(lib, 1.0) * 2
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't require gradient"):
        constant.register_hook(print)
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't require gradient"):
        constant.register_post_accumulate_grad_hook(print)
    with pytest.raises(RuntimeError, match="post accumulate grad hooks cannot be registered on non-leaf tensors"):
        made.register_post_accumulate_grad_hook(print)
    with pytest.raises(RuntimeError, match="can't retain_grad on Tensor that has requires_grad=False"):
        constant.retain_grad()


def test_retained_gradients(lib):
    x = leaf(lib, 1.0)
    y = x * 2
    with pytest.warns(UserWarning, match="The .grad attribute of a Tensor that is not a leaf Tensor is being accessed"):
        assert y.grad is None
    y.retain_grad()
    y.retain_grad()
    z = y * 3
    z.backward(retain_graph=True)
    z.backward(retain_graph=True)
    assert y.grad.tolist() == [6.0]
    assert lib.autograd.grad(z, [y, x])[0].tolist() == [3.0]
    assert y.grad.tolist() == [9.0]
    x.retain_grad()
    assert not x.retains_grad


def test_a_write_moves_the_retained_gradient_but_not_the_hooks(lib):
    log = []
    x = leaf(lib, 1.0)
    a = x * 1
    a.register_hook(lambda g: log.append(("old", g.item())))
    a.retain_grad()
    a.mul_(2)
    assert a.retains_grad
    a.register_hook(lambda g: log.append(("new", g.item())))
    (a * 3).sum().backward()
    assert log == [("new", 3.0), ("old", 6.0)]
    assert a.grad.tolist() == [3.0]


def test_a_hook_in_a_large_graph_does_not_disturb_the_rest(lib):
    """The accelerated run hands over in the middle: order and sums stay."""
    log, x = [], leaf(lib, 1.0)
    y = identity(lib, log, "low").apply(x * 2)
    y.register_hook(lambda g: log.append(("hook", g.item())))
    z = identity(lib, log, "middle").apply(y * 3) + y
    w = identity(lib, log, "high").apply(z * x)
    w.backward()
    assert log == ["high", "middle", ("hook", 8.0 * 0.5), "low"]
    assert x.grad.tolist() == [8.0 + 8.0]


def test_metadata_and_sequence(lib):
    x = leaf(lib, 1.0)
    y = x * 2
    y.grad_fn.metadata["key"] = "value"
    assert y.grad_fn.metadata == {"key": "value"}
    later = (x * 3).grad_fn
    assert later._sequence_nr() == y.grad_fn._sequence_nr() + 1
    assert y.grad_fn.next_functions[0][0]._sequence_nr() == 2**64 - 1
    y.grad_fn._set_sequence_nr(5)
    assert y.grad_fn._sequence_nr() == 5
    with pytest.raises(OverflowError):
        y.grad_fn._set_sequence_nr(-1)


def test_a_node_may_be_moved_in_the_order(lib):
    log, x = [], leaf(lib, 1.0)
    first, second = identity(lib, log, 1).apply(x * 1), identity(lib, log, 2).apply(x * 1)
    first.grad_fn._set_sequence_nr(2**40)
    (first * second).backward()
    assert log == [1, 2]


def test_a_node_can_be_called(lib):
    x = leaf(lib, 1.0, 2.0)
    product = (x * x.detach()).grad_fn
    grads = product(lib.ones(2))
    assert (grads[0].tolist(), grads[1]) == ([1.0, 2.0], None)
    accumulator = product.next_functions[0][0]
    assert accumulator(lib.ones(2)) == ()
    assert x.grad.tolist() == [1.0, 1.0]
    assert product._input_metadata[0].dtype == lib.float32
    assert tuple(product._input_metadata[0].shape) == (2,)


def test_callbacks_at_the_end(lib):
    log, queue = [], lib.autograd.Variable._execution_engine.queue_callback
    x = leaf(lib, 1.0)
    y = x * 2
    y.register_hook(lambda g: queue(lambda: log.append(("end", x.grad.item()))) or log.append("hook"))
    y.backward()
    assert log == ["hook", ("end", 2.0)]
    with pytest.raises(RuntimeError, match="Final callbacks can only be installed during backward pass"):
        queue(print)


def test_a_hook_after_accumulation_returns_nothing(lib):
    x = leaf(lib, 1.0)
    x.register_post_accumulate_grad_hook(lambda p: p.grad)
    with pytest.raises(RuntimeError, match="Tensor post accumulate grad hooks should return None"):
        (x * 2).sum().backward()


def test_a_retained_gradient_follows_writes_to_a_view(lib):
    x = leaf(lib, 1.0).clone()
    x.retain_grad()
    part = x[:]
    part *= 2
    x *= 2
    x.sum().backward()
    assert x.grad.tolist() == [1.0]


@pytest.mark.parametrize("leading", [(2,), (2, 3)])
@pytest.mark.parametrize("look", [True, False])
def test_the_weight_of_a_linear_layer(lib, look, leading):
    """The node between a layer and its weight is there for those who look, and changes nothing."""
    layer, x, log = lib.nn.Linear(3, 2), lib.ones(*leading, 3, requires_grad=True), []
    y = layer(x)
    if look:
        node = y.grad_fn
        while node.name() != "AddmmBackward0":
            node = node.next_functions[0][0]
        between = node.next_functions[2][0]
        assert between.name() == "TBackward0"
        accumulator = between.next_functions[0][0]
        assert accumulator.variable is layer.weight
        node.register_hook(lambda results, grads: log.append("layer"))
        between.register_prehook(lambda grads: log.append("between"))
        accumulator.register_prehook(lambda grads: log.append("weight"))
    (y**2).sum().backward(retain_graph=True)
    assert log == (["layer", "between", "weight"] if look else [])
    (second,) = lib.autograd.grad((y**2).sum(), layer.weight, create_graph=True)
    assert second.flatten().tolist() == pytest.approx(layer.weight.grad.flatten().tolist())
    assert lib.autograd.grad(second.sum(), layer.weight, retain_graph=True)[0].shape == (2, 3)
    with lib.no_grad():
        layer.weight.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        (y**2).sum().backward()


def test_the_order_of_hooks_around_a_layer(lib):
    layer, x, order = lib.nn.Linear(3, 2), lib.ones(2, 3, requires_grad=True), []
    layer.register_full_backward_hook(lambda *_: order.append("module"))
    loss = layer(x).sum()

    def watch(nodes):
        for node, _ in nodes:
            name = node.name()
            node.register_prehook(lambda _, name=name: order.append("before " + name))
            node.register_hook(lambda _, __, name=name: order.append("after " + name))
            watch(node.next_functions)

    watch([(loss.grad_fn, 0)])
    for name, tensor in (("x", x), ("weight", layer.weight), ("bias", layer.bias)):
        tensor.register_hook(lambda _, name=name: order.append(name))
        tensor.register_post_accumulate_grad_hook(lambda _, name=name: order.append(name + " accumulated"))
    loss.backward()
    leaf_node = "torch::autograd::AccumulateGrad"
    expected = []
    for name in ("SumBackward0", "BackwardHookFunctionBackward", "AddmmBackward0", "bias", "TBackward0", "weight", "module", "x"):
        if name == "module":
            expected += ["before BackwardHookFunctionBackward", "module", "after BackwardHookFunctionBackward"]
        elif name.endswith(("0", "Backward")):
            expected += ["before " + name, "after " + name]
        else:
            expected += [name, "before " + leaf_node, name + " accumulated", "after " + leaf_node]
    assert order == expected


def test_a_root_among_several_outputs_with_a_hook(lib):
    x = lib.tensor([[1.0, 2.0, 3.0]], requires_grad=True)
    _, right = x.split([1, 2], 1)
    seen = []
    right.register_hook(seen.append)
    (grad,) = lib.autograd.grad(right, x, lib.tensor([[5.0, 7.0]]))
    assert grad.tolist() == [[0.0, 5.0, 7.0]]
    assert seen[0].tolist() == [[5.0, 7.0]]


def test_hooks_stay_with_a_leaf_that_was_detached(lib):
    calls = []
    x = lib.ones(2, requires_grad=True)
    x.register_hook(lambda grad: grad * 3)
    x.register_post_accumulate_grad_hook(lambda leaf: calls.append(leaf is x))
    x.detach_()
    x.requires_grad_()
    x.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    assert calls == [True]
