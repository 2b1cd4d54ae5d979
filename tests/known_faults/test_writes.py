"""Writes in place: through overlapping views, behind hooks, behind the counters."""

import numpy as np
import pytest

import jitgrad
from jitgrad._engine import versions
from jitgrad._engine.shown import SHOWN
from tests.libraries import leaf, lib

__all__ = ["lib"]


# ---- S07
def test_s07_a_write_through_an_expanded_view(lib):
    with pytest.raises(RuntimeError):
        lib.ones(1, 1).clone().expand(2, 3).add_(1)


def test_s07_a_piece_of_an_expanded_tensor(lib):
    x = leaf(lib, 1.0)
    x.expand(4)[0].backward()
    assert x.grad.tolist() == [1]


def test_s07_a_write_from_overlapping_memory(lib):
    y = lib.tensor([1.0, 2.0, 3.0])
    with pytest.raises(RuntimeError):
        y[1:].mul_(y[:-1])
    with pytest.raises(RuntimeError):
        y[1:] = y[:-1]
    assert y.tolist() == [1, 2, 3]


# ---- S20
def test_s20_hooks_stay_with_their_version(lib):
    x, seen = leaf(lib, 1.0), []
    a = x * 1
    a.register_hook(lambda grad: seen.append(("old", grad.item())))
    a.retain_grad()
    a.mul_(2)
    a.register_hook(lambda grad: seen.append(("new", grad.item())))
    (a * 3).sum().backward()
    assert seen == [("new", 3), ("old", 6)]
    assert a.grad.tolist() == [3]


# ---- S21
MODIFIED = "one of the variables needed for gradient computation has been modified by an inplace operation"


def test_s21_a_write_through_detach(lib):
    y = leaf(lib, 0.0, 1.0).exp()
    y.detach().zero_()
    with pytest.raises(RuntimeError, match=rf"{MODIFIED}: \[torch.FloatTensor \[2\]\], which is output 0 of Exp, is at version 1; expected"):
        y.sum().backward()


@pytest.mark.parametrize("write", [lambda lib, y: y.add_(1), lambda lib, y: y[:1].add_(1)])
def test_s21_a_write_without_recording(lib, write):
    y = leaf(lib, 1.0, 2.0) * 2
    z = y * y
    with lib.no_grad():
        write(lib, y)
    with pytest.raises(RuntimeError, match=rf"{MODIFIED}.* is at version 1; expected version 0 instead"):
        z.sum().backward()


def test_s21_an_optimizer_step_between_forward_and_backward(lib):
    w = leaf(lib, 1.0, 2.0)
    loss = (w * w).sum()
    optimizer = lib.optim.SGD([w], lr=0.1)
    w.grad = lib.ones(2)
    optimizer.step()
    with pytest.raises(RuntimeError, match=MODIFIED):
        loss.backward()


def test_s21_second_backwards(lib):
    x = leaf(lib, 1.0)
    y = x + 1
    y.backward()
    y.backward()
    assert x.grad.tolist() == [2]
    y = x * x
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()


def test_s21_a_write_to_data_is_not_seen(lib):
    """As in torch: `.data` has a counter of its own, and says so."""
    x = leaf(lib, 0.0, 1.0)
    y = x.exp()
    y.data.zero_()
    y.sum().backward()
    assert x.grad.tolist() == [0, 0]


def written(y, keep):
    """An array over the memory of a result, and what was written to it in various ways."""
    array = y.detach().numpy()
    part = array[::2] if keep == "view" else array
    if keep != "view":
        part[:] = 0
    else:
        del array
        part[:] = 0
    return None if keep == "nothing" else part


@pytest.mark.parametrize("keep", ["nothing", "array", "view"])
def test_s21_a_write_through_numpy(keep):
    """An error; torch gives zeros without a word. Listed as a difference."""
    x = leaf(jitgrad, 0.0, 1.0, 2.0)
    y = x.exp()
    kept = written(y, keep)
    with pytest.raises(RuntimeError, match=rf"{MODIFIED}.*which is output 0 of Exp, is at version 1; expected version 0 instead"):
        y.sum().backward()
    with pytest.raises(RuntimeError, match=MODIFIED):
        jitgrad.autograd.grad(y.sum(), x)
    del kept


@pytest.mark.parametrize(
    "show",
    [lambda y: y.detach().numpy(), lambda y: y.numpy(force=True), lambda y: np.asarray(y.detach()), lambda y: y[:1].detach().numpy()],
)
def test_s21_every_way_to_numpy(show):
    y = leaf(jitgrad, 0.0, 1.0).exp()
    show(y)[0] = 5.0
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()


def test_s21_numpy_without_harm(lib):
    """Arrays that are only read, writes before a value is saved, writes to values that nobody saved, and writes to leaves between steps."""
    w = leaf(lib, 1.0, 2.0)
    y = w.exp()
    read = y.detach().numpy()
    assert read.tolist() == y.tolist()
    y.sum().backward()
    assert w.grad.tolist() == read.tolist()
    memory = w.detach().numpy()
    for _ in range(2):
        w.grad = None
        (w * w).sum().backward()
        memory -= 0.1 * w.grad.numpy()
    assert w.tolist() == pytest.approx([0.64, 1.28])
    z = w + 1
    z.detach().numpy()[:] = 3
    (z * z).sum().backward()
    z = w + 1
    kept = z.detach().numpy()
    kept[:] = 3
    (z * 2).sum().backward()
    z = w * 2
    kept = z.detach().numpy()
    z.mul_(2)  # the library's own write is no fault
    (z * z).sum().backward()
    assert kept.tolist() == z.tolist()


def test_s21_arrays_in_numpy_hold_nothing():
    from_start = len(SHOWN)
    y = leaf(jitgrad, 1.0).exp()
    array = y.detach().numpy()
    part = array[:0]
    assert len(SHOWN) == from_start + 1
    del array
    assert len(SHOWN) == from_start + 1
    del part
    assert len(SHOWN) == from_start


def test_s21_an_array_that_dies_while_a_write_is_counted():
    """Nothing waits for a lock that its own thread holds; the next backward finds the write."""
    y = leaf(jitgrad, 0.0, 1.0).exp()
    array = y.detach().numpy()
    array[:] = 0
    with versions.GUARD:
        del array
    assert y._version == 0
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()
    assert not SHOWN
