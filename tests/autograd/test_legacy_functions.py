"""Instances of Functions, and the classes that are kept for old programs."""

import pytest

from tests.libraries import leaf


def made(lib):
    class Twice(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        return Twice()


def test_an_instance_knows_of_no_graph(lib):
    f = made(lib)
    assert f.next_functions == ()
    assert f.metadata == {}
    assert f._input_metadata == ()
    assert f.saved_tensors == ()
    assert f._raw_saved_tensors == ()
    assert f.name() == "Twice"
    assert (f.to_save, f.dirty_tensors, f.non_differentiable, f.saved_for_forward, f.needs_input_grad) == (None,) * 5
    assert f.requires_grad


def test_an_instance_takes_what_a_context_takes(lib):
    f, x = made(lib), leaf(lib, 1.0)
    f.save_for_backward(x)
    assert f.to_save == (x,)
    f.mark_dirty(x)
    f.mark_non_differentiable(x)
    f.set_materialize_grads(False)
    f.anything = 3
    f.metadata["note"] = 1
    assert f.metadata == {"note": 1}
    for handle in (f.register_hook(lambda grads, outs: None), f.register_prehook(lambda grads: None)):
        handle.remove()
    f._set_sequence_nr(12)
    assert f._sequence_nr() == 12
    with pytest.raises(RuntimeError, match="_register_hook_dict expected a Tensor"):
        f._register_hook_dict(2)
    with pytest.raises(RuntimeError, match="Legacy autograd function with non-static forward method is deprecated"):
        f(x)
    assert f.apply(x).item() == 2.0  # of the class


def test_nodes_refuse_tables_of_other_things(lib):
    with pytest.raises(TypeError, match="_register_hook_dict expected a variable"):
        leaf(lib, 1.0).exp().grad_fn._register_hook_dict(None)


def test_inplace_function(lib):
    kind = lib.autograd.function.InplaceFunction
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        assert [kind(True).inplace, kind().inplace] == [True, False]
    x = leaf(lib, 1.0)
    for argument in (x, x.clone()[:1]):
        with pytest.raises(NotImplementedError, match="You must implement the forward function"):
            kind.apply(argument)


def nested(lib, forward=None, backward=None):
    members = {} if forward is None else {"forward_extended": forward, "backward_extended": backward}
    base = lib.autograd.function.NestedIOFunction
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        return type(base)("Nested", (base,), members)()


def test_nesting_of_what_is_kept(lib):
    f, x, y, z = nested(lib), leaf(lib, 1.0), lib.zeros(2), lib.ones(3)
    f.save_for_backward(x, [y, (None, z)])
    assert f.to_save == (x, y, z)
    f.mark_dirty([x], y)
    assert f.dirty_tensors == (x, y)
    f.mark_non_differentiable(x, more={"first": z})
    assert f.non_differentiable == (x, z)
    with pytest.raises(ValueError, match=r"Auto nesting doesn't know how to process an input object of type int. Accepted types: Tensors, or lists"):
        f.save_for_backward([x, 3])


def test_nesting_of_inputs_and_outputs(lib):
    def forward(self, first, rest):
        assert not first.requires_grad
        return [first * 2, (rest[0],)]

    def backward(self, first, rest):
        return rest[0], [first, None]

    f, x, y = nested(lib, forward, backward), leaf(lib, 1.0), lib.zeros(2)
    f._nested_input = (x, [y])
    outputs = f.forward()
    assert [part.tolist() for part in outputs] == [[2.0], [0.0, 0.0]]
    assert not hasattr(f, "_nested_input")
    grads = f.backward(x, y)
    assert grads[0] is y
    assert grads[1] is x
    assert grads[2] is None


def test_nested_functions_are_not_called(lib):
    f, x = nested(lib), leaf(lib, 1.0)
    with pytest.raises(AttributeError, match="_do_forward"):
        f(x)
    with pytest.raises(AttributeError, match="'NestedBackward' object has no attribute '_nested_input'"):
        f.apply(x)
    for method in (f.forward_extended, f.backward_extended):
        with pytest.raises(NotImplementedError):
            method(x)
