"""Inference tensors that take gradients, their bytes, their `.data`, and other sizes for them."""

import pytest

REFUSED = "Inplace update to inference tensor outside InferenceMode is not allowed"


def made(lib, *shape, requires_grad=False):
    """A tensor made in inference mode."""
    with lib.inference_mode():
        return lib.full(shape, 2.0, requires_grad=requires_grad)


@pytest.mark.parametrize("copy", ["clone", "double"])
def test_copy_of_a_leaf_is_recorded(lib, copy):
    x = made(lib, 3, requires_grad=True)
    y = getattr(x, copy)()
    assert not y.is_inference()
    assert type(y.grad_fn).__name__ == "CopyBackwards"
    (y * 1.0).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 1.0]


def test_arithmetic_with_a_number_is_recorded(lib):
    x = made(lib, 2, requires_grad=True)
    for y, name in ((x + 1, "AddBackward0"), (x * 3, "MulBackward0"), (x / 4, "DivBackward0"), (x - 5, "SubBackward0")):
        assert type(y.grad_fn).__name__ == name
    assert not x.exp().requires_grad
    assert not made(lib, 2).mul(3).requires_grad


def test_bytes_seen_otherwise_are_a_tensor_made_now(lib):
    normal, inference = lib.ones(4), made(lib, 4)
    assert not inference.view(lib.int32).is_inference()
    with lib.inference_mode():
        assert normal.view(lib.int32).is_inference()
        assert inference.view(lib.int32).is_inference()
    shared = normal.view(lib.int32)
    assert not shared._is_view()
    shared.add_(1)
    assert normal._version == shared._version == 1


def test_data_may_be_written_to_anywhere(lib):
    x = made(lib, 2)
    data = x.data
    assert data.is_inference()
    assert data._version == 0
    data.add_(1)
    data.transpose_(0, 0)
    assert x.tolist() == [3.0, 3.0]
    assert data._version == 2
    with pytest.raises(RuntimeError, match=REFUSED):
        data.view(2).add_(1)
    with lib.inference_mode():
        inside = x.data
        with pytest.raises(RuntimeError, match="do not track version counter"):
            _ = inside._version
    with pytest.raises(RuntimeError, match=REFUSED):
        inside.add_(1)


def test_resize(lib):
    normal = lib.ones(2, 3, requires_grad=True)
    with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
        normal.resize_(6)
    with lib.inference_mode():
        x = lib.ones(2, 3, requires_grad=True)
        assert tuple(x.resize_(3, 2).shape) == (3, 2)
        assert x.is_inference()
        assert tuple(x.resize_as_(lib.ones(6)).shape) == (6,)
        normal.resize_(6)
    assert normal._version == 1
    assert normal.requires_grad
    with pytest.raises(RuntimeError, match=REFUSED):
        made(lib, 4).resize_(2, 2)


def test_histories_are_left_alone(lib):
    x = lib.ones(2, requires_grad=True)
    y = x * 2
    with lib.inference_mode():
        assert y.detach_() is y
        assert y[:1].detach_().requires_grad
        x.detach_()
    assert x.requires_grad
    assert type(y.grad_fn).__name__ == "MulBackward0"
