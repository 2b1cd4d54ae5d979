"""Views made under `no_grad` or in inference mode, and what is computed from them."""

import pytest

from tests.libraries import leaf, lib

__all__ = ["lib"]
AMBIGUOUS = "Given that this use case is ambiguous and error-prone, it is forbidden"


def view_made(lib, mode, base):
    with mode(lib):
        return base[:1]


MODES = {"no_grad": lambda lib: lib.no_grad(), "inference": lambda lib: lib.inference_mode()}


@pytest.mark.parametrize("mode", MODES)
def test_an_op_on_such_a_view_is_recorded_and_leads_nowhere(lib, mode):
    x = leaf(lib, 1.0, 2.0)
    view = view_made(lib, MODES[mode], x)
    assert view.requires_grad
    assert view.is_leaf
    assert view.grad_fn is None
    y = view * view
    assert y.requires_grad
    assert y.grad_fn.name() == "MulBackward0"
    assert y.grad_fn.next_functions == ((None, 0), (None, 0))
    again = view.view(-1)
    assert again.grad_fn.name() == "ViewBackward0"
    assert again._base is x
    (y + again).sum().backward()
    (y.detach() * view + x[1]).sum().backward()
    assert x.grad.tolist() == [0, 1]
    assert view.grad is None
    with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
        view.sum()
        view.backward()
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        lib.autograd.grad((view * 2).sum(), x)


def test_a_second_derivative_past_such_a_view(lib):
    x = leaf(lib, 3.0)
    view = view_made(lib, MODES["no_grad"], x)
    (slope,) = lib.autograd.grad((x * x * view).sum(), x, create_graph=True)
    assert slope.tolist() == [18]
    assert lib.autograd.grad(slope.sum(), x)[0].tolist() == [6]


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("no_grad", "no_grad mode and is being modified inplace with grad"),
        ("inference", "inference mode and is being modified inplace in normal"),
    ],
)
def test_a_view_of_such_a_view_is_named_in_the_refusal(lib, mode, words):
    base = lib.zeros(2)
    view = view_made(lib, MODES[mode], base)
    view.requires_grad_()
    with pytest.raises(RuntimeError, match=f"Output 0 of View is a view of a view which was created in {words}"):
        view.view(-1).div_(2)
    with pytest.raises(RuntimeError, match=f"A view was created in {words}"):
        view.add_(1)


def test_asking_whether_it_is_a_leaf_brings_the_history_up_to_date(lib):
    r = leaf(lib, 1.0)
    x = lib.ones(3)
    view = x[1]
    assert view.is_leaf
    x.add_(r)
    assert not view.is_leaf
    view.backward()
    assert r.grad.tolist() == [1]
    y = leaf(lib, 1.0) * 1
    with lib.inference_mode():
        view = y.view(-1)
    y.add_(1)
    with pytest.raises(
        RuntimeError, match="A view was created in inference mode and its base or another view of its base"
    ):
        view.is_leaf


def test_ops_on_inference_tensors_alone_are_not_recorded(lib):
    with lib.inference_mode():
        c = lib.ones(2, requires_grad=True)
    assert c.requires_grad
    assert lib.is_inference(c)
    for y in (c * c, c.exp(), c.sum(), lib.stack([c, c]), c.view(-1)):
        assert not y.requires_grad
        assert y.is_leaf
    assert not lib.is_inference(c * c)
    assert lib.is_inference(c.view(-1))
    (c + lib.ones(2)).sum().backward()  # with a tensor that is none it is an op like any other
    assert c.grad.tolist() == [1, 1]


def test_a_custom_function_that_writes_to_such_a_view(lib):
    class Write(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.add_(1)

        @staticmethod
        def backward(ctx, grad):
            return grad

    base = leaf(lib, 1.0) * 1
    view = view_made(lib, MODES["no_grad"], base)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad has been used in an in-place operation"):
        Write.apply(view)


def test_a_custom_function_that_writes_to_a_view_is_the_history_of_the_base(lib):
    class Add(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.mark_dirty(x)
            return x.add_(y)

        @staticmethod
        def backward(ctx, grad):
            return grad, grad * 3

    a, b = leaf(lib, 1.0), leaf(lib, 2.0)
    base = a.clone()
    written = Add.apply(base.view(-1), b)
    slices = base.grad_fn
    assert slices.name() == "torch::autograd::CopySlices"
    assert [node.name() for node, _ in slices.next_functions] == ["CloneBackward0", "torch::autograd::AccumulateGrad"]
    (written * 2).sum().backward()
    assert [a.grad.tolist(), b.grad.tolist()] == [[2], [6]]


def twice(y):
    return y * 1, y


def square(y):
    return y * y, y


WRITTEN = {  # what is saved, then written to: whose output the message says it is
    "an input": (lambda x: (x * x, x), "Add"),
    "an input of which a part is written": (lambda x: (x * x, x[:1]), "torch::autograd::CopySlices"),
    "a result": (lambda x: twice(x.exp()), "Exp"),
    "a result of pow": (lambda x: twice(2**x), "Pow2"),
    "a view": (lambda x: square(x[:1]), "AsStrided"),
    "a view whose base is written": (lambda x: (x.view(1, -1) @ x.view(-1, 1), x), "AsStrided"),
}


@pytest.mark.parametrize("case", WRITTEN)
def test_the_message_names_what_was_written(lib, case):
    make, name = WRITTEN[case]
    result, written = make(leaf(lib, 1.0, 2.0) * 1)
    written.add_(1)
    with pytest.raises(
        RuntimeError,
        match=f"modified by an inplace operation: .*, which is output 0 of {name}, is at version 1; expected",
    ):
        result.sum().backward()
