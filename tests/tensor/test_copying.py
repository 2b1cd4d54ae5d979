"""Copying, pickling, conversion to Python and NumPy: what torch's programs rely on."""

import copy
import pickle

import numpy as np
import pytest

from tests.libraries import leaf, lib

__all__ = ["lib"]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickled(lib, protocol):
    x, y = leaf(lib, 1.0, 2.0), lib.arange(6).view(2, 3).t()
    again = pickle.loads(pickle.dumps([x, y, x], protocol=protocol))
    assert again[0].tolist() == [1, 2]
    assert again[0].requires_grad
    assert again[2] is again[0]
    assert again[1].tolist() == y.tolist()
    assert again[1].stride() == (1, 3)
    assert again[1].dtype == lib.int64


def test_pickled_results_are_leaves(lib):
    x = leaf(lib, 1.0, 2.0)
    y = pickle.loads(pickle.dumps(x * 2))
    assert y.tolist() == [2, 4]
    assert y.requires_grad
    assert y.is_leaf
    x.sum().backward()
    assert pickle.loads(pickle.dumps(x)).grad is None


def test_attributes_are_copied(lib):
    x = leaf(lib, 1.0)
    x.note = ["kept"]
    assert pickle.loads(pickle.dumps(x)).note == ["kept"]
    deep = copy.deepcopy(x)
    assert deep.note == ["kept"]
    assert deep.note is not x.note
    assert copy.copy(x).data_ptr() == x.data_ptr()


def test_a_deep_copy_shares_what_was_shared(lib):
    x = lib.arange(4.0)
    first, part, again = copy.deepcopy([x, x[1:3], x])
    part[0] = 9
    assert first.tolist() == [0, 9, 2, 3]
    assert again is first
    assert x.tolist() == [0, 1, 2, 3]
    assert not part._is_view()
    assert part.storage_offset() == 1


def test_a_deep_copy_takes_the_gradient_along(lib):
    x = leaf(lib, 1.0, 2.0)
    (x * x).sum().backward()
    deep = copy.deepcopy(x)
    deep.grad.zero_()
    assert x.grad.tolist() == [2, 4]
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(x * 1)


def test_parameters_stay_parameters(lib):
    weight = lib.nn.Parameter(lib.ones(2))
    for other in (copy.deepcopy(weight), pickle.loads(pickle.dumps(weight))):
        assert type(other) is type(weight)
        assert other.requires_grad
        assert other.data_ptr() != weight.data_ptr()
    with pytest.raises(RuntimeError, match="Only Tensors of floating point and complex dtype can require gradients"):
        lib.nn.Parameter(lib.ones(2).long())
    assert not lib.nn.Parameter(lib.ones(2).long(), requires_grad=False).requires_grad


def test_to_numpy_under_no_grad(lib):
    x = leaf(lib, 1.0, 2.0)
    with pytest.raises(RuntimeError, match=r"Can't call numpy\(\) on Tensor that requires grad"):
        x.numpy()
    with lib.no_grad():
        assert x.numpy().tolist() == np.asarray(x).tolist() == [1, 2]


@pytest.mark.parametrize("kind", [int, float, complex])
def test_only_one_element_is_a_number(lib, kind):
    assert kind(lib.tensor([[2.0]])) == 2
    with pytest.raises(ValueError, match="only one element tensors can be converted to Python scalars"):
        kind(lib.ones(2))


def test_data_of_what_takes_gradients_must_be_floating_point(lib):
    x = leaf(lib, 1.0)
    with pytest.raises(RuntimeError, match="data set to a tensor that requires gradients must be floating point"):
        x.data = lib.tensor([3])
    x.data = lib.tensor([2.0, 3.0])
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_new_of_a_size_and_of_a_list(lib):
    x = lib.ones(2, 3)
    assert x.new(x.size()).shape == (2, 3)
    assert x.new(2).shape == (2,)
    assert x.new([2, 3]).tolist() == [2, 3]


def test_an_index_is_a_saved_value(lib):
    x = leaf(lib, 1.0, 2.0, 3.0)
    for y in (x[[0, 2]], (x * 1).index_put((lib.tensor([0]),), lib.tensor([1.0]))):
        y.sum().backward(retain_graph=True)
        y.sum().backward()
        with pytest.raises(RuntimeError, match="Specify retain_graph=True"):
            y.sum().backward()
