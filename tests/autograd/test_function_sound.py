"""Custom Functions where torch loses something: circles, silent zeros, layouts."""

import gc
import weakref

import pytest

import jitgrad as torch
from tests.libraries import function, leaf


@pytest.fixture
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def saved(ctx, x):
    y = x * 2
    ctx.save_for_backward(x, y)
    return y


def attribute(ctx, x):
    ctx.y = y = x * 2
    return y


def two_attributes(ctx, x):
    ctx.y, ctx.z = y, z = x * 2, x * 3
    ctx.save_for_backward(z, y)
    return y, z


def written(ctx, x):
    x.mul_(2)
    ctx.mark_dirty(x)
    ctx.save_for_backward(x)
    ctx.x = x
    return x


@pytest.mark.parametrize("forward", [saved, attribute, two_attributes, written])
def test_an_output_on_the_context_makes_no_circle(no_collector, forward):
    contexts = []

    def noting(ctx, x):
        contexts.append(weakref.ref(ctx))
        return forward(ctx, x)

    result = function(torch, noting, lambda ctx, *grads: grads[0]).apply(leaf(torch, 1.0) * 1)
    nodes = [weakref.ref(x.grad_fn) for x in (result if isinstance(result, tuple) else (result,))]
    assert contexts[0]() is not None
    del result
    assert contexts[0]() is None
    assert [node() for node in nodes] == [None] * len(nodes)


@pytest.mark.parametrize("read", [lambda ctx: ctx.saved_tensors[1], lambda ctx: ctx.y])
@pytest.mark.parametrize("alive", [True, False])
def test_an_output_on_the_context_keeps_its_history(read, alive):
    """backward(g) = g * y with y = 2 x, whose derivative leads through the node itself: g * y * g."""
    made = function(torch, saved if read(Fake) is None else attribute, lambda ctx, grad: grad * read(ctx))
    x = leaf(torch, 3.0)
    y = made.apply(x)
    result = y * 1 if not alive else y
    if not alive:
        del y
    (first,) = torch.autograd.grad(result, x, create_graph=True)
    assert first.item() == 6.0
    assert torch.autograd.grad(first, x)[0].item() == 6.0


class Fake:
    saved_tensors = (None, None)
    y = 0


def test_an_output_on_the_context_is_the_output():
    seen = []
    made = function(torch, attribute, lambda ctx, grad: seen.append(ctx.y is y) or grad)
    y = made.apply(leaf(torch, 3.0))
    y.backward()
    assert seen == [True]


def test_once_differentiable_refuses_both_ways():
    """torch's `autograd.grad` skips the refusing node and returns 6, where 18 is right."""

    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        return 2 * ctx.saved_tensors[0] * grad

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    square = function(torch, forward, backward, "Square")
    x = leaf(torch, 3.0)
    (first,) = torch.autograd.grad(square.apply(x) * x, x, create_graph=True)
    for twice in (lambda: torch.autograd.grad(first, x, retain_graph=True), first.backward):
        with pytest.raises(RuntimeError, match=r"trying to differentiate twice .* @once_differentiable: SquareBackward"):
            twice()


LAYOUTS = {
    "sum": (lambda y: y.sum(), lambda x: [2.0] * 6),
    "transposed": (lambda y: y.t().contiguous().view(-1).pow(2).sum(), lambda x: [8 * v for v in x]),
    "joined": (lambda y: torch.cat([y, y], 1).pow(2).sum(), lambda x: [16 * v for v in x]),
    "expanded": (lambda y: (y.expand(4, 2, 3) * 1.0).sum(), lambda x: [8.0] * 6),
}


@pytest.mark.parametrize("case", LAYOUTS)
@pytest.mark.parametrize("whole", [True, False])
def test_gradients_arrive_contiguous_and_writable(case, whole):
    loss, expected = LAYOUTS[case]
    seen = []

    def backward(ctx, grad):
        flags = grad.numpy().flags
        seen.append((flags.c_contiguous, flags.writeable, flags.aligned))
        return grad * 2

    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    value = loss(function(torch, lambda ctx, x: x * 2, backward).apply(x))
    got = x.grad if whole and value.backward() is None else torch.autograd.grad(value, x)[0]
    assert got.reshape(-1).tolist() == expected(range(6))
    assert seen == [(True, True, True)]


# ---------------------------------------------------------------- intermediates on the context
def keeps(ctx, x):
    ctx.twice = twice = x * 2
    ctx.save_for_backward(x)
    return twice**2


KEEPERS = {
    "alone": lambda ctx, grad: 4 * ctx.twice * grad,
    "beside x": lambda ctx, grad: 4 * ctx.twice * grad + 0 * ctx.saved_tensors[0],
}


@pytest.mark.parametrize("name", KEEPERS)
def test_a_second_derivative_through_an_intermediate_is_refused(name):
    """Right is 8; torch raises that nothing requires grad, or returns 0 without a word."""
    x = leaf(torch, 3.0, dtype="float64")
    made = function(torch, keeps, KEEPERS[name])
    (first,) = torch.autograd.grad(made.apply(x), x, create_graph=True)
    assert first.item() == 24.0
    with pytest.raises(RuntimeError, match=r"MadeBackward can't be differentiated twice: ctx\.twice holds an intermediate"):
        torch.autograd.grad(first, x)


def test_a_first_derivative_through_an_intermediate(recwarn):
    calls = []

    def forward(ctx, x):
        calls.append(None)
        return keeps(ctx, x)

    x = leaf(torch, 3.0)
    made = function(torch, forward, KEEPERS["alone"])
    made.apply(x).backward()
    assert (x.grad.item(), len(calls)) == (24.0, 1)


def test_a_constant_on_the_context_is_none_of_them():
    """A mask depends on no input, so derivatives of any order are right."""

    def forward(ctx, x):
        ctx.mask = torch.bernoulli(torch.full((3,), 0.5, dtype=torch.float64))
        ctx.save_for_backward(x)
        return x * x * ctx.mask

    x = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
    made = function(torch, forward, lambda ctx, grad: 2 * ctx.saved_tensors[0] * grad * ctx.mask)
    for _ in range(2):
        y = made.apply(x)
        mask = (y != 0).to(torch.float64)
        state = torch.get_rng_state()
        (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        assert torch.equal(torch.get_rng_state(), state)
        assert torch.equal(torch.autograd.grad(first.sum(), x)[0], 2 * mask)


def test_intermediates_of_setup_context():
    made = type(torch.autograd.Function)("Made", (torch.autograd.Function,), {
        "forward": staticmethod(lambda x: (x * 2) ** 2), "setup_context": staticmethod(lambda ctx, inputs, output: keeps(ctx, *inputs)),
        "backward": staticmethod(KEEPERS["beside x"])})  # fmt: skip
    x = leaf(torch, 3.0)
    (first,) = torch.autograd.grad(made.apply(x), x, create_graph=True)
    with pytest.raises(RuntimeError, match=r"ctx\.twice holds an intermediate"):
        torch.autograd.grad(first, x)


@pytest.mark.parametrize("way", ["backward", "grad"])
def test_differentiating_once_only_is_refused_both_ways(way):
    """x**2 times x: right is 18 at 3; torch's `autograd.grad` skips the refusing node and returns 6."""
    backward = torch.autograd.function.once_differentiable(lambda ctx, grad: 6 * grad)
    x = leaf(torch, 3.0, dtype="float64")
    y = function(torch, lambda ctx, x: x**2, backward, "Squared").apply(x) * x
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    with pytest.raises(RuntimeError, match="trying to differentiate twice a function that was marked with @once_differentiable: SquaredBackward"):
        first.backward() if way == "backward" else torch.autograd.grad(first, x)


def test_func_takes_a_function_without_setup_context():
    made = function(torch, lambda ctx, x: ctx.save_for_backward(x) or x**3, lambda ctx, grad: grad * 3 * ctx.saved_tensors[0] ** 2)
    x = torch.tensor(2.0)
    assert torch.func.grad(made.apply)(x).item() == 12.0
    assert torch.func.grad(torch.func.grad(made.apply))(x).item() == 12.0
    assert torch.func.grad(lambda y: torch.func.grad(lambda z: made.apply(z * y))(y))(x).item() == 240.0
