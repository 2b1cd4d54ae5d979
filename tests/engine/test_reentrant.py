"""Backwards inside backwards: modes, errors, hooks."""

import pytest

from tests.libraries import function, leaf


def nested(lib, inside):
    """A Function whose backward calls `inside()` with recording on."""

    def backward(ctx, grad):
        with lib.enable_grad():
            inside()
        return grad

    return function(lib, lambda ctx, x: x * 1, backward)


def test_leaves_of_the_inner_graph_get_their_gradients(lib):
    inner, outer = leaf(lib, 2.0), leaf(lib, 1.0)
    y = nested(lib, (inner * inner).backward).apply(outer * 3)
    (y * 2).backward()
    assert (inner.grad.tolist(), outer.grad.tolist()) == ([4.0], [6.0])


def test_the_same_leaf_inside_and_outside(lib):
    x = leaf(lib, 1.0)
    y = nested(lib, (x * 10).backward).apply(x * 2)
    (y + x).backward()
    assert x.grad.tolist() == [13.0]


def test_modes(lib):
    seen = []
    x = leaf(lib, 1.0)

    def inside():
        seen.append(lib.is_grad_enabled())
        (leaf(lib, 1.0) * 2).backward()
        seen.append(lib.is_grad_enabled())

    y = nested(lib, inside).apply(x)
    y.backward()
    assert seen == [True, True]
    assert lib.is_grad_enabled()


def test_errors(lib):
    x = leaf(lib, 1.0)

    def inside():
        lib.ones(2).backward()

    with pytest.raises(RuntimeError, match=r"does not require grad|implicitly created"):
        nested(lib, inside).apply(x).backward()
    assert lib.is_grad_enabled()
    (x * 2).backward()
    assert x.grad.tolist() == [2.0]


def test_from_a_hook(lib):
    x, other = leaf(lib, 1.0), leaf(lib, 1.0)

    def hook(grad):
        with lib.enable_grad():
            (other * 5).backward()
        return grad * 2

    y = x * 3
    y.register_hook(hook)
    y.backward()
    assert (x.grad.tolist(), other.grad.tolist()) == ([6.0], [5.0])


def test_of_the_same_graph(lib):
    x = leaf(lib, 2.0)
    y = x * x
    z = nested(lib, lambda: y.backward(retain_graph=True)).apply(y)
    z.backward()
    assert x.grad.tolist() == [8.0]
