"""What programs reach for below `torch._C`."""

import pytest

from tests.libraries import function, leaf


def test_grad_modes(lib):
    assert lib._C.is_grad_enabled()
    with lib.no_grad():
        assert not lib._C.is_grad_enabled()
    assert lib._C.has_lapack


def test_forward_mode_switch(lib):
    forward_ad = lib.autograd.forward_ad
    lib._C._set_fwd_grad_enabled(False)
    try:
        assert not forward_ad._is_fwd_grad_enabled()
        with forward_ad._set_fwd_grad_enabled(True):
            assert forward_ad._is_fwd_grad_enabled()
        assert not forward_ad._is_fwd_grad_enabled()
    finally:
        lib._C._set_fwd_grad_enabled(True)


def test_weak_reference(lib):
    x = lib.ones(3)
    reference = lib._C._WeakTensorRef(x)
    assert not reference.expired()
    del x
    assert reference.expired()


@pytest.mark.parametrize("materialized", [True, False])
def test_undefined_grad(lib, materialized):
    seen = []

    def forward(ctx, x):
        ctx.set_materialize_grads(materialized)
        return x * 1

    def backward(ctx, grad):
        seen.append(None if grad is None else grad.tolist())
        return grad

    x = leaf(lib, 1.0, 2.0)
    y = function(lib, forward, backward).apply(x)
    z = lib._C._functions.UndefinedGrad()(y)
    assert type(z.grad_fn).__name__ == "UndefinedGradBackward"
    assert z.tolist() == y.tolist()
    assert not z._is_view()
    z.sum().backward()
    assert seen == [[0.0, 0.0] if materialized else None]


def test_delayed_error(lib):
    x = leaf(lib, 4.0)
    y = lib._C._functions.DelayedError("not this way", 1)(x)
    assert y.tolist() == [4.0]
    assert type(y.grad_fn).__name__ == "Error"
    assert y.grad_fn.next_functions[0][0].variable is x
    with pytest.raises(RuntimeError, match="not this way"):
        y.sum().backward()


def test_nodes_by_class(lib):
    node = lib.autograd.graph.Node
    assert issubclass(lib._C._functions.AccumulateGrad, node)
    assert issubclass(lib._C._functions.DelayedError, node)
    assert not isinstance(lib._C._functions.AccumulateGrad, node)
    accumulate = lib.ones(1, requires_grad=True).exp().grad_fn.next_functions[0][0]
    assert isinstance(accumulate, lib._C._functions.AccumulateGrad)


def test_saved_tensor_by_hand(lib):
    calls = []

    def pack(x):
        calls.append("pack")
        return x * 3

    def unpack(x):
        calls.append("unpack")
        return x / 3

    x = leaf(lib, 1.5, 2.5)
    make = lib._C._autograd._make_saved_tensor
    assert make(x, is_output=False).unpack() is x
    with lib.autograd.graph.saved_tensors_hooks(pack, unpack):
        saved = make(x, is_output=False)
        assert isinstance(saved, lib._C._autograd.SavedTensor)
        assert saved.unpack().tolist() == [1.5, 2.5]
        assert saved.unpack().tolist() == [1.5, 2.5]
    assert calls == ["pack", "unpack", "unpack"]


def test_hooks_as_functions(lib):
    names = lib._C._autograd
    assert names._saved_tensors_hooks_is_enabled()
    with lib.autograd.graph.disable_saved_tensors_hooks("outer"):
        assert not names._saved_tensors_hooks_is_enabled()
        assert names._saved_tensors_hooks_get_disabled_error_message() == "outer"
    assert names._top_saved_tensors_default_hooks(True) is None
    names._push_saved_tensors_default_hooks(float, float)
    try:
        assert names._top_saved_tensors_default_hooks(True) == (float, float)
        with pytest.raises(RuntimeError, match="in use"):
            names._saved_tensors_hooks_disable("in use")
    finally:
        names._pop_saved_tensors_default_hooks()
    names._saved_tensors_hooks_disable("never")
    assert not names._saved_tensors_hooks_is_enabled()
    names._saved_tensors_hooks_enable()


def test_backward_tells_whether_it_keeps_the_graph(lib):
    seen = []

    def backward(ctx, grad):
        seen.append(lib._C._autograd._get_current_graph_task_keep_graph())
        return grad

    made = function(lib, lambda ctx, x: x * 1, backward)
    x = leaf(lib, 1.0, 2.0)
    y = made.apply(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    lib.autograd.grad(made.apply(x).sum(), x, retain_graph=True)
    lib.autograd.grad(made.apply(x).sum(), x)
    assert seen == [True, False, True, False]
    assert lib._C._autograd._get_current_graph_task_keep_graph()


def test_sequence_number(lib):
    first = lib._C._autograd._get_sequence_nr()
    assert (leaf(lib, 1.0) * 2).grad_fn._sequence_nr() >= first
