"""In anomaly mode a saved value that was written to behind the library's back is found at backward."""

import re
import warnings

import numpy as np
import pytest

import jitgrad as torch
from jitgrad._engine import anomaly
from tests.libraries import function

UNNOTICED = "have been changed since without the library's knowledge"


@pytest.fixture(autouse=True)
def watching():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.autograd.detect_anomaly():
            yield


def leaf(*shape, dtype=None):
    return torch.ones(shape, dtype=dtype, requires_grad=True)


def scalar():
    y = leaf().exp()
    y.detach().numpy()[...] = 0
    return y


def from_numpy():
    array = np.ones(3, np.float32)
    y = leaf(3) * torch.from_numpy(array)
    array[1] = 5
    return y


def by_data():
    y = leaf(3).tanh()
    y.data.fill_(0)
    return y


def layer():
    y = torch.nn.Linear(4, 2)(leaf(3, 4)).relu()
    y.detach().numpy()[:] += 1
    return y


def strided():
    x = leaf(4, 6)
    part = (x * 1)[:, ::2].T
    y = part * part
    part.detach().numpy()[0, 0] = 7
    return y


def single_bit():
    y = leaf(1000).exp()
    y.detach().numpy().view(np.uint8)[1234] ^= 1
    return y


CASES = {
    ("ExpBackward0", "result"): scalar,
    ("MulBackward0", "other"): from_numpy,
    ("TanhBackward0", "result"): by_data,
    ("ReluBackward0", "result"): layer,
    ("MulBackward0", "self"): strided,
    ("ExpBackward0", "result [1000]"): single_bit,
}


def found(case):
    """Either message names the op and the value: of a write that nobody saw, and of one to an array that was handed out."""
    op, value = case[0], re.escape(case[1].split()[0])
    return f"^{op} saved '{value}'.*{UNNOTICED}|modified by an inplace operation.*{op} had saved it as '{value}'"


@pytest.mark.parametrize("message", CASES)
def test_a_write_behind_the_back(message):
    y = CASES[message]()
    with pytest.raises(RuntimeError, match=found(message)):
        y.sum().backward()


def test_what_a_function_saved():
    def forward(ctx, x):
        y = x.exp()
        ctx.log = np.zeros(2)  # an attribute is the user's own and may change
        ctx.save_for_backward(y, x)
        return y

    exp = function(torch, forward, lambda ctx, grad: grad * ctx.saved_tensors[0], "Exp")
    x = leaf(3)
    y = exp.apply(x)
    y.grad_fn.log[0] = 1
    y.sum().backward(retain_graph=True)
    y.detach().numpy()[0] = 9
    with pytest.raises(RuntimeError, match=found(("ExpBackward", "saved_tensors[0]"))):
        y.sum().backward()


def test_what_a_kernel_saved():
    square = torch.elementwise(lambda x: x * x)
    values = np.ones(3, np.float32)
    x = torch.from_numpy(values).requires_grad_()
    y = square(x)
    values[:] = 2
    with pytest.raises(RuntimeError, match=UNNOTICED):
        y.sum().backward()


def test_a_write_that_was_noticed_is_reported_as_ever():
    y = leaf(3).exp()
    y.detach().add_(1)
    with pytest.raises(RuntimeError, match=r"^one of the variables needed.* modified by an inplace operation.*ExpBackward0 had saved it as 'result'"):
        y.sum().backward()


def test_the_warning_shows_the_call():
    y = scalar()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(RuntimeError, match=found(("ExpBackward0", "result"))):
            y.backward()
    assert "y = leaf().exp()" in str(caught[0].message)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (2, 3)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nothing_is_found_where_nothing_was_written(shape, dtype):
    x = leaf(*shape, dtype=getattr(torch, dtype))
    y = x.exp() * x + x.tanh()[..., None].squeeze(-1)
    z = y.mul_(2).sum()
    z.backward(retain_graph=True)
    z.backward(create_graph=True)
    assert x.grad.shape == x.shape


@pytest.mark.parametrize("write", [lambda v, w: v.mul_(w), lambda v, w: v.exp_(), lambda v, w: v.copy_(w), lambda v, w: v.add_(w).exp_()])
def test_nothing_is_found_after_writes_to_a_view(write):
    x, w = leaf(4), leaf(2)
    y = x * 1
    write(y[1:3], w)
    y.sum().backward()
    assert x.grad is not None


def test_a_write_to_what_an_op_on_a_view_saved():
    x, values = leaf(4), np.ones(2, np.float32)
    y = x * 1
    y[1:3].mul_(torch.from_numpy(values))
    values[0] = 3
    with pytest.raises(RuntimeError, match=found(("torch::autograd::CopySlices", "other"))):
        y.sum().backward()


def test_a_value_that_was_put_back_is_right():
    y = leaf(3).exp()
    shared = y.detach().numpy()
    before = shared.copy()
    shared[:] = 0
    shared[:] = before
    y.sum().backward()


def test_nothing_is_summed_up_when_the_mode_is_off(monkeypatch):
    def never(array):
        raise AssertionError("a checksum outside of anomaly mode")

    with torch.autograd.set_detect_anomaly(False):
        monkeypatch.setattr(anomaly, "checksum", never)
        x = leaf(3)
        (x.exp() * x).sum().backward()
        assert x.grad is not None
