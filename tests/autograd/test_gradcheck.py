"""gradcheck and gradgradcheck: they pass what is right, and say what is wrong."""

import pytest

from tests.libraries import function, leaf


@pytest.fixture(params=[False, True], ids=["slow", "fast"])
def fast_mode(request):
    return request.param


@pytest.fixture
def x(lib):
    return leaf(lib, 0.5, 1.5, dtype="float64")


@pytest.fixture
def y(lib):
    return leaf(lib, 2.0, 3.0, dtype="float64")


def wrong_square(lib):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    return function(lib, forward, lambda ctx, grad: 3 * ctx.saved_tensors[0] * grad)


def test_right(lib, x, y, fast_mode):
    check = lib.autograd.gradcheck
    assert check(lambda a, b: (a * b, a.exp(), (a + b).sum()), (x, y), fast_mode=fast_mode)
    assert check(lambda a, b: a * 2, (x, y), fast_mode=fast_mode)  # the second is not used
    assert check(lambda a: lib.ones(2), x, fast_mode=fast_mode)
    assert check(lambda a, n: a * n, (x, 3), fast_mode=fast_mode)
    assert check(lambda a: a.view(2, 1), x, fast_mode=fast_mode)  # an output over the input's memory
    strided = lib.ones(2, 3, dtype=lib.float64).t().requires_grad_()
    assert check(lambda a: (a * a).t(), strided, fast_mode=fast_mode)
    assert lib.autograd.gradgradcheck(lambda a, b: (a * b, a.exp()), (x, y), fast_mode=fast_mode)
    assert lib.autograd.gradgradcheck(lambda a: a * a, x, gen_non_contig_grad_outputs=True, fast_mode=fast_mode)
    assert lib.autograd.gradgradcheck(lambda a: a * a, x, leaf(lib, 1.0, 2.0, dtype="float64"), fast_mode=fast_mode)
    assert x.tolist() == [0.5, 1.5]
    assert check(lambda a, b: a * b, (x, y), check_batched_grad=True, fast_mode=fast_mode)


def test_wrong(lib, x, y, fast_mode):
    check, wrong = lib.autograd.gradcheck, wrong_square(lib)
    with pytest.raises(RuntimeError, match="Jacobian mismatch for output 0 with respect to input 0,\nnumerical:") as error:
        check(wrong.apply, x, fast_mode=fast_mode)
    text = str(error.value)
    assert "tensor([[1.0000, 0.0000],\n        [0.0000, 3.0000]]" in text
    assert "tensor([[1.5000, 0.0000],\n        [0.0000, 4.5000]]" in text
    assert type(error.value).__name__ == "GradcheckError"
    assert ("The max per-element difference (slow mode) is: 1.5" in text) is fast_mode
    assert check(wrong.apply, x, raise_exception=False, fast_mode=fast_mode) is False
    with pytest.raises(RuntimeError, match="Jacobian mismatch for output 1 with respect to input 1"):
        check(lambda a, b: (a * b, wrong.apply(b)), (x, y), fast_mode=fast_mode)


def test_a_wrong_second_derivative(lib, x, fast_mode):
    def forward(ctx, x):
        ctx.save_for_backward(x.detach())
        return x * x

    half = function(lib, forward, lambda ctx, grad: 2 * ctx.saved_tensors[0] * grad)
    assert lib.autograd.gradcheck(half.apply, x, fast_mode=fast_mode)
    with pytest.raises(RuntimeError, match="Jacobian mismatch for output 0 with respect to input 0"):
        lib.autograd.gradgradcheck(half.apply, x, fast_mode=fast_mode)


def test_not_multiplied_by_the_gradient(lib, x, fast_mode):
    made = function(lib, lambda ctx, x: x * 1, lambda ctx, grad: lib.ones(2, dtype=lib.float64))
    with pytest.raises(RuntimeError, match=r"Jacobian mismatch|backward not multiplied by grad_output"):
        lib.autograd.gradcheck(made.apply, x, fast_mode=fast_mode)


def test_not_deterministic(lib, x, fast_mode):
    calls = []
    made = function(lib, lambda ctx, x: x * 1, lambda ctx, grad: calls.append(1) or grad * (1 + 1e-6 * len(calls)))
    with pytest.raises(RuntimeError, match="Backward is not reentrant"):
        lib.autograd.gradcheck(made.apply, x, fast_mode=fast_mode)
    calls.clear()
    assert lib.autograd.gradcheck(made.apply, x, nondet_tol=1e-3, fast_mode=fast_mode)


@pytest.mark.filterwarnings("ignore:Backwards compatibility")
def test_undefined_gradients(lib, x, fast_mode):
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2

    def backward(ctx, grad):
        if grad is None:
            raise RuntimeError("no gradient")
        return grad * 2

    made = function(lib, forward, backward)
    with pytest.raises(RuntimeError, match="Expected backward function to handle undefined output grads"):
        lib.autograd.gradcheck(made.apply, x, fast_mode=fast_mode)
    assert lib.autograd.gradcheck(made.apply, x, check_undefined_grad=False, fast_mode=fast_mode)


def test_a_hidden_dependence(lib, x, fast_mode):
    with pytest.raises(RuntimeError, match="Numerical gradient for function expected to be zero"):
        lib.autograd.gradcheck(lambda a: a.detach() * 2, x, fast_mode=fast_mode)


def test_inputs(lib, x):
    check = lib.autograd.gradcheck
    with pytest.raises(ValueError, match="gradcheck expects at least one input tensor to require gradient"):
        check(lambda a: a, lib.ones(2))
    with pytest.raises(RuntimeError, match="The 0th input has a dimension with stride 0"):
        check(lambda a: a * 2, lib.ones(1, dtype=lib.float64).expand(3).requires_grad_())
    with pytest.raises(AssertionError, match="Expected at least one of check_forward_ad or check_backward_ad"):
        check(lambda a: a, x, check_backward_ad=False)
    with pytest.warns(UserWarning, match="Input #0 requires gradient and is not a double precision"), pytest.raises(RuntimeError):
        check(lambda a: a.exp(), leaf(lib, 0.3, 0.7))
    calls = []
    with pytest.raises(AssertionError, match="Expected `func` to return outputs with the same shape"):
        check(lambda a: calls.append(1) or lib.cat([a] * len(calls)), x)


@pytest.mark.filterwarnings("ignore:`get_")
def test_helpers(lib, x):
    import importlib

    module = importlib.import_module(f"{lib.__name__}.autograd.gradcheck")
    (numerical,) = module.get_numerical_jacobian(lambda inputs: inputs[0] ** 2, (x,), eps=1e-6)
    analytical, reentrant, sizes_ok, types_ok = module.get_analytical_jacobian((x,), x**2)
    assert lib.allclose(numerical, analytical[0])
    assert analytical[0].tolist() == [[1.0, 0.0], [0.0, 3.0]]
    assert reentrant
    assert sizes_ok
    assert types_ok
    with pytest.raises(ValueError, match=r"Expected grad_out to be 1.0"):
        module.get_numerical_jacobian(lambda inputs: inputs[0], (x,), grad_out=2.0)
