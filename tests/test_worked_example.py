"""The README's worked example prints what its comments say, and the straight-through clamp behaves as in torch."""

import re

import pytest

import jitgrad as torch

PROGRAM = """\
x = torch.tensor(2.0); w = torch.tensor(3.0, requires_grad=True); b = torch.tensor(1.0, requires_grad=True)
y = w * x + b; loss = y * y
print(loss.grad_fn)
print(loss.grad_fn.next_functions)
print(y.grad_fn.next_functions)
print(w.is_leaf, y.is_leaf)
loss.backward(); print(w.grad, b.grad)
try:
    loss.backward()
except RuntimeError as why:
    print("RuntimeError:", why)
with torch.no_grad(): z = w * x
print(z.requires_grad, z.grad_fn)
"""

PRINTED = """\
<MulBackward0 object at 0xHEX>
((<AddBackward0 object at 0xHEX>, 0), (<AddBackward0 object at 0xHEX>, 0))
((<MulBackward0 object at 0xHEX>, 0), (<AccumulateGrad object at 0xHEX>, 0))
True False
tensor(28.) tensor(14.)
RuntimeError: Trying to backward through the graph a second time (or directly access saved tensors after they have \
already been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). \
Specify retain_graph=True if you need to backward through the graph a second time or if you need to access saved \
tensors after calling backward.
False None
"""


class StraightThroughClamp(torch.autograd.Function):
    """Clamp to [0, 1]; its backward lets every gradient through."""

    @staticmethod
    def forward(ctx, x):
        return x.clamp(0.0, 1.0)

    @staticmethod
    def backward(ctx, grad):
        return grad


def test_the_worked_example_prints_what_its_comments_say(capsys):
    exec(PROGRAM, {"torch": torch})
    assert re.sub(r"0x[0-9a-fA-F]+", "0xHEX", capsys.readouterr().out) == PRINTED


def test_both_edges_of_the_square_lead_to_one_node():
    w = torch.tensor(3.0, requires_grad=True)
    y = w * 2.0
    (left, _), (right, _) = (y * y).grad_fn.next_functions
    assert left is right is y.grad_fn


def test_an_operand_without_gradient_has_no_edge():
    x = torch.tensor(2.0)
    w = torch.tensor(3.0, requires_grad=True)
    (to_w, output), to_x = (w * x).grad_fn.next_functions
    assert (to_w.name(), output) == ("torch::autograd::AccumulateGrad", 0)
    assert to_w.variable is w
    assert to_x == (None, 0)


def test_straight_through_clamp():
    x = torch.tensor([5.0, 0.5], requires_grad=True)
    y = StraightThroughClamp.apply(x)
    assert y.tolist() == [1.0, 0.5]
    assert y.grad_fn.name() == type(y.grad_fn).__name__ == "StraightThroughClampBackward"
    (y * torch.tensor([20.0, 10.0])).sum().backward()
    assert x.grad.tolist() == [20.0, 10.0]


def test_straight_through_clamp_differs_from_clamp():
    x = torch.tensor([5.0, 0.5], requires_grad=True)
    (x.clamp(0.0, 1.0) * torch.tensor([20.0, 10.0])).sum().backward()
    assert x.grad.tolist() == [0.0, 10.0]


@pytest.mark.parametrize("keep", [True, False])
def test_a_kept_graph_accumulates(keep):
    w = torch.tensor(3.0, requires_grad=True)
    loss = w * w
    loss.backward(retain_graph=keep)
    if keep:
        loss.backward()
        assert w.grad.item() == 12.0
    else:
        with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
            loss.backward()
