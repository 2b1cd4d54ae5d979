"""What becomes of `.grad`: in place or not, whose memory, which layout."""

import pytest

import jitgrad
from tests.libraries import function, leaf


def test_in_place_without_a_graph(lib):
    x = leaf(lib, 1.0, 2.0)
    (x * 2).sum().backward()
    held = x.grad
    (x * 3).sum().backward()
    assert x.grad is held
    assert held.tolist() == [5.0, 5.0]
    assert held._version == 1


@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True will create a reference cycle")
def test_out_of_place_with_a_graph(lib):
    x = leaf(lib, 1.0, 2.0)
    (x * x).sum().backward(create_graph=True)
    first = x.grad
    (x * x).sum().backward(create_graph=True)
    assert x.grad is not first
    assert first.tolist() == [2.0, 4.0]
    assert x.grad.tolist() == [4.0, 8.0]
    assert type(first.grad_fn).__name__ == "CopyBackwards"
    assert type(x.grad.grad_fn).__name__ == "AddBackward0"
    (x * x).sum().backward()
    assert x.grad.tolist() == [6.0, 12.0]
    x.grad = None  # the gradient's history leads to x, and x holds the gradient


@pytest.mark.parametrize("make", [lambda x: x, lambda x: x * 1, lambda x: x + 1, lambda x: x.view(2)])
def test_a_gradient_given_is_never_taken_over(make):
    """torch takes the given tensor over where it arrives unchanged (the third)."""
    given = jitgrad.ones(2)
    for _ in range(2):
        x = leaf(jitgrad, 1.0, 2.0)
        make(x).backward(given)
        assert x.grad is not given
        x.grad.add_(1)
        assert given.tolist() == [1.0, 1.0]


def test_two_leaves_never_share(lib):
    a, b = leaf(lib, 1.0, 2.0), leaf(lib, 1.0, 2.0)
    (a + b).sum().backward()
    a.grad.zero_()
    assert b.grad.tolist() == [1.0, 1.0]


def test_a_leaf_used_twice(lib):
    x = leaf(lib, 3.0)
    (x + x).backward()
    assert x.grad.tolist() == [2.0]
    (x * x * x).backward()
    assert x.grad.tolist() == [29.0]


def test_the_users_own_tensor_is_added_to(lib):
    x = leaf(lib, 1.0)
    x.grad = own = lib.ones(1)
    (x * 3).backward()
    assert x.grad is own
    assert own.tolist() == [4.0]


def test_expanded_gradients(lib):
    x = leaf(lib, 1.0, 2.0)
    (x + x).backward(lib.ones(1).expand(2))
    assert x.grad.tolist() == [2.0, 2.0]
    assert x.grad.stride() == (1,)


@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True will create a reference cycle")
@pytest.mark.parametrize("graph", [True, False])
def test_layout_of_the_leaf(lib, graph):
    x = lib.ones(2, 3).t().requires_grad_()
    (x * 2).sum().backward(create_graph=graph)
    assert x.grad.stride() == x.stride() == (1, 3)
    y = lib.ones(2, 3, requires_grad=True)
    y.t().contiguous().view(-1).pow(2).sum().backward()
    assert y.grad.is_contiguous()
    x.grad = None


@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True will create a reference cycle")
@pytest.mark.parametrize("graph", [True, False])
@pytest.mark.parametrize("place", [
    lambda ones: ones(3).expand(2, 3), lambda ones: ones(8, 3)[::2].t(), lambda ones: ones(3, 4, 5)[:, :2].permute(2, 0, 1),
    lambda ones: ones(4, 1, 6)[:, :, :3].permute(2, 1, 0),
])  # fmt: skip
def test_layout_of_a_leaf_with_gaps_or_overlaps(lib, place, graph):
    x = place(lib.ones).requires_grad_()
    (x * x).sum().backward(create_graph=graph)
    assert x.grad.is_contiguous()
    assert x.grad.tolist() == lib.full(x.shape, 2.0).tolist()
    x.grad = None


@pytest.mark.parametrize("order", [(2, 0, 1), (1, 0, 2), (2, 1, 0), (0, 2, 1)])
def test_layout_of_a_leaf_in_another_order(lib, order):
    x = lib.ones(3, 4, 5).permute(order).requires_grad_()
    (x * x).sum().backward()
    assert x.grad.stride() == x.stride()


def test_dtypes(lib):
    half, double = leaf(lib, 1.0), leaf(lib, 2.0, dtype="float64")
    (half * double).sum().backward()
    assert (half.grad.dtype, double.grad.dtype) == (lib.float32, lib.float64)
    used_twice = leaf(lib, 1.0)
    ((used_twice * double).sum() + (used_twice * 2).sum()).backward()
    assert used_twice.grad.dtype == lib.float32


def test_a_leaf_as_the_output(lib):
    x = leaf(lib, 1.0)
    x.backward()
    x.backward(lib.tensor([5.0]))
    assert x.grad.tolist() == [6.0]


def test_the_leaf_of_an_accumulator(lib):
    x = leaf(lib, 1.0)
    y = x * 2
    accumulator = y.grad_fn.next_functions[0][0]
    assert accumulator.variable is x
    assert accumulator.name() == "torch::autograd::AccumulateGrad"
    assert (x * 3).grad_fn.next_functions[0][0] is accumulator
    del x
    y.backward()
    assert accumulator.variable.tolist() == [1.0]
    assert accumulator.variable.grad.tolist() == [2.0]
    assert accumulator.variable.requires_grad


def test_broadcast_operands_get_sums(lib):
    column, row = lib.ones(3, 1, requires_grad=True), lib.ones(4, requires_grad=True)
    (column * row).sum().backward()
    assert (column.grad.tolist(), row.grad.tolist()) == ([[4.0]] * 3, [3.0] * 4)


def test_a_gradient_is_taken_over_where_nobody_else_sees_it(lib):
    """The node's hook gets what has become `.grad`; a hook that keeps its gradient gets one of its own."""
    x, kept = leaf(lib, 1.0, 2.0), []
    accumulator = (x * 1).grad_fn.next_functions[0][0]
    accumulator.register_prehook(lambda grads: (grads[0] * 2,))
    accumulator.register_hook(lambda results, grads: kept.append(grads[0].data_ptr() == x.grad.data_ptr()))
    (x * 3).sum().backward()
    assert (kept, x.grad.tolist()) == ([True], [6.0, 6.0])
    x, kept = leaf(lib, 1.0, 2.0), []
    x.register_hook(kept.append)
    (x * 3).sum().backward()
    x.grad.zero_()
    assert kept[0].tolist() == [3.0, 3.0]


def test_a_function_hands_one_gradient_to_two_leaves(lib):
    a, b = leaf(lib, 1.0, 2.0), leaf(lib, 3.0, 4.0)
    both = function(lib, lambda ctx, x, y: x + y, lambda ctx, grad: (grad, grad))
    (both.apply(a, b) * 5).sum().backward()
    a.grad.zero_()
    assert b.grad.tolist() == [5.0, 5.0]
    a, b = leaf(lib, 1.0, 2.0), leaf(lib, 3.0, 4.0)
    y = both.apply(a, b)
    y.register_hook(lambda grad: None)
    (y * 5).sum().backward()
    b.grad.zero_()
    assert a.grad.tolist() == [5.0, 5.0]
