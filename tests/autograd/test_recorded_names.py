"""Names of the nodes that a recorded backward makes: those of torch, where ours is one node for several of its."""

import pytest

from tests.libraries import leaf

TOP = {
    "sum": lambda lib, x: x.sum(),
    "sum of rows": lambda lib, x: x.sum(1, keepdim=True),
    "mean": lambda lib, x: x.mean(),
    "view": lambda lib, x: x.view(-1),
    "transpose": lambda lib, x: x.t(),
    "permute": lambda lib, x: x.permute(1, 0),
    "unsqueeze": lambda lib, x: x.unsqueeze(0),
    "select": lambda lib, x: x[0],
    "slice": lambda lib, x: x[:1],
    "index": lambda lib, x: x[lib.tensor([0])],
    "index_select": lambda lib, x: x.index_select(0, lib.tensor([0])),
    "gather": lambda lib, x: x.gather(0, lib.tensor([[0, 1]])),
    "flip": lambda lib, x: x.flip(0),
    "split": lambda lib, x: x.split(1)[0],
    "unbind": lambda lib, x: x.unbind()[0],
    "double": lambda lib, x: x.double(),
    "tril": lambda lib, x: x.tril(),
    "masked_select": lambda lib, x: x.masked_select(x > -1),
    "exp": lambda lib, x: x.exp(),
    "log": lambda lib, x: x.log(),
    "sqrt": lambda lib, x: x.sqrt(),
    "sin": lambda lib, x: x.sin(),
    "tanh": lambda lib, x: x.tanh(),
    "sigmoid": lambda lib, x: x.sigmoid(),
    "relu": lambda lib, x: x.relu(),
    "abs": lambda lib, x: x.abs(),
    "neg": lambda lib, x: -x,
    "mul": lambda lib, x: x * 2,
    "div": lambda lib, x: x / 2,
    "reciprocal": lambda lib, x: 2 / x,
    "power": lambda lib, x: x**3,
    "where": lambda lib, x: lib.where(x > 0, x, lib.zeros(2, 2)),
    "masked_fill": lambda lib, x: x.masked_fill(x > 9, 0.0),
    "clamp": lambda lib, x: x.clamp(0, 1),
    "silu": lambda lib, x: lib.nn.functional.silu(x),
    "softplus": lambda lib, x: lib.nn.functional.softplus(x),
}
NAMES = {
    "sum": "ExpandBackward0", "mean": "DivBackward1", "exp": "MulBackward0", "log": "DivBackward0", "tanh": "TanhBackwardBackward0",
    "relu": "ThresholdBackwardBackward0", "view": "ViewBackward0", "neg": "NegBackward0", "where": "WhereBackward0",
    "index_select": "IndexAddBackward0", "split": "CatBackward0",
}  # fmt: skip


def recorded(lib, make):
    x = lib.tensor([[0.5, 0.25], [0.75, 0.5]], requires_grad=True)
    y = make(lib, x)
    seed = lib.ones(tuple(y.shape), dtype=y.dtype, requires_grad=True)
    return lib.autograd.grad(y, x, seed, create_graph=True)[0].grad_fn.name()


@pytest.mark.parametrize("name", NAMES)
def test_name(lib, name):
    assert recorded(lib, TOP[name]) == NAMES[name]


@pytest.mark.parametrize("name", TOP)
def test_name_is_torchs(name):
    torch, jitgrad = pytest.importorskip("torch"), pytest.importorskip("jitgrad")
    assert recorded(jitgrad, TOP[name]) == recorded(torch, TOP[name])


@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True will create a reference cycle")
def test_the_gradients_of_a_function_are_described_as_in_torch(lib):
    def describe(node):
        if node is None:
            return "None"
        below = ", ".join(describe(next_node) for next_node, _ in node.next_functions)
        return f"{type(node).__name__}({below})"

    class Made(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x, number, y):
            ctx.number = number
            ctx.save_for_backward(x, y)
            return x + number * y + x * y

        @staticmethod
        def backward(ctx, grad):
            x, y = ctx.saved_tensors
            return grad + grad * y, None, grad * ctx.number + grad * x

    class Once(Made):
        @staticmethod
        @lib.autograd.function.once_differentiable
        def backward(ctx, grad):
            return Made.backward(ctx, grad)

    found = []
    for made in (Made, Once):
        x, y = leaf(lib, 1.0, 2.0), leaf(lib, 3.0, 4.0)
        made.apply(x, 2, y).sum().backward(lib.ones((), requires_grad=True), create_graph=True)
        found.append(describe(x.grad.grad_fn))
    assert found[0] == (
        "CopyBackwards(None, AddBackward0(ExpandBackward0(AccumulateGrad()), MulBackward0(ExpandBackward0(AccumulateGrad()), AccumulateGrad())))"
    )
    assert found[1] == "CopyBackwards(None, Error(AccumulateGrad(), None, AccumulateGrad()))"


@pytest.mark.parametrize("name", ["var_mean", "std_mean"])
def test_two_moments_are_one_node(lib, name):
    x = lib.tensor([[1.0, 2.0, 4.0], [3.0, 5.0, 9.0]], dtype=lib.float64, requires_grad=True)
    spread, mean = getattr(lib, name)(x, dim=0)
    assert spread.grad_fn is mean.grad_fn
    assert (spread.output_nr, mean.output_nr) == (0, 1)
    assert spread.grad_fn.name() == {"var_mean": "VarMeanBackward0", "std_mean": "StdMeanBackward0"}[name]
    assert len(spread.grad_fn._input_metadata) == 2
    order = []
    spread.register_hook(lambda g: order.append("spread"))
    mean.register_hook(lambda g: order.append("mean"))
    mean.grad_fn.register_prehook(lambda grads: tuple(g * 2 for g in grads))
    (spread + mean).sum().backward()
    assert order == ["spread", "mean"]
    one, other = x.detach().requires_grad_(), x.detach().requires_grad_()
    (getattr(one, name[:3])(0) * 2 + one.mean(0) * 2).sum().backward()
    assert x.grad.flatten().tolist() == pytest.approx(one.grad.flatten().tolist())
    getattr(lib, name)(other, 0)[1].sum().backward()
    assert other.grad.tolist() == [[0.5] * 3] * 2
    assert lib.autograd.gradcheck(lambda x: getattr(lib, name)(x, 0), (x,))
    assert lib.autograd.gradgradcheck(lambda x: getattr(lib, name)(x, 0), (x,))


def test_write_to_a_view_in_a_recorded_backward(lib):
    """The gradient of what was overwritten is a slice written into the gradient of the rest."""
    x = lib.tensor([[-1.0, 2.0], [3.0, -4.0]], requires_grad=True)
    y = (x * 3).view(4)
    lib.nn.functional.threshold(y, 0.5, 0.25, True)
    (grad,) = lib.autograd.grad((y * y).sum(), x, create_graph=True)
    assert grad.tolist() == [[0.0, 36.0], [54.0, 0.0]]
    written = grad.grad_fn.next_functions[0][0]
    assert written.name() == "torch::autograd::CopySlices"
    assert written.next_functions[1][0].name() == "ThresholdBackwardBackward0"
    assert lib.autograd.grad(grad.sum(), x)[0].tolist() == [[0.0, 18.0], [18.0, 0.0]]


def test_second_derivative_through_a_written_view(lib):
    def function(x):
        y = x * x
        y.t()[0].mul_(x[1])
        y.view(-1)[1:3].exp_()
        return y

    x = lib.tensor([[0.5, 0.25], [1.5, -0.5]], dtype=lib.float64, requires_grad=True)
    assert lib.autograd.gradgradcheck(function, x)


@pytest.mark.parametrize(("name", "shape", "turned"), [("mm", (2, 2), "TBackward0"), ("bmm", (3, 2, 2), "TransposeBackward0")])
def test_products(lib, name, shape, turned):
    x, y = lib.ones(shape, requires_grad=True), lib.ones(shape, requires_grad=True)
    of_x, of_y = lib.autograd.grad(getattr(lib, name)(x, y).sum(), (x, y), create_graph=True)
    assert type(of_x.grad_fn.next_functions[1][0]).__name__ == turned
    assert type(of_y.grad_fn.next_functions[0][0]).__name__ == turned
