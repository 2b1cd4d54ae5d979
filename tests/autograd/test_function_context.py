"""The context of a custom Function: what it tells of the node, what it takes, what it refuses."""

import gc
import warnings
import weakref

import pytest

import jitgrad
from tests.libraries import function, leaf


def test_it_is_a_node(lib):
    node, seen = lib.autograd.graph.Node, []

    def forward(ctx, x):
        seen.append((isinstance(ctx, node), type(ctx).__name__, ctx.name()))
        return x * 1

    def backward(ctx, grad):
        seen.append((isinstance(ctx, node), ctx.name(), ctx.next_functions[0][0].variable is x, len(ctx._input_metadata)))
        ctx.metadata["key"] = 1
        return grad

    x = leaf(lib, 1.0)
    y = function(lib, forward, backward).apply(x)
    y.sum().backward()
    assert seen == [(True, "MadeBackward", "MadeBackward"), (True, "MadeBackward", True, 1)]
    assert y.grad_fn.metadata == {"key": 1}


def test_hooks_put_on_by_the_context(lib):
    x, log = leaf(lib, 1.0), []

    def backward(ctx, grad):
        ctx.register_hook(lambda results, grads: log.append("after"))
        return grad

    y = function(lib, lambda ctx, x: x * 1, backward).apply(x)
    y.register_hook(lambda g: None)  # the full run, which looks for hooks after the call
    y.sum().backward()
    assert log == ["after"]


def test_the_old_name_of_saved_tensors(lib):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    x = leaf(lib, 1.0)
    y = function(lib, forward, lambda ctx, grad: grad * ctx.saved_variables[0]).apply(x)
    with pytest.warns(DeprecationWarning, match="'saved_variables' is deprecated; use 'saved_tensors'"):
        y.sum().backward()
    assert x.grad.item() == 1.0


def test_saved_tensors_that_are_let_go_when_read(lib):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    def once(ctx, grad):
        (x,) = ctx.saved_tensors
        reference = weakref.ref(x)
        del x
        assert reference() is None
        return grad

    def twice(ctx, grad):
        return grad * ctx.saved_tensors[0] * ctx.saved_tensors[0]

    x = leaf(lib, 1.0)
    function(lib, forward, once, clear_saved_tensors_on_access=True).apply(x * 1).sum().backward()
    assert x.grad.item() == 1.0
    with pytest.raises(RuntimeError, match="saved_tensors can only be accessed once when clear_saved_tensors_on_access=True"):
        function(lib, forward, twice, clear_saved_tensors_on_access=True).apply(x).sum().backward()


@pytest.mark.parametrize("materialize", [True, False])
def test_gradients_of_outputs_that_take_none(lib, materialize):
    def forward(ctx, x):
        a, b = x * 1, x * 2
        ctx.mark_non_differentiable(b)
        ctx._materialize_non_diff_grads = materialize
        return a, b

    seen = []
    made = function(lib, forward, lambda ctx, a, b: (seen.append(b), a)[1])
    made.apply(leaf(lib, 1.0))[0].sum().backward()
    assert (seen[0] is None) is not materialize


@pytest.mark.parametrize(
    ("mark", "text"), [("mark_dirty", "mark_dirty can only accept variables"), ("mark_non_differentiable", "mark_non_differentiable only accepts")]
)
def test_marks_are_for_tensors(lib, mark, text):
    def forward(ctx, x):
        getattr(ctx, mark)(3)
        return x * 1

    with pytest.raises(RuntimeError, match=text):
        function(lib, forward, None).apply(leaf(lib, 1.0))


def test_too_many_arguments_for_setup_context(lib):
    made = type(lib.autograd.Function)("Made", (lib.autograd.Function,), {
        "forward": staticmethod(lambda x: x * 2), "setup_context": staticmethod(lambda ctx, inputs, output: None),
        "backward": staticmethod(lambda ctx, grad: grad * 2)})  # fmt: skip
    assert made.apply(leaf(lib, 1.0)).item() == 2.0
    with pytest.raises(TypeError, match="too many positional arguments"):
        made.apply(leaf(lib, 1.0), 2)


# ---------------------------------------------------------------- views
def part(ctx, x, pure):
    ctx._is_pure_view = pure
    return x.narrow(0, 0, 2)


def test_a_pure_view_may_be_written_to(lib):
    log = []
    made = function(lib, part, lambda ctx, grad: (log.append("backward"), None))
    x = leaf(lib, 1.0, 2.0)
    y = made.apply(x.clone(), True)
    y += 3
    y.sum().backward()
    assert (log, x.grad.tolist()) == ([], [1.0, 1.0])
    y = made.apply(x.clone(), False)
    with pytest.raises(RuntimeError, match="This view was created inside a custom Function"):
        y += 3


def test_a_pure_view_is_of_one_tensor(lib):
    def forward(ctx, x, y):
        ctx._is_pure_view = True
        return x[:1], y[:1]

    with pytest.raises(RuntimeError, match="Pure view custom Function can only have one input Tensor and one output Tensor"):
        function(lib, forward, None).apply(leaf(lib, 1.0), leaf(lib, 2.0))


def test_a_pure_view_of_something_else(lib):
    def forward(ctx, x):
        ctx._is_pure_view = True
        return x.clone()[0]

    y = function(lib, forward, lambda ctx, grad: grad).apply(leaf(lib, 1.0) * 1)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place operation"):
        y += 3


def test_a_view_made_without_recording(lib):
    made = function(lib, lambda ctx, x: x[:], lambda ctx, grad: grad)
    x = leaf(lib, 1.0, 2.0)
    with lib.no_grad():
        y = made.apply(x)
    with pytest.raises(RuntimeError, match=r"A view was created in no_grad mode and is being modified inplace.*inside a custom Function"):
        y.zero_()
    a = lib.ones(2)
    view = made.apply(a)
    with pytest.raises(RuntimeError, match="This view was created inside a custom Function"):
        view += x


# ---------------------------------------------------------------- written inputs
def written(ctx, x):
    x.add_(1)
    ctx.mark_dirty(x)
    ctx.save_for_backward(x)
    return x


def test_a_written_view_of_a_leaf(lib):
    x = leaf(lib, 1.0, 2.0)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        function(lib, written, None).apply(x.view_as(x))


def test_a_written_view_among_several(lib):
    part, _ = leaf(lib, 1.0, 2.0).split_with_sizes([1, 1])
    with pytest.raises(RuntimeError, match=r"is being modified inplace.*output of a function that returns multiple views"):
        function(lib, written, None).apply(part)


def test_a_view_that_is_no_input_is_marked(lib):
    def forward(ctx, x):
        y = x.clone().view_as(x)
        ctx.mark_dirty(y)
        return y

    with pytest.raises(RuntimeError, match="received a tensor that was not an input"):
        function(lib, forward, None).apply(leaf(lib, 1.0) * 1)


def test_a_written_view_goes_on(lib):
    x = leaf(lib, 1.0, 2.0)
    base = x * 1
    y = function(lib, written, lambda ctx, grad: grad * 10).apply(base[:1])
    (y.sum() + base.sum()).backward()
    assert x.grad.tolist() == [20.0, 1.0]


def test_a_written_view_that_is_saved_makes_no_circle(lib):
    def scope():
        x = leaf(lib, 1.0).clone()
        x = x.view_as(x)
        function(lib, written, None).apply(x)
        return weakref.ref(x)

    gc.collect()
    gc.disable()
    try:
        assert scope()() is None
    finally:
        gc.enable()


def test_an_instance_is_of_no_use(lib):
    made = function(lib, lambda ctx, x: x, lambda ctx, grad: grad)
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        one = made()
    with pytest.raises(RuntimeError, match="Legacy autograd function with non-static forward method is deprecated"):
        one(leaf(lib, 1.0))


def test_the_context_has_no_node_in_forward():
    def forward(ctx, x):
        with pytest.raises(RuntimeError, match="has no node before the end of forward"):
            ctx.metadata
        return x * 1

    with warnings.catch_warnings():
        function(jitgrad, forward, None).apply(leaf(jitgrad, 1.0))


def test_shared_memory_needs_no_mark(lib):
    def forward(ctx, x):
        with pytest.warns(FutureWarning, match="`mark_shared_storage` is deprecated. Tensors with shared storages are automatically tracked"):
            ctx.mark_shared_storage((x, x))
        return x * 1

    x = leaf(lib, 1.0)
    function(lib, forward, lambda ctx, grad: grad * 2).apply(x).backward()
    assert x.grad.tolist() == [2.0]
