"""Forward mode beside torch's: levels, dual tensors, views, writes, custom Functions, and both modes mixed."""

import gc
import weakref

import pytest

import jitgrad
from tests.libraries import function

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # torch's own, at its first dual tensor


@pytest.fixture
def fw(lib):
    """The module under test; no level is left open."""
    module = lib.autograd.forward_ad
    yield module
    while module._current_level >= 0:
        module.exit_dual_level()


def ones(lib, *shape):
    return lib.ones(*shape)


def tangent(fw, x):
    found = fw.unpack_dual(x).tangent
    return None if found is None else found.tolist()


# ---- levels and packing
def test_a_tangent_belongs_to_its_level(lib, fw):
    x, t = lib.tensor([1.0, 2.0]), lib.tensor([3.0, 4.0])
    with fw.dual_level() as level:
        assert (level, fw._current_level) == (0, 0)
        dual = fw.make_dual(x, t)
        found = fw.unpack_dual(dual)
        assert type(found).__name__ == "UnpackedDualTensor"
        assert found.tangent is t
        assert found.primal.tolist() == [1.0, 2.0]
        assert fw.unpack_dual(x).tangent is None
        assert fw.unpack_dual(found.primal).tangent is None
    assert fw._current_level == -1
    primal, gone = fw.unpack_dual(dual)
    assert primal is dual
    assert gone is None
    with fw.dual_level():
        assert fw.unpack_dual(dual).tangent is None
        assert (dual * 2).tolist() == [2.0, 4.0]
        assert fw.unpack_dual(fw.make_dual(x, t) * 1).tangent.tolist() == [3.0, 4.0]


def test_functions_enter_and_leave(lib, fw):
    assert fw.enter_dual_level() == 0
    dual = fw.make_dual(lib.tensor(2.0), lib.tensor(1.0))
    assert tangent(fw, dual * dual) == 4.0
    with pytest.raises(RuntimeError, match="Trying to exit a forward AD level that was not the last one"):
        fw.exit_dual_level(level=2)
    fw.exit_dual_level()
    with pytest.raises(RuntimeError, match="Dual level must be a positive number"):
        fw.exit_dual_level()

    @fw.dual_level()
    def derivative(x):
        return fw.unpack_dual(fw.make_dual(x, lib.ones_like(x)).exp()).tangent

    assert derivative(lib.tensor(0.0)).item() == 1.0
    assert fw._current_level == -1


def test_refusals(lib, fw):
    x = lib.ones(2)
    with pytest.raises(RuntimeError, match="Trying to create a dual Tensor for forward AD but no level exists"):
        fw.make_dual(x, x)
    with fw.dual_level():
        dual = fw.make_dual(x, lib.ones(2))
        with pytest.raises(RuntimeError, match="Nested forward mode AD is not supported at the moment"):
            fw.enter_dual_level()
        with pytest.raises(RuntimeError, match="Trying to set a forward gradient that has a different size"):
            fw.make_dual(x, lib.ones(3))
        with pytest.raises(ValueError, match=r"Expected primal to be floating point or complex, but got: .*int64"):
            fw.make_dual(lib.tensor([1, 2]), x)
        with pytest.raises(ValueError, match=r"Expected tangent to be floating point or complex, but got: .*int64"):
            fw.make_dual(x, lib.tensor([1, 2]))
        with pytest.raises(RuntimeError, match="Making a dual Tensor based on a Tensor that already has a forward gradient"):
            fw.make_dual(dual, x)
        with pytest.raises(RuntimeError, match="Setting a forward grad that itself has a forward gradient at the same level"):
            fw.make_dual(x, dual)


def test_forward_mode_can_be_switched_off(lib, fw):
    with fw.dual_level():
        dual = fw.make_dual(lib.ones(2), lib.ones(2))
        assert fw._is_fwd_grad_enabled()
        with fw._set_fwd_grad_enabled(False):
            assert not fw._is_fwd_grad_enabled()
            assert fw.unpack_dual(dual).tangent is None
            hidden = dual * 3
        assert fw._is_fwd_grad_enabled()
        assert fw.unpack_dual(hidden).tangent is None
        assert tangent(fw, dual * 3) == [3.0, 3.0]


def test_printing(lib, fw):
    with fw.dual_level():
        x = lib.tensor([1.0])
        dual = fw.make_dual(x, lib.tensor([2.0]))
        assert str(x) == "tensor([1.])"
        assert str(dual) == "tensor([1.], tangent=tensor([2.]))"
        assert str(fw.make_dual(lib.tensor(1.0), lib.tensor(2.0))) == "tensor(1., tangent=2.0)"
        assert [str(part) for part in fw.unpack_dual(dual)] == ["tensor([1.])", "tensor([2.])"]
    assert str(dual) == "tensor([1.])"


def test_the_level_keeps_nothing_alive(lib, fw):
    gc.disable()
    try:
        with fw.dual_level():
            t = lib.ones(2, requires_grad=True)
            gone = weakref.ref(t)
            dual = fw.make_dual(lib.ones(2), t)
            del t
            assert gone() is not None
            result = (dual.exp() * dual).sum()
            del dual
            made = weakref.ref(result)
        assert made() is result
        del result
        assert (made(), gone()) == (None, None)
    finally:
        gc.enable()


def test_memory_and_version_are_shared(lib, fw):
    x, t = lib.tensor([1.0, 2.0]), lib.ones(2)
    with fw.dual_level():
        dual = fw.make_dual(x, t)
        x.add_(1)
        primal, same = fw.unpack_dual(dual)
        assert dual.tolist() == primal.tolist() == [2.0, 3.0]
        assert x._version == dual._version == primal._version
        t.add_(1)
        assert same.tolist() == [2.0, 2.0]
        assert (dual._base is x, dual._is_view()) == (True, True)


def test_packing_is_recorded(lib, fw):
    x, t = lib.tensor([1.0, 2.0], requires_grad=True), lib.ones(2, requires_grad=True)
    with fw.dual_level():
        primal, same = fw.unpack_dual(fw.make_dual(x, t))
        assert [g if g is None else g.tolist() for g in lib.autograd.grad(primal.sum(), (x, t), allow_unused=True)] == [[1.0, 1.0], None]
        assert [g if g is None else g.tolist() for g in lib.autograd.grad(same.sum(), (x, t), allow_unused=True)] == [None, [1.0, 1.0]]


def test_detached_tensors_have_no_tangent(lib, fw):
    with fw.dual_level():
        dual = fw.make_dual(lib.ones(2), lib.ones(2))
        assert tangent(fw, dual.detach() * 2) is None
        assert tangent(fw, dual.data * 2) is None
        copy = dual.clone()
        assert tangent(fw, copy) == [1.0, 1.0]
        copy.detach_()
        assert tangent(fw, copy * 2) is None
        with lib.no_grad():
            assert tangent(fw, dual * 3) == [3.0, 3.0]


def test_results_without_a_derivative(lib, fw):
    with fw.dual_level():
        dual = fw.make_dual(lib.tensor([1.5, -2.5]), lib.ones(2))
        assert tangent(fw, dual == lib.ones(2)) is None
        assert tangent(fw, dual.long()) is None
        assert tangent(fw, dual.argmax()) is None
        assert tangent(fw, dual.floor()) == [0.0, 0.0]
        copy = dual.clone()
        copy.eq_(lib.ones(2))
        assert tangent(fw, copy) == [0.0, 0.0]


# ---- ops
def rows(lib):
    return lib.tensor([[1.0, 2.0, 4.0], [3.0, 5.0, 6.0]])


def test_ops_of_each_kind(lib, fw):
    x, t = rows(lib), lib.tensor([[1.0, 0.0, 2.0], [0.0, 1.0, -1.0]])
    with fw.dual_level():
        dual = fw.make_dual(x, t)
        assert tangent(fw, dual * dual) == [[2.0, 0.0, 16.0], [0.0, 10.0, -12.0]]
        assert tangent(fw, dual - lib.ones(2, 1, 3)) == [t.tolist(), t.tolist()]
        assert tangent(fw, 1 / fw.make_dual(lib.tensor([2.0, 4.0]), lib.ones(2))) == [-0.25, -0.0625]
        assert tangent(fw, dual.double() * 2) == [[2.0, 0.0, 4.0], [0.0, 2.0, -2.0]]
        assert tangent(fw, dual.sum(1)) == [3.0, 0.0]
        assert tangent(fw, dual.t()) == t.t().tolist()
        assert tangent(fw, dual[1, ::2]) == [0.0, -1.0]
        assert tangent(fw, dual[[1, 0]]) == [[0.0, 1.0, -1.0], [1.0, 0.0, 2.0]]
        assert tangent(fw, lib.cat([dual, lib.zeros(1, 3)])) == [[1.0, 0.0, 2.0], [0.0, 1.0, -1.0], [0.0, 0.0, 0.0]]
        assert [tangent(fw, part) for part in dual.unbind(1)] == [[1.0, 0.0], [0.0, 1.0], [2.0, -1.0]]
        assert tangent(fw, dual @ lib.ones(3, 1)) == [[3.0], [0.0]]
        assert tangent(fw, lib.ones(1, 2) @ dual) == [[1.0, 1.0, 1.0]]
        assert tangent(fw, dual @ dual.t()) == [[18.0, 13.0], [13.0, -2.0]]
        assert tangent(fw, dual.cumsum(1)) == [[1.0, 1.0, 3.0], [0.0, 1.0, 0.0]]
        assert tangent(fw, dual.prod(1)) == [12.0, 3.0]
        assert tangent(fw, dual.max()) == -1.0
        assert tangent(fw, dual.max(1).values) == [2.0, -1.0]
        assert tangent(fw, dual.sort(1, descending=True).values) == [[2.0, 0.0, 1.0], [-1.0, 1.0, 0.0]]
        assert tangent(fw, lib.where(x > 2, dual, lib.zeros(()))) == [[0.0, 0.0, 2.0], [0.0, 1.0, -1.0]]


def test_products_and_norms(lib, fw):
    with fw.dual_level():
        x = fw.make_dual(lib.tensor([3.0, 4.0]), lib.tensor([1.0, 1.0]))
        assert tangent(fw, x.prod()) == 7.0
        assert tangent(fw, x.norm()) == pytest.approx(1.4)
        assert tangent(fw, x.var()) == pytest.approx(0.0)
        assert tangent(fw, x.logsumexp(0)) == pytest.approx(1.0)
        assert tangent(fw, x.softmax(0)) == pytest.approx([0.0, 0.0])
        assert tangent(fw, x.dot(x)) == 14.0
        assert tangent(fw, lib.nn.functional.mse_loss(x, lib.zeros(2))) == 7.0
        assert tangent(fw, lib.nn.functional.linear(x, lib.ones(1, 2), lib.ones(1))) == [2.0]


def test_a_zero_tangent_stays_zero_where_the_derivative_is_infinite():
    fw = jitgrad.autograd.forward_ad  # torch gives nan here
    with fw.dual_level():
        x = fw.make_dual(jitgrad.tensor([0.0, 4.0]), jitgrad.tensor([0.0, 1.0]))
        assert tangent(fw, x.sqrt()) == [0.0, 0.25]
        assert tangent(fw, x.log()) == [0.0, 0.25]


def test_random_numbers(lib, fw):
    with fw.dual_level():
        x = fw.make_dual(lib.ones(100), lib.ones(100))
        y = lib.nn.functional.dropout(x, 0.5)
        assert tangent(fw, y) == y.tolist()
        copy = x.clone()
        copy.uniform_()
        assert tangent(fw, copy) == [0.0] * 100


# ---- views and writes
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


# ---- both modes
def test_reverse_over_forward(lib, fw):
    x, v = lib.tensor([1.0, 2.0], requires_grad=True), lib.tensor([1.0, 3.0], requires_grad=True)
    with fw.dual_level():
        y = fw.make_dual(x, v) ** 3
        found = fw.unpack_dual(y).tangent
        assert found.tolist() == [3.0, 36.0]
        assert [g.tolist() for g in lib.autograd.grad(found.sum(), (x, v))] == [[6.0, 36.0], [3.0, 12.0]]


def test_an_op_whose_tangent_torch_can_not_differentiate():
    fw = jitgrad.autograd.forward_ad
    x, v = jitgrad.tensor([1.0, 2.0], requires_grad=True), jitgrad.tensor([1.0, 3.0], requires_grad=True)
    with fw.dual_level():
        found = fw.unpack_dual(fw.make_dual(x, v).logsumexp(0)).tangent
        first, second = jitgrad.autograd.grad(found, (x, v))
    assert second.tolist() == pytest.approx(x.detach().softmax(0).tolist())
    assert first.sum().item() == pytest.approx(0.0, abs=1e-6)


def test_an_op_on_a_tensor_and_itself_in_place():
    fw = jitgrad.autograd.forward_ad  # torch doubles the tangent that it has overwritten already
    with fw.dual_level():
        y = fw.make_dual(jitgrad.tensor([3.0]), jitgrad.tensor([1.0])).clone()
        y.mul_(y)
        assert tangent(fw, y) == [6.0]


def test_forward_over_reverse(lib, fw):
    w = lib.tensor([1.0, 2.0], requires_grad=True)
    with fw.dual_level():
        dual = fw.make_dual(w, lib.tensor([1.0, 1.0]))
        (grad,) = lib.autograd.grad((dual**3).sum(), w)
        assert (grad.tolist(), tangent(fw, grad)) == ([3.0, 12.0], [6.0, 12.0])
        x = fw.make_dual(lib.tensor([3.0, 4.0]), lib.ones(2))
        (grad,) = lib.autograd.grad((x * w).exp().log().sum(), w)
        assert tangent(fw, grad) == pytest.approx([1.0, 1.0])
        (grad,) = lib.autograd.grad((x * w).softmax(0)[0], w, create_graph=True)
        assert fw.unpack_dual(grad).tangent.requires_grad


def test_an_accumulated_gradient(lib, fw):
    w = lib.tensor([1.0, 2.0], requires_grad=True)
    w.grad = lib.ones(2)
    held = w.grad
    with fw.dual_level():
        (fw.make_dual(lib.tensor([3.0, 4.0]), lib.ones(2)) * w).sum().backward()
        assert w.grad is held
        assert (held.tolist(), tangent(fw, held)) == ([4.0, 5.0], [1.0, 1.0])


def test_writes_are_differentiated_in_both_modes(lib, fw):
    x = lib.tensor([2.0, 3.0], requires_grad=True)
    with fw.dual_level():
        y = fw.make_dual(x, lib.ones(2)).clone()
        y[0] = y[1] * 2
        y.mul_(y.clone())
        found = fw.unpack_dual(y).tangent
        assert (y.tolist(), found.tolist()) == ([36.0, 9.0], [24.0, 6.0])
        assert lib.autograd.grad(found.sum(), x)[0].tolist() == [0.0, 10.0]


def test_a_graph_goes_when_the_level_ends(lib, fw):
    x = lib.rand(3, requires_grad=True)
    with fw.dual_level():
        y = fw.make_dual(lib.rand(3), x).exp()
        y.sum()
    del y
    assert x.grad is None


# ---- custom Functions
def square(lib, **members):
    def forward(ctx, x):
        ctx.save_for_forward(x)
        ctx.save_for_backward(x)
        return x * x

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad

    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        return 2 * x * t

    return function(lib, forward, backward, **({"jvp": staticmethod(jvp)} | members))


def test_a_function_with_jvp(lib, fw):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    with fw.dual_level():
        dual = fw.make_dual(x, lib.tensor([1.0, 10.0]))
        y = square(lib).apply(dual)
        assert tangent(fw, y) == [2.0, 40.0]
        assert lib.autograd.grad(fw.unpack_dual(y).tangent.sum(), x)[0].tolist() == [2.0, 20.0]
        (grad,) = lib.autograd.grad(square(lib).apply(dual).sum(), x)
        assert tangent(fw, grad) == [2.0, 20.0]
        assert tangent(fw, square(lib).apply(lib.ones(2))) is None


def test_what_jvp_is_called_with(lib, fw):
    seen = []

    def forward(ctx, x, number, y, index):
        assert tangent(fw, x) is None
        ctx.number = number
        return x * number

    def jvp(ctx, *tangents):
        seen.append([t if t is None else t.tolist() for t in tangents])
        assert ctx.number == 3.0
        assert ctx.saved_tensors == ()
        return tangents[0] * ctx.number

    made = function(lib, forward, lambda ctx, grad: (grad, None, None, None), jvp=staticmethod(jvp))
    lazy = function(lib, lambda ctx, *args: ctx.set_materialize_grads(False) or forward(ctx, *args), lambda ctx, grad: (grad, None, None, None),
                    jvp=staticmethod(jvp))  # fmt: skip
    with fw.dual_level():
        x = fw.make_dual(lib.ones(1), lib.ones(1))
        for one in (made, lazy):
            assert tangent(fw, one.apply(x, 3.0, lib.ones(1), lib.tensor([1]))) == [3.0]
    assert seen == [[[1.0], None, [0.0], None], [[1.0], None, None, None]]


def test_functions_that_jvp_is_missing_or_wrong_for(lib, fw):
    def jvp(function):
        return {"jvp": staticmethod(function)}

    with fw.dual_level():
        dual = fw.make_dual(lib.ones(2), lib.ones(2))
        with pytest.raises(NotImplementedError, match="You must implement the jvp function for custom"):
            function(lib, lambda ctx, x: x * 2, lambda ctx, grad: grad).apply(dual)
        with pytest.raises(RuntimeError, match=r"Function's jvp returned an invalid number of forward gradients \(expected 1 but got 2\)"):
            square(lib, **jvp(lambda ctx, t: (t, t))).apply(dual)
        with pytest.raises(RuntimeError, match="Trying to set a forward gradient that has a different size"):
            square(lib, **jvp(lambda ctx, t: t[:1])).apply(dual)
        with pytest.raises(RuntimeError, match=r"expected Variable or None \(got float\) for grad output 0"):
            square(lib, **jvp(lambda ctx, t: 1.0)).apply(dual)
        made = function(lib, lambda ctx, x: (x * 2, x > 0), lambda ctx, a, b: a, jvp=staticmethod(lambda ctx, t: (t, t)))
        with pytest.raises(RuntimeError, match="returned a gradient at position 1, but"):
            made.apply(dual)


def test_functions_that_write(lib, fw):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    def made(jvp):
        return function(lib, forward, lambda ctx, grad: grad * 2, jvp=staticmethod(jvp))

    with fw.dual_level():
        dual = fw.make_dual(lib.ones(2), lib.ones(2))
        assert tangent(fw, made(lambda ctx, t: t.mul_(2)).apply(dual.clone())) == [2.0, 2.0]
        with pytest.raises(RuntimeError, match="An inplace custom Function is not modifying the forward mode gradients inplace"):
            made(lambda ctx, t: t * 2).apply(dual.clone())
        with pytest.raises(RuntimeError, match="An inplace custom Function is not returning the forward mode gradients as-is"):
            made(lambda ctx, t: t.mul_(2).view_as(t)).apply(dual.clone())


def test_functions_that_return_views(lib, fw):
    def made(forward, jvp):
        return function(lib, forward, lambda ctx, grad: grad, jvp=staticmethod(jvp))

    with fw.dual_level():
        dual = fw.make_dual(lib.ones(2), lib.ones(2))
        view = made(lambda ctx, x: x[:1], lambda ctx, t: t[:1]).apply(dual)
        view.mul_(3)
        assert tangent(fw, dual) == [3.0, 1.0]
        assert tangent(fw, made(lambda ctx, x: x, lambda ctx, t: t.view_as(t)).apply(dual)) == [3.0, 1.0]
        for wrong in (lambda ctx, t: t, lambda ctx, t: t.clone()):
            with pytest.raises(RuntimeError, match=r"is returning a view \(or an input as-is\) but the jvp is not"):
                made(lambda ctx, x: x, wrong).apply(dual)
        with pytest.raises(RuntimeError, match="the jvp is not returning a view of the given grad input"):
            made(lambda ctx, x: x[:1], lambda ctx, t: lib.ones(2)[:1]).apply(dual)


def test_a_function_inside_a_function(lib, fw):
    inner = square(lib)

    def forward(ctx, x):
        ctx.twice = 2
        return inner.apply(x) * ctx.twice

    outer = function(lib, forward, lambda ctx, grad: grad, jvp=staticmethod(lambda ctx, t: t * ctx.twice))
    with fw.dual_level():
        assert tangent(fw, outer.apply(fw.make_dual(lib.ones(1), lib.ones(1)))) == [2.0]


# ---- user kernels
def test_kernels_of_the_user():
    fw = jitgrad.autograd.forward_ad

    @jitgrad.elementwise
    def both(x, y):
        return x * y * y, x - y

    @jitgrad.jit_function
    def cube(x):
        return x**3

    @cube.backward
    def cube_back(grad, x, result):
        return grad * 3 * x**2

    w = jitgrad.tensor([1.0, 2.0], requires_grad=True)
    with fw.dual_level():
        dual = fw.make_dual(w, jitgrad.ones(2))
        assert [tangent(fw, part) for part in both(dual, jitgrad.tensor([3.0, 4.0]))] == [[9.0, 16.0], [1.0, 1.0]]
        assert [tangent(fw, part) for part in both(jitgrad.tensor([3.0, 4.0]), dual)] == [[6.0, 16.0], [-1.0, -1.0]]
        with pytest.raises(NotImplementedError, match="Trying to use forward AD with cube that does not support it"):
            cube(dual)

    @cube.double_backward
    def cube_rule(grad, x, result):
        return grad * 3 * x**2

    with fw.dual_level():
        dual = fw.make_dual(w, jitgrad.ones(2))
        y = cube(dual)
        assert tangent(fw, y) == [3.0, 12.0]
        assert tangent(fw, jitgrad.autograd.grad(y.sum(), w)[0]) == [6.0, 12.0]
        assert jitgrad.autograd.grad(fw.unpack_dual(cube(dual)).tangent.sum(), w)[0].tolist() == [6.0, 12.0]


def test_nothing_is_left_behind():
    from jitgrad._engine import modes

    before = modes.SPECIAL
    fw = jitgrad.autograd.forward_ad
    with pytest.raises(ZeroDivisionError), fw.dual_level():
        fw.make_dual(jitgrad.ones(1), jitgrad.ones(1)) * 2
        raise ZeroDivisionError
    assert (modes.SPECIAL, modes.LOCAL.level) == (before, None)


def test_where_no_tangent_can_go(lib, fw):
    with fw.dual_level():
        dual = fw.make_dual(lib.ones(2), lib.ones(2))
        for call in (lambda: lib.add(dual, dual, out=lib.ones(2)), lambda: lib.add(lib.ones(2), lib.ones(2), out=dual)):
            with pytest.raises(NotImplementedError, match="Trying to use forward AD with add_out that does not support it because it is an out="):
                call()
        with pytest.raises(RuntimeError, match="cannot resize variables that has a forward grad"):
            dual.clone().resize_(3)
        with pytest.raises(NotImplementedError, match="Trying to use forward AD with aten::floor_divide that does not support it"):
            dual // 2
        with pytest.raises(NotImplementedError, match="Trying to use forward AD with _unique2 that does not support it"):
            dual.unique()
