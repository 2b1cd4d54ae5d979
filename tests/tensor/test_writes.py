"""Writes in place: through views, by index, by copy; versions; refusals. Every program runs with torch, too."""

import numpy as np
import pytest

import jitgrad
from tests.libraries import lib

__all__ = ["lib"]


def leaf(lib, *shape):
    return lib.arange(1.0, 1 + int(np.prod(shape))).reshape(shape).clone().requires_grad_()


def chain(node):
    """The names of a node and of those below its first edges."""
    names = []
    while node is not None:
        names.append(node.name().removeprefix("torch::autograd::").partition("Backward")[0])
        node = node.next_functions[0][0] if node.next_functions else None
    return " ".join(names)


# ---------------------------------------------------------------- values and gradients
def write_select(y, x):
    y[0].mul_(5)


def write_view_of_a_view(y, x):
    y[0][1:].add_(1)


def write_transpose(y, x):
    y.t()[0].mul_(3)


def write_reshaped(y, x):
    y.view(-1)[1:5].neg_()


def write_diagonal(y, x):
    y.diagonal().fill_(3)


def write_strided(y, x):
    y.as_strided((2, 2), (3, 1)).mul_(2)


def write_twice(y, x):
    view = y[:1]
    view.mul_(2)
    y.mul_(3)
    view.mul_(4)


def write_number(y, x):
    y[0] = 7


def write_from_itself(y, x):
    y[0] = y[1]


def write_rows(y, x):
    y[[1]] = x[[0]] * 2


def write_mask(y, x):
    y[y > 2.5] = 0


def write_columns(y, x):
    y[:, [0, 2]] = x[:, 1:]


def write_repeated(y, x):
    y[0, [0, 0]] += 1


def write_everything(y, x):
    y[...] = x.detach() * x


def write_index_add(y, x):
    y[1].index_add_(0, y.new_zeros(2).long(), x[0, :2])


def write_scatter(y, x):
    y[:, :2].scatter_(1, y.new_ones((2, 1)).long(), x[:, :1])


GRADIENTS = {
    write_select: [[5, 5, 5], [1, 1, 1]],
    write_view_of_a_view: [[1, 1, 1], [1, 1, 1]],
    write_transpose: [[3, 1, 1], [3, 1, 1]],
    write_reshaped: [[1, -1, -1], [-1, -1, 1]],
    write_diagonal: [[0, 1, 1], [1, 0, 1]],
    write_strided: [[2, 2, 1], [2, 2, 1]],
    write_twice: [[24, 24, 24], [3, 3, 3]],
    write_number: [[0, 0, 0], [1, 1, 1]],
    write_from_itself: [[0, 0, 0], [2, 2, 2]],
    write_rows: [[3, 3, 3], [0, 0, 0]],
    write_mask: [[1, 1, 0], [0, 0, 0]],
    write_columns: [[0, 2, 1], [0, 2, 1]],
    write_repeated: [[2, 1, 1], [1, 1, 1]],
    write_everything: [[1, 2, 3], [4, 5, 6]],
    write_index_add: [[2, 2, 1], [1, 1, 1]],
    write_scatter: [[2, 0, 1], [2, 0, 1]],
}


@pytest.mark.parametrize("write", GRADIENTS)
def test_gradients_of_the_base(lib, write):
    x = leaf(lib, 2, 3)
    y = x * 1
    write(y, x)
    y.sum().backward()
    assert x.grad.tolist() == GRADIENTS[write]


@pytest.mark.parametrize("write", [w for w in GRADIENTS if w not in (write_everything, write_repeated)])
def test_second_derivatives_through_the_base(lib, write):
    """Against finite differences of the first derivative."""

    def first(values, create):
        x = lib.tensor(values).requires_grad_()
        y = x * 1
        write(y, x)
        (grad,) = lib.autograd.grad((y * y * y).sum(), x, create_graph=create)
        return x, grad

    start = np.arange(1.0, 7.0).reshape(2, 3)
    direction = np.cos(np.arange(6.0)).reshape(2, 3)
    x, grad = first(start, True)
    (found,) = lib.autograd.grad((grad * lib.tensor(direction)).sum(), x)
    step = 1e-6
    ahead, behind = (first(start + sign * step * direction, False)[1].detach().numpy() for sign in (1, -1))
    assert np.allclose(found.numpy(), (ahead - behind) / (2 * step), rtol=1e-5, atol=1e-5)


def test_siblings_see_the_write(lib):
    x = leaf(lib, 2, 3)
    y = x * 2
    first, second, flat = y[0], y[1], y.view(-1)
    first.mul_(5)
    assert flat.tolist() == [10, 20, 30, 8, 10, 12]
    assert chain(y.grad_fn) == "CopySlices Mul AccumulateGrad"
    assert chain(second.grad_fn) == chain(flat.grad_fn) == "AsStrided CopySlices Mul AccumulateGrad"
    (second.sum() + flat.sum()).backward()
    assert x.grad.tolist() == [[10, 10, 10], [4, 4, 4]]


def test_a_base_without_history_gets_one(lib):
    x = leaf(lib, 3)
    base = lib.zeros(2, 3)
    view = base.view(-1)
    base[0] = x
    base[1] = x * 2
    assert base.requires_grad
    assert view.requires_grad
    (view * view).sum().backward()
    assert x.grad.tolist() == [10, 20, 30]


def test_shape_changing_twins(lib):
    x = leaf(lib, 2, 3)
    y = x * 1
    y.unsqueeze_(0).squeeze_(0).transpose_(0, 1)
    assert y.shape == (3, 2)
    names = []
    node = y.grad_fn
    while node.next_functions:
        names.append(node.name())
        node = node.next_functions[0][0]
    assert names == ["TransposeBackward1", "SqueezeBackward4", "UnsqueezeBackward1", "MulBackward0"]
    y[0].mul_(2)
    (y * y).sum().backward()
    assert x.grad.tolist() == [[8, 4, 6], [32, 10, 12]]


# ---------------------------------------------------------------- versions
def test_views_and_detached_tensors_share_a_version(lib):
    y = lib.zeros(3)
    view, cut = y[1:], y.detach()
    view.add_(1)
    cut.add_(1)
    y[0] = 1
    assert y._version == view._version == cut._version == 3
    y.data.add_(1)
    assert y._version == 3


@pytest.mark.parametrize(
    "write",
    [lambda y: y.add_(1), lambda y: y[:1].add_(1), lambda y: y.detach().add_(1), lambda y: y.__setitem__(0, 1.0)],
)
def test_a_saved_value_that_was_written_is_noticed(lib, write):
    x = leaf(lib, 3)
    y = x * 2
    z = y * y
    with lib.no_grad():
        write(y)
    with pytest.raises(
        RuntimeError,
        match=r"modified by an inplace operation: \[torch.FloatTensor \[3\]\].* is at version 1; expected version 0",
    ):
        z.sum().backward()


def test_a_saved_index_that_was_written_is_noticed(lib):
    x, index = leaf(lib, 3), lib.tensor([0, 2])
    for y in (x.gather(0, index), x.index_select(0, index)):
        index[0] = 1
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()


def test_an_operand_over_the_written_memory_is_read_as_it_was():
    x = leaf(jitgrad, 2)
    y = x * 1
    y.view(2).mul_(y)
    y.sum().backward()
    assert x.grad.tolist() == [2, 4]


# ---------------------------------------------------------------- refusals
def test_leaves_and_their_views(lib):
    x = leaf(lib, 3)
    with pytest.raises(
        RuntimeError, match=r"^a leaf Variable that requires grad is being used in an in-place operation"
    ):
        x.mul_(2)
    for write in (lambda: x[0].mul_(2), lambda: x.__setitem__(0, 2)):
        with pytest.raises(
            RuntimeError, match=r"^a view of a leaf Variable that requires grad is being used in an in-place operation"
        ):
            write()
    with lib.no_grad():
        x[0] = 5
        x[1:].mul_(2)
    assert x.tolist() == [5, 4, 6]
    assert x._version == 2


def test_several_views_at_once(lib):
    y = leaf(lib, 4) * 2
    for pieces in (y.split(2), y.chunk(2), y.unbind(), y.split([1, 3])):
        with pytest.raises(
            RuntimeError,
            match=r"Output 0 of .* is a view and is being modified inplace. This view is the output of a function",
        ):
            pieces[0].mul_(2)
    plain = lib.ones(4)
    plain.split(2)[0].mul_(2)
    assert plain.tolist() == [2, 2, 1, 1]
    y.unsafe_split(2)[0].mul_(2)


def test_views_made_without_recording(lib):
    y = leaf(lib, 3) * 2
    with lib.no_grad():
        view = y[0:2]
    with pytest.raises(
        RuntimeError, match="A view was created in no_grad mode and is being modified inplace with grad mode enabled"
    ):
        view.mul_(2)
    with lib.no_grad():
        view.mul_(2)
    assert y.tolist() == [4, 8, 6]


def test_memory_that_overlaps(lib):
    expanded = lib.ones(1, 1).expand(2, 3)
    for write in (
        lambda: expanded.add_(1),
        lambda: expanded.copy_(lib.ones(2, 3)),
        lambda: lib.ones(3).expand(2, 3).__setitem__(slice(None), 1),
    ):
        with pytest.raises(
            RuntimeError, match="more than one element of the written-to tensor refers to a single memory location"
        ):
            write()
    y = lib.arange(4.0)
    for write in (lambda: y[1:].mul_(y[:-1]), lambda: y.__setitem__(slice(1, None), y[:-1])):
        with pytest.raises(
            RuntimeError,
            match="some elements of the input tensor and the written-to tensor refer to a single memory location",
        ):
            write()
    y[:] = y
    assert y.tolist() == [0, 1, 2, 3]


def test_the_gradient_of_a_piece_of_an_expanded_tensor(lib):
    x = leaf(lib, 1)
    x.expand(4)[0].backward()
    assert x.grad.tolist() == [1]


# ---------------------------------------------------------------- x[index] = value
def test_values_that_are_assigned(lib):
    y = lib.zeros(2, 3)
    y[0] = lib.ones(1, 1, 3)
    y[:, 1] = lib.arange(2)
    y[1, 2] = True
    y[[1]] += 1
    assert y.tolist() == [[1, 0, 1], [1, 2, 2]]
    whole = lib.arange(3)
    whole[0] = 2.7
    whole[1] = lib.tensor(3.9)
    assert whole.tolist() == [2, 3, 2]
    byte = lib.zeros(2, dtype=lib.uint8)
    byte[0] = -1
    byte[[1]] = -2
    assert byte.tolist() == [255, 254]
    point = lib.tensor(3.0)
    point[...] = 2
    point[None] = lib.tensor([5.0])
    assert point.item() == 5


@pytest.mark.parametrize(
    ("index", "value", "error", "words"),
    [
        (0, lambda lib: [1, 2], TypeError, "can't assign a list to a torch.FloatTensor"),
        (0, lambda lib: np.ones(3), TypeError, "can't assign a numpy.ndarray to a torch.FloatTensor"),
        (
            0,
            lambda lib: lib.ones(2),
            RuntimeError,
            r"The expanded size of the tensor \(3\) must match the existing size \(2\)",
        ),
        (0, lambda lib: lib.ones(2, 3), RuntimeError, "the number of sizes provided"),
        (
            [0],
            lambda lib: lib.ones(2),
            RuntimeError,
            r"shape mismatch: value tensor of shape \[2\] cannot be broadcast to indexing",
        ),
        (
            [0],
            lambda lib: lib.ones(3).double(),
            RuntimeError,
            "Index put requires the source and destination dtypes match",
        ),
        (5, lambda lib: 1, IndexError, "index 5 is out of bounds for dimension 0 with size 2"),
        ([5], lambda lib: 1, IndexError, "index 5 is out of bounds for dimension 0 with size 2"),
        (1.0, lambda lib: 1, IndexError, "only integers, slices"),
    ],
)
def test_values_that_are_not(lib, index, value, error, words):
    y = lib.zeros(2, 3)
    with pytest.raises(error, match=words):
        y[index] = value(lib)
    assert y._version == 0
    assert y.sum().item() == 0


def test_float16_overflows_without_a_warning(lib):
    x = lib.zeros(2, dtype=lib.float16)
    x[0] = 1e6
    x[1:].copy_(lib.tensor(1e6))
    assert x.tolist() == [np.inf, np.inf]


# ---------------------------------------------------------------- copy_, resize_, index_put_
def test_copy_casts_and_broadcasts(lib):
    x = leaf(lib, 1)
    y = lib.zeros(2, 3, dtype=lib.float64)
    y.copy_(x)
    assert y.grad_fn.name().removeprefix("torch::autograd::") == "CopyBackwards"
    y.sum().backward()
    assert x.grad.tolist() == [6]
    assert str(x.grad.dtype).endswith("float32")
    whole = lib.zeros(2, dtype=lib.int64).copy_(leaf(lib, 2) * 1.5)
    assert whole.tolist() == [1, 3]
    assert not whole.requires_grad
    with pytest.raises(RuntimeError, match=r"output with shape \[2\] doesn't match the broadcast shape \[1, 2\]"):
        lib.zeros(2).copy_(lib.ones(1, 2))
    with pytest.raises(TypeError, match=r"copy_\(\): argument 'other' \(position 1\) must be Tensor, not list"):
        lib.zeros(2).copy_([1, 2])


def test_resize_keeps_elements(lib):
    x = lib.arange(6.0).reshape(2, 3)
    x.resize_(2, 2)
    assert x.tolist() == [[0, 1], [2, 3]]
    x.resize_(3, 3)
    assert x.view(-1)[:4].tolist() == [0, 1, 2, 3]
    with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
        leaf(lib, 3).resize_(2)


def test_index_put_accumulates(lib):
    x = leaf(lib, 3)
    index = (lib.tensor([0, 0, 2]),)
    y = lib.zeros(3)
    y.index_put_(index, lib.ones(3), accumulate=True)
    assert y.tolist() == [2, 0, 1]
    z = (x * 1).index_put(index, x * 10, accumulate=True)
    assert z.tolist() == [31, 2, 33]
    z.sum().backward()
    assert x.grad.tolist() == [11, 11, 11]
    with pytest.raises(TypeError, match="must be tuple of Tensors, not Tensor"):
        x.index_put(index[0], lib.ones(3))


def test_recorded_copy(lib):
    x, y = lib.tensor([1.0, 2.0, 3.0], requires_grad=True), lib.tensor([4.0], dtype=lib.float64, requires_grad=True)
    base = x * 1.0
    squared = base**2
    part = base[1:]
    part.copy_(y)
    assert type(base.grad_fn).__name__ == "CopySlices"
    assert base.tolist() == [1.0, 4.0, 4.0]
    assert (base._version, part._version) == (1, 1)
    (base * lib.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [1.0, 0.0, 0.0]
    assert y.grad.tolist() == [110.0]
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        squared.sum().backward()
    itself = lib.tensor([5.0], requires_grad=True).clone()
    itself.copy_(itself)
    assert type(itself.grad_fn).__name__ == "CopyBackwards"
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x.copy_(y)
    with pytest.raises(RuntimeError, match="output of a function that returns multiple views"):
        base.unbind()[0].copy_(y[0])


# ---------------------------------------------------------------- found by programs of random steps
def test_another_shape_without_recording_renews_the_history_of_a_view(lib):
    weights = lib.tensor([[1.0, 10.0], [100.0, 1000.0], [1e4, 1e5]])
    x = lib.ones(2, 3, requires_grad=True)
    v = (x * 1).view_as(x)
    with lib.no_grad():
        v.t_()
    assert type(v.grad_fn).__name__ == "AsStridedBackward0"
    (v * weights).sum().backward()
    assert x.grad.tolist() == weights.t().tolist()


def test_other_memory_has_no_derivative(lib):
    x, y = lib.zeros(3), lib.ones(2, requires_grad=True)
    x.set_(y)
    assert type(x.grad_fn).__name__ == "NotImplemented"
    assert x.grad_fn.next_functions[0] == (None, 0)
    assert x.grad_fn.next_functions[1][0].variable is y
    with pytest.raises(RuntimeError, match="derivative for set_ is not implemented"):
        x.sum().backward()
    z = lib.zeros(3, requires_grad=True) * 1
    z.set_(lib.ones(2))
    with pytest.raises(RuntimeError, match="derivative for set_ is not implemented"):
        z.sum().backward()
    with lib.no_grad():
        assert lib.zeros(3).set_(y).grad_fn is None
    assert lib.zeros(3).set_(lib.ones(2)).grad_fn is None


LEAF_FIRST = {
    "masked_fill_ of a vector": lambda lib, x: x.masked_fill_(x > 0, lib.ones(2)),
    "masked_fill_ by numbers": lambda lib, x: x.masked_fill_(lib.ones(3), 1.0),
    "fill_ of a vector": lambda lib, x: x.fill_(lib.ones(2)),
    "clamp_ without bounds": lambda lib, x: x.clamp_(),
    "add_ of another shape": lambda lib, x: x.add_(lib.ones(7)),
}


@pytest.mark.parametrize("case", LEAF_FIRST)
def test_a_leaf_is_refused_before_the_arguments(lib, case):
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        LEAF_FIRST[case](lib, lib.ones(3, requires_grad=True))


def test_a_view_without_history_is_not_resized(lib):
    x = lib.ones(3, requires_grad=True)
    with lib.no_grad():
        part = x[:2]
    with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
        part.resize_(1)


def test_words_of_index_add(lib):
    x, first = lib.zeros(2, 2), lib.tensor([0])
    with pytest.raises(RuntimeError, match=r"index_add_\(\): Number of indices \(1\) should be equal to source.size\(dim\): \(3\), for dim: 0"):
        x.index_add_(0, first, lib.ones(3, 3))
    with pytest.raises(RuntimeError, match="source tensor shape must match self tensor shape, excluding the specified dimension"):
        x.index_add_(0, first, lib.ones(1, 3))


def test_a_leaf_is_refused_before_its_layout_and_the_indices(lib):
    x = lib.ones(1, 3, requires_grad=True)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place operation"):
        x.expand(2, 3).mul_(2)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        x.index_put_((lib.tensor([0]),), lib.ones(2, 7))


FILLS = {
    "fill_": (lambda lib, x: x.fill_(x[1]), [2.0] * 4),
    "masked_fill_": (lambda lib, x: x.masked_fill_(x > 2, x[0]), [1.0, 2.0, 1.0, 1.0]),
    "index_fill_": (lambda lib, x: x.index_fill_(0, lib.tensor([0, 3]), x[1]), [2.0, 2.0, 3.0, 2.0]),
    "all": (lambda lib, x: x.__setitem__(slice(None), x[3]), [4.0] * 4),
    "a mask": (lambda lib, x: x.__setitem__(x > 1, x[3]), [1.0, 4.0, 4.0, 4.0]),
}


@pytest.mark.parametrize("history", [False, True])
@pytest.mark.parametrize("case", FILLS)
def test_an_element_of_its_own_fills_a_tensor(lib, case, history):
    write, expected = FILLS[case]
    leaves = lib.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=history)
    x = leaves * 1
    write(lib, x)
    assert x.tolist() == expected
    if history:
        x.sum().backward()
        assert leaves.grad.sum() == 4
    with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to tensor"):
        x.add_(x[0])
