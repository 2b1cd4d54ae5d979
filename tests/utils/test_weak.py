"""Weak dictionaries by identity, beside torch's."""

import copy
from importlib import import_module

import pytest

from tests.libraries import lib

__all__ = ["lib"]


@pytest.fixture
def weak(lib):
    return import_module(lib.__name__ + ".utils.weak")


def test_keys_by_identity(lib, weak):
    table = weak.WeakTensorKeyDictionary()
    x, y = lib.ones(2), lib.ones(2)
    table[x], table[y] = 1, 2
    assert (len(table), table[x], table[y]) == (2, 1, 2)
    assert x in table
    assert lib.ones(2) not in table
    assert 3 not in table
    assert {id(key) for key in table} == {id(x), id(y)}
    assert sorted(table.values()) == [1, 2]
    assert table.get(lib.ones(2)) is None
    assert table.setdefault(x, 9) == 1
    assert table.pop(y) == 2
    assert [reference() is x for reference in table.keyrefs()] == [True]
    with pytest.raises(KeyError):
        table[y]
    with pytest.raises(TypeError, match="cannot create weak reference"):
        table[3] = 1


def test_items_go_with_their_keys(lib, weak):
    x, y = lib.ones(2), lib.ones(2)
    table = weak.WeakTensorKeyDictionary({x: 1, y: 2})
    other = table.copy()
    assert other == table
    del x
    assert (len(table), len(other)) == (1, 1)
    assert next(iter(table)) is y
    del table[y]
    assert len(table) == 0
    assert isinstance(copy.copy(other), weak.WeakIdKeyDictionary)


def test_references(lib, weak):
    x, y = lib.ones(2), lib.ones(2)
    assert weak.WeakIdRef(x) == weak.WeakIdRef(x)
    assert not weak.WeakIdRef(x) == weak.WeakIdRef(y)  # noqa: SIM201  (`!=` compares elements in torch)
    assert hash(weak.WeakIdRef(x)) == id(x)
    reference = weak.TensorWeakRef(x)
    assert reference() is x
    del x
    assert reference() is None
    with pytest.raises(AssertionError, match="expected"):
        weak.TensorWeakRef(3)
