"""Custom Functions and user kernels in forward mode, beside torch's."""

import pytest

import jitgrad
from tests.forward import QUIET, tangent
from tests.libraries import function

pytestmark = QUIET


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
