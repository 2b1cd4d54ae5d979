"""Custom Functions: intermediates that a second derivative would miss, and gradients with strides."""

import pytest

import jitgrad
from tests.libraries import function, leaf, lib

__all__ = ["lib"]


# ---- S08
def squared_double(lib, **more):
    """4 * x ** 2, with an intermediate kept on the context where no graph leads to it."""

    def forward(ctx, x):
        ctx.intermediate = 2 * x
        if more.get("saves"):
            ctx.save_for_backward(x)
        return ctx.intermediate**2

    def backward(ctx, grad):
        found = 4 * ctx.intermediate * grad
        return found + 0 * ctx.saved_tensors[0] if more.get("saves") else found

    return function(lib, forward, backward, name="Squared")


@pytest.mark.parametrize("saves", [False, True])
def test_s08_an_intermediate_on_the_context(lib, saves):
    """The first derivative is 24; the second would be 8, and is an error. In torch it is 0 without a word where the input is saved, too."""
    x = leaf(lib, 3.0, dtype="float64")
    (first,) = lib.autograd.grad(squared_double(lib, saves=saves).apply(x), x, lib.ones(1, dtype=lib.float64), create_graph=True)
    assert first.item() == 24
    if saves and lib.__name__ == "torch":
        assert lib.autograd.grad(first, x)[0].item() == 0
        return
    with pytest.raises(RuntimeError, match="intermediate" if lib is jitgrad else "does not require grad"):
        lib.autograd.grad(first, x)


@pytest.mark.parametrize("whole", [True, False])
def test_s08_once_differentiable(lib, whole):
    """Refused both ways; by way of `autograd.grad` torch skips the node that refuses and returns 6 (18 would be right)."""
    once = lib.autograd.function.once_differentiable

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**2

    square = function(lib, forward, once(lambda ctx, grad: 2 * ctx.saved_tensors[0] * grad), name="Square")
    x = leaf(lib, 3.0, dtype="float64")
    (first,) = lib.autograd.grad((square.apply(x) * x).sum(), x, create_graph=True)
    assert first.item() == 27
    if not whole and lib.__name__ == "torch":
        assert lib.autograd.grad(first, x)[0].item() == 6
        return
    with pytest.raises(RuntimeError, match="trying to differentiate twice a function that was marked with @once_differentiable"):
        first.backward() if whole else lib.autograd.grad(first, x)


# ---- S16
@pytest.mark.parametrize(
    ("loss", "factor"),
    [
        (lambda lib, f, x: f(x).sum(), None),
        (lambda lib, f, x: f(x).t().contiguous().view(-1).pow(2).sum(), 8),
        (lambda lib, f, x: lib.cat([f(x), f(x)], 1).pow(2).sum(), 16),
    ],
)
def test_s16_gradients_with_strides(lib, loss, factor):
    """A backward may be handed a gradient of any strides in torch; here it is contiguous and writable."""
    seen = []

    def backward(ctx, grad):
        seen.append(grad)
        return grad * 2

    double = function(lib, lambda ctx, x: x * 2, backward)
    x = lib.arange(6, dtype=lib.float64).reshape(2, 3).requires_grad_()
    loss(lib, double.apply, x).backward()
    expected = [2.0] * 6 if factor is None else [factor * value for value in range(6)]
    assert x.grad.reshape(-1).tolist() == expected
    if lib is jitgrad:
        assert all(grad.is_contiguous() and grad.numpy().flags.writeable and grad.numpy().flags.aligned for grad in seen)
