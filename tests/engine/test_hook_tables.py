"""The tables that hooks are in: their attributes, how long they stay, pickling."""

import pickle
import warnings
from collections import OrderedDict

import pytest

from tests.libraries import leaf


def test_the_table_of_hooks(lib):
    """`_backward_hooks` may be given; a tensor without gradient keeps a table that is never used."""
    x, log = leaf(lib, 1.0), []
    assert x._backward_hooks is None
    x._backward_hooks = OrderedDict(one=lambda g: log.append(g.item()))
    (x * 1).sum().backward()
    assert log == [1.0]
    x._backward_hooks = None
    z = lib.ones(1)
    z._backward_hooks = table = OrderedDict(one=lambda g: log.append("never"))
    assert z._backward_hooks is table
    (x * z).sum().backward()
    assert log == [1.0]
    z._backward_hooks = None
    assert z._backward_hooks is None


@pytest.mark.parametrize("name", ["_backward_hooks", "_grad_fn", "data", "requires_grad"])
def test_attributes_that_stay(lib, name):
    with pytest.raises(RuntimeError):
        delattr(leaf(lib, 1.0), name)


def test_a_table_for_a_node(lib):
    x, log = leaf(lib, 1.0), []
    y = x * 2
    y._backward_hooks = OrderedDict()
    y.grad_fn._register_hook_dict(y)
    y._backward_hooks["one"] = lambda g: log.append(g.item())
    y.sum().backward()
    assert log[-1] == 1.0


def test_hooks_outlive_a_while_without_gradient(lib):
    x, log = leaf(lib, 1.0), []
    x.register_hook(lambda g: g * 2)
    x.register_post_accumulate_grad_hook(lambda p: log.append(p.grad.item()))
    x.requires_grad_(False)
    x.requires_grad_(True)
    (x * 3).sum().backward()
    assert (x.grad.item(), log) == (6.0, [6.0])


def test_a_tensor_is_pickled_without_its_hooks(lib):
    x = leaf(lib, 1.0)
    x.register_hook(lambda g: g * 2)
    with pytest.warns(UserWarning, match="on tensor will not be serialized"):
        text = pickle.dumps(x)
    y = pickle.loads(text)
    (y * 3).sum().backward()
    assert y.grad.item() == 3.0
    z = leaf(lib, 1.0)
    z.register_hook(lib.utils.hooks.unserializable_hook(lambda g: g * 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pickle.dumps(z)
