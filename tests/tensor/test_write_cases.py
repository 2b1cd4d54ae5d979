"""Writes that meet something unusual: expanded memory, integers, a detached base, a frozen leaf."""

import pytest

from tests.libraries import leaf, lib

__all__ = ["lib"]


def test_one_value_may_be_written_to_memory_that_is_used_several_times(lib):
    x = lib.zeros(2)
    rows = x.expand(3, 2)
    rows.fill_(4)
    assert x.tolist() == [4, 4]
    rows[1].zero_()
    assert x.tolist() == [0, 0]
    assert x._version == 2
    with pytest.raises(
        RuntimeError, match="more than one element of the written-to tensor refers to a single memory location"
    ):
        rows.add_(1)


def test_integers_take_no_gradient_from_what_is_written(lib):
    x, k = leaf(lib, 5.0), lib.tensor([1, 2])
    k[0] = x[0]
    assert k.tolist() == [5, 2]
    assert not k.requires_grad
    k.copy_(x)
    assert not k.requires_grad


def test_a_view_of_a_base_that_was_detached_and_written(lib):
    x = leaf(lib, 1.0, 2.0, 3.0)
    base = x * 1
    view = base[1:]
    base.detach_()
    assert view.grad_fn.name() == "SliceBackward0"
    base.mul_(2)
    assert view.requires_grad
    assert view.grad_fn.name() == "AsStridedBackward0"
    assert view.grad_fn.next_functions == ((None, 0),)
    view.sum().backward()
    assert x.grad is None


def test_what_arrives_at_a_leaf_that_was_frozen_is_lost(lib):
    x = leaf(lib, 1.0)
    (x * 2).sum().backward()
    y = (x * 3).sum()
    x.requires_grad_(False)
    y.backward()
    assert x.grad.tolist() == [2]
    x.requires_grad_()
    assert x.grad.tolist() == [2]
    y = (x * 3).sum()
    x.detach_()
    y.backward()
    assert x.grad.tolist() == [2]


def test_negative_integers_wrap_in_unsigned_ones(lib):
    x = lib.zeros(2, dtype=lib.uint8)
    assert x.fill_(-1).tolist() == [255, 255]
    assert x.masked_fill(x > 0, -2).tolist() == [254, 254]
    x[0] = -3
    assert x.tolist() == [253, 255]
    for value in (256, -256):
        with pytest.raises(RuntimeError, match="value cannot be converted to type uint8_t without overflow"):
            x.fill_(value)


def test_names_of_the_nodes_that_torch_wrote_by_hand(lib):
    x, y = leaf(lib, 1.0, 2.0), lib.zeros(2)
    y.copy_(x)
    assert y.grad_fn.name() == "torch::autograd::CopyBackwards"
    assert type(y.grad_fn).__name__ == "CopyBackwards"
    assert "grad_fn=<CopyBackwards>" in repr(y)
    square = y * y
    y.detach().add_(1)
    with pytest.raises(
        RuntimeError, match="which is output 0 of torch::autograd::CopyBackwards, is at version 2; expected version 1"
    ):
        square.sum().backward()
    y[0] = 3
    assert y.grad_fn.name() == "torch::autograd::CopySlices"
    assert "grad_fn=<CopySlices>" in repr(y)


def test_the_shape_of_an_expanded_view_may_change_in_place(lib):
    x = leaf(lib, 1.0, 2.0) * 1
    rows = x.expand(3, 2)
    rows.t_().unsqueeze_(0)
    assert rows.shape == (1, 2, 3)
    assert rows.stride() == (2, 1, 0)
    with pytest.raises(
        RuntimeError, match="more than one element of the written-to tensor refers to a single memory location"
    ):
        rows.exp_()


def test_a_view_of_a_base_that_was_given_other_memory(lib):
    x = leaf(lib, 1.0, 2.0, 3.0) * 1
    view = x[1:]
    x.data = lib.ones(3) * 5
    view.mul_(2)
    assert [x.tolist(), view.tolist()] == [[5, 5, 5], [4, 6]]
    leaf_grad = lib.autograd.grad((x * lib.tensor([1.0, 10.0, 100.0])).sum(), x)[0]
    assert leaf_grad.tolist() == [1, 10, 100]
    assert view.grad_fn.name() == "AsStridedBackward0"


@pytest.mark.parametrize("order", [("no_grad", "inference_mode"), ("inference_mode", "no_grad")])
def test_inference_mode_is_what_a_view_of_a_view_is_refused_for(lib, order):
    base = leaf(lib, 1.0, 2.0) * 1
    with getattr(lib, order[0])():
        first = base[:1]
    with getattr(lib, order[1])():
        second = first.view(-1)
    with pytest.raises(
        RuntimeError, match="A view was created in inference mode and is being modified inplace in normal mode"
    ):
        second.exp_()
