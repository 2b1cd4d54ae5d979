"""The version counter sees every write, and only those."""

import pytest

import jitgrad
from tests.libraries import function, leaf

MODIFIED = "one of the variables needed for gradient computation has been modified by an inplace operation"


def through_detach(lib, y):
    y.detach().zero_()


def under_no_grad(lib, y):
    with lib.no_grad():
        y.add_(1)


def through_a_view(lib, y):
    with lib.no_grad():
        y[:1].add_(1)


def through_a_view_of_a_view(lib, y):
    with lib.no_grad():
        y.view(1, 2)[0].t_().mul_(2)


def by_assignment(lib, y):
    with lib.no_grad():
        y[0] = 7.0


def by_copying(lib, y):
    with lib.no_grad():
        y.copy_(lib.zeros(2))


WRITES = [through_detach, under_no_grad, through_a_view, through_a_view_of_a_view, by_assignment, by_copying]


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("op", [lambda y: y * y, lambda y: (y * 1.0).exp() * y, lambda y: y.view(2) * 3.0 * y])
def test_a_saved_operand(lib, write, op):
    y = leaf(lib, 1.0, 2.0) * 2
    z = op(y)
    write(lib, y)
    with pytest.raises(RuntimeError, match=MODIFIED):
        z.sum().backward()


@pytest.mark.parametrize("write", WRITES)
def test_a_saved_result(lib, write):
    y = leaf(lib, 1.0, 2.0).exp()
    write(lib, y)
    with pytest.raises(RuntimeError, match=MODIFIED + r": \[torch.FloatTensor \[2\]\], which is output 0 of Exp"):
        y.sum().backward()


def test_a_saved_leaf(lib):
    """An optimizer's step between forward and backward."""
    w = leaf(lib, 1.0, 2.0)
    y = (w * w).sum()
    with lib.no_grad():
        w -= 0.1
    with pytest.raises(RuntimeError, match=MODIFIED + r": \[torch.FloatTensor \[2\]\] is at version 1; expected version 0 instead"):
        y.backward()


def test_versions_in_the_message(lib):
    y = leaf(lib, 1.0) * 2
    with lib.no_grad():
        y.add_(1)
        y.add_(1)
    z = y * y
    with lib.no_grad():
        for _ in range(3):
            y.add_(1)
    with pytest.raises(RuntimeError, match=r"is at version 5; expected version 2 instead\. Hint: enable anomaly detection"):
        z.backward()


def test_writes_that_do_no_harm(lib):
    x = leaf(lib, 1.0, 2.0)
    y = x + 2
    z = (y + 1).sum()  # nothing is saved
    with lib.no_grad():
        y.zero_()
    z.backward()
    z.backward()
    other, w = lib.ones(2), leaf(lib, 1.0, 2.0)
    square = (w * w).sum()
    other.zero_()
    (w.detach() * 2).zero_()
    square.backward()
    assert w.grad.tolist() == [2.0, 4.0]


def test_writes_before_the_op(lib):
    y = leaf(lib, 1.0, 2.0) * 2
    y.mul_(3)
    z = y * y
    z.sum().backward()
    assert z.tolist() == [36.0, 144.0]


def test_counters_are_shared_as_in_torch(lib):
    x = lib.ones(4)
    view, detached, data = x[1:], x.detach(), x.data
    view.add_(1)
    detached.add_(1)
    assert [t._version for t in (x, view, detached)] == [2, 2, 2]
    before = x._version
    data.add_(1)
    assert x._version == before
    assert x.tolist() == [3.0, 4.0, 4.0, 4.0]


def test_only_operands_that_are_needed_are_watched(lib):
    x, y = leaf(lib, 2.0), lib.ones(1)
    z = x * y  # x itself is not saved: y takes no gradient
    with lib.no_grad():
        x.zero_()
    z.backward()
    assert x.grad.tolist() == [1.0]


def test_second_derivatives_watch_too():
    x = leaf(jitgrad, 2.0)
    y = x * 1
    (first,) = jitgrad.autograd.grad((y * y * y).sum(), x, create_graph=True)
    with jitgrad.no_grad():
        y.add_(1)
    with pytest.raises(RuntimeError, match=MODIFIED):
        first.backward()


def test_a_second_backward_of_what_saves(lib):
    x = leaf(lib, 3.0)
    y = x * x
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()


@pytest.mark.parametrize("cut", ["detach_", "freeze"])
@pytest.mark.parametrize("op", ["sin", "square", "exp"])
def test_writes_to_a_saved_leaf_that_was_cut_off(lib, cut, op):
    """It is the leaf of a graph made before, and the writes to it count there."""
    x, w = leaf(lib, 0.5, 1.5), leaf(lib, 2.0, 3.0)
    y = ({"sin": lib.sin, "square": lambda x: x * x, "exp": lambda x: x.exp() * x}[op](x) * w).sum()
    x.detach_() if cut == "detach_" else x.requires_grad_(False)
    x.mul_(2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


@pytest.mark.parametrize("history", [False, True])
@pytest.mark.parametrize("cut", ["detach_", "freeze"])
def test_view_of_what_was_cut_off(lib, cut, history):
    x = leaf(lib, 0.5, 1.5)
    base = x * 1 if history else x
    view = base[:1]
    if cut == "detach_":
        base.detach_()
    elif history:
        return  # refused
    else:
        base.requires_grad_(False)
    assert view.requires_grad
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place operation"):
        view.add_(1)
    with lib.no_grad():
        view.add_(1)
    assert base.tolist() == [1.5, 1.5]


def test_function_that_writes_to_a_view_of_what_was_cut_off(lib):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    base = leaf(lib, 0.5, 1.5)
    view = base[:1]
    base.detach_()
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place operation"):
        function(lib, forward, lambda ctx, grad: grad * 2).apply(view)
