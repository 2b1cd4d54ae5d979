"""What a custom Function may return: inputs, views, written inputs, several outputs, other values."""

import pytest

from tests.libraries import function, leaf


def both(ctx, grad):
    return grad, grad


def test_other_values_are_handed_through(lib):
    x = leaf(lib, 1.0)

    def backward(ctx, grad, number, word, nothing):
        assert (number, word, nothing) == (None, None, None)
        return grad * 2

    y, number, word, nothing = function(lib, lambda ctx, x: (x * 2, 3, "word", None), backward).apply(x)
    assert (number, word, nothing) == (3, "word", None)
    y.backward()
    assert x.grad.tolist() == [2.0]
    assert function(lib, lambda ctx, x: None, both).apply(x) is None
    plain = function(lib, lambda ctx, x: [x * 2, x * 3], both).apply(x)
    assert type(plain) is list
    assert plain[0].grad_fn is None


def test_a_tuple_of_one_stays_one(lib):
    (y,) = function(lib, lambda ctx, x: (x * 2,), lambda ctx, grad: grad).apply(leaf(lib, 1.0))
    assert (y.output_nr, y.requires_grad) == (0, True)


def test_several_outputs(lib):
    seen = []

    def backward(ctx, first, second):
        seen.append((first.tolist(), second.tolist()))
        return first + 10 * second

    x = leaf(lib, 1.0)
    first, second = function(lib, lambda ctx, x: (x * 1, x * 2), backward).apply(x)
    assert first.grad_fn is second.grad_fn
    assert (first.output_nr, second.output_nr) == (0, 1)
    assert (second * 3).grad_fn.next_functions[0] == (second.grad_fn, 1)
    (first + second * 3 + second).backward()
    assert seen == [([1.0], [4.0])]
    assert x.grad.tolist() == [41.0]


def test_an_input_returned_as_it_is(lib):
    x = leaf(lib, 1.0, 2.0)
    y = function(lib, lambda ctx, x: x, lambda ctx, grad: grad * 5).apply(x)
    assert y is not x
    assert y._is_view()
    assert y._base is x
    y.sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]
    a, b = function(lib, lambda ctx, x: (x, x), lambda ctx, first, second: first + 10 * second).apply(x)
    assert (a.output_nr, b.output_nr) == (0, 1)
    constant = lib.ones(2)
    same = function(lib, lambda ctx, x, c: c, both).apply(lib.ones(2), constant)
    assert same is not constant
    assert constant.grad_fn is None
    linked = function(lib, lambda ctx, x, c: c, both).apply(x, constant)
    assert linked.requires_grad
    assert not constant.requires_grad


def test_one_tensor_returned_twice(lib):
    def forward(ctx, x):
        y = x * 1
        return y, y

    seen = []

    def backward(ctx, first, second):
        seen.append((first.tolist(), second.tolist()))
        return first + second

    a, b = function(lib, forward, backward).apply(leaf(lib, 1.0))
    assert a is b
    assert a.output_nr == 1
    (a + 2 * b).backward()
    assert seen == [([0.0], [3.0])]


def test_outputs_without_gradient(lib):
    def forward(ctx, x):
        y, z = x * 2, x * 3
        ctx.mark_non_differentiable(y)
        return y, z, (x > 0)

    def backward(ctx, first, second, third):
        return first + second

    x = leaf(lib, 1.0)
    y, z, positive = function(lib, forward, backward).apply(x)
    assert [t.requires_grad for t in (y, z, positive)] == [False, True, False]
    assert z.output_nr == 1
    z.backward()
    assert x.grad.tolist() == [1.0]


def test_an_input_that_was_written_to(lib):
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    double = function(lib, forward, lambda ctx, grad: grad * 2, "Double")
    x = leaf(lib, 1.0, 2.0)
    y = x * 3
    before = y._version
    assert double.apply(y) is y
    assert type(y.grad_fn).__name__ == "DoubleBackward"
    assert y._version == before + 2  # the write and the mark
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        double.apply(x)


def test_marks_are_checked(lib):
    def forgets(ctx, x):
        ctx.mark_dirty(x)
        return x * 1

    with pytest.raises(RuntimeError, match="Some elements marked as dirty during the forward method were not returned as output"):
        function(lib, forgets, both).apply(leaf(lib, 1.0) * 1)

    def marks_a_number(ctx, x):
        ctx.mark_dirty(3)
        return x * 1

    with pytest.raises(RuntimeError, match="mark_dirty can only accept variables"):
        function(lib, marks_a_number, both).apply(leaf(lib, 1.0))

    def marks_an_output(ctx, x):
        y = x * 1
        ctx.mark_dirty(y)
        return y

    with pytest.warns(UserWarning, match="received a tensor that was not an input"):
        function(lib, marks_an_output, both).apply(leaf(lib, 1.0))


def test_a_written_view(lib):
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    double = function(lib, forward, lambda ctx, grad: grad * 2)
    x = leaf(lib, 1.0, 2.0)
    base = x * 1
    double.apply(base[1:])
    base.sum().backward()
    assert x.grad.tolist() == [1.0, 2.0]

    def two(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x, x * 1

    with pytest.raises(RuntimeError, match="If your Function modifies inplace an input that is a view of another Tensor"):
        function(lib, two, lambda ctx, a, b: a).apply((x * 1)[1:])


@pytest.mark.parametrize("shape", ["view", "as it is", "several"])
def test_views_that_a_function_returns_are_not_written_to(lib, shape):
    outputs = {"view": lambda ctx, x: x.view(2, 1), "as it is": lambda ctx, x: x, "several": lambda ctx, x: (x.view(2, 1), x * 1)}
    y = function(lib, outputs[shape], lambda ctx, *grads: grads[0]).apply(leaf(lib, 1.0, 2.0) * 1)
    if shape == "several":
        with pytest.raises(RuntimeError, match="This view is the output of a function that returns multiple views"):
            y[0].add_(1)
    else:
        with pytest.raises(RuntimeError, match="This view was created inside a custom Function"):
            y.add_(1)


def test_an_input_saved_and_returned_with_setup_context(lib):
    class Same(lib.autograd.Function):
        @staticmethod
        def forward(x):
            return x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(output)

        @staticmethod
        def backward(ctx, grad):
            return grad

    with pytest.raises(RuntimeError, match="An input that has been returned as-is as output is being saved for backward"):
        Same.apply(leaf(lib, 1.0))


def test_a_written_output_is_named_by_its_own_node(lib):
    def forward(ctx, x):
        y = x * 2
        ctx.save_for_backward(y)
        return y

    y = function(lib, forward, lambda ctx, grad: grad * ctx.saved_tensors[0]).apply(leaf(lib, 1.0))
    y.add_(1)
    with pytest.raises(RuntimeError, match="which is output 0 of Made, is at version 1; expected version 0 instead"):
        y.backward()
