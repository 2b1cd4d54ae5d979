"""What docs/differences.md says of writes and numbers: each line still holds, for us and for torch."""

import pickle

import pytest

import jitgrad
from tests.libraries import leaf

torch = pytest.importorskip("torch")
ELU = ("elu", "celu", "selu")


def both(program):
    return program(jitgrad), program(torch)


def test_a_comparison_with_a_number_out_of_range():
    assert both(lambda t: (t.tensor([0, 255], dtype=t.uint8) == -1).tolist()) == ([False, False], [False, True])


@pytest.mark.parametrize("name", ELU)
def test_second_derivative_at_the_kink(name):
    def curvature(t):
        x = t.tensor(0.0, requires_grad=True)
        slope = t.autograd.grad(getattr(t.nn.functional, name)(x), x, create_graph=True)[0]
        return t.autograd.grad(slope, x)[0].item()

    ours, theirs = both(curvature)
    assert ours > 0 == theirs


def test_second_derivative_of_mish_far_out():
    def curvature(t):
        x = t.tensor(1000.0, requires_grad=True)
        return t.autograd.grad(t.autograd.grad(t.nn.functional.mish(x), x, create_graph=True)[0], x)[0].item()

    ours, theirs = both(curvature)
    assert ours == 0 != theirs


def test_a_write_across_dtypes():
    def name(t):
        y = leaf(t, 1.0) * 1
        return y.add_(leaf(t, 1.0, dtype="float64")).grad_fn.name()

    assert both(name) == ("ToCopyBackward0", "AddBackward0")


def test_integers_that_take_a_gradient():
    def program(t):
        k = t.tensor([1, 2])
        return k.masked_fill_(k > 0, leaf(t, 3.0)[0]).requires_grad

    assert both(program) == (False, True)


def test_a_view_that_was_made_before_the_history():
    def program(t):
        base = t.zeros(2, 2)
        view, other = base.t(), base[0]
        view.mul_(leaf(t, 2.0))
        try:
            other.add_(1)
        except RuntimeError as error:
            return str(error)
        return other.grad_fn.name()

    ours, theirs = both(program)
    assert ours == "AsStridedBackward0"
    assert theirs.startswith("a leaf Variable that requires grad")


def test_an_operand_over_the_memory_that_is_written():
    def program(t):
        x = leaf(t, 2.0, 3.0)
        y = x * 1
        y.mul_(y)
        try:
            y.sum().backward()
        except RuntimeError as error:
            return str(error)
        return x.grad.tolist()

    ours, theirs = both(program)
    assert ours == [4, 6]
    assert theirs.startswith("one of the variables needed for gradient computation has been modified")


def test_values_that_gather_does_not_need():
    def program(t):
        x = leaf(t, 2.0, 3.0)
        y = x * 1
        z = y.gather(0, t.tensor([1]))
        y.add_(1)
        try:
            z.backward()
        except RuntimeError:
            return None
        return x.grad.tolist()

    assert both(program) == ([0, 1], None)


def test_a_saved_leaf_that_was_given_other_memory():
    def program(t):
        x = leaf(t, 2.0)
        y = x * x
        x.data = t.zeros(1)
        y.backward()
        return x.grad.tolist()

    assert both(program) == ([4], [0])


def test_memory_that_is_pickled_once():
    def program(t):
        x = t.arange(3.0)
        first, part = pickle.loads(pickle.dumps([x, x[1:]]))
        first[1] = 9
        return part.tolist()

    assert both(program) == ([9, 2], [1, 2])
