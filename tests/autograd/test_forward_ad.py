"""Forward mode beside torch's: levels, dual tensors, ops."""

import gc
import subprocess
import sys
import weakref

import pytest

import jitgrad
from tests.forward import QUIET, tangent

pytestmark = QUIET


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


def test_nothing_is_left_behind():
    from jitgrad._engine import modes

    before = modes.SPECIAL
    fw = jitgrad.autograd.forward_ad
    with pytest.raises(ZeroDivisionError), fw.dual_level():
        fw.make_dual(jitgrad.ones(1), jitgrad.ones(1)) * 2
        raise ZeroDivisionError
    assert (modes.SPECIAL, modes.LOCAL.level) == (before, None)


def test_a_tangent_of_another_dtype(lib, fw):
    with fw.dual_level():
        dual = fw.make_dual(lib.ones(2, 2), lib.full((2, 2), 3.0, dtype=lib.float64))
        assert fw.unpack_dual(dual).tangent.dtype == lib.float64
        assert tangent(fw, dual * 2) == [[6.0, 6.0], [6.0, 6.0]]
        if lib is jitgrad:  # torch's matrix products refuse it
            assert tangent(fw, dual @ lib.ones(2, 2)) == [[6.0, 6.0], [6.0, 6.0]]
            assert tangent(fw, lib.nn.functional.linear(dual, lib.ones(1, 2), lib.ones(1))) == [[6.0], [6.0]]
            assert tangent(fw, lib.cat([dual, lib.ones(1, 2)])) == [[3.0, 3.0], [3.0, 3.0], [0.0, 0.0]]
            assert tangent(fw, dual.logsumexp(1)) == [3.0, 3.0]


def test_a_program_without_levels_does_not_even_load_it():
    program = (
        "import sys, jitgrad\n"
        "x = jitgrad.ones(2, requires_grad=True)\n"
        "class Twice(jitgrad.autograd.Function):\n"
        "    forward = staticmethod(lambda ctx, x: x * 2)\n"
        "    backward = staticmethod(lambda ctx, grad: grad * 2)\n"
        "Twice.apply(x).exp().sum().backward()\n"
        "jitgrad.autograd.gradcheck(lambda x: x * x, (x.detach().double().requires_grad_(),))\n"
        "print([name for name in sys.modules if name.startswith('jitgrad') and ('dual' in name or 'forward_ad' in name or 'func.' in name)])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
