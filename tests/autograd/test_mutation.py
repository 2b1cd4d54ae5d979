"""`allow_mutation_on_saved_tensors`: what is written to after it was saved is copied first."""

import pytest

import jitgrad
from tests.libraries import function, leaf

WRITES = {
    "itself": lambda lib, b, y: b.sin_(),
    "a view": lambda lib, b, y: b.view_as(b).sin_(),
    "a part": lambda lib, b, y: b[:1].mul_(10),
    "an element": lambda lib, b, y: b.__setitem__(0, 5.0),
    "its twin": lambda lib, b, y: b.detach().mul_(3),
    "its data": lambda lib, b, y: b.data.mul_(3),
    "twice": lambda lib, b, y: b.zero_().fill_(3),
}


def written(lib, name):
    a = leaf(lib, 1.0, 2.0, 3.0)
    b = a.clone()
    y = (b**2).sum()
    WRITES[name](lib, b, y)
    y.backward()
    return a.grad.tolist()


@pytest.mark.parametrize("name", WRITES)
def test_a_write_to_what_was_saved(lib, name):
    with lib.autograd.graph.allow_mutation_on_saved_tensors():
        assert written(lib, name) == [2.0, 4.0, 6.0]


@pytest.mark.parametrize("name", [name for name in WRITES if name != "its data"])
def test_without_it(lib, name):
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        written(lib, name)


def test_a_view_was_saved_and_its_base_written_to(lib):
    a = leaf(lib, 1.0, 2.0)
    with lib.autograd.graph.allow_mutation_on_saved_tensors():
        b = a.clone()
        y = (b[:] ** 2).sum()
        b *= 2
        y.backward()
    assert a.grad.tolist() == [2.0, 4.0]


def test_parts_of_one_memory():
    """torch takes the written values for the second part."""
    a = leaf(jitgrad, 1.0, 2.0, 3.0)
    with jitgrad.autograd.graph.allow_mutation_on_saved_tensors():
        b = a.clone()
        c, d = b[:1], b[1:]
        y = (c**2).sum() + (d**3).sum()
        c.mul_(2)
        d.mul_(3)
        y.backward()
    assert a.grad.tolist() == [2.0, 12.0, 27.0]


def test_results_and_higher_derivatives(lib):
    a = leaf(lib, 1.0, 2.0)
    with lib.autograd.graph.allow_mutation_on_saved_tensors():
        y = a.exp()
        value = y.tolist()
        z = y * 2
        y.add_(5)
        (first,) = lib.autograd.grad(z.sum(), a, create_graph=True)
        (second,) = lib.autograd.grad(first.sum(), a)
    assert first.tolist() == pytest.approx([2 * v for v in value])
    assert second.tolist() == pytest.approx([2 * v for v in value])


def test_a_function(lib):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    a = leaf(lib, 1.0)
    with lib.autograd.graph.allow_mutation_on_saved_tensors():
        b = a.clone()
        y = function(lib, forward, lambda ctx, grad: grad * ctx.saved_tensors[0]).apply(b)
        b.mul_(5)
        y.sum().backward()
    assert a.grad.item() == 1.0


def test_what_was_copied(lib):
    a = leaf(lib, 1.0)
    with lib.autograd.graph.allow_mutation_on_saved_tensors() as context:
        b = a.clone()
        y = b**2
        z = a**2
        assert len(context.cloned) == 0
        b.sin_()
        assert len(context.cloned) == 1
        (y + z).sum().backward()
        assert len(context.cloned) == 0
    assert type(context).__name__ == "_AllowMutationOnSavedContext"


def test_the_end_of_the_block(lib):
    a = leaf(lib, 1.0)
    allow = lib.autograd.graph.allow_mutation_on_saved_tensors
    with allow():
        b = a.clone()
        y = b**2
        b.sin_()
    with pytest.raises(AssertionError, match="Trying to backward outside of the 'allow_mutation_on_saved_tensors' context"):
        y.backward()
    with pytest.raises(RuntimeError, match="allow_mutation_on_saved_tensors contexts cannot be nested"), allow(), allow():
        pass
    with allow():
        pass


def test_what_is_saved_is_one_entry_until_it_is_written_to(lib):
    with lib.autograd.graph.allow_mutation_on_saved_tensors() as context:
        x = leaf(lib, 1.0, 2.0).clone()
        y, z = x**2, x**3
        assert len(context.tid_to_weakhandle) == 1
        x.mul_(2)
        assert len(context.cloned) == 1
        w = x**2
        x.mul_(2)
        assert len(context.cloned) == 2
        del y, z
        assert len(context.cloned) == 1
        del w
        assert len(context.cloned) == 0


def test_a_result_written_into_what_was_saved(lib):
    x, y = leaf(lib, 3.0), lib.tensor([4.0])
    with lib.autograd.graph.allow_mutation_on_saved_tensors() as context:
        z = x * y
        lib.exp(lib.zeros(1), out=y)
        assert len(context.cloned) == 1
        z.backward()
    assert x.grad.item() == 4.0
    assert y.item() == 1.0
