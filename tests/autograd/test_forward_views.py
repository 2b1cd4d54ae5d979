"""Tangents of views, and of what is written to, beside torch's."""

import pytest

import jitgrad
from tests.forward import QUIET, tangent

pytestmark = QUIET


def test_a_view_of_a_dual_shares_its_tangent(lib, fw):
    x, t = lib.tensor([1.0, 2.0]), lib.ones(2)
    with fw.dual_level():
        dual = fw.make_dual(x, t)
        view = dual.narrow(0, 0, 1)
        view *= 2
        assert (tangent(fw, dual), tangent(fw, view)) == ([2.0, 1.0], [2.0])
        assert (dual.tolist(), t.tolist()) == ([2.0, 2.0], [2.0, 1.0])
        assert fw.unpack_dual(x).tangent is None
        dual *= 3
        assert (tangent(fw, dual), tangent(fw, view)) == ([6.0, 3.0], [6.0])


def test_a_write_gives_a_plain_tensor_a_tangent(lib, fw):
    with fw.dual_level():
        dual = fw.make_dual(lib.tensor([1.0, 2.0]), lib.tensor([3.0, 4.0]))
        y = lib.zeros(2)
        y += dual
        assert tangent(fw, y) == [3.0, 4.0]
        y = lib.zeros(3)
        y[0] = dual[1]
        assert tangent(fw, y) == [4.0, 0.0, 0.0]
        y[1:] = dual
        assert tangent(fw, y) == [4.0, 3.0, 4.0]
        y[[0]] = lib.zeros(1)
        assert tangent(fw, y) == [0.0, 3.0, 4.0]
        y.zero_()
        assert tangent(fw, y) == [0.0, 0.0, 0.0]
        y.copy_(dual[0])
        assert tangent(fw, y) == [3.0, 3.0, 3.0]


def test_a_view_made_before_its_base_was_written_to(lib, fw):
    with fw.dual_level():
        dual = fw.make_dual(lib.tensor([[1.0, 2.0], [3.0, 4.0]]), lib.tensor([[1.0, 2.0], [3.0, 4.0]]))
        base = lib.zeros(2, 2)
        column, flipped = base[:, 1], base.t()
        base.add_(dual)
        assert tangent(fw, column) == [2.0, 4.0]
        assert tangent(fw, flipped) == [[1.0, 3.0], [2.0, 4.0]]
        column.zero_()
        assert tangent(fw, base) == [[1.0, 0.0], [3.0, 0.0]]


@pytest.mark.parametrize("write", [lambda x, y: x.add_(y), lambda x, y: x.mul_(y), lambda x, y: x.copy_(y)])
def test_a_written_view_and_its_base_stay_tied(lib, fw, write):
    base = lib.ones(2, 2)
    view = base.transpose(0, 1)
    with fw.dual_level():
        write(view, fw.make_dual(lib.ones(2, 2), lib.tensor([[1.0, 2.0], [3.0, 4.0]])))
        assert tangent(fw, base) == [[1.0, 3.0], [2.0, 4.0]]
        before = base.tolist()
        view *= 2
        assert tangent(fw, base) == [[2.0, 6.0], [4.0, 8.0]]
        assert base.tolist() == [[2 * a for a in row] for row in before]


def test_detached_and_unpacked_views_are_not_tied(lib, fw):
    with fw.dual_level():
        dual = fw.make_dual(lib.ones(2), lib.ones(2))
        base = lib.zeros(2)
        view = base.detach()
        view += dual
        assert (tangent(fw, base), tangent(fw, view)) == (None, [1.0, 1.0])
        primal, t = fw.unpack_dual(dual)
        primal *= 2
        assert (dual.tolist(), tangent(fw, dual)) == ([2.0, 2.0], [1.0, 1.0])
        t *= 2
        assert (dual.tolist(), tangent(fw, dual)) == ([2.0, 2.0], [2.0, 2.0])


def test_writes_that_change_the_shape(lib, fw):
    with fw.dual_level():
        x = fw.make_dual(lib.tensor([[1.0, 2.0]]), lib.tensor([[3.0, 4.0]])).clone()
        x.t_()
        assert tangent(fw, x) == [[3.0], [4.0]]
        x.unsqueeze_(0).squeeze_()
        assert tangent(fw, x) == [3.0, 4.0]


def test_a_tangent_of_another_layout_is_copied(lib, fw):
    with fw.dual_level():
        t = lib.tensor([[1.0, 2.0], [3.0, 4.0]]).t()
        dual = fw.make_dual(lib.zeros(2, 2), t)
        found = fw.unpack_dual(dual).tangent
        assert found is not t
        assert found.tolist() == t.tolist()
        assert found.stride() == (2, 1)
        assert tangent(fw, dual.view(4)) == [1.0, 3.0, 2.0, 4.0]
        short = lib.zeros(5)[:4].detach()
        other = lib.ones(4)
        dual = fw.make_dual(short, other)
        fw.unpack_dual(dual).tangent.mul_(2)
        assert other.tolist() == [1.0, 1.0, 1.0, 1.0]
        strided = lib.zeros(2, 4)[:, ::2]
        dual = fw.make_dual(strided, lib.tensor([[1.0, 2.0], [3.0, 4.0]]))
        assert fw.unpack_dual(dual).tangent.stride() == (4, 2)
        assert tangent(fw, dual.t()[1]) == [2.0, 4.0]


def test_windows_of_memory(lib, fw):
    with fw.dual_level():
        base = fw.make_dual(lib.arange(6.0), lib.arange(6.0) + 1).clone()
        window = base.as_strided((2, 2), (2, 1), 1)
        assert tangent(fw, window) == [[2.0, 3.0], [4.0, 5.0]]
        window[0].mul_(2)
        assert tangent(fw, base) == [1.0, 4.0, 6.0, 4.0, 5.0, 6.0]


def test_inference_mode(lib, fw):
    with lib.inference_mode(), fw.dual_level():
        x = lib.ones(2)
        dual = fw.make_dual(x, lib.ones(2))
        dual += 1
        assert x.tolist() == [2.0, 2.0]
        assert (dual * 2).is_inference()
        if lib is jitgrad:  # torch forgets the tangents of everything computed in inference mode
            assert tangent(fw, dual * dual) == [4.0, 4.0]
            assert tangent(fw, (dual * dual).softmax(0)) == [0.0, 0.0]
            assert (dual * dual).softmax(0).is_inference()


def test_tangent_in_a_memory_as_large_as_the_tensors(lib):
    """A part of some memory gets a tangent in one of that size, so that views of the one are views of the other."""
    forward = lib.autograd.forward_ad
    x, given = lib.ones(6)[:4].detach(), lib.full((4,), 3.0)
    with forward.dual_level():
        dual = forward.make_dual(x, given)
        tangent = forward.unpack_dual(dual).tangent
        tangent.mul_(2)
        assert given.tolist() == [3.0] * 4
        beyond = dual.as_strided((6,), (1,), 0)
        assert forward.unpack_dual(beyond).tangent.tolist() == [6.0] * 4 + [0.0] * 2


def test_layout_of_nothing_is_any_layout(lib):
    forward = lib.autograd.forward_ad
    x, given = lib.ones(3).as_strided((0,), (1,), 1), lib.ones(3).as_strided((0,), (1,), 2)
    with forward.dual_level():
        assert forward.unpack_dual(forward.make_dual(x, given)).tangent is given
    x, given = lib.ones(1).as_strided((1, 1), (5, 3), 0), lib.ones(1).as_strided((1, 1), (1, 1), 0)
    with forward.dual_level():
        assert forward.unpack_dual(forward.make_dual(x, given)).tangent is given


def test_a_view_of_all_shares_its_bases_tangent(lib):
    forward = lib.autograd.forward_ad
    base = lib.zeros(2, 3)
    whole, turned = base.view_as(base), lib.zeros(3, 2).t()
    with forward.dual_level():
        source = forward.make_dual(lib.ones(2, 3), lib.full((2, 3), 5.0))
        whole.copy_(source)
        shared = forward.unpack_dual(whole).tangent
        assert shared is forward.unpack_dual(base).tangent
        assert not shared._is_view()
        whole[0].mul_(2)
        assert forward.unpack_dual(base).tangent.tolist() == [[10.0] * 3, [5.0] * 3]
        assert forward.unpack_dual(source).tangent.tolist() == [[5.0] * 3] * 2
        turned.copy_(source)
        assert forward.unpack_dual(turned).tangent._base is forward.unpack_dual(turned._base).tangent
