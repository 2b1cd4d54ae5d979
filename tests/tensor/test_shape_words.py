"""What is said to shapes, cuts and indices that don't fit, and the names under which they may be given."""

import pytest

from tests.libraries import lib

__all__ = ["lib"]

REFUSED = {
    "t_ of three axes": (lambda t: t.ones(2, 2, 2).t_(), RuntimeError, r"^t_\(\) expects a tensor with <= 2 dimensions, but self is 3D"),
    "t of three axes": (lambda t: t.ones(2, 2, 2).t(), RuntimeError, r"^t\(\) expects a tensor with <= 2 dimensions, but self is 3D"),
    "H of three axes": (lambda t: t.ones(2, 2, 2).H, RuntimeError, "Got 3-D tensor. For batches of matrices, consider using tensor.mH"),
    "H of a vector": (lambda t: t.ones(2).H, RuntimeError, r"tensor.H is only supported on matrices \(2-D tensors\). Got 1-D tensor"),
    "view of nothing": (lambda t: t.ones(4).view(), TypeError, r"view\(\) received an invalid combination of arguments - got \(\), but expected"),
    "view of a float": (lambda t: t.ones(4).view(4.0), TypeError, r"view\(\) received an invalid combination of arguments - got \(float\), but"),
    "view of a word": (lambda t: t.ones(4).view("four"), TypeError, r"view\(\) received an invalid combination of arguments - got \(str\), but"),
    "view of None": (lambda t: t.ones(4).view(None), TypeError, r"view\(\) received an invalid combination of arguments - got \(NoneType\), but"),
    "no sections": (lambda t: t.tensor_split(t.ones(4)), TypeError, r"tensor_split\(\) "),
    "deletion": (lambda t: t.ones(3).__delitem__(0), TypeError, "Tensor does not support deleting items"),
    "an index too small": (lambda t: t.ones(3)[-(2**63)], IndexError, "index -9223372036854775808 is out of bounds for dimension 0 with size 3"),
    "no int": (lambda t: t.ones(3)[2**63], ValueError, "Overflow when unpacking long long"),
    "places of floats": (lambda t: t.unravel_index(t.ones(1), (2, 2)), TypeError, "expected 'indices' to be integer dtype, but got torch.float32"),
    "a shape of floats": (lambda t: t.unravel_index(t.tensor([1]), (1, 2.0)), TypeError, "expected 'shape' sequence to only contain ints, but got"),
    "a tensor as shape": (lambda t: t.unravel_index(t.tensor([1]), t.tensor([2])), TypeError, "expected 'shape' to be int or sequence of ints, but"),
    "a negative shape": (lambda t: t.unravel_index(t.tensor([1]), (2, -3)), ValueError, r"'shape' cannot have negative values, but got \(2, -3\)"),
    "atleast of a number": (lambda t: t.atleast_1d(1), TypeError, r"atleast_1d\(\) received an invalid combination of arguments - got \(int\)"),
    "any into floats": (lambda t: t.any(t.ones(2), 0, out=t.ones(())), RuntimeError, "any only supports bool tensor for result, got: Float"),
    "a turn about an axis too far": (lambda t: t.ones(2, 3).rot90(1, [0, -3]), IndexError, r"range of \[-2, 1\], but got -3\)"),
    "a turn about none there": (lambda t: t.ones(2, 3).rot90(1, [4, 4]), IndexError, r"range of \[-2, 1\], but got 4\)"),
    "a turn about one axis": (lambda t: t.ones(2, 3).rot90(1, [1, -1]), RuntimeError, "dims to be different, but got dim0 = 1 and dim1 = -1"),
    "places per axis into one": (lambda t: t.nonzero(t.ones(2), as_tuple=True, out=t.ones(0)), RuntimeError,
                                 "^nonzero does not support the out kwarg when as_tuple is True"),
    "no index": (lambda t: t.ops.aten.index(t.ones(2), []), IndexError, "at least one index must be provided"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(lib, name):
    call, error, words = REFUSED[name]
    with pytest.raises(error, match=words):
        call(lib)


def test_del_is_refused(lib):
    x = lib.ones(3)
    with pytest.raises(TypeError, match="Tensor does not support deleting items"):
        del x[0]


def test_a_failed_t_leaves_the_tensor_as_it_was(lib):
    x = lib.arange(8).view(2, 2, 2)
    with pytest.raises(RuntimeError, match="t_"):
        x.t_()
    assert x.shape == (2, 2, 2)
    assert x._version == 0


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("T", "Tensor.T is deprecated on 0-D tensors. This function is the identity in these cases."),
        ("mT", "Tensor.mT is deprecated on 0-D tensors. This function is the identity in these cases."),
        ("H", r"Tensor.H is deprecated on 0-D tensors. Consider using x.conj\(\)."),
        ("mH", r"Tensor.mH is deprecated on 0-D tensors. Consider using x.conj\(\)."),
        ("adjoint", r"^adjoint\(\) is deprecated on 0-D tensors. Consider using x.conj\(\)."),
    ],
)
def test_transposes_of_numbers_warn(name, words):
    lib = pytest.importorskip("jitgrad")  # torch warns once in a process
    x = lib.tensor(3.0)
    with pytest.warns(UserWarning, match=words):
        found = x.adjoint() if name == "adjoint" else getattr(x, name)
    assert found.item() == 3.0


def test_names_of_cuts(lib):
    x = lib.arange(7)
    assert [part.tolist() for part in lib.tensor_split(x, sections=2)] == [[0, 1, 2, 3], [4, 5, 6]]
    assert [part.tolist() for part in x.tensor_split(indices=(1, 5))] == [[0], [1, 2, 3, 4], [5, 6]]
    assert [len(part) for part in lib.tensor_split(x, tensor_indices_or_sections=lib.tensor(3), dim=0)] == [3, 2, 2]


def test_strides_without_elements(lib):
    x = lib.ones(2, 3, 4)
    assert x[:, 1:1].stride() == (12, 4, 1)
    assert x[:, 1:1].is_contiguous()
    assert x.permute(2, 0, 1)[:, :0].stride() == (1, 12, 4)
    assert lib.ones(3, 0, 2).stride() == (2, 2, 1)
    assert lib.ones(0).stride() == (1,)


def test_index_by_the_name_of_the_dispatcher(lib):
    x = lib.arange(6.0).view(2, 3).requires_grad_()
    taken = lib.ops.aten.index(x, [None, lib.tensor([2, 2])])
    assert taken.tolist() == [[2.0, 2.0], [5.0, 5.0]]
    taken.sum().backward()
    assert x.grad.tolist() == [[0, 0, 2], [0, 0, 2]]
    assert lib.ops.aten.index.Tensor(x, [lib.tensor([1])]).tolist() == [[3.0, 4.0, 5.0]]
    y = lib.zeros(2, 2, dtype=lib.int64)
    assert lib.ops.aten.index_put_(y, [None, lib.tensor([True, False])], lib.tensor(4)) is y
    assert y.tolist() == [[4, 0], [4, 0]]
    assert lib.ops.aten.index_put(y, [lib.tensor([0])], lib.tensor(1), True).tolist() == [[5, 1], [4, 0]]


def test_values_of_another_shape_are_refused_before_shared_memory(lib):
    x = lib.ones(2, 3)
    with pytest.raises(RuntimeError, match="shape mismatch: value tensor of shape"):
        x[lib.tensor(True)] = x.expand(4, 1, 2, 3)
    with pytest.raises(RuntimeError):
        x.index_put([], lib.ones(3))
    whole = lib.arange(4)
    with pytest.raises(RuntimeError, match="shape mismatch: value tensor of shape"):
        whole[whole > -1] = lib.tensor([])  # of another dtype, besides
    with pytest.raises(RuntimeError, match="Index put requires the source and destination dtypes match, got Long for the destination and Float"):
        whole[whole > 1] = lib.ones(2)
    with pytest.raises(RuntimeError, match="Converting complex Scalar to non-complex type is not supported"):
        x.index_fill_(1, lib.tensor([0]), 1j)


def test_copies_of_pieces_into_tensors(lib):
    one, two = lib.empty(2), lib.empty(2)
    assert lib.split_copy(lib.arange(4.0), 2, out=(one, two)) is None
    assert (one.tolist(), two.tolist()) == ([0, 1], [2, 3])
    assert lib.unbind_copy(lib.ones(2, 2), out=(one, two)) is None
    assert one.tolist() == [1, 1]


def test_views_by_the_names_of_the_dispatcher(lib):
    x = lib.arange(6.0).view(2, 3).clone()
    names = lib.ops.aten
    for found in (names.alias.default(x), names.view.default(x, (3, 2)), names.expand.default(x, (4, 2, 3)), names.unfold.default(x, 1, 2, 1)):
        assert found._base is x
    assert names.slice.Tensor(x, 1, 1, 3).tolist() == [[1.0, 2.0], [4.0, 5.0]]
    assert names.slice.Tensor(x, -1, 0, None, 2).tolist() == [[0.0, 2.0], [3.0, 5.0]]
    assert names.slice.Tensor(x).tolist() == x.tolist()
