"""`gradcheck` and `gradgradcheck` of forward mode beside torch's, and forward-mode Jacobians."""

import pytest

from tests.libraries import function

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")


def doubles(lib, *values, requires_grad=True):
    return lib.tensor(list(values), dtype=lib.float64, requires_grad=requires_grad)


def scaled_in_forward_mode(lib, factor):
    """A function that gives a wrong tangent."""
    fw = lib.autograd.forward_ad

    def wrong(x, y):
        if fw._current_level >= 0:
            primal, tangent = fw.unpack_dual(y)
            y = fw.make_dual(primal, tangent * factor)
        return x + y, y

    return wrong


@pytest.mark.parametrize("fast_mode", [False, True])
def test_right_and_wrong_tangents(lib, fast_mode):
    inputs = doubles(lib, 0.3, 0.7), doubles(lib, 1.3, 0.2)
    check = lib.autograd.gradcheck
    assert check(lambda x, y: (x * y, y), inputs, check_forward_ad=True, fast_mode=fast_mode)
    words = "Jacobian computed with forward mode mismatch for output 0 with respect to input 1,\nnumerical:"
    with pytest.raises(RuntimeError, match=words):
        check(scaled_in_forward_mode(lib, 1.1), inputs, check_forward_ad=True, fast_mode=fast_mode)
    assert not check(scaled_in_forward_mode(lib, 1.1), inputs, check_forward_ad=True, fast_mode=fast_mode, raise_exception=False)
    assert check(scaled_in_forward_mode(lib, 1.1), inputs, fast_mode=fast_mode)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_forward_over_reverse(lib, fast_mode):
    inputs = doubles(lib, 0.3, 0.7), doubles(lib, 1.3, 0.2)
    check = lib.autograd.gradgradcheck
    assert check(lambda x, y: x.sin() * y.exp(), inputs, check_fwd_over_rev=True, fast_mode=fast_mode)
    assert check(lambda x, y: x.sin() * y.exp(), inputs, check_fwd_over_rev=True, check_rev_over_rev=False, check_undefined_grad=False,
                 fast_mode=fast_mode)  # fmt: skip
    one = function(lib, lambda ctx, x: ctx.save_for_backward(x) or ctx.save_for_forward(x) or x**3,
                   lambda ctx, grad: grad * 3 * ctx.saved_tensors[0] ** 2,
                   jvp=staticmethod(lambda ctx, t: 3 * ctx.saved_tensors[0] ** 2 * t))  # fmt: skip
    assert check(one.apply, inputs[:1], check_fwd_over_rev=True, fast_mode=fast_mode)


def test_how_often_jvp_is_called_and_with_what(lib):
    fw, calls = lib.autograd.forward_ad, []

    def forward(ctx, x, y):
        if fw._current_level >= 0:
            assert not x.requires_grad
            assert not y.requires_grad
        return x.clone(), y.clone()

    made = function(lib, forward, None, jvp=staticmethod(lambda ctx, a, b: calls.append(None) or (a, b)))

    def count(inputs, **options):
        calls.clear()
        assert lib.autograd.gradcheck(made.apply, inputs, check_forward_ad=True, check_backward_ad=False, **options)
        return len(calls)

    both = doubles(lib, 0.3), doubles(lib, 0.7)
    assert count(both, check_undefined_grad=False) == 2
    assert count(both) == 6
    assert count(both, check_batched_forward_grad=True) == 12
    assert count((both[0], doubles(lib, 0.7, requires_grad=False)), check_batched_forward_grad=True) == 5


def test_only_what_is_asked_for_is_checked(lib):
    forward_only = function(lib, lambda ctx, x: x * 2, None, jvp=staticmethod(lambda ctx, t: t * 2))
    x = doubles(lib, 0.3, 0.7)
    check = lib.autograd.gradcheck
    assert check(forward_only.apply, (x,), check_forward_ad=True, check_backward_ad=False)
    wrong = function(lib, lambda ctx, x: x * 2, lambda ctx, grad: grad * 2, jvp=staticmethod(lambda ctx, t: t * 3))
    assert check(wrong.apply, (x,))
    with pytest.raises(RuntimeError, match="Jacobian computed with forward mode mismatch for output 0 with respect to input 0"):
        check(wrong.apply, (x,), check_forward_ad=True)
    for options, words in [
        ({"check_backward_ad": False}, "Expected at least one of check_forward_ad or check_backward_ad to be True"),
        ({"check_backward_ad": False, "check_forward_ad": True, "check_batched_grad": True}, "requires check_backward_ad to be True"),
        ({"check_batched_forward_grad": True}, "Setting check_batched_forward_grad=True requires check_forward_ad to be True"),
    ]:
        with pytest.raises(AssertionError, match=words):
            check(forward_only.apply, (x,), **options)


def test_writes_and_views(lib):
    x = doubles(lib, 0.3, 0.7)

    def written(x):
        y = x.clone()
        y[0] = y[1]
        return y.mul_(x)

    def into_a_view(x):
        base = lib.zeros(3, dtype=lib.float64)
        base[1:].add_(x)
        return base * base

    def not_the_same_layout(x):
        base = lib.zeros(2, 2, dtype=lib.float64)
        base.t()[0].mul_(2).add_(x)
        return base.sin()

    for made in (written, into_a_view, not_the_same_layout):
        assert lib.autograd.gradcheck(made, (x,), check_forward_ad=True, check_batched_grad=True, check_batched_forward_grad=True)
        assert lib.autograd.gradgradcheck(made, (x,), check_fwd_over_rev=True)


def test_an_output_that_depends_on_nothing(lib):
    assert lib.autograd.gradcheck(lambda x: lib.ones(2, dtype=lib.float64), (doubles(lib, 0.3),), check_forward_ad=True)


# ---- Jacobians by forward mode
def nested(found):
    return [nested(one) for one in found] if isinstance(found, (tuple, list)) else found.tolist()


def test_forward_mode_jacobians(lib):
    jacobian = lib.autograd.functional.jacobian
    forward = {"strategy": "forward-mode", "vectorize": True}
    x, y = doubles(lib, 1.0, 2.0), doubles(lib, 3.0)
    assert nested(jacobian(lambda a: a * a, x, **forward)) == [[2.0, 0.0], [0.0, 4.0]]
    assert nested(jacobian(lambda a, b: (a * b, b), (x, y), **forward)) == [[[[3.0, 0.0], [0.0, 3.0]], [[1.0], [2.0]]], [[[0.0, 0.0]], [[1.0]]]]
    assert nested(jacobian(lambda a: lib.ones(2), x, **forward)) == [[0.0, 0.0], [0.0, 0.0]]
    assert jacobian(lambda a: a * a, x, **forward).requires_grad
    assert not jacobian(lambda a: a * a, x.detach(), **forward).requires_grad


def test_forward_mode_jacobian_of_a_function_without_backward(lib):
    made = function(lib, lambda ctx, x: x * 2, None, jvp=staticmethod(lambda ctx, t: t * 2))
    found = lib.autograd.functional.jacobian(made.apply, lib.ones(2), strategy="forward-mode", vectorize=True)
    assert found.tolist() == [[2.0, 0.0], [0.0, 2.0]]


def test_forward_mode_hessian(lib):
    hessian = lib.autograd.functional.hessian
    forward = {"outer_jacobian_strategy": "forward-mode", "vectorize": True}
    x, y = doubles(lib, 1.0, 2.0), doubles(lib, 3.0)
    assert nested(hessian(lambda a: (a**3).sum(), x.detach(), **forward)) == [[6.0, 0.0], [0.0, 12.0]]
    assert nested(hessian(lambda a, b: (a * a * b).sum(), (x, y), **forward)) == [
        [[[6.0, 0.0], [0.0, 6.0]], [[2.0], [4.0]]],
        [[[2.0, 4.0]], [[0.0]]],
    ]


def test_what_forward_mode_is_not_combined_with(lib):
    functional, x = lib.autograd.functional, lib.ones(2)
    with pytest.raises(AssertionError, match='Expected strategy to be either "forward-mode" or "reverse-mode"'):
        functional.jacobian(lib.exp, x, strategy="sideways")
    with pytest.raises(NotImplementedError, match=r'`create_graph=True` and `strategy="forward-mode"` are not supported together'):
        functional.jacobian(lib.exp, x, strategy="forward-mode", create_graph=True)
    with pytest.raises(RuntimeError, match=r'`strict=True` and `strategy="forward-mode"` are not supported together'):
        functional.jacobian(lib.exp, x, strategy="forward-mode", strict=True, vectorize=True)
    with pytest.raises(NotImplementedError, match="Computing Jacobian using forward-AD or forward-over-reverse Hessian"):
        functional.jacobian(lib.exp, x, strategy="forward-mode")
    with pytest.raises(TypeError, match="The outputs given to None must be either a Tensor or a tuple of Tensors"):
        functional.jacobian(lambda a: 3, x, strategy="forward-mode", vectorize=True)
