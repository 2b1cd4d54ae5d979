"""`trace_backward`: the engine's own steps, and the same gradients as `backward`."""

import random

import pytest

import jitgrad as torch
from tests.libraries import function

trace_backward = torch.autograd.graph.trace_backward
MAX = (1 << 64) - 1


def worked_example():
    x, w, b = torch.tensor(2.0), torch.tensor(3.0, requires_grad=True), torch.tensor(1.0, requires_grad=True)
    y = w * x + b
    return w, b, y, y * y


def names(nodes):
    return [node.name().removeprefix("torch::autograd::") for node in nodes]


def test_the_worked_example():
    w, b, y, loss = worked_example()
    trace = trace_backward(loss)
    add, product = y.grad_fn, y.grad_fn.next_functions[0][0]
    at_w, at_b = product.next_functions[0][0], add.next_functions[1][0]
    assert [step.node for step in trace] == [loss.grad_fn, add, at_b, product, at_w]
    after_add = trace[2]
    assert set(after_add.ready) == {product, at_b}
    assert after_add.node is at_b
    assert after_add.ready == (at_b, product)
    assert after_add.sequence_nr == MAX > trace[3].sequence_nr == product._sequence_nr()
    assert [[g.item() for g in step.gradients_in] for step in trace] == [[1], [14], [14], [14], [28]]
    assert [[g if g is None else g.item() for g in step.gradients_out] for step in trace] == [[7, 7], [14, 14], [], [28, None], []]
    assert [step.released for step in trace] == [("self", "other"), (), (), ("other",), ()]
    assert [step.accumulated if step.accumulated is None else step.accumulated.item() for step in trace] == [None, None, 14, None, 28]
    assert (w.grad.item(), b.grad.item()) == (28.0, 14.0)
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()


def test_it_prints_as_a_table():
    w, b, _, loss = worked_example()
    trace = trace_backward(loss, params={"w": w, "b": b})
    lines = str(trace).splitlines()
    assert lines[0].split("  ")[0] == "step"
    assert len({line.rstrip() == line for line in lines}) == 1
    cells = [[cell for cell in line.split("  ") if cell.strip()] for line in lines[2:]]
    assert [row[1].strip() for row in cells] == [
        "MulBackward0", "AddBackward0", "AccumulateGrad(b), MulBackward0", "MulBackward0", "AccumulateGrad(w)",
    ]  # fmt: skip
    assert [row[-1].strip() for row in cells] == ["self, other", "14, 14", "b.grad = 14", "other", "w.grad = 28"]
    assert "max" in lines[4]
    assert repr(trace) == str(trace)


def test_it_is_a_table_in_a_notebook():
    w, *_, loss = worked_example()
    text = trace_backward(loss, params={"<w>": w})._repr_html_()
    assert text.count("<tr>") == 6
    assert "AccumulateGrad(&lt;w&gt;)" in text
    assert "<w>" not in text


def test_a_sequence():
    *_, y, loss = worked_example()
    trace = trace_backward(loss)
    assert len(trace) == len(list(trace)) == 5
    assert trace[-1].name == "torch::autograd::AccumulateGrad"
    assert [step.index for step in trace[1:3]] == [1, 2]
    assert trace.find(y) is trace[1]
    assert trace.find(y.grad_fn) is trace[1]
    assert trace.find((y * 2).grad_fn) is None
    with pytest.raises(IndexError):
        trace[5]


def test_a_retained_graph_runs_again():
    w, _, _, loss = worked_example()
    first = trace_backward(loss, retain_graph=True)
    second = trace_backward(loss)
    assert [step.released for step in first] == [()] * 5
    assert [step.node for step in first] == [step.node for step in second]
    assert second[4].accumulated.item() == w.grad.item() == 56.0


OPERATIONS = [
    lambda a, b: a + b,
    lambda a, b: a * b,
    lambda a, b: a.tanh(),
    lambda a, b: (a - b).sigmoid(),
    lambda a, b: (a + b).sum(),
]


def random_graph(seed):
    rng = random.Random(seed)
    torch.manual_seed(seed)
    leaves = [torch.randn(rng.choice([(3,), (2, 3), ()]), requires_grad=rng.random() < 0.8) for _ in range(4)]
    leaves[0].requires_grad_()
    values = [leaves[0] * 1.0, *leaves]
    for _ in range(25):
        a, b = rng.choice(values), rng.choice(values)
        values.append(rng.choice(OPERATIONS)(a, b))
    return leaves, (values[-1] + values[-2] * values[0]).sum()


@pytest.mark.parametrize("seed", range(12))
def test_the_same_gradients_as_backward(seed):
    leaves, loss = random_graph(seed)
    loss.backward(retain_graph=True)
    expected = [leaf.grad for leaf in leaves]
    for leaf in leaves:
        leaf.grad = None
    trace = trace_backward(loss)
    for leaf, grad in zip(leaves, expected, strict=True):
        assert (leaf.grad is None) == (grad is None)
        assert grad is None or torch.allclose(leaf.grad, grad, rtol=1e-6)
    for step in trace:
        assert step.ready[0] is step.node
        assert step.sequence_nr == max(node._sequence_nr() for node in step.ready)


def test_hooks_run_and_show_in_what_is_handed_on():
    x = torch.tensor(3.0, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    seen = []
    x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.item()))
    trace = trace_backward(y * 1)
    assert trace[1].gradients_in[0].item() == 1.0
    assert trace[1].gradients_out[0].item() == 20.0
    assert seen == [20.0]


def test_arguments_of_backward():
    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    y = a * b
    trace = trace_backward(y, torch.tensor([1.0, 2.0]), inputs=[a], retain_graph=True)
    assert a.grad.tolist() == [1.0, 2.0]
    assert b.grad is None
    assert len(trace) == 2
    trace = trace_backward((y, y * 3), (torch.ones(2), torch.ones(2)), create_graph=True)
    assert b.grad.tolist() == [4.0, 4.0]
    assert b.grad.requires_grad
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        trace_backward(y)
    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad"):
        trace_backward(torch.ones(()))


def test_steps_hold_copies():
    x = torch.ones(3, requires_grad=True)
    trace = trace_backward((x * 2).sum())
    x.grad.zero_()
    assert trace[-1].accumulated.tolist() == [2.0] * 3
    assert trace[-1].gradients_in[0].tolist() == [2.0] * 3


def test_an_error_says_which_step_it_was():
    def fail(ctx, grad):
        raise ValueError("broken on purpose")

    x = torch.ones(3, requires_grad=True)
    y = function(torch, lambda ctx, x: x * 1, fail, "Broken").apply(x).sum()
    with pytest.raises(ValueError, match="broken on purpose") as caught:
        trace_backward(y)
    assert caught.value.__notes__ == ["In step 2 of the traced backward: BrokenBackward."]


def test_several_outputs():
    x = torch.arange(4.0).requires_grad_()
    a, _ = x.split(2)
    trace = trace_backward((a * 3).sum())
    split = trace.find(a)
    assert [g if g is None else g.tolist() for g in split.gradients_in] == [[3.0, 3.0], None]
    assert "None" in str(trace)


def test_a_deep_and_a_wide_graph():
    x = torch.ones(2, requires_grad=True)
    y = x
    for _ in range(20_000):
        y = y * 1.0
    trace = trace_backward(y.sum())
    text = str(trace)
    assert len(trace) == 20_002
    assert "... 19,942 more steps ..." in text
    assert len(text.splitlines()) == 63
    parts = [x * float(k) for k in range(3000)]
    wide = trace_backward(torch.stack(parts).sum())
    assert len(wide[2].ready) == 3000
    assert "more" in wide.rows()[2][1]


def test_the_leaves_alone():
    x = torch.tensor(1.0, requires_grad=True)
    trace = trace_backward(x)
    assert names(step.node for step in trace) == ["AccumulateGrad"]
    assert x.grad.item() == 1.0
