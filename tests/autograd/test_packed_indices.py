"""Index tensors in brackets are saved values: they go through saved-tensor hooks like all others."""

import pytest

from tests.libraries import leaf


def matrix(lib):
    return lib.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)


def logging(log):
    def pack(tensor):
        log.append(("pack", tensor.tolist()))
        return tensor

    def unpack(tensor):
        log.append(("unpack", tensor.tolist()))
        return tensor

    return pack, unpack


def test_read_through_hooks(lib):
    log = []
    x = matrix(lib)
    with lib.autograd.graph.saved_tensors_hooks(*logging(log)):
        y = x[lib.tensor([1, 0]), [2, 2]]
    assert log == [("pack", [1, 0]), ("pack", [2, 2])]
    (y * lib.tensor([1.0, 5.0])).sum().backward(retain_graph=True)
    assert log[2:] == [("unpack", [1, 0]), ("unpack", [2, 2])]
    assert x.grad.tolist() == [[0, 0, 5], [0, 0, 1]]
    lib.autograd.grad(y.sum(), x, create_graph=True)
    assert len(log) == 6


def test_written_through_hooks(lib):
    log = []
    x = matrix(lib)
    with lib.autograd.graph.saved_tensors_hooks(*logging(log)):
        y = x * 1
        y[:, lib.tensor([2])] = 0.0
        z = x.index_put((lib.tensor([0]),), lib.ones(3))
    assert log == [("pack", [2]), ("pack", [0])]
    (y + z).sum().backward()
    assert x.grad.tolist() == [[1, 1, 0], [2, 2, 1]]


@pytest.mark.parametrize("create_graph", [False, True])
def test_what_comes_back_counts(lib, create_graph):
    x = matrix(lib)
    with lib.autograd.graph.saved_tensors_hooks(lambda index: index.tolist(), lambda numbers: lib.tensor([1 - k for k in numbers])):
        y = x[lib.tensor([0, 0])]
    (grad,) = lib.autograd.grad(y.sum(), x, create_graph=create_graph)
    assert grad.tolist() == [[0, 0, 0], [2, 2, 2]]


def test_shown_as_they_come_back(lib):
    log = []
    x = matrix(lib)
    with lib.autograd.graph.saved_tensors_hooks(*logging(log)):
        y = x[:, lib.tensor([0, 1])]
    nothing, raw = y.grad_fn._raw_saved_indices
    assert nothing.data is None
    assert raw.data.tolist() == [0, 1]
    with pytest.raises(RuntimeError, match="hooks have already been set"):
        raw.register_hooks(len, len)
    assert y.grad_fn._saved_indices[1].tolist() == [0, 1]
    assert log == [("pack", [0, 1]), ("unpack", [0, 1])]


def test_hooks_put_on_later(lib):
    log = []
    x = matrix(lib)
    y = x[:, lib.tensor([0, 1])]
    y.grad_fn._raw_saved_indices[1].register_hooks(*logging(log))
    y.sum().backward()
    assert log == [("pack", [0, 1]), ("unpack", [0, 1])]
    assert x.grad.tolist() == [[1, 1, 0], [1, 1, 0]]


def test_saved_number_keeps_its_shape(lib):
    """A value without axes comes back from hooks without axes."""
    x = leaf(lib, 1.0, 3.0)
    with lib.autograd.graph.save_on_cpu():
        y = x.std()
    y.backward()
    assert x.grad.tolist() == pytest.approx([-0.70710678, 0.70710678])
    assert y.grad_fn.name() == "StdBackward0"
