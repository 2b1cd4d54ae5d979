"""Leaves whose gradients have another dtype than their own."""

import pickle
import re

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


def leaf(lib, dtype):
    x = lib.tensor([1.0, 3.0], requires_grad=True)
    x.grad_dtype = dtype
    return x


@both
def test_gradients_are_cast_on_their_way_to_the_leaf(lib):
    seen = []
    x = leaf(lib, lib.float64)
    x.register_hook(lambda grad: seen.append(grad.dtype))
    x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.dtype))
    (x * x).sum().backward()
    assert x.grad.dtype == lib.float64
    assert x.grad.tolist() == [2.0, 6.0]
    (x * x).sum().backward()
    assert x.grad.tolist() == [4.0, 12.0]
    assert seen == [lib.float64] * 4
    (again,) = lib.autograd.grad((x * x).sum(), x)
    assert again.dtype == lib.float64
    assert x.grad_dtype == lib.float64


@both
def test_chosen_after_the_graph_was_recorded(lib):
    x = lib.tensor([1.0, 3.0], requires_grad=True)
    y = (x * x).sum()
    x.grad_dtype = lib.float16
    y.backward()
    assert x.grad.dtype == lib.float16


@both
def test_a_recorded_gradient(lib):
    x = leaf(lib, lib.float64)
    (grad,) = lib.autograd.grad((x * x * x).sum(), x, create_graph=True)
    assert grad.dtype == lib.float64
    (second,) = lib.autograd.grad(grad.sum(), x)
    assert second.dtype == lib.float64
    assert second.tolist() == [6.0, 18.0]


@both
def test_any_dtype(lib):
    x = leaf(lib, None)
    assert x.grad_dtype is None
    x.backward(lib.ones(2, dtype=lib.float64))
    assert x.grad.dtype == lib.float64
    x.grad = lib.ones(2, dtype=lib.int64)
    assert x.grad.dtype == lib.int64
    with pytest.raises(RuntimeError, match="attempting to assign a gradient of size"):
        x.grad = lib.ones(3)


@both
def test_a_function_of_the_user(lib):
    class Third(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1.0

        @staticmethod
        def backward(ctx, grad):
            return grad.double() / 3

    x = leaf(lib, lib.float64)
    Third.apply(x).sum().backward()
    assert x.grad.tolist() == [1 / 3, 1 / 3]  # never rounded to the dtype of the leaf


@both
def test_kept_while_no_gradient_is_taken(lib):
    x = lib.ones(2)
    assert x.grad_dtype == lib.float32
    x.grad_dtype = lib.float64
    x.requires_grad_()
    assert x.grad_dtype == lib.float64
    x.sum().backward()
    x.requires_grad_(False)
    assert x.grad_dtype == lib.float64
    assert x.grad.dtype == lib.float64
    assert x.detach().grad_dtype == lib.float32
    x.grad = None
    assert pickle.loads(pickle.dumps(x.detach())).grad_dtype == lib.float32


@both
def test_refusals(lib):
    x = lib.ones(2, requires_grad=True)
    for bad in (1, "float32"):
        with pytest.raises(RuntimeError, match=r"grad_dtype must be a \w+\.dtype or None, but got " + type(bad).__name__):
            x.grad_dtype = bad
    y = x * 2
    with pytest.raises(RuntimeError, match=r"grad_dtype can only be accessed on leaf tensors\."):
        _ = y.grad_dtype
    with pytest.raises(RuntimeError, match=r"grad_dtype can only be set on leaf tensors\."):
        y.grad_dtype = lib.float64
    y.sum().backward()
    message = "Cannot set grad_dtype to 'Half' because there is already a gradient with dtype 'float'."
    with pytest.raises(RuntimeError, match=re.escape(message)):
        x.grad_dtype = lib.float16
    x.grad = None
    x.grad_dtype = lib.float16
    message = "attempting to assign a gradient with dtype 'float' to a tensor with grad_dtype 'Half'."
    with pytest.raises(RuntimeError, match=re.escape(message)):
        x.grad = lib.ones(2)
    x.grad_dtype = lib.int64
    with pytest.raises(RuntimeError):
        (x * x).sum().backward()


def test_compiled_steps_see_it():
    x = jg.tensor([1.0, 3.0], requires_grad=True)

    @jg.compile
    def step(a):
        (x * a).sum().backward()

    a = jg.tensor([2.0, 4.0])
    for dtype in (jg.float32, jg.float32, jg.float64):
        x.grad = None
        x.grad_dtype = dtype
        if dtype is jg.float64:
            with pytest.warns(RuntimeWarning, match="another dtype than its leaf's"):
                step(a)
        else:
            step(a)
        assert x.grad.dtype == dtype
        assert x.grad.tolist() == [2.0, 4.0]


def test_refusal_says_what_can_be_done(lib):
    x = lib.ones(1, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"You can set the tensor's grad_dtype attribute.*may break downstream systems that assume they match"):
        x.grad = lib.ones(1, dtype=lib.float64)
