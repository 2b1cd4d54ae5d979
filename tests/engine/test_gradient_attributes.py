"""`requires_grad`, `grad`, `detach_` and the tables of hooks, as attributes."""

import numpy as np
import pytest

from tests.libraries import leaf


def test_requires_grad_of_a_leaf(lib):
    x = lib.ones(2)
    x.requires_grad = True
    (x * 2).sum().backward()
    x.requires_grad = False
    assert x.grad.tolist() == [2.0, 2.0]
    assert x.requires_grad_().requires_grad
    assert x.grad.tolist() == [2.0, 2.0]


REFUSED = [
    (lambda lib, x, y: setattr(x, "requires_grad", 3), RuntimeError, "requires_grad must be a bool"),
    (lambda lib, x, y: x.requires_grad_(3), TypeError, r"requires_grad_\(\): argument 'requires_grad' \(position 1\) must be bool, not int"),
    (lambda lib, x, y: setattr(y, "requires_grad", True), RuntimeError, "you can only change requires_grad flags of leaf variables"),
    (lambda lib, x, y: y.requires_grad_(False), RuntimeError, "If you want to use a computed variable in a subgraph"),
    (lambda lib, x, y: lib.tensor([1]).requires_grad_(), RuntimeError, "only Tensors of floating point dtype can require gradients"),
    (lambda lib, x, y: setattr(lib.tensor([1]), "requires_grad", True), RuntimeError, "only Tensors of floating point and complex dtype can"),
    (lambda lib, x, y: setattr(x, "grad", 3), TypeError, "assigned grad expected to be a Tensor or None but got grad of type int"),
    (lambda lib, x, y: setattr(x, "grad", np.ones(1)), TypeError, "but got grad of type numpy.ndarray"),
    (lambda lib, x, y: setattr(x, "grad", x), RuntimeError, "can't assign Variable as its own grad"),
    (lambda lib, x, y: setattr(x, "grad", lib.ones(3)), RuntimeError, r"attempting to assign a gradient of size '\[3\]' to a tensor of size '\[1\]'"),
    (lambda lib, x, y: setattr(x, "grad", lib.ones(1).double()), RuntimeError, "a gradient with dtype 'double' to a tensor with grad_dtype 'Float'"),
    (lambda lib, x, y: setattr(y, "grad_fn", None), AttributeError, "grad_fn|setter"),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_refused(lib, case):
    call, error, message = REFUSED[case]
    x = leaf(lib, 1.0)
    with pytest.raises(error, match=message):
        call(lib, x, x * 2)


def test_grad_can_be_set_and_deleted(lib):
    x = leaf(lib, 1.0)
    x.grad = given = lib.ones(1)
    assert x.grad is given
    del x.grad
    assert x.grad is None


def test_detach_in_place(lib):
    x = leaf(lib, 1.0)
    y = x * 2
    assert y.detach_() is y
    assert (y.requires_grad, y.is_leaf, y.grad_fn) == (False, True, None)
    (x * 3).backward()
    x.detach_()
    assert (x.requires_grad, x.grad.tolist()) == (False, [3.0])


def test_tables_of_hooks(lib):
    x = leaf(lib, 1.0)
    y = x * 2
    assert x._backward_hooks is None
    handle = x.register_hook(lambda g: g)
    y.register_hook(lambda g: g)
    assert (len(x._backward_hooks), len(y._backward_hooks)) == (1, 1)
    handle.remove()
    assert len(x._backward_hooks) == 0
    assert x._post_accumulate_grad_hooks is None
    x.register_post_accumulate_grad_hook(lambda p: None)
    assert len(x._post_accumulate_grad_hooks) == 1
