"""Writes that the version counters are not to see."""

import pytest

import jitgrad as jg


def libraries():
    yield pytest.param(jg, id="jitgrad")
    try:
        import torch
    except ImportError:
        return
    yield pytest.param(torch, id="torch")


both = pytest.mark.parametrize("lib", list(libraries()))


def hidden(lib, *args):
    return lib.autograd._unsafe_preserve_version_counter(*args)


@both
def test_a_saved_tensor_is_emptied_and_filled_again(lib):
    x = lib.tensor([2.0, 3.0], requires_grad=True)
    y = x * 1.0
    z = y * y
    kept = y.detach().clone()
    with lib.no_grad(), hidden(lib, y):
        y.zero_()
    assert y._version == 0
    with lib.no_grad(), hidden(lib, y):
        y.copy_(kept)
    z.sum().backward()
    assert x.grad.tolist() == [4.0, 6.0]


@both
def test_writes_before_and_after_are_counted(lib):
    x = lib.ones(2, requires_grad=True)
    y = x.exp()
    z = y * y
    y.detach().mul_(2)
    with lib.no_grad(), hidden(lib, (y, x)):
        for _ in range(100):
            y.detach().mul_(1)
    assert y._version == 1
    with pytest.raises(RuntimeError, match="is at version 1; expected version 0"):
        z.sum().backward()


@both
def test_views_share_the_count(lib):
    x = lib.zeros(4)
    with hidden(lib, x[:2]):
        x.add_(1)
    assert x._version == 0
    x.add_(1)
    assert x._version == 1


def test_as_decorator():
    x = jg.zeros(2)

    @hidden(jg, x)
    def write():
        x.add_(1)

    write()
    write()
    assert x._version == 0
    assert x.tolist() == [2.0, 2.0]


@both
def test_refusals(lib):
    with pytest.raises(AssertionError, match="Expected tensors to be a tuple"):
        hidden(lib, [lib.ones(1)])
    with lib.inference_mode():
        x = lib.ones(1)
    with pytest.raises(RuntimeError, match="Inference tensors do not track version counter"):
        hidden(lib, x)


def test_in_a_compiled_step():
    x = jg.zeros(2)

    @jg.compile
    def step():
        with hidden(jg, x):
            x.add_(1)

    with pytest.warns(RuntimeWarning, match="not counted"):
        step()
    step()
    assert x._version == 0
    assert x.tolist() == [2.0, 2.0]
