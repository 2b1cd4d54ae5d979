"""Custom Functions: the two styles, the context, and what a backward may return."""

import warnings

import pytest

from tests.libraries import function, leaf


def square(lib, **more):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad

    return function(lib, forward, backward, "Square", **more)


def test_forward_and_backward(lib):
    Square = square(lib)
    x = leaf(lib, 1.0, 3.0)
    y = Square.apply(x)
    assert y.tolist() == [1.0, 9.0]
    assert type(y.grad_fn).__name__ == y.grad_fn.name() == "SquareBackward"
    assert y.grad_fn.next_functions[0][0].variable is x
    y.backward(lib.tensor([1.0, 10.0]))
    assert x.grad.tolist() == [2.0, 60.0]


def test_setup_context(lib):
    seen = []

    class Scale(lib.autograd.Function):
        @staticmethod
        def forward(x, factor=2.0):
            seen.append(lib.is_grad_enabled())
            return x * factor

        @staticmethod
        def setup_context(ctx, inputs, output):
            seen.append((len(inputs), lib.is_grad_enabled()))
            ctx.factor = inputs[1]

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.factor, None

    x = leaf(lib, 1.0)
    (Scale.apply(x, 3.0) + Scale.apply(x) + Scale.apply(x, factor=5.0)).backward()
    assert x.grad.tolist() == [10.0]
    assert seen == [False, (2, False)] * 3


def test_vjp_is_another_name_for_backward(lib):
    class Double(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def vjp(ctx, grad):
            return grad * 2

    x = leaf(lib, 1.0)
    Double.apply(x).backward()
    assert x.grad.tolist() == [2.0]

    class Both(Double):
        @staticmethod
        def backward(ctx, grad):
            return grad

    with pytest.raises(RuntimeError, match="Implementing both 'backward' and 'vjp'"):
        Both.apply(x).backward()


def test_keyword_arguments_find_their_places(lib):
    def forward(ctx, x, factor=2.0):
        ctx.factor = factor
        return x * factor

    Scale = function(lib, forward, lambda ctx, grad: (grad * ctx.factor, None))
    x = leaf(lib, 1.0)
    Scale.apply(x=x, factor=4.0).backward()
    assert x.grad.tolist() == [4.0]
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        Scale.apply(x, other=1)


def test_context_in_forward(lib):
    seen = {}

    def forward(ctx, x, y, z, number):
        seen.update(needs=ctx.needs_input_grad, saved=ctx.saved_tensors, grad=lib.is_grad_enabled(), inner=(x * 2).requires_grad)
        ctx.save_for_backward(x, None, y)
        seen["not yet"] = ctx.saved_tensors
        return x * y * z

    def backward(ctx, grad):
        x, nothing, y = ctx.saved_tensors
        seen["backward"] = (ctx.needs_input_grad, x is a, nothing, y is b, lib.is_grad_enabled())
        return grad, grad, grad, None

    a, b = leaf(lib, 1.0), lib.ones(1)
    function(lib, forward, backward).apply(a, b, a * 2, 3).backward()
    assert seen == {
        "needs": (True, False, True, False), "saved": (), "grad": False, "inner": False, "not yet": (),
        "backward": ((True, False, True, False), True, None, True, False),
    }  # fmt: skip


def test_nothing_is_recorded_where_nothing_takes_a_gradient(lib):
    Square = square(lib)
    assert Square.apply(lib.ones(2)).grad_fn is None
    with lib.no_grad():
        assert not Square.apply(leaf(lib, 1.0)).requires_grad


def test_a_second_backward_finds_nothing_saved(lib):
    y = square(lib).apply(leaf(lib, 1.0))
    y.backward()
    for again in (y.backward, lambda: y.grad_fn.saved_tensors):
        with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
            again()


def test_a_second_backward_with_nothing_saved_is_fine(lib):
    x = leaf(lib, 1.0)
    y = function(lib, lambda ctx, x: x * 2, lambda ctx, grad: grad * 2).apply(x)
    y.backward()
    y.backward()
    assert x.grad.tolist() == [4.0]


def test_a_write_to_a_saved_tensor_is_noticed(lib):
    x = leaf(lib, 1.0) * 1
    y = square(lib).apply(x)
    with lib.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation.*is at version 1; expected version 0"):
        y.backward()


def test_a_write_to_a_saved_output_is_noticed(lib):
    def forward(ctx, x):
        result = x.exp()
        ctx.save_for_backward(result)
        return result

    y = function(lib, forward, lambda ctx, grad: grad * ctx.saved_tensors[0]).apply(leaf(lib, 1.0))
    with lib.no_grad():
        y.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


WRONG = {
    "too few": (lambda lib, g: g, r"returned an incorrect number of gradients \(expected 2, got 1\)"),
    "a list": (lambda lib, g: [g, g], r"returned an incorrect number of gradients \(expected 2, got 1\)"),
    "too many": (lambda lib, g: (g, g, g), r"returned an incorrect number of gradients \(expected 2, got 3\)"),
    "another shape": (lambda lib, g: (g, lib.ones(3)), r"invalid gradient at index 1 - got \[3\] but expected shape compatible with \[2\]"),
    "a smaller shape": (lambda lib, g: (g, lib.ones(1)), r"invalid gradient at index 1 - got \[1\] but expected shape compatible with \[2\]"),
    "a number": (lambda lib, g: (g, 3.0), r"expected Variable or None \(got float\)"),
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("whole", [True, False])
def test_wrong_gradients_are_refused(lib, case, whole):
    returned, message = WRONG[case]
    x, y = leaf(lib, 1.0, 2.0), leaf(lib, 1.0, 2.0)
    z = function(lib, lambda ctx, x, y: x * y, lambda ctx, grad: returned(lib, grad)).apply(x, y).sum()
    with pytest.raises(RuntimeError, match=message):
        z.backward() if whole else lib.autograd.grad(z, [x, y])
    (x * y).sum().backward()  # all is well afterwards
    assert x.grad.tolist() == [1.0, 2.0]


def test_gradients_that_fit_are_fitted(lib):
    x, y = leaf(lib, 1.0, 2.0), leaf(lib, 1.0, 2.0)
    returned = lib.ones(4, 2, dtype=lib.float64), lib.ones(2, dtype=lib.int64), None, None
    function(lib, lambda ctx, x, y: x * y, lambda ctx, grad: returned).apply(x, y).sum().backward()
    assert (x.grad.tolist(), x.grad.dtype) == ([4.0, 4.0], lib.float32)
    assert (y.grad.tolist(), y.grad.dtype) == ([1.0, 1.0], lib.float32)


def test_a_gradient_for_what_is_no_tensor_is_refused(lib):
    scale = function(lib, lambda ctx, x, k: x * k, lambda ctx, grad: (grad, grad), "Scale")
    with pytest.raises(RuntimeError, match="function ScaleBackward returned a gradient different than None at position 2"):
        scale.apply(leaf(lib, 1.0), 2.0).backward()


def test_a_gradient_for_a_constant_tensor_is_dropped(lib):
    x, c = leaf(lib, 1.0), lib.ones(1)
    function(lib, lambda ctx, x, c: x * c, lambda ctx, grad: (grad, grad)).apply(x, c).backward()
    assert c.grad is None


def test_what_a_backward_raises_comes_through_unchanged(lib):
    class OwnError(Exception):
        pass

    def backward(ctx, grad):
        raise OwnError

    x = leaf(lib, 1.0)
    with pytest.raises(OwnError):
        (function(lib, lambda ctx, x: x * 1, backward).apply(x * 2) * 3).backward()
    assert lib.is_grad_enabled()
    (x * 2).backward()
    assert x.grad.tolist() == [2.0]


def test_none_on_a_live_edge_runs_the_next_node(lib):
    """With zeros if that one wants them, with None if not; a leaf behind it gets no gradient."""
    seen = []

    def forward(ctx, x, materialize):
        ctx.set_materialize_grads(materialize)
        return x * 1

    def backward(ctx, grad):
        seen.append(None if grad is None else grad.tolist())
        return grad, None

    cut = function(lib, lambda ctx, x: x * 1, lambda ctx, grad: None)
    below = function(lib, forward, backward)
    x, y = leaf(lib, 1.0), leaf(lib, 1.0)
    (cut.apply(below.apply(x * 1, True)) + cut.apply(below.apply(y * 1, False))).backward()
    assert sorted(seen, key=str) == [None, [0.0]]
    assert x.grad.tolist() == [0.0]
    assert y.grad is None


def test_none_beside_a_gradient(lib):
    x = leaf(lib, 2.0)
    shared = x * 3
    cut = function(lib, lambda ctx, x: x * 1, lambda ctx, grad: None)
    (cut.apply(shared) + shared * 2).backward()
    assert x.grad.tolist() == [6.0]


def test_refused_from_the_start(lib):
    F = lib.autograd.Function
    x = leaf(lib, 1.0)
    with pytest.raises(NotImplementedError, match="You must implement the forward function"):
        type("Empty", (F,), {}).apply(x)
    half = type("Half", (F,), {"forward": staticmethod(lambda ctx, x: x * 2)})
    with pytest.raises(NotImplementedError, match="You must implement either the backward or vjp method"):
        half.apply(x).backward()
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        made = half()
    with pytest.raises(RuntimeError, match="Legacy autograd function with non-static forward method is deprecated"):
        made(x)
    saves = function(lib, lambda ctx, x: ctx.save_for_backward(x, 3), lambda ctx, grad: grad)
    with pytest.raises(TypeError, match="save_for_backward can only save variables, but argument 1 is of type int"):
        saves.apply(x)


def test_backward_of_a_backward(lib):
    Square = square(lib)
    x = leaf(lib, 3.0)
    y = Square.apply(x) * x
    first = lib.autograd.grad(y, x, create_graph=True)[0]
    second = lib.autograd.grad(first, x, create_graph=True)[0]
    assert (first.item(), second.item(), lib.autograd.grad(second, x)[0].item()) == (27.0, 18.0, 6.0)


def test_the_mode_of_a_backward_follows_create_graph(lib):
    seen = []

    def backward(ctx, grad):
        seen.append((lib.is_grad_enabled(), grad.requires_grad))
        return grad * 2

    x = leaf(lib, 1.0)
    y = function(lib, lambda ctx, x: x * 2, backward).apply(x)
    with lib.no_grad():
        lib.autograd.grad(y, x, leaf(lib, 1.0), create_graph=True)
    y.backward()
    assert seen == [(True, True), (False, False)]


def test_attributes_are_seen_on_grad_fn(lib):
    def forward(ctx, x):
        ctx.factor = 7
        ctx.save_for_backward(x)
        return x * 7

    x = leaf(lib, 1.0)
    node = function(lib, forward, lambda ctx, grad: grad).apply(x).grad_fn
    assert node.factor == 7
    assert node.saved_tensors[0] is x
    assert node.needs_input_grad == (True,)


def test_names_that_nodes_use_themselves_are_free_for_the_user(lib):
    names = ["meta", "number", "buf", "rare", "edges", "epoch", "call", "release", "outputs", "gathered"]

    def forward(ctx, x):
        for place, name in enumerate(names):
            setattr(ctx, name, place)
        return x * 1

    x = leaf(lib, 1.0)
    y = function(lib, forward, lambda ctx, grad: grad * sum(getattr(ctx, name) for name in names)).apply(x)
    assert y.grad_fn is not None
    y.backward()
    assert x.grad.tolist() == [45.0]


def test_materialized_gradients(lib):
    seen = []

    def forward(ctx, x, materialize):
        ctx.set_materialize_grads(materialize)
        return x * 1, x * 2

    def backward(ctx, first, second):
        seen.append([None if g is None else g.tolist() for g in (first, second)])
        return second, None

    two = function(lib, forward, backward)
    for materialize in (True, False):
        two.apply(leaf(lib, 1.0), materialize)[1].backward()
    assert seen == [[[0.0], [1.0]], [None, [1.0]]]


def test_boxed_gradients_and_cleared_saved_tensors(lib):
    seen = []

    def backward(ctx, grads):
        seen.append((type(grads), len(grads), ctx.saved_tensors[0].tolist()))
        with pytest.raises(RuntimeError, match=r"second time|cleared|accessed"):
            ctx.saved_tensors
        return grads[0]

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 1

    x = leaf(lib, 1.0)
    function(lib, forward, backward, boxed_grads_call=True, clear_saved_tensors_on_access=True).apply(x).backward()
    assert seen == [(list, 1, [1.0])]


def test_once_differentiable(lib):
    once = lib.autograd.function.once_differentiable
    seen = []

    def backward(ctx, grad):
        seen.append(lib.is_grad_enabled())
        return 2 * ctx.saved_tensors[0] * grad

    Square = square(lib)
    Square.backward = staticmethod(once(backward))
    x = leaf(lib, 3.0)
    Square.apply(x).backward()
    assert x.grad.tolist() == [6.0]
    first = lib.autograd.grad(Square.apply(x) * x, x, create_graph=True)[0]
    assert seen == [False, False]
    with pytest.raises(RuntimeError, match="trying to differentiate twice a function that was marked with @once_differentiable"):
        first.backward()


def test_other_base_classes(lib):
    class Old(lib.autograd.function.InplaceFunction):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        assert Old(inplace=True).inplace
    x = leaf(lib, 1.0)
    Old.apply(x).backward()
    assert x.grad.tolist() == [2.0]
    assert issubclass(lib.autograd.NestedIOFunction, lib.autograd.Function)
    assert isinstance(Old.apply(x).grad_fn, lib.autograd.function.BackwardCFunction)
