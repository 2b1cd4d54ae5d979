"""Views that remember the ops that made them, and are made again from another base."""

import pytest

from tests.libraries import leaf

VIEWS = {
    "view": (lambda x: x.view(6), ["ViewBackward0"]),
    "t": (lambda x: x.t(), ["TBackward0"]),
    "select": (lambda x: x[1], ["SelectBackward0"]),
    "slice": (lambda x: x[:, 1:], ["SliceBackward0"]),
    "expand": (lambda x: x.expand(4, 2, 3), ["ExpandBackward0"]),
    "diagonal": (lambda x: x.diagonal(), ["DiagonalBackward0"]),
    "permute": (lambda x: x.permute(1, 0), ["PermuteBackward0"]),
    "as_strided": (lambda x: x.as_strided((2,), (2,), 1), ["AsStridedBackward0"]),
    "several": (lambda x: x.t()[1:].unsqueeze(0), ["UnsqueezeBackward0", "SliceBackward0", "TBackward0"]),
}


def names(node, count):
    """The classes of the first nodes of a chain."""
    found = []
    for _ in range(count):
        found.append(type(node).__name__)
        node = node.next_functions[0][0]
    return found


@pytest.mark.parametrize("case", VIEWS)
def test_history_after_a_write_to_the_base(lib, case):
    make, nodes = VIEWS[case]
    for tracking, expected in ((True, [*nodes, "MulBackward0"]), (False, ["AsStridedBackward0", "MulBackward0"])):
        x = lib.ones(2, 3, requires_grad=True)
        y = x * 1.0
        with lib.autograd._force_original_view_tracking(tracking):
            v = make(y)
        y.mul_(3)
        assert names(v.grad_fn, len(expected)) == expected
        v.sum().backward()
        with lib.no_grad():
            assert x.grad.sum() == 3 * v.numel()


def test_history_after_a_write_to_a_view(lib):
    x = leaf(lib, 1.0, 2.0, 3.0, 4.0)
    y = x * 1.0
    with lib.autograd._force_original_view_tracking(True):
        v = y.view(2, 2)
        w = v.t()
        v.mul_(lib.tensor([[1.0, 10.0], [100.0, 1000.0]]))
    assert names(v.grad_fn, 2) == ["ViewBackward0", "CopySlices"]
    assert names(w.grad_fn, 3) == ["TBackward0", "ViewBackward0", "CopySlices"]
    w.sum().backward()
    assert x.grad.tolist() == [1.0, 10.0, 100.0, 1000.0]


def test_tracking_as_a_switch_and_as_a_decorator(lib):
    enabled = lib.autograd.is_view_replay_enabled
    assert not enabled()
    switch = lib.autograd._force_original_view_tracking(True)
    try:
        assert enabled()
    finally:
        switch.__exit__(None, None, None)
    decorated = lib.autograd._force_original_view_tracking(True)(enabled)
    assert not enabled()
    assert decorated()
    assert not enabled()


@pytest.mark.parametrize("tracking", [True, False])
@pytest.mark.parametrize("case", VIEWS)
def test_view_of_another_base(lib, case, tracking):
    make, _ = VIEWS[case]
    base = lib.arange(6.0).view(2, 3).clone()
    with lib.autograd._force_original_view_tracking(tracking):
        v = make(base)
    other = base + 10
    found = v._view_func(other)
    assert found.tolist() == (v + 10).tolist()
    assert found._base is other
    assert (found.stride(), found.storage_offset()) == (v.stride(), v.storage_offset())


def test_no_view_and_another_layout(lib):
    x = lib.ones(4)
    v = x.view(2, 2)
    assert x._view_func(lib.ones(4)) is None
    assert v._view_func(lib.ones(5)) is None
    assert v._view_func(lib.ones(8)[::2]) is None
    assert v._view_func_unsafe(lib.ones(5)).tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert x._rev_view_func_unsafe(lib.ones(4)) is None


def test_base_of_a_view(lib):
    with lib.autograd._force_original_view_tracking(True):
        base = lib.arange(6.0).view(2, 3).clone()
        v = base[1]
    alike = v.detach()
    found = v._rev_view_func_unsafe(alike)
    assert found.tolist() == base.tolist()
    assert found._base is alike


def test_numbers_are_shown_to_a_visitor(lib):
    with lib.autograd._force_original_view_tracking(True):
        base = lib.arange(12.0).view(3, 4).clone()
        v = base[:, 1:][0]
    assert v._view_func(base, symint_visitor_fn=lambda n: n).tolist() == [1.0, 2.0, 3.0]
    row = base.new_zeros(3, 4)
    with lib.autograd._force_original_view_tracking(True):
        w = row[0]
    assert w._view_func(base, symint_visitor_fn=lambda n: n + 2).tolist() == [8.0, 9.0, 10.0, 11.0]
    assert w._view_func(base).tolist() == [0.0, 1.0, 2.0, 3.0]
