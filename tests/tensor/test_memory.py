"""Where elements lie: strides of new axes, storage, `set_`, `resize_`, bytes as another dtype, copies of views."""

import pytest

from tests.libraries import leaf, lib

__all__ = ["lib"]
pytestmark = pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")


def layout(x):
    return tuple(x.shape), x.stride(), x.storage_offset()


def test_a_new_axis_has_the_stride_of_a_tensor_without_gaps(lib):
    x = lib.arange(6.0).view(2, 3).clone()
    assert layout(x[None]) == ((1, 2, 3), (6, 3, 1), 0)
    assert layout(x.unsqueeze(1)) == ((2, 1, 3), (3, 3, 1), 0)
    assert layout(x.unsqueeze(-1)) == ((2, 3, 1), (3, 1, 1), 0)
    assert layout(x[:, 1:].unsqueeze(0)) == ((1, 2, 2), (6, 3, 1), 1)
    assert layout(lib.ones(5).expand(1, 1, 5)) == ((1, 1, 5), (5, 5, 1), 0)
    assert layout(lib.ones(5).expand(2, 1, 5)) == ((2, 1, 5), (0, 5, 1), 0)


def test_a_window_knows_where_it_starts(lib):
    x = lib.arange(6.0)
    assert layout(x.as_strided((2, 2), (1, 1), 1)) == ((2, 2), (1, 1), 1)
    assert layout(x.as_strided((2,), (2,), 1)[1:]) == ((1,), (2,), 3)
    assert lib.zeros(0, 5, 64).stride() == (320, 64, 1)


def test_storage(lib):
    x = lib.arange(6.0).view(2, 3).clone()
    row = x[1].t()
    assert row.storage().tolist() == [0, 1, 2, 3, 4, 5]
    assert len(row.storage()) == row.storage().size() == 6
    assert row.untyped_storage().nbytes() == len(row.untyped_storage()) == 24
    assert row.storage().data_ptr() == x.data_ptr() == row.detach().untyped_storage().data_ptr()
    assert x.clone().storage().data_ptr() != x.data_ptr()
    row.storage()[5] = 7.0
    assert x.tolist() == [[0, 1, 2], [3, 4, 7]]
    assert x.storage()[5] == 7
    assert row.untyped_storage() == x.untyped_storage()


def test_set_makes_a_tensor_lie_in_other_memory(lib):
    x = lib.arange(6.0).view(2, 3).clone()
    y = lib.zeros(3)
    assert y.set_(x) is y
    assert y.tolist() == x.tolist()
    assert y._version == 1
    assert not y._is_view()
    assert y.is_set_to(x)
    y.set_(x.storage(), 1, (2,), (3,))
    assert y.tolist() == [1, 4]
    y.set_(x.untyped_storage(), 2, (2, 2), (1, 1))
    assert y.tolist() == [[2, 3], [3, 4]]
    assert not y.is_set_to(x)
    y[0, 0] = 9
    assert x[0, 2].item() == 9
    assert x._version == 0
    assert y.set_().tolist() == []
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        leaf(lib, 1.0).set_(x)
    with pytest.raises(RuntimeError, match="Could not set tensor of type long int to a tensor of type float"):
        lib.ones(3).set_(lib.ones(2).long())


def test_resize_reaches_into_the_storage(lib):
    x = lib.arange(6.0)
    part = x[1:3]
    part.resize_(4)
    part[3] = 9
    assert x.tolist() == [0, 1, 2, 3, 9, 5]
    assert part._is_view()
    assert x._version == 2
    with pytest.raises(RuntimeError, match="Storage size calculation overflowed with sizes="):
        lib.empty(()).resize_([4, 4, 2**29, 2**29])
    with pytest.raises(RuntimeError, match="overflow"):
        lib.empty(()).resize_([8, 8, 2**29, 2**29])


def test_bytes_as_another_dtype(lib):
    x = leaf(lib, 1.0, 2.0)
    bits = x.view(lib.int32)
    assert bits.tolist() == [0x3F800000, 0x40000000]
    assert not bits.requires_grad
    assert not bits._is_view()
    assert not x.view(lib.float32).requires_grad
    y = lib.ones(2)
    y.view(lib.int32).zero_()
    assert y.tolist() == [0, 0]
    assert y._version == 1
    with pytest.raises(RuntimeError, match=r"self.storage_offset\(\) must be divisible by 2"):
        lib.zeros(4, 4, 3)[:, :, 1:].view(lib.float64)
    with pytest.raises(RuntimeError, match=r"self.stride\(1\) must be divisible by 2"):
        lib.zeros(4, 4, 2).as_strided((4, 4, 2), (2, 1, 1)).view(lib.float64)
    assert lib.zeros(0, 5, 64).view(lib.float16).shape == (0, 5, 128)


def test_numbers_are_real(lib):
    x = leaf(lib, 1.0)
    assert all(y is x for y in (x.real, x.conj(), x.resolve_conj(), x.resolve_neg(), lib.conj(x)))
    assert not x.is_conj()
    assert not x.is_neg()
    assert not lib.is_conj(x)
    with pytest.raises(RuntimeError, match="imag is not implemented for tensors with non-complex dtypes"):
        x.imag
    zero = lib.tensor(1.0)
    with pytest.warns(UserWarning, match="mT is deprecated on 0-D tensors"):
        assert zero.mT is zero


def test_copies_of_views(lib):
    x = leaf(lib, 0.0, 1.0, 2.0, 3.0)
    copy = lib.view_copy(x, (2, 2))
    assert not copy._is_view()
    assert copy.grad_fn.name() == "ViewBackward0_copy"
    first, second = lib.split_copy(x, 2)
    first.mul_(2)  # neither a view of several nor of a leaf
    (copy.sum() + second.sum() * 2 + lib.select_copy(x, 0, 1) * first.sum()).backward()
    assert x.grad.tolist() == [3, 5, 3, 3]
    out = lib.empty(2)
    lib.diagonal_copy(lib.arange(4.0).view(2, 2), out=out)
    assert out.tolist() == [0, 3]
    copies = [lib.unbind_copy(x)[1], lib.slice_copy(x, 0, 1, 2), lib.narrow_copy(x, 0, 1, 1), lib.alias_copy(x)[1:2]]
    x.data.zero_()
    assert [c.flatten().tolist() for c in copies] == [[1]] * 4


def test_a_copy_of_a_view_does_not_share_its_counter(lib):
    x = leaf(lib, 1.0, 2.0)
    copy = lib.select_copy(x, 0, 0)
    square = copy * copy
    x.detach().zero_()
    square.backward()
    assert x.grad.tolist() == [2, 0]


@pytest.mark.parametrize("shapes", [((3, 5), (2, 4, 1)), ((2,), (3,)), ((7,), (1,), (6,))])
def test_shapes_that_do_not_broadcast(lib, shapes):
    with pytest.raises(
        RuntimeError, match=r"Attempting to broadcast a dimension of length \d at -\d! Mismatching argument"
    ):
        lib.broadcast_shapes(*shapes)


def test_swapaxes_by_name(lib):
    assert lib.zeros(2, 3, 4).swapaxes(axis0=0, axis1=-1).shape == (4, 3, 2)
    assert lib.movedim(lib.zeros(()), 0, 0)._is_view()


def test_as_strided_reaches_all_of_the_memory(lib):
    """Also where the tensor itself is a detached part of it; the start is counted from where the memory begins."""
    part = lib.arange(6.0)[2:5].detach()
    assert part.as_strided((6,), (1,), 0).tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert part.as_strided((2,), (2,)).tolist() == [2.0, 4.0]
    assert part.as_strided((2,), (1,), 4).storage_offset() == 4
    with pytest.raises(RuntimeError, match="out of bounds for storage of size 24"):
        part.as_strided((7,), (1,), 0)


def test_gradient_through_a_part_of_the_memory(lib):
    x = lib.arange(6.0)[2:5].detach().requires_grad_()
    weights = lib.tensor([1.0, 10.0, 100.0])
    (x.as_strided((3,), (1,), 3) * weights).sum().backward()
    assert x.grad.tolist() == [0.0, 1.0, 10.0]


def test_other_memory_of_another_dtype(lib):
    with pytest.raises(RuntimeError, match="Could not set tensor of type double to a tensor of type float"):
        lib.ones(2, requires_grad=True).set_(lib.ones(2, dtype=lib.float64))
